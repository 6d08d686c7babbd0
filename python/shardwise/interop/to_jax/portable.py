# SPDX-License-Identifier: Apache-2.0
"""The ops of StableHLO in place of calls of LAPACK, which only CPUs have.

    %1:2 = stablehlo.custom_call @lapack_spotrf_ffi(%0) {mhlo.backend_config = {uplo = 76 : ui8}, …}
    becomes
    %1 = stablehlo.cholesky %0, lower = true
    %2 = stablehlo.constant dense<0> : tensor<i32>

JAX lowers `lax.linalg.cholesky` and `triangular_solve` to such calls for CPUs. LAPACK returns a code for a matrix that
is not positive definite, and JAX turns it into NaN. The op gives NaN itself, so the code is always 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..optional import jax

__all__ = ["walk", "with_ops_for_calls"]

_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def walk(op: Any) -> Iterator[Any]:
    """All ops of the regions of an op. The body may erase the one that it has got."""
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                yield from walk(inner.operation)
                yield inner.operation


def with_ops_for_calls(module: Any) -> None:
    """Replace the calls in a module of MLIR, in its context."""
    for op in walk(module.operation):
        if op.name == "stablehlo.custom_call":
            routine = str(op.attributes["call_target_name"]).strip('"').removesuffix("_ffi")[len("lapack_s") :]
            if routine in _OPS:
                options = op.attributes["mhlo.backend_config"]
                made = _OPS[routine](op, {item.name: chr(int(item.attr)) for item in options})
                for old, new in zip(op.results, made):
                    old.replace_all_uses_with(new)
                op.erase()


def _cholesky(op: Any, options: dict[str, str]) -> list[Any]:
    factor, info = op.results
    zeros = _ir().DenseElementsAttr.parse(f"dense<0> : {info.type}")
    return [
        _created("cholesky", op, factor, {"lower": _flag(options["uplo"] == "L")}),
        _created("constant", op, info, {"value": zeros}, []),
    ]


def _triangular_solve(op: Any, options: dict[str, str]) -> list[Any]:
    transpose = _TRANSPOSES[options["trans_x"]]
    attributes = {
        "left_side": _flag(options["side"] == "L"),
        "lower": _flag(options["uplo"] == "L"),
        "unit_diagonal": _flag(options["diag"] == "U"),
        "transpose_a": _ir().Attribute.parse(f"#stablehlo<transpose {transpose}>"),
    }
    return [_created("triangular_solve", op, op.results[0], attributes)]


def _created(name: str, op: Any, result: Any, attributes: dict[str, Any], operands: list[Any] | None = None) -> Any:
    """The result of a new op with the type of an old result, at the place of its op."""
    ir = _ir()
    made = ir.Operation.create(
        f"stablehlo.{name}",
        results=[result.type],
        operands=list(op.operands) if operands is None else operands,
        attributes=attributes,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    return made.result


def _flag(value: bool) -> Any:
    return _ir().BoolAttr.get(value)


def _ir() -> Any:
    return jax.interpreters.mlir.ir


_OPS: dict[str, Callable[[Any, dict[str, str]], list[Any]]] = {"potrf": _cholesky, "trsm": _triangular_solve}
