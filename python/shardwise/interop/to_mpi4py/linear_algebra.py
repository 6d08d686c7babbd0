# SPDX-License-Identifier: Apache-2.0
"""Factorizations, solvers and eigenvalues in `np.linalg`.

NumPy raises an error where LAPACK does not succeed. The helper `or_nan` gives NaN there, as programs do.
"""

from __future__ import annotations

from ..._core.ir import Op
from ..source.custom_calls import CustomCalls, Options, flags_of, letter, widened
from ..source.scope import Scope, call
from ..source.target import attributes
from .target import MPI4PY, emits

__all__: list[str] = []

_CALLS = CustomCalls(
    MPI4PY,
    {
        "geqp3": "QR factorization with pivots",
        "gees": "Schur form",
        "gehrd": "Hessenberg form",
        "sytrd": "tridiagonal form",
    },
)
emits("stablehlo.custom_call")(_CALLS.emit)


def _or_nan(scope: Scope, op: Op, function: str, *options: str) -> str:
    """A call of a function of NumPy, with NaN where it raises an error."""
    return call(scope.helper("or_nan"), function, *map(scope, op.operands), *options)


# ---- triangles and solvers -----------------------------------------------------------------------------------------


@emits("stablehlo.cholesky")
def cholesky(scope: Scope, op: Op) -> str:
    lower = attributes(op).get("lower", False)
    return widened(scope, op, scope.helper("cholesky"), *([] if lower else ["upper=True"]))


@emits("stablehlo.triangular_solve")
def triangular_solve(scope: Scope, op: Op) -> str:
    own = attributes(op)
    transpose = own["transpose_a"].value
    flags = flags_of(
        left_side=own["left_side"],
        lower=own["lower"],
        transpose=transpose != "NO_TRANSPOSE",
        conjugate=transpose == "ADJOINT",
        unit_diagonal=own["unit_diagonal"],
    )
    return widened(scope, op, scope.helper("triangular_solve"), *flags)


@_CALLS.emits("potrf")
def potrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("potrf"), scope(op.operands[0]), *flags_of(upper=letter(options, "uplo") == "U"))


@_CALLS.emits("trsm")
def trsm(scope: Scope, op: Op, options: Options) -> str:
    transpose = letter(options, "trans_x")
    flags = flags_of(
        left_side=letter(options, "side") == "L",
        lower=letter(options, "uplo") == "L",
        transpose=transpose != "N",
        conjugate=transpose == "C",
        unit_diagonal=letter(options, "diag") == "U",
    )
    return call(scope.helper("triangular_solve"), *map(scope, op.operands), *flags)


@_CALLS.emits("gtsv")
def gtsv(scope: Scope, op: Op, options: Options) -> str:
    _CALLS.expect_unused(scope, op, 0, 1, 2)
    return call(scope.helper("gtsv"), *map(scope, op.operands))


@_CALLS.emits("shardwise.solve")
def solve(scope: Scope, op: Op, options: Options) -> str:
    return _or_nan(scope, op, "np.linalg.solve")


@_CALLS.emits("getrf")
def getrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("getrf"), scope(op.operands[0]))


@_CALLS.emits("shardwise.lu", "LuDecomposition")
def lu(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("lu"), scope(op.operands[0]))


@_CALLS.emits("shardwise.det", "shardwise.slogdet")
def determinant(scope: Scope, op: Op, options: Options) -> str:
    function = attributes(op)["call_target_name"].removeprefix("shardwise.")
    return call(f"np.linalg.{function}", scope(op.operands[0]))


# ---- orthogonal factors --------------------------------------------------------------------------------------------


@_CALLS.emits("shardwise.qr")
def qr(scope: Scope, op: Op, options: Options) -> str:
    rows, columns = op.results[0].type.shape[-2:]
    return call("np.linalg.qr", scope(op.operands[0]), *(['"complete"'] if rows == columns else []))


@_CALLS.emits("geqrf", "Qr")
def geqrf(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("geqrf"), scope(op.operands[0]))


@_CALLS.emits("orgqr", "ProductOfElementaryHouseholderReflectors")
def reflectors(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("reflectors"), *map(scope, op.operands))


@_CALLS.emits("ormqr")
def ormqr(scope: Scope, op: Op, options: Options) -> str:
    texts = [f"{name}={bool(options[name])}" for name in ("left", "transpose")]
    return call(scope.helper("ormqr"), *map(scope, op.operands), *texts)


# ---- eigenvalues and singular values -------------------------------------------------------------------------------


def _eigh(scope: Scope, op: Op, uplo: str) -> str:
    return call(scope.helper("eigh"), scope(op.operands[0]), *([] if uplo == "L" else [repr(uplo)]))


@_CALLS.emits("shardwise.eigh")
def eigh(scope: Scope, op: Op, options: Options) -> str:
    return _eigh(scope, op, letter(options, "uplo"))


@_CALLS.emits("Eigh")
def tpu_eigh(scope: Scope, op: Op, options: Options) -> str:
    return _eigh(scope, op, "U" if options["backend_config"].startswith("0") else "L")


@_CALLS.emits("shardwise.eigvalsh")
def eigvalsh(scope: Scope, op: Op, options: Options) -> str:
    return f"{_eigh(scope, op, letter(options, 'uplo'))}[1]"


@_CALLS.emits("syevd")
def syevd(scope: Scope, op: Op, options: Options) -> str:
    if letter(options, "mode") == "N":
        _CALLS.expect_unused(scope, op, 0)
    return call(scope.helper("syevd"), scope(op.operands[0]), repr(letter(options, "uplo")))


@_CALLS.emits("shardwise.eig")
def eig(scope: Scope, op: Op, options: Options) -> str:
    return call(scope.helper("eig"), scope(op.operands[0]))


@_CALLS.emits("shardwise.eigvals")
def eigvals(scope: Scope, op: Op, options: Options) -> str:
    return f"{call(scope.helper('eig'), scope(op.operands[0]))}[0]"


@_CALLS.emits("geev")
def geev(scope: Scope, op: Op, options: Options) -> str:
    unused = [-3] if letter(options, "compute_right") == "V" else [-3, -2]
    if letter(options, "compute_left") == "V" and op.results[-3] in scope.shared.used:
        raise _CALLS.refusal(scope, op, "it has no left eigenvectors")
    _CALLS.expect_unused(scope, op, *unused)
    return call(scope.helper("geev"), scope(op.operands[0]))


@_CALLS.emits("shardwise.svd")
def svd(scope: Scope, op: Op, options: Options) -> str:
    s = op.results[1].type.shape[-1]
    is_full = (op.results[0].type.shape[-1], op.results[2].type.shape[-2]) != (s, s)
    return _or_nan(scope, op, "np.linalg.svd", f"full_matrices={is_full}")


@_CALLS.emits("shardwise.svdvals")
def svdvals(scope: Scope, op: Op, options: Options) -> str:
    return _or_nan(scope, op, "np.linalg.svd", "compute_uv=False")


@_CALLS.emits("gesdd", "gesvd")
def gesdd(scope: Scope, op: Op, options: Options) -> str:
    mode = letter(options, "mode")
    _CALLS.expect_unused(scope, op, *((0, 2, 3) if mode == "N" else (0,)))
    return call(scope.helper("gesdd"), scope(op.operands[0]), *flags_of(full_matrices=mode == "A"))
