# SPDX-License-Identifier: Apache-2.0
"""register_custom_call and custom_call: kernels in Python, rules, gradients, batching, and their errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"d": 4})
X = np.arange(24.0).reshape(8, 3)
_numbers = count()


def register(fn: Callable[..., Any], **options: Any) -> str:
    """A new name for the function."""
    name = f"tests.{next(_numbers)}"
    sw.register_custom_call(name, fn, **options)
    return name


def rows(x: np.ndarray) -> Any:
    return sw.device_put(x, sw.NamedSharding(MESH, P("d")))


def like(x: Any) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(x.shape, x.dtype)


# ---- running --------------------------------------------------------------------------------------------------------


def test_each_device_calls_the_function_on_its_block() -> None:
    seen = []

    def double(x: np.ndarray) -> np.ndarray:
        seen.append((x.shape, x.flags.writeable))
        return 2 * x

    name = register(double, rule="i j -> i j")
    result = sw.jit(lambda x: sw.custom_call(name, like(x), x), mesh=MESH)(rows(X))
    assert result.sharding == sw.NamedSharding(MESH, P("d", None))  # propagation follows the rule
    assert seen == [((2, 3), False)] * 4
    np.testing.assert_array_equal(np.asarray(result), 2 * X)


def test_a_call_without_a_rule_sees_whole_arrays_once() -> None:
    seen = []

    def flip(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return x[::-1]

    name = register(flip)
    result = sw.jit(lambda x: sw.custom_call(name, like(x), x), mesh=MESH)(rows(X))
    assert seen == [(8, 3)]
    np.testing.assert_array_equal(np.asarray(result), X[::-1])


def test_a_reduced_factor_is_added_up() -> None:
    rule = sw.sharding_rule("i j -> j", reduction="i")
    name = register(lambda x: x.sum(axis=0), rule=rule)
    program = sw.jit(lambda x: sw.custom_call(name, sw.ShapeDtypeStruct((3,), x.dtype), x), mesh=MESH)
    for x in (X, X[:7]):  # the padding of 7 rows on 4 devices is masked
        np.testing.assert_array_equal(np.asarray(program(rows(x))), x.sum(axis=0))


def test_trees_of_results_and_options() -> None:
    def moments(x: np.ndarray, scale: float, name: str) -> tuple[np.ndarray, np.ndarray]:
        assert name == "moments"
        return scale * x.sum(axis=1), (x.astype(np.float32) ** 2).sum(axis=1)

    name = register(moments, rule="i j -> i, i")
    types = {"sum": sw.ShapeDtypeStruct((8,), np.float64), "squares": sw.ShapeDtypeStruct((8,), np.float32)}
    pair = {"squares": types["sum"], "sum": types["squares"]}  # trees are in the order of their keys

    def program(x: Any) -> Any:
        return sw.custom_call(name, pair, x, scale=0.1, name="moments")

    for result in (sw.jit(program, mesh=MESH)(rows(X)), program(X), program(rows(X))):
        np.testing.assert_array_equal(np.asarray(result["squares"]), 0.1 * X.sum(axis=1))
        np.testing.assert_array_equal(np.asarray(result["sum"]), (X.astype(np.float32) ** 2).sum(axis=1))


def test_arrays_outside_jit() -> None:
    name = register(np.sqrt, rule="i j -> i j")
    assert isinstance(sw.custom_call(name, X, X), np.ndarray)
    result = sw.custom_call(name, X, rows(X))
    assert isinstance(result, sw.Array)
    np.testing.assert_array_equal(np.asarray(result), np.sqrt(X))


def test_a_call_of_shardwise_itself_runs_by_name() -> None:
    matrix = np.array([[2.0, 0.0], [0.0, 3.0]])
    result = sw.custom_call("shardwise.det", sw.ShapeDtypeStruct((), np.float64), matrix)
    assert float(result) == 6.0


def test_a_text_runs_a_registered_call() -> None:
    name = register(lambda x, n: x + n, rule="i -> i")
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.custom_call @{name}(%x) {{mhlo.backend_config = {{n = 3 : i64}}}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
    np.testing.assert_array_equal(np.asarray(sw.parse(text).run(np.ones(4, np.float32))), np.full(4, 4.0))


def test_a_call_in_a_loop_and_in_threads() -> None:
    name = register(lambda x: x + 1, rule="i j -> i j")

    def program(x: Any) -> Any:
        return sw.fori_loop(0, 5, lambda i, c: sw.custom_call(name, like(c), c), x)

    compiled = sw.jit(program, mesh=MESH)
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(np.asarray(compiled(rows(X))))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert all(np.array_equal(result, X + 5) for result in results)


def test_faithful_and_poisoned_runs_agree() -> None:
    name = register(np.cumsum, rule=None)
    traced = sw.jit(lambda x: sw.custom_call(name, sw.ShapeDtypeStruct((21,), x.dtype), x), mesh=MESH)
    program = traced.lower(rows(X[:7])).compile()
    for mode in ({}, {"faithful": True, "poison": True}):
        np.testing.assert_array_equal(np.asarray(program.run(rows(X[:7]), **mode)), np.cumsum(X[:7]))


def test_a_new_definition_replaces_the_old_one_in_compiled_programs() -> None:
    name = register(lambda x: x + 1, rule="i j -> i j")
    program = sw.jit(lambda x: sw.custom_call(name, like(x), x), mesh=MESH)
    assert np.asarray(program(X))[0, 0] == 1
    sw.register_custom_call(name, lambda x: x + 2, rule="i j -> i j")
    assert np.asarray(program(X))[0, 0] == 2


# ---- transforms -----------------------------------------------------------------------------------------------------


def cube_vjp(xs: Any, ys: Any, cts: Any) -> Any:
    return (3 * xs[0] ** 2 * cts[0],)


def test_gradients_of_any_order() -> None:
    name = register(lambda x: x**3, rule="... -> ...", vjp=cube_vjp)
    inner = sw.grad(lambda x: sw.custom_call(name, like(x), x).sum())
    first = sw.jit(inner, mesh=MESH)(rows(X))
    np.testing.assert_allclose(np.asarray(first), 3 * X**2)
    second = sw.jit(sw.grad(lambda x: inner(x).sum()), mesh=MESH)(rows(X))
    np.testing.assert_allclose(np.asarray(second), 6 * X)


def test_a_gradient_may_use_results_constants_and_options() -> None:
    table = np.linspace(0, 1, 24).reshape(8, 3)

    def vjp(xs: Any, ys: Any, cts: Any, power: int) -> Any:
        return power * ys[0] / xs[0] * cts[0] * table / table.max(), None

    name = register(lambda x, n, power: x**power, rule="i j, -> i j", vjp=vjp)
    loss = sw.grad(lambda x: sw.custom_call(name, like(x), x, np.int32(7), power=2).sum())
    got = np.asarray(sw.jit(loss, mesh=MESH)(rows(X + 1)))
    np.testing.assert_allclose(got, 2 * (X + 1) * table)


def test_batching_by_broadcasting_and_by_a_rule() -> None:
    name = register(lambda x, y: x * y, rule="... i, ... i -> ... i", batch="broadcast_all")
    mapped = sw.vmap(lambda x, y: sw.custom_call(name, like(x), x, y), in_axes=(0, None))
    np.testing.assert_array_equal(np.asarray(sw.jit(mapped, mesh=MESH)(rows(X), X[0])), X * X[0])

    def batch(axis_size: int, in_batched: list[bool], x: Any, y: Any) -> Any:
        assert (axis_size, in_batched) == (8, [True, False])
        return x + y + 1, True

    name = register(lambda x, y: x + y, rule="i, i -> i", batch=batch)
    mapped = sw.vmap(lambda x, y: sw.custom_call(name, like(x), x, y), in_axes=(0, None))
    np.testing.assert_array_equal(np.asarray(sw.jit(mapped, mesh=MESH)(rows(X), X[0])), X + X[0] + 1)

    name = register(lambda x: x, batch=lambda size, batched, x: (x[0], False))
    mapped = sw.vmap(lambda x: sw.custom_call(name, like(x), x))
    np.testing.assert_array_equal(np.asarray(sw.jit(mapped, mesh=MESH)(X)), np.broadcast_to(X[0], X.shape))


# ---- errors ---------------------------------------------------------------------------------------------------------


def run(name: str, x: Any = X, result: Any = X) -> Any:
    return sw.jit(lambda x: sw.custom_call(name, like(result), x), mesh=MESH)(x)


def test_an_exception_of_the_function_is_the_callers() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise KeyError("boom")

    name = register(fails, rule="i j -> i j")
    with pytest.raises(KeyError, match="boom") as caught:
        run(name, rows(X))
    assert any(entry.name == "fails" for entry in caught.traceback)
    (note,) = caught.value.__notes__
    assert note.startswith(f"in the custom call @{name} (at {__file__}:")


@pytest.mark.parametrize(
    ("fn", "error", "said"),
    [
        (lambda x: x[:1], sw.ShapeError,
         "custom_call @{}: a result must be float64[2, 3], the block of one device, got float64[1, 3]; return an array "
         "of this type (at "),
        (lambda x: x.astype(np.float32), sw.DTypeError,
         "custom_call @{}: a result must be float64[2, 3], the block of one device, got float32[2, 3]; return an array "
         "of this type (at "),
        (lambda x: (x, x), sw.ShapeError,
         "custom_call @{}: must return 1 arrays, got 2 from the function <lambda> (at "),
    ],
    ids=["shape", "dtype", "count"],
)  # fmt: skip
def test_results_are_checked(fn: Any, error: type[Exception], said: str) -> None:
    name = register(fn, rule="i j -> i j")
    with pytest.raises(error) as caught:
        run(name, rows(X))
    assert str(caught.value).startswith(said.format(name) + __file__)


def _one(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: sw.register_custom_call("lapack_spotrf_ffi", _one), sw.ShapeError,
         "register_custom_call: a name must not be one that shardwise defines, got lapack_spotrf_ffi; choose another "
         "one"),
        (lambda: sw.register_custom_call("", _one), sw.ShapeError, "register_custom_call: a name must not be empty"),
        (lambda: sw.register_custom_call(3, _one), TypeError, "register_custom_call: name must be a str, got 3"),
        (lambda: sw.register_custom_call("a", 3), TypeError, "register_custom_call: fn must be a function, got int 3"),
        (lambda: sw.register_custom_call("a", _one, batch="loop"), TypeError,
         "register_custom_call: batch must be a function or 'broadcast_all', got str 'loop'"),
        (lambda: sw.register_custom_call("a", _one, rule=3), sw.ShardingError,
         "register_custom_call: a rule must be made by sharding_rule, or be its text, got 3"),
        (lambda: sw.custom_call("unheard_of", X, X), sw.UnsupportedError,
         "custom_call @unheard_of: a target must be known to run; define it with sw.register_custom_call"),
        (lambda: sw.custom_call("shardwise.det", 3, X), TypeError,
         "custom_call @shardwise.det: result_shape_dtypes must have a shape and a dtype for each result, got int 3; "
         "use sw.ShapeDtypeStruct"),
        (lambda: sw.custom_call("shardwise.det", X, X, n=X), TypeError,
         "custom_call @shardwise.det: the option n must be a number or a string, which is static, got float64[8, 3]; "
         "pass arrays by position"),
        (lambda: sw.custom_call("shardwise.det", X, "x"), sw.DTypeError,
         "custom_call @shardwise.det: argument 0 must be an array, got str 'x'"),
    ],
    ids=["taken", "empty", "name", "fn", "batch", "rule", "unknown", "types", "option", "argument"],
)  # fmt: skip
def test_wrong_arguments(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(f"{said} (at {__file__}:")


def test_what_a_call_does_not_define_is_named() -> None:
    name = register(_one, rule="i j -> i j")
    with pytest.raises(sw.UnsupportedError) as caught:
        sw.jit(sw.grad(lambda x: sw.custom_call(name, like(x), x).sum()), mesh=MESH)(X)
    way_out = "pass vjp= to sw.register_custom_call"
    said = f"grad: custom_call @{name}: a call must have a gradient to be differentiated; {way_out}"
    assert str(caught.value).startswith(f"{said} (at {__file__}:")
    with pytest.raises(sw.UnsupportedError) as caught:
        sw.jit(sw.vmap(lambda x: sw.custom_call(name, like(x), x)), mesh=MESH)(X)
    said = f"custom_call @{name}: a call must have a batching rule to be vectorized; {way_out.replace('vjp', 'batch')}"
    assert str(caught.value).startswith(f"{said} (at {__file__}:")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vjp": lambda xs, ys, cts: cts * 2}, "vjp must return a cotangent or None for each of the 1 operands, got ("),
        ({"vjp": lambda xs, ys, cts: (cts[0][0],)},
         "a cotangent that vjp returns must be float64[8, 3], like its operand, got float64[3]"),
        ({"batch": lambda size, batched, x: (x[0, 0], True)},
         "a result of batch must be float64[8, 3], got Tracer<float64[]>"),
        ({"batch": lambda size, batched, x: ((x, x), True)},
         "batch must return 1 results, and whether each is batched, got ("),
    ],
    ids=["vjp-count", "vjp-shape", "batch-shape", "batch-count"],
)  # fmt: skip
def test_wrong_rules(options: dict[str, Any], said: str) -> None:
    name = register(_one, **options)
    gradient = sw.grad(lambda x: sw.custom_call(name, like(x), x).sum())
    mapped = sw.vmap(lambda x: sw.custom_call(name, like(x), x))
    with pytest.raises(sw.ShapeError) as caught:
        sw.jit(gradient if "vjp" in options else mapped, mesh=MESH)(X)
    called = "grad: " if "vjp" in options else ""
    assert str(caught.value).startswith(f"{called}custom_call @{name}: {said}")


def test_a_rule_must_fit_the_types() -> None:
    name = register(_one, rule="i j -> i j k")
    with pytest.raises(sw.ShardingError, match="'i j k' must have an entry for each dim"):
        run(name)


def test_types_of_linear_algebra_are_checked() -> None:
    with pytest.raises(sw.ShapeError) as caught:
        run("shardwise.eigvalsh")
    assert str(caught.value).startswith("shardwise.eigvalsh: the option uplo must be given in mhlo.backend_config (at ")
    with pytest.raises(sw.ShapeError) as caught:
        run("shardwise.svdvals")
    assert str(caught.value).startswith("shardwise.svdvals: result 0 must be tensor<3xf64>, got tensor<8x3xf64> (at ")
    text = """func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {mhlo.backend_config = {uplo = 65 : ui8}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<i32>
}"""  # noqa: E501
    with pytest.raises(sw.ShapeError) as caught:
        sw.parse(text, "t.mlir").compile()
    assert str(caught.value) == (
        "lapack_spotrf_ffi: the option uplo must be the code of one of the letters LU, got 65 (at t.mlir:2)"
    )


def test_a_gradient_through_a_call_of_a_text_names_from_jax() -> None:
    types = [sw.ShapeDtypeStruct((2, 2), np.float32), sw.ShapeDtypeStruct((2,), np.float32)]

    def loss(x: Any) -> Any:
        return sw.custom_call("Qr", types, x)[0].sum()

    with pytest.raises(sw.UnsupportedError) as caught:
        sw.jit(sw.grad(loss), mesh=MESH)(np.eye(2, dtype=np.float32))
    assert "use sw.from_jax, which differentiates the JAX function" in str(caught.value)
