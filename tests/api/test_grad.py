# SPDX-License-Identifier: Apache-2.0
"""grad and value_and_grad as in JAX: arguments, trees, nesting, closures, and numbers against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.recording.tracing import current_trace
from tests.api.functions import composed_cases

MESH = sw.Mesh({"x": 4, "y": 2})
RNG = np.random.default_rng(7)
X = RNG.standard_normal((6, 4))
W = RNG.standard_normal((4, 6))


def jitted(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return sw.jit(fun, mesh=MESH, **options)


def numeric(fun: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient by central differences, in float64 NumPy."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        plus, minus = x.copy(), x.copy()
        plus[index] += step
        minus[index] -= step
        gradient[index] = (fun(plus) - fun(minus)) / (2 * step)
    return gradient


# ---- forms ----------------------------------------------------------------------------------------------------------


def test_value_and_grad_gives_both() -> None:
    value, gradient = jitted(sw.value_and_grad(lambda x: (x * x).sum()))(X)
    np.testing.assert_allclose(value, (X * X).sum(), rtol=1e-14)
    np.testing.assert_array_equal(gradient, 2 * X)
    assert value.shape == ()


def test_grad_keeps_the_name_and_the_docstring() -> None:
    def loss(x: Any) -> Any:
        """The loss."""
        return x.sum()

    for wrapped in (sw.grad(loss), sw.value_and_grad(loss)):
        assert wrapped.__name__ == "loss"
        assert wrapped.__doc__ == "The loss."


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 2.0), (1, 3.0), (-1, 3.0), ((0,), (2.0,)), ((0, 1), (2.0, 3.0)), ((1, 0), (3.0, 2.0)), ([0, 1], (2.0, 3.0)),
     (np.int64(1), 3.0), ((), ()), ((0, 0), (2.0, 2.0))],
    ids=repr,
)  # fmt: skip
def test_argnums_choose_the_arguments(argnums: Any, expected: Any) -> None:
    gradient = jitted(sw.grad(lambda a, b: (2 * a + 3 * b).sum(), argnums=argnums))(X, X)
    if not isinstance(expected, tuple):
        gradient, expected = (gradient,), (expected,)
    assert isinstance(gradient, tuple)
    assert len(gradient) == len(expected)
    for g, e in zip(gradient, expected):
        np.testing.assert_array_equal(g, np.full_like(X, e))


def test_keyword_arguments_are_passed_on_and_not_differentiated() -> None:
    np.testing.assert_array_equal(jitted(sw.grad(lambda x, *, k: (k * x).sum()))(X, k=X), X)


def test_trees_of_arguments_give_trees_of_gradients() -> None:
    def loss(params: Any, x: Any) -> Any:
        return np.sum(x @ params["layers"][0] * params["scale"]) + params["layers"][1].sum()

    params = {"layers": [W, X], "scale": np.float64(2), "none": None}
    gradient = jitted(sw.grad(loss))(params, X)
    np.testing.assert_allclose(gradient["layers"][0], 2 * X.T @ np.ones((6, 6)), rtol=1e-12)
    np.testing.assert_array_equal(gradient["layers"][1], np.ones_like(X))
    np.testing.assert_allclose(gradient["scale"], (X @ W).sum(), rtol=1e-12)
    assert gradient["none"] is None


def test_aux_is_returned_beside() -> None:
    def f(x: Any) -> Any:
        y = x * 3
        return y.sum(), {"y": y, "n": 1, "none": None}

    (value, aux), gradient = jitted(sw.value_and_grad(f, has_aux=True))(X)
    np.testing.assert_allclose(value, 3 * X.sum(), rtol=1e-13)
    np.testing.assert_array_equal(aux["y"], 3 * X)
    np.testing.assert_array_equal(gradient, np.full_like(X, 3))
    gradient, aux = jitted(sw.grad(f, has_aux=True))(X)
    np.testing.assert_array_equal(gradient, np.full_like(X, 3))
    assert aux["none"] is None


# ---- variables ------------------------------------------------------------------------------------------------------


def test_one_array_given_twice_has_two_gradients() -> None:
    a, b = jitted(sw.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1)))(X, X)
    np.testing.assert_allclose(a, 2 * X * X, rtol=1e-14)
    np.testing.assert_allclose(b, X * X, rtol=1e-14)
    a, b = jitted(lambda x: sw.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, x))(X)
    np.testing.assert_allclose(a, 2 * X * X, rtol=1e-14)
    np.testing.assert_allclose(b, X * X, rtol=1e-14)


def test_a_closed_over_array_is_not_differentiated_even_when_it_is_the_argument() -> None:
    np.testing.assert_array_equal(jitted(sw.grad(lambda x: (x * X).sum()))(X), X)
    np.testing.assert_array_equal(jitted(lambda x: sw.grad(lambda y: (y * x).sum())(x))(X), X)


def test_unused_arguments_have_zero_gradients() -> None:
    a, b = jitted(sw.grad(lambda a, b: (a * a).sum(), argnums=(0, 1)))(X, W.astype(np.float32))
    np.testing.assert_array_equal(a, 2 * X)
    np.testing.assert_array_equal(b, np.zeros((4, 6)))
    assert b.dtype == np.float32
    np.testing.assert_array_equal(jitted(sw.grad(lambda x: 3.0))(X), np.zeros_like(X))
    np.testing.assert_array_equal(jitted(sw.grad(lambda x: np.sum(x > 0) * 1.0))(X), np.zeros_like(X))


def test_an_argument_returned_as_the_value() -> None:
    value, gradient = jitted(sw.value_and_grad(lambda x: x))(2.5)
    assert (float(value), float(gradient)) == (2.5, 1.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_gradients_have_the_dtype_of_their_argument(dtype: str) -> None:
    x = np.array([1, 2, 3]).astype(sw.bfloat16 if dtype == "bfloat16" else dtype)
    gradient = jitted(sw.grad(lambda x: (x * x).astype(np.float32).sum()))(x)
    assert gradient.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(gradient, np.float64), [2, 4, 6])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_gradients_of_empty_arrays_and_scalars(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    np.testing.assert_array_equal(jitted(sw.grad(lambda x: (x * x).sum()))(x), 2 * x)


# ---- nesting --------------------------------------------------------------------------------------------------------


def test_second_and_third_derivatives() -> None:
    f: Callable[..., Any] = lambda x: x**4  # noqa: E731
    for order, expected in enumerate([16.0, 32.0, 48.0, 48.0, 24.0, 0.0]):
        g = f
        for _ in range(order):
            g = sw.grad(g)
        assert float(jitted(g)(2.0)) == expected


def test_a_gradient_of_a_gradient_norm() -> None:
    def norm(x: Any) -> Any:
        return (sw.grad(lambda y: np.sum(np.tanh(y @ W) ** 2))(x) ** 2).sum()

    def numpy_norm(x: np.ndarray) -> Any:
        t = np.tanh(x @ W)
        return (((2 * t * (1 - t * t)) @ W.T) ** 2).sum()

    np.testing.assert_allclose(jitted(norm)(X), numpy_norm(X), rtol=1e-12)
    np.testing.assert_allclose(jitted(sw.grad(norm))(X), numeric(numpy_norm, X), rtol=1e-5, atol=1e-5)


def test_an_inner_gradient_by_one_argument_and_an_outer_by_another() -> None:
    def inner(x: Any, y: Any) -> Any:
        return (x * x * y).sum()

    def outer(x: Any, y: Any) -> Any:
        return (sw.grad(inner)(x, y) * x).sum()  # sum of 2 x^2 y

    gx, gy = jitted(sw.grad(outer, argnums=(0, 1)))(X, X + 1)
    np.testing.assert_allclose(gx, 4 * X * (X + 1), rtol=1e-13)
    np.testing.assert_allclose(gy, 2 * X * X, rtol=1e-13)


def test_grad_of_jit_and_jit_of_grad_agree() -> None:
    f = lambda x: np.sum(np.sin(x) ** 2)  # noqa: E731
    a = jitted(sw.grad(sw.jit(f)))(X)
    b = sw.grad(sw.jit(f, mesh=MESH))(sw.device_put(X, MESH))
    np.testing.assert_allclose(a, np.sin(2 * X), rtol=1e-12)
    np.testing.assert_allclose(b, np.sin(2 * X), rtol=1e-12)


# ---- outside jit ----------------------------------------------------------------------------------------------------


def test_outside_jit_a_gradient_is_a_program_on_the_mesh_of_the_arguments() -> None:
    a = sw.device_put(X, NamedSharding(MESH, P("x", "y")))
    value, gradient = sw.value_and_grad(lambda x, k: (x * x * k).sum())(a, k=2.0)
    np.testing.assert_array_equal(gradient, 4 * X)
    np.testing.assert_allclose(value, 2 * (X * X).sum(), rtol=1e-13)
    assert gradient.sharding.mesh == MESH
    with sw.set_mesh(MESH):
        np.testing.assert_array_equal(sw.grad(lambda x: (x * x).sum())(X), 2 * X)


def test_transforms_of_plain_arrays_run_on_one_device_without_a_mesh() -> None:
    gradient = sw.grad(lambda x: (x**2).sum())(np.arange(3.0))
    np.testing.assert_array_equal(gradient, [0.0, 2.0, 4.0])
    assert gradient.sharding.mesh.size == 1
    value, gradient = sw.value_and_grad(lambda p, k: (p["w"] ** k).sum())({"w": np.arange(3.0)}, 3)
    np.testing.assert_array_equal(value, 9.0)
    np.testing.assert_array_equal(gradient["w"], [0.0, 3.0, 12.0])
    np.testing.assert_array_equal(sw.vmap(sw.grad(lambda x: x**3))(np.arange(3.0)), [0.0, 3.0, 12.0])
    second = sw.grad(lambda x: (sw.grad(lambda y: (y**3).sum())(x) * x).sum())(np.arange(3.0))
    np.testing.assert_array_equal(second, 9 * np.arange(3.0) ** 2)


def test_a_transform_without_a_mesh_takes_that_of_an_annotation_or_of_a_closed_over_array() -> None:
    rows = NamedSharding(MESH, P("x"))
    assert sw.grad(lambda x: (sw.shard(x * 2, rows) ** 2).sum())(X).sharding.mesh == MESH
    held = sw.device_put(np.arange(32.0), MESH)
    gradient = sw.grad(lambda x: (x * held).sum())(np.ones(32))
    np.testing.assert_array_equal(gradient, np.arange(32.0))
    assert gradient.sharding.mesh == MESH


def test_outside_jit_other_arguments_may_be_any_objects() -> None:
    a = sw.device_put(X, MESH)
    f = sw.grad(lambda x, activation, how: (activation(x) if how == "call" else x).sum())
    np.testing.assert_allclose(f(a, np.sin, "call"), np.cos(X), rtol=1e-12)
    np.testing.assert_array_equal(f(a, np.sin, how="not"), np.ones_like(X))


# ---- numbers --------------------------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: np.sum(np.tanh(x @ W) ** 2),
    "einsum with a trace": lambda x: np.einsum("ij,ji->", x, W) * np.einsum("ij,ij,kj->", x, x, x),
    "einsum over a batch": lambda x: np.sum(np.einsum("bi,bj->bij", x, x) ** 3),
    "where": lambda x: np.sum(np.where(x > 0, x * x, np.exp(x))),
    "where guards": lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x) + 1), -x)),
    "maximum": lambda x: np.sum(np.maximum(x, W.T) ** 2),
    "max": lambda x: np.sum(np.max(x, axis=1) ** 2) + np.max(x),
    "min": lambda x: np.sum(np.min(x * x, axis=0)),
    "prod": lambda x: np.sum(np.prod(x, axis=1)),
    "softmax": lambda x: np.sum(np.log(np.sum(np.exp(x - np.max(x, 1, keepdims=True)), 1))),
    "indexing": lambda x: np.sum(x[1:5:2] ** 2) + x[0, 1] * x[-1, -2] + np.sum(x[::-1, 1] * x[:, 0]),
    "concatenate": lambda x: np.sum(np.concatenate([x, x * 2, x[:1]], axis=0) ** 2),
    "stack": lambda x: np.sum(np.stack([x, np.sin(x)], axis=1) ** 3),
    "pad": lambda x: np.sum(np.pad(x, ((1, 2), (0, 3)), constant_values=2.0) ** 2),
    "pad edge": lambda x: np.sum(np.pad(x, 1, mode="edge") ** 2),
    "roll and flip": lambda x: np.sum(np.roll(x, 2, axis=0) * np.flip(x, 1)),
    "reshape and transpose": lambda x: np.sum((x.reshape(4, 6) @ x) ** 2) + np.sum(x.T * W),
    "broadcast": lambda x: np.sum((x - x.mean(0)) ** 2 / (x.var(0) + 1)),
    "mean and std": lambda x: np.mean(x) * np.std(x),
    "division and powers": lambda x: np.sum((x * x + 1) ** 1.5 / (1 + np.exp(-x))),
    "loop": lambda x: sum((np.sin(x * k) for k in range(1, 4)), 0.0 * x).sum(),
    "astype": lambda x: np.sum(x.astype(np.float64) * 2),
    "repeat and tile": lambda x: np.sum(np.repeat(x, 2, axis=0) ** 2) + np.sum(np.tile(x, (1, 2)) ** 3),
    "norm": lambda x: np.linalg.norm(x) + np.sum(np.linalg.norm(x, axis=1)),
}
SPECS = {"whole": None, "rows": P("x"), "columns": P(None, "x"), "both": P("y", "x"), "all": P(("x", "y"))}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_partitioned_gradients_are_finite_differences(loss: Callable[[Any], Any], spec: P | None) -> None:
    f = jitted(sw.value_and_grad(loss), in_shardings=spec)
    program = f.lower(X).compile()
    for options in ({}, {"faithful": True, "poison": True}):
        value, gradient = program.run(X, **options)
        np.testing.assert_allclose(value, loss(X), rtol=1e-12)
        np.testing.assert_allclose(gradient, numeric(loss, X), rtol=2e-5, atol=2e-6)


def test_ties_share_the_gradient_of_max_and_maximum() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0])
    gradient = np.asarray(jitted(sw.grad(lambda x: np.max(x)), in_shardings=P("x"))(x))
    assert gradient.sum() == 1
    assert gradient[0] == gradient[3] == 0
    a, b = jitted(sw.grad(lambda a, b: np.maximum(a, b).sum(), argnums=(0, 1)))(x, x)
    np.testing.assert_array_equal(np.asarray(a) + np.asarray(b), np.ones(4))


def test_a_training_step_with_annotations_matches_numpy() -> None:
    def loss(params: Any, x: Any, target: Any) -> Any:
        w1, w2 = params
        x = sw.split(x, 0, "x")
        h = np.maximum(x @ sw.shard(w1, P(None, "y")), 0)
        return np.mean((h @ w2 - target) ** 2)

    x, target = RNG.standard_normal((10, 4)), RNG.standard_normal((10, 3))
    w1, w2 = RNG.standard_normal((4, 7)), RNG.standard_normal((7, 3))
    g1, g2 = jitted(sw.grad(loss))((w1, w2), x, target)
    np.testing.assert_allclose(g1, numeric(lambda w: loss((w, w2), x, target), w1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(g2, numeric(lambda w: loss((w1, w), x, target), w2), rtol=1e-5, atol=1e-6)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fun", "options", "args", "kind", "text"),
    [
        (lambda x: x, {}, (X,), sw.ShapeError, r"must return a scalar, got shape \(6, 4\)"),
        (lambda x: x.astype(np.int32).sum(), {}, (X,), sw.DTypeError, "floating scalar"),
        (lambda x: np.sum(x > 0), {}, (X,), sw.DTypeError, "floating scalar"),
        (lambda x: x.sum(), {}, (np.arange(3),), sw.DTypeError, r"must be floating, got int64\[3\] for x"),
        (lambda x: x["a"].sum(), {}, ({"a": np.arange(3)},), sw.DTypeError, r"got int64\[3\] for x\['a'\]"),
        (lambda x: x, {}, (3,), sw.DTypeError, "must be floating"),
        (
            lambda x: x,
            {"argnums": 1},
            (X,),
            sw.ShapeError,
            "argnums must be in \\[-1, 1\\), the positional arguments, got 1",
        ),
        (lambda x: x, {"argnums": (0, -2)}, (X,), sw.ShapeError, "argnums"),
        (lambda x: None, {}, (X,), sw.ShapeError, "must return a scalar, got NoneType"),
        (lambda x: (x.sum(), 1), {}, (X,), sw.ShapeError, "must return a scalar, got tuple; .*has_aux=True"),
        (lambda x: x.sum(), {"has_aux": True}, (X,), TypeError, r"must return \(value, aux\), got Tracer"),
    ],
)
def test_what_has_no_gradient_is_refused(fun: Any, options: Any, args: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        jitted(sw.grad(fun, **options))(*args)
    assert current_trace() is None


def test_grad_takes_a_function() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        sw.grad(3)  # type: ignore[arg-type]


# ---- functions composed of others -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", composed_cases.DIFFERENTIABLE)
def test_composed_functions_have_the_gradients_of_differences(name: str) -> None:
    function, (x, *rest) = composed_cases.DIFFERENTIABLE[name]

    def results(x: Any) -> list[Any]:
        found = function(x, *rest)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    weights = [np.random.default_rng(1).uniform(0.5, 1.5, np.shape(result)) for result in results(x)]

    def loss(x: Any) -> Any:
        return sum(np.sum(np.where(np.isnan(result), 0, result) * w) for result, w in zip(results(x), weights))

    gradient = np.asarray(sw.jit(sw.grad(loss), mesh=MESH, in_shardings=P("x"))(x))
    np.testing.assert_allclose(gradient, numeric(loss, x), rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


def test_no_gradient_passes_stop_gradient() -> None:
    def loss(x: Any) -> Any:
        held = sw.stop_gradient({"x": x, "n": 2, "scale": 3.0})
        return (sw.split(x, 0, "x") * held["x"] * held["scale"]).sum()

    assert loss(X) == (X * X * 3.0).sum()
    gradient = sw.testing.assert_matches_unpartitioned(sw.grad(loss), X, mesh=MESH)(X)
    np.testing.assert_allclose(np.asarray(gradient), 3 * X, rtol=1e-15)
    for dtype in (np.float32, np.float16, sw.bfloat16):
        half = jitted(lambda x: sw.stop_gradient(x))(X.astype(dtype))
        assert half.dtype == dtype
        np.testing.assert_array_equal(np.asarray(half), X.astype(dtype))
    weak = jitted(lambda x, a: x * sw.stop_gradient(a))(X.astype(np.float32), 2.0)
    assert weak.dtype == np.float32


def test_a_missing_stop_gradient_differs_from_differences() -> None:
    with pytest.raises(AssertionError, match="a gradient must agree with finite differences"):
        sw.testing.assert_matches_unpartitioned(
            sw.grad(lambda x: (x * (sw.stop_gradient(x) if current_trace() else x)).sum()), X, mesh=MESH
        )
