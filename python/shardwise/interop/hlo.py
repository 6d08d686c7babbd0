# SPDX-License-Identifier: Apache-2.0
"""Reads the text of compiled HLO: the collectives with their bytes, and the class of each instruction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..dtypes import numpy_dtype

__all__ = ["HloCollective", "collectives_of", "instructions_of", "op_class"]

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_TYPE = re.compile(r"(\w+)\[([\d,]*)\]")
_KINDS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "collective_permute",
}
_DTYPES = {"pred": "bool", "s": "int", "u": "uint", "f": "float", "c": "complex", "bf": "bfloat"}
_CLASSES = {
    "dot": ("dot", "convolution"),
    "reduce": ("reduce", "reduce-window", "sort", "scatter", "select-and-scatter"),
    "movement": (
        "broadcast", "concatenate", "copy", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad", "reshape",
        "reverse", "slice", "transpose",
    ),
}  # fmt: skip
_FREE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call")
_CLASS_OF = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes}


@dataclass(frozen=True)
class HloCollective:
    """A collective of compiled HLO.

    Attributes:
        name: of the instruction.
        kind: as in a ledger.
        group_size: the number of devices of a group; for a permute, 0.
        bytes: received by one device in one execution.
        dtype, shape: of the result of one device.
    """

    name: str
    kind: str
    group_size: int
    bytes: float
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Instruction:
    """An instruction that runs by itself: not one inside a fusion or a combiner."""

    name: str
    op_class: str
    bytes: float


def _types(text: str) -> list[tuple[str, tuple[int, ...]]]:
    found = []
    for name, dims in _TYPE.findall(text):
        match = re.fullmatch(r"([a-z]+)(\d*)(.*)", name)
        dtype = name if match is None else f"{_DTYPES.get(match[1], match[1])}{match[2]}{match[3]}"
        if match is not None and match[1] == "f" and match[2] == "8":
            dtype = f"float8_{match[3]}"
        found.append((dtype, tuple(int(n) for n in dims.split(",") if n)))
    return found


def _size(dtype: str, shape: tuple[int, ...]) -> int:
    try:
        return math.prod(shape) * numpy_dtype(dtype).itemsize
    except (TypeError, ValueError):
        return 0  # a token


def _group_size(line: str) -> int:
    named = re.search(r"replica_groups=mesh\[(.*?)\](?:, device_ids=\S+)? \{(.*?)\}", line)
    if named is not None:  # of axes, or of parts of them: 'x':(2)4
        sizes = dict(re.findall(r"'(.*?)'=(\d+)", named[1]))
        axes = re.findall(r"'(.*?)'(?::\(\d+\)(\d+))?", named[2])
        return math.prod(int(part or sizes[axis]) for axis, part in axes)
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if iota is not None:
        return int(iota[2])
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    return listed[1].count(",") + 1 if listed is not None else 0


def _received(kind: str, size: int, item: int, group: int) -> float:
    """Bytes that one device receives, from those of its result."""
    if kind == "collective_permute":
        return float(size)
    if group < 2:
        return 0.0
    if kind == "all_reduce":
        count = size // item
        return float((count + (group - 2) * math.ceil(count / group)) * item)
    return float(size * (group - 1)) if kind == "reduce_scatter" else size * (group - 1) / group


def _lines(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, opcode and text of each instruction."""
    for line in text.splitlines():
        match = _INSTRUCTION.match(line)
        if match is not None:
            yield match[1], match[2], match[3], line


def collectives_of(text: str) -> list[HloCollective]:
    """The collectives in program order, once each, also those in loops."""
    found = []
    for name, kind_text, opcode, line in _lines(text):
        kind = _KINDS.get(opcode.removesuffix("-start"))
        if kind is None:
            continue
        types = _types(kind_text)
        if opcode.endswith("-start") and len(types) > 1:
            types = types[len(types) // 2 :]  # a pair of operands and results
        size = sum(_size(*each) for each in types)
        dtype, shape = types[0]
        group = _group_size(line)
        item = numpy_dtype(dtype).itemsize
        found.append(HloCollective(name, kind, group, _received(kind, size, item, group), dtype, shape))
    return found


def op_class(opcodes: set[str]) -> str:
    """The class of an op, or of the ops of a fusion: dot, reduce, elementwise or movement."""
    classes = {_CLASS_OF.get(opcode, "elementwise") for opcode in opcodes if opcode not in _FREE}
    return next((name for name in ("dot", "reduce", "elementwise", "movement") if name in classes), "other")


def instructions_of(text: str) -> list[Instruction]:
    """The instructions that run by themselves."""
    computations: dict[str, set[str]] = {}
    name, lines = "", list(text.splitlines())
    for line in lines:
        begin = _COMPUTATION.match(line)
        name = begin[1] if begin is not None else name
        match = _INSTRUCTION.match(line)
        if match is not None:
            computations.setdefault(name, set()).add(match[3])
    inner = set(re.findall(r"(?:calls|to_apply)=%?([\w.-]+)", text))
    found = []
    for line in lines:
        begin = _COMPUTATION.match(line)
        name = begin[1] if begin is not None else name
        match = _INSTRUCTION.match(line)
        if match is None or name in inner or match[3] in _FREE:
            continue
        kind = _KINDS.get(match[3].removesuffix("-start"))
        called = re.search(r"calls=%?([\w.-]+)", line)
        opcodes = computations.get(called[1], set()) if called is not None else {match[3]}
        size = float(sum(_size(*each) for each in _types(match[2])))
        found.append(Instruction(match[1], kind or op_class(opcodes), size))
    return found
