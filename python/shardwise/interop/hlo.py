# SPDX-License-Identifier: Apache-2.0
"""Reads the text of compiled HLO: the collectives with their bytes, and the class of each instruction."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

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
    "other": (  # of a library
        "cholesky", "custom-call", "fft", "random-bits", "rng", "rng-bit-generator", "top-k", "topk",
        "triangular-solve",
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
        count: the number of executions in one run; a loop of an unknown number of trips counts as one trip.
    """

    name: str
    kind: str
    group_size: int
    bytes: float
    dtype: str
    shape: tuple[int, ...]
    count: int = 1


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


class _Line(NamedTuple):
    """The line of an instruction."""

    computation: str
    name: str
    kind: str
    opcode: str
    text: str

    def named(self, attribute: str) -> str:
        """What an attribute names, ``condition=%name``; "" without it."""
        match = re.search(rf"\b{attribute}=%?([\w.-]+)", self.text)
        return "" if match is None else match[1]

    @property
    def operands(self) -> list[str]:
        """The names of the operands; `name#2` is an element of a tuple, which older texts get by an instruction."""
        return re.findall(r"%([\w.-]+(?:#\d+)?)", self.text.partition(f" {self.opcode}(")[2].partition(")")[0])


def _lines(text: str) -> Iterator[_Line]:
    computation = ""
    for line in text.splitlines():
        begin, match = _COMPUTATION.match(line), _INSTRUCTION.match(line)
        computation = computation if begin is None else begin[1]
        if match is not None:
            yield _Line(computation, match[1], match[2], match[3], line)


def collectives_of(text: str) -> list[HloCollective]:
    """The collectives in program order, once each, with the number of their executions."""
    lines = list(_lines(text))
    counts = _executions(text, lines)
    found = []
    for line in lines:
        kind = _KINDS.get(line.opcode.removesuffix("-start"))
        if kind is None:
            continue
        types = _types(line.kind)
        if line.opcode.endswith("-start") and len(types) > 1:
            types = types[len(types) // 2 :]  # a pair of operands and results
        size = sum(_size(*each) for each in types)
        dtype, shape = types[0]
        group = _group_size(line.text)
        received = _received(kind, size, numpy_dtype(dtype).itemsize, group)
        found.append(HloCollective(line.name, kind, group, received, dtype, shape, counts[line.computation]))
    return found


def _executions(text: str, lines: Sequence[_Line]) -> dict[str, int]:
    """How often each computation runs: those called twice run twice, those of a loop once per trip."""
    by_name = {line.name: line for line in lines}
    callers: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for line in lines:
        if line.opcode == "while":
            trips = _trips(line, lines, by_name)
            for attribute in ("body", "condition"):
                callers[line.named(attribute)].append((line.computation, trips))
        elif line.opcode == "conditional":
            names = re.search(r"branch_computations=\{(.*?)\}", line.text)
            listed = re.findall(r"%?([\w.-]+)", names[1]) if names is not None else []
            for name in (*listed, line.named("true_computation"), line.named("false_computation")):
                callers[name].append((line.computation, 1))
        else:
            callers[line.named("calls") or line.named("to_apply")].append((line.computation, 1))
    entry = re.search(r"^ENTRY %?([\w.-]+)", text, re.MULTILINE)

    @cache
    def count(computation: str) -> int:
        own = int(entry is not None and computation == entry[1])
        return own + sum(count(caller) * trips for caller, trips in callers.get(computation, ()))

    return {line.computation: count(line.computation) for line in lines}


def _trips(loop: _Line, lines: Sequence[_Line], by_name: Mapping[str, _Line]) -> int:
    """The trips of a loop that counts from a constant up to one; 1 for any other."""
    known = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.text)
    if known is not None:
        return int(known[1])
    constants = {
        name: int(match[1])
        for name, line in by_name.items()
        if line.opcode == "constant" and (match := re.search(r" constant\((-?\d+)\)", line.text)) is not None
    }
    inside = [line for line in lines if line.computation == loop.named("condition")]
    test = next((line for line in inside if line.text.lstrip().startswith("ROOT")), None)
    carries = by_name.get(loop.operands[0]) if loop.operands else None
    if test is None or carries is None or "direction=LT" not in test.text or len(test.operands) != 2:
        return 1
    counter, limit = test.operands
    place = re.search(r"#(\d+)$", counter)
    if place is None and counter in by_name:
        place = re.search(r"index=(\d+)", by_name[counter].text)
    if place is None or limit not in constants or int(place[1]) >= len(carries.operands):
        return 1
    first = carries.operands[int(place[1])]
    return max(constants[limit] - constants[first], 0) if first in constants else 1


def op_class(opcodes: set[str]) -> str:
    """The class of an op, or of the ops of a fusion: dot, reduce, elementwise, movement or other."""
    classes = {_CLASS_OF.get(opcode, "elementwise") for opcode in opcodes if opcode not in _FREE}
    return next((name for name in ("dot", "reduce", "other", "elementwise", "movement") if name in classes), "other")


def instructions_of(text: str) -> list[Instruction]:
    """The instructions that run by themselves."""
    lines = list(_lines(text))
    computations: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        computations[line.computation].add(line.opcode)
    called = {line.named("calls") for line in lines}
    called |= {line.named("to_apply") for line in lines if line.opcode != "call"}
    found = []
    for line in lines:
        if line.computation in called or line.opcode in _FREE:
            continue
        kind = _KINDS.get(line.opcode.removesuffix("-start"))
        opcodes = computations[line.named("calls")] if line.named("calls") else {line.opcode}
        size = float(sum(_size(*each) for each in _types(line.kind)))
        found.append(Instruction(line.name, kind or op_class(opcodes), size))
    return found
