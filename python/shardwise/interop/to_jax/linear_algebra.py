# SPDX-License-Identifier: Apache-2.0
"""Factorizations, solvers and eigenvalues in `jax.lax.linalg` and `jax.numpy.linalg`.

Each is the function that calls the same routine of LAPACK on CPUs, so that results agree to rounding. Helpers have the
names of LAPACK's routines, and return their results in their order.
"""

from __future__ import annotations

import numpy as np

from ..._core.ir import Op, Value
from ..source.custom_calls import CustomCalls, Options, flags_of, letter, widened
from ..source.scope import Scope, call
from ..source.target import attributes
from .target import JAX, emits

__all__: list[str] = []

_CALLS = CustomCalls(JAX, {})
emits("stablehlo.custom_call")(_CALLS.emit)


# ---- triangles and solvers -----------------------------------------------------------------------------------------


@emits("stablehlo.cholesky")
def cholesky(scope: Scope, op: Op) -> str:
    if attributes(op).get("lower", False):
        return widened(scope, op, "lax.linalg.cholesky", "symmetrize_input=False")
    return widened(scope, op, scope.helper("upper_cholesky"))


@emits("stablehlo.triangular_solve")
def triangular_solve(scope: Scope, op: Op) -> str:
    own = attributes(op)
    transpose = own["transpose_a"].value
    flags = flags_of(
        left_side=own["left_side"],
        lower=own["lower"],
        transpose_a=transpose != "NO_TRANSPOSE",
        conjugate_a=transpose == "ADJOINT",
        unit_diagonal=own["unit_diagonal"],
    )
    return widened(scope, op, "lax.linalg.triangular_solve", *flags)


@_CALLS.emits("potrf")
def potrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("potrf"), scope(op.operands[0]), *flags_of(lower=letter(options, "uplo") == "L"))


@_CALLS.emits("trsm")
def trsm(scope: Scope, op: Op, options: Options) -> str:
    transpose = letter(options, "trans_x")
    flags = flags_of(
        left_side=letter(options, "side") == "L",
        lower=letter(options, "uplo") == "L",
        transpose_a=transpose != "N",
        conjugate_a=transpose == "C",
        unit_diagonal=letter(options, "diag") == "U",
    )
    return call("lax.linalg.triangular_solve", *map(scope, op.operands), *flags)


@_CALLS.emits("gtsv")
def gtsv(scope: Scope, op: Op, options: Options) -> str:
    _CALLS.expect_unused(scope, op, 0, 1, 2)
    return call(scope.helper("gtsv"), *map(scope, op.operands))


@_CALLS.emits("shardwise.solve")
def solve(scope: Scope, op: Op, options: Options) -> str:
    return call("jnp.linalg.solve", *map(scope, op.operands))


@_CALLS.emits("getrf")
def getrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("getrf"), scope(op.operands[0]))


@_CALLS.emits("shardwise.lu", "LuDecomposition")
def lu(scope: Scope, op: Op, options: Options) -> str:
    return call("lax.linalg.lu", scope(op.operands[0]))


@_CALLS.emits("shardwise.det", "shardwise.slogdet")
def determinant(scope: Scope, op: Op, options: Options) -> str:
    function = attributes(op)["call_target_name"].removeprefix("shardwise.")
    return call(f"jnp.linalg.{function}", scope(op.operands[0]))


# ---- orthogonal factors --------------------------------------------------------------------------------------------


@_CALLS.emits("shardwise.qr")
def qr(scope: Scope, op: Op, options: Options) -> str:
    rows, columns = op.results[0].type.shape[-2:]
    return call("lax.linalg.qr", scope(op.operands[0]), f"full_matrices={rows == columns}")


@_CALLS.emits("geqrf", "Qr")
def geqrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("geqrf"), scope(op.operands[0]))


@_CALLS.emits("geqp3")
def geqp3(scope: Scope, op: Op, options: Options) -> str:
    if not _is_zero(op.operands[1]):
        raise _CALLS.refusal(scope, op, "it chooses all pivots of a QR factorization itself")
    return call(scope.helper("geqp3"), scope(op.operands[0]))


def _is_zero(x: Value) -> bool:
    """Whether all elements of a constant are 0."""
    op = x.defining_op
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        return _is_zero(op.operands[0])
    return op is not None and op.name == "stablehlo.constant" and not np.any(attributes(op)["value"])


@_CALLS.emits("orgqr", "ProductOfElementaryHouseholderReflectors")
def reflectors(scope: Scope, op: Op, options: Options) -> str:
    return call("lax.linalg.householder_product", *map(scope, op.operands))


@_CALLS.emits("ormqr")
def ormqr(scope: Scope, op: Op, options: Options) -> str:
    texts = [f"{name}={bool(options[name])}" for name in ("left", "transpose")]
    return call("lax.linalg.ormqr", *map(scope, op.operands), *texts)


# ---- eigenvalues and singular values -------------------------------------------------------------------------------


def _eigh(scope: Scope, op: Op, lower: bool) -> str:
    triangle = [] if lower else ["lower=False"]
    return call("lax.linalg.eigh", scope(op.operands[0]), *triangle, "symmetrize_input=False")


@_CALLS.emits("shardwise.eigh")
def eigh(scope: Scope, op: Op, options: Options) -> str:
    return _eigh(scope, op, letter(options, "uplo") == "L")


@_CALLS.emits("Eigh")
def tpu_eigh(scope: Scope, op: Op, options: Options) -> str:
    return _eigh(scope, op, not options["backend_config"].startswith("0"))


@_CALLS.emits("shardwise.eigvalsh")
def eigvalsh(scope: Scope, op: Op, options: Options) -> str:
    return f"{_eigh(scope, op, letter(options, 'uplo') == 'L')}[1]"


@_CALLS.emits("syevd")
def syevd(scope: Scope, op: Op, options: Options) -> str:
    if letter(options, "mode") == "N":
        _CALLS.expect_unused(scope, op, 0)
    return call(scope.helper("syevd"), scope(op.operands[0]), *flags_of(lower=letter(options, "uplo") == "L"))


@_CALLS.emits("shardwise.eig")
def eig(scope: Scope, op: Op, options: Options) -> str:
    return call("jnp.linalg.eig", scope(op.operands[0]))


@_CALLS.emits("shardwise.eigvals")
def eigvals(scope: Scope, op: Op, options: Options) -> str:
    return call("jnp.linalg.eigvals", scope(op.operands[0]))


@_CALLS.emits("geev")
def geev(scope: Scope, op: Op, options: Options) -> str:
    is_wanted = {side: letter(options, f"compute_{side}") == "V" for side in ("left", "right")}
    _CALLS.expect_unused(scope, op, *(i for i, wanted in zip((-3, -2), is_wanted.values()) if not wanted))
    return call(scope.helper("geev"), scope(op.operands[0]), *flags_of(**is_wanted))


@_CALLS.emits("shardwise.svd")
def svd(scope: Scope, op: Op, options: Options) -> str:
    u, s, _ = (x.type.shape[-1] for x in op.results)
    is_full = (u, op.results[2].type.shape[-2]) != (s, s)
    return call("lax.linalg.svd", scope(op.operands[0]), f"full_matrices={is_full}")


@_CALLS.emits("shardwise.svdvals")
def svdvals(scope: Scope, op: Op, options: Options) -> str:
    return call("lax.linalg.svd", scope(op.operands[0]), "compute_uv=False")


@_CALLS.emits("gesdd", "gesvd")
def gesdd(scope: Scope, op: Op, options: Options) -> str:
    mode = letter(options, "mode")
    _CALLS.expect_unused(scope, op, *((0, 2, 3) if mode == "N" else (0,)))
    is_by_qr = "gesvd" in attributes(op)["call_target_name"]
    texts = ["algorithm=lax.linalg.SvdAlgorithm.QR"] if is_by_qr else []
    return call(scope.helper("gesdd"), scope(op.operands[0]), repr(mode), *texts)


# ---- other forms ---------------------------------------------------------------------------------------------------


@_CALLS.emits("gees")
def gees(scope: Scope, op: Op, options: Options) -> str:
    _CALLS.expect_unused(scope, op, *range(2 if letter(options, "mode") == "V" else 1, len(op.results) - 2))
    return call(scope.helper("gees"), scope(op.operands[0]))


@_CALLS.emits("gehrd")
def gehrd(scope: Scope, op: Op, options: Options) -> str:
    n = op.operands[0].type.shape[-1]
    if n and (options["low"], options["high"]) != (1, n):
        raise _CALLS.refusal(scope, op, "its Hessenberg form is that of all rows")
    return call(scope.helper("gehrd"), scope(op.operands[0]))


@_CALLS.emits("sytrd")
def sytrd(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("sytrd"), scope(op.operands[0]), f"lower={letter(options, 'uplo') == 'L'}")
