# SPDX-License-Identifier: Apache-2.0
"""Calls of LAPACK, handed over to JAX and to NumPy: whole, and with the batch split over 8 devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import shardwise as sw
from shardwise import P
from shardwise.interop.to_jax import JAX
from shardwise.interop.to_mpi4py import MPI4PY
from tests.conformance.jax.linalg_losses import S
from tests.conformance.jax.linalg_programs import ON_TPU, PROGRAMS
from tests.conformance.jax.test_linalg import results_of, with_split_batch
from tests.interop.process.export_checks import run as run_exported
from tests.interop.process.text_checks import emitted
from tests.support.exports import exports
from tests.support.run_seed import in_turn

MESH = sw.Mesh({"d": 8})
# The others call the same routines of LAPACK as one of these.
OTHERS = ("matrix_rank", "pinv", "norm", "lstsq", "lu", "svdvals", "solve", "det")
NAMES = [name for name in PROGRAMS if name not in OTHERS and "complex" not in name]
DTYPES = ("float32", "float64", "complex64")
NOT_IN_NUMPY = {
    "schur": "Schur form",
    "hessenberg": "Hessenberg form",
    "tridiagonal": "tridiagonal form",
    "qr with pivots": "QR factorization with pivots",
}


@cache
def case(name: str, dtype: str, platform: str) -> tuple[str, tuple[np.ndarray, ...]]:
    """The text of a program, and its arguments."""
    function, arguments = PROGRAMS[name]
    given = tuple(x.astype(dtype) for x in arguments)
    with jax.enable_x64(True):
        return jax.jit(function).trace(*given).lower(lowering_platforms=(platform,)).as_text(), given


def turned(found: list[np.ndarray], wanted: list[np.ndarray], name: str) -> list[np.ndarray]:
    """``found`` with the signs of eigenvectors and the phases of Schur vectors of ``wanted``.

    No definition fixes them: rounding and the version of LAPACK decide, and JAX and NumPy bring one of their own.
    """
    if name not in ("eig", "schur"):
        return found
    first, vectors, *others = found
    products = (vectors.conj() * wanted[1]).sum(-2, keepdims=True)
    if name == "eig":
        return [first, vectors * np.sign(products.real), *others]
    phases = products / np.abs(products)
    return [np.swapaxes(phases.conj(), -1, -2) * first * phases, vectors * phases, *others]


def assert_close(found: Any, wanted: Any, name: str) -> None:
    found, wanted = list(map(np.asarray, found)), list(map(np.asarray, wanted))
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in wanted], name
    for got, want in zip(turned(found, wanted, name), wanted, strict=True):
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=1)
        eps = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
        np.testing.assert_allclose(got, want, rtol=300 * eps, atol=300 * eps * scale, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", in_turn(NAMES))
def test_a_call_in_jax(name: str, dtype: str) -> None:
    for platform in ("cpu", "tpu") if dtype == "float32" and name in ON_TPU else ("cpu",):
        text, arguments = case(name, dtype, platform)
        is_batch = all(x.shape[0] == 8 for x in arguments)
        texts = [text] if dtype == "float32" or not is_batch else []
        for each in [*texts, with_split_batch(text)] if is_batch else texts:
            program = sw.parse(each, f"{name}.mlir").compile()
            function = program.to_jax()
            assert not function.collectives().rows
            found = jax.tree.leaves(function.get(function(*arguments)))
            assert_close(found, results_of(program.run(*arguments)), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_in_numpy(name: str) -> None:
    text, arguments = case(name, "float32", "cpu")
    if name in NOT_IN_NUMPY:
        reason = f"NumPy: it has no {NOT_IN_NUMPY[name]}, got custom_call @lapack"
        with pytest.raises(sw.UnsupportedError, match=reason):
            emitted(text, MPI4PY)
        return
    with np.errstate(all="ignore"):
        found = emitted(text, MPI4PY)(*arguments)
    wanted = results_of(sw.parse(text).compile().run(*arguments))
    assert_close(found, wanted, name)


FUNCTIONS = {
    "eig": lambda a: (*np.linalg.eig(a), np.linalg.eigvals(a)),
    "eigvalsh": lambda a: (np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, "U"), *np.linalg.eigh(a)),
    "svd": lambda a: (*np.linalg.svd(a[..., :3]), *np.linalg.svd(a[..., :3], full_matrices=False)),
    "cholesky": lambda a: (np.linalg.cholesky(a), np.linalg.cholesky(a, upper=True), np.linalg.det(a)),
    "qr": lambda a: (*np.linalg.qr(a[..., :3], "complete"), *np.linalg.qr(a[..., :2, :]), *np.linalg.slogdet(a)),
}


@pytest.mark.parametrize("dtype", [*DTYPES, "complex128"])
@pytest.mark.parametrize("name", in_turn(list(FUNCTIONS)))
def test_functions_of_numpy(name: str, dtype: str) -> None:
    a = S.astype(dtype)
    program = sw.jit(FUNCTIONS[name], mesh=MESH, in_shardings=(P("d"),)).lower(a).compile()
    function = program.to_jax()
    assert_close(function.get(function(a)), program(a), name)
    one = sw.jit(FUNCTIONS[name], mesh=sw.Mesh({"d": 1})).lower(a).compile()
    assert_close(emitted(one.as_text("local"), MPI4PY)(a), program(a), name)


def test_matrices_for_which_lapack_does_not_succeed_give_nan() -> None:
    a = S.copy()
    a[1], a[2], a[5] = np.nan, 0, -a[5]

    def f(a: Any) -> Any:
        return np.linalg.eigh(a)[0], np.linalg.svdvals(a), np.linalg.eigvals(a), np.tril(np.linalg.cholesky(a))[:, 3, 3]

    program = sw.jit(f, mesh=MESH, in_shardings=(P("d"),)).lower(a).compile()
    wanted = program(a)
    failed = [np.isnan(np.asarray(x)).reshape(8, -1).any(1).nonzero()[0].tolist() for x in wanted]
    assert failed == [[1], [1], [1], [1, 2, 5]]
    function = program.to_jax()
    assert_close(function.get(function(a)), wanted, "JAX")
    one = sw.jit(f, mesh=sw.Mesh({"d": 1})).lower(a).compile()
    assert_close(emitted(one.as_text("local"), MPI4PY)(a), wanted, "NumPy")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_rounded_once(dtype: str) -> None:
    short = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    text = f"""
func.func @main(%a: tensor<8x4x4x{short}>) -> tensor<8x4x4x{short}> {{
  %0 = stablehlo.cholesky %a, lower = true : tensor<8x4x4x{short}>
  return %0 : tensor<8x4x4x{short}>
}}"""
    a = S.astype(sw.bfloat16 if dtype == "bfloat16" else dtype)
    wanted = np.asarray(sw.parse(text).compile().run(a)).astype(np.float32)
    for target in (JAX, MPI4PY):
        (found,) = emitted(text, target)(a)
        assert found.dtype == a.dtype
        np.testing.assert_allclose(np.asarray(found, np.float32), wanted, rtol=2.0**-7)


def test_a_pivot_code_counts_from_1() -> None:
    """getrf's code is the first zero on the diagonal of U."""
    text = """
func.func @main(%a: tensor<3x3x3xf32>) -> (tensor<3x3x3xf32>, tensor<3x3xi32>, tensor<3xi32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {mhlo.backend_config = {}}
      : (tensor<3x3x3xf32>) -> (tensor<3x3x3xf32>, tensor<3x3xi32>, tensor<3xi32>)
  return %0#0, %0#1, %0#2 : tensor<3x3x3xf32>, tensor<3x3xi32>, tensor<3xi32>
}"""
    a = np.array([np.diag([2, 0, 3]), np.eye(3)[[2, 0, 1]], np.zeros((3, 3))], np.float32)
    wanted = sw.parse(text).compile().run(a)
    np.testing.assert_array_equal(np.asarray(wanted[2]), [2, 0, 1])
    for target in (JAX, MPI4PY):
        assert_close(emitted(text, target)(a), wanted, target.name)


# ---- the exported text -----------------------------------------------------------------------------------------------


@exports
def test_the_exported_text_has_ops_where_stablehlo_has_them() -> None:
    def f(a: Any) -> Any:
        return np.linalg.cholesky(a), np.linalg.solve(a, a[..., :2]), *np.linalg.eigh(a), np.linalg.svdvals(a)

    for dtype in ("float32", "complex64"):
        a = S.astype(dtype)
        program = sw.jit(f, mesh=MESH, in_shardings=(P("d"),)).lower(a).compile()
        text = program.as_text("export")
        assert [text.count(f"stablehlo.{name}") for name in ("cholesky", "triangular_solve")] == [1, 2]
        assert not any(routine in text for routine in ("potrf_ffi", "trsm_ffi"))
        assert_close(run_exported(text, program.to_jax(), (a,)), program(a), dtype)


@exports
def test_the_exported_text_of_a_call_with_options() -> None:
    def f(a: Any, b: Any) -> Any:
        options = {"left_side": False, "lower": False, "transpose_a": True, "conjugate_a": True, "unit_diagonal": True}
        return lax.linalg.triangular_solve(a, b, **options), lax.linalg.cholesky(a @ a, symmetrize_input=False)

    a = (S / 8 + 1j * np.triu(S) / 9).astype(np.complex64)
    a = a + np.conj(np.swapaxes(a, 1, 2))
    b = np.ascontiguousarray(a[:, :3])
    text = with_split_batch(jax.jit(f).lower(a, b).as_text())
    program = sw.parse(text).compile()
    exported = program.as_text("export")
    assert "custom_call" not in exported
    assert_close(run_exported(exported, program.to_jax(), (a, b)), results_of(program.run(a, b)), "options")


# ---- calls without a form --------------------------------------------------------------------------------------------

WAY_OUT = "run the program with sw.jit, or on MPI ranks with shardwise.mpi"
SYEVD = """
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {mhlo.backend_config = {mode = 78 : ui8, uplo = 76 : ui8}}
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  return %0#0 : tensor<4x4xf32>
}"""
GEHRD = """
func.func @main(%a: tensor<4x4xf32>) -> tensor<3xf32> {
  %0:3 = stablehlo.custom_call @lapack_sgehrd_ffi(%a) {mhlo.backend_config = {low = 2 : i32, high = 3 : i32}}
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<3xf32>, tensor<i32>)
  return %0#1 : tensor<3xf32>
}"""
GEQP3 = """
func.func @main(%a: tensor<4x4xf32>, %p: tensor<4xi32>) -> tensor<4xi32> {
  %0:3 = stablehlo.custom_call @lapack_sgeqp3_ffi(%a, %p) {mhlo.backend_config = {}}
      : (tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<4xf32>)
  return %0#1 : tensor<4xi32>
}"""


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        (SYEVD, "lapack_ssyevd_ffi", "it does not return result 0, LAPACK's workspace"),
        (GEHRD, "lapack_sgehrd_ffi", "its Hessenberg form is that of all rows"),
        (GEQP3, "lapack_sgeqp3_ffi", "it chooses all pivots of a QR factorization itself"),
    ],
    ids=["syevd", "gehrd", "geqp3"],
)
def test_a_call_that_jax_lacks_is_named(text: str, name: str, reason: str) -> None:
    program = sw.parse(text, "calls.mlir").compile()
    with pytest.raises(sw.UnsupportedError) as caught:
        program.to_jax()
    got = f"custom_call @{name}; {WAY_OUT} (at calls.mlir:3)"
    assert str(caught.value) == f"to_jax: every op must have a form in jax.lax: {reason}, got {got}"


def test_a_call_of_the_user_is_named() -> None:
    sw.register_custom_call("thirds", lambda x: x / 3, rule="i -> i")

    def f(x: Any) -> Any:
        return sw.custom_call("thirds", x, x)

    program = sw.jit(f, mesh=MESH).lower(np.ones(8)).compile()
    line = f.__code__.co_firstlineno + 1
    reason = f"it is no call of linear algebra, got custom_call @thirds; {WAY_OUT} (at {__file__}:{line})"
    with pytest.raises(sw.UnsupportedError) as caught:
        program.to_jax()
    assert str(caught.value) == f"to_jax: every op must have a form in jax.lax: {reason}"
