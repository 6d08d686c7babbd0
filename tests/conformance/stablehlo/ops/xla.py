# SPDX-License-Identifier: Apache-2.0
"""Results of XLA:CPU. Many instances share one module, because XLA spends most of the time in compilation."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from shardwise.dtypes import numpy_dtype
from tests.op.catalogue.instance import Instance, tensor
from tests.op.catalogue.values import Array
from tests.op.dtype_values import ALL_DTYPES
from tests.support.paths import ROOT

WORKER = "tests.conformance.stablehlo.ops.xla_worker"
SUB_BYTE = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
BELOW_FLOAT8 = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
FLOAT8 = dict.fromkeys((d for d in ALL_DTYPES if d.startswith("float8")), "float32")
WIDER = {
    **dict.fromkeys((*FLOAT8, *BELOW_FLOAT8, "float16", "bfloat16", "float32"), "float64"),
    "complex64": "complex128",
}
CONTRACTIONS = (
    "stablehlo.dot_general",
    "stablehlo.dot",
    "stablehlo.einsum",
    "stablehlo.convolution",
    "stablehlo.dynamic_conv",
    "chlo.ragged_dot",
)


def mixed(instance: Instance) -> bool:
    dtypes = {x.dtype.name for x in instance.arguments} | {dtype for _, dtype in instance.results}
    return len(dtypes) > 1


def computed_in(instance: Instance) -> dict[str, str]:
    """The dtypes in which XLA:CPU computes what it cannot compute in the instance's own.

    It has no float6 and few ops of float4; float32 holds their values, and each op rounds once. It has no contractions
    of sub-byte integers; those of bytes are the same modulo the width. Its process crashes on concatenations of them.
    """
    if instance.op == "stablehlo.bitcast_convert":
        return {}
    others = dict.fromkeys(BELOW_FLOAT8, "float32")
    if instance.op in (*CONTRACTIONS, "stablehlo.sort", "chlo.top_k", "stablehlo.concatenate"):
        others |= SUB_BYTE
    if instance.op in CONTRACTIONS and mixed(instance):
        others |= {d: wide for d, wide in FLOAT8.items() if d.endswith("fnuz")}  # its process crashes on some mixtures
    if instance.op in ("chlo.erfc", "chlo.top_k"):
        others |= FLOAT8
    return others


class Xla:
    """A process that compiles and runs texts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, instances: Sequence[Instance]) -> list[list[Array] | str]:
        """The results of each instance, or the error message of XLA."""
        if not instances:
            return []
        answer = self._ask(*together([x.with_dtypes(computed_in(x)) for x in instances]))
        if not isinstance(answer, str):
            found: list[list[Array] | str] = []
            at = 0
            for instance in instances:
                own = answer[at : at + len(instance.results)]
                found.append([cleaned(x, d) for x, (_, d) in zip(own, instance.results)])
                at += len(own)
            return found
        if len(instances) == 1:
            return [answer]
        half = len(instances) // 2
        return self.run(instances[:half]) + self.run(instances[half:])

    def run_wider(self, instances: Sequence[Instance]) -> list[list[Array] | str]:
        """The same computed in wider floats and rounded once."""
        answers = self.run([x.with_dtypes(WIDER) for x in instances])
        return [
            found if isinstance(found, str) else [cleaned(x, d) for x, (_, d) in zip(found, instance.results)]
            for instance, found in zip(instances, answers)
        ]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes
                self._process = None

    def _ask(self, text: str, arrays: list[Array]) -> Any:
        if self._process is None:
            command, pipe = [sys.executable, "-m", WORKER], subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=ROOT)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump((text, arrays), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.close()
            return "the XLA process crashed"


def cleaned(array: Array, dtype: str) -> Array:
    """The array in the dtype of the instance, without the undefined upper bits of a byte."""
    if dtype in SUB_BYTE:
        array = array.astype(SUB_BYTE[dtype])
    return array if array.dtype == numpy_dtype(dtype) else array.astype(numpy_dtype(dtype))


def together(instances: Sequence[Instance]) -> tuple[str, list[Array]]:
    """One function that computes all of them."""
    arrays: list[Array] = []
    bodies: list[str] = []
    returned: list[str] = []
    types: list[str] = []
    functions: list[str] = []
    for i, instance in enumerate(instances):
        other = instance.renamed(f"n{i}_")
        names = {f"%n{i}_a{k}": f"%arg{len(arrays) + k}" for k in range(len(instance.arguments))}
        bodies.append(substituted(other.body, names))
        returned += other.returned
        types += [tensor(*t) for t in other.results]
        functions.append(other.functions)
        arrays += instance.arguments
    arguments = ", ".join(f"%arg{i}: {tensor(x.shape, x.dtype.name)}" for i, x in enumerate(arrays))
    text = f"module @all {{\nfunc.func public @main({arguments}) -> ({', '.join(types)}) {{\n{''.join(bodies)}"
    text += f"  return {', '.join(returned)} : {', '.join(types)}\n}}\n{''.join(functions)}}}\n"
    return text, arrays


def substituted(text: str, names: dict[str, str]) -> str:
    for old, new in sorted(names.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(old, new)
    return text
