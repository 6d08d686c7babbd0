# SPDX-License-Identifier: Apache-2.0
"""vmap against a loop over the examples in plain NumPy, whole and partitioned."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
RNG = np.random.default_rng(7)
ROWS, SIZE = 9, 6  # nine examples over eight devices: uneven


def array(*shape: int) -> np.ndarray:
    return RNG.permutation(int(np.prod(shape))).reshape(shape).astype(np.float64) / 7 - 3


CASES = {
    "elementwise": (lambda x, y: np.tanh(x) * y - np.maximum(x, y), [array(ROWS, SIZE), array(ROWS, SIZE)], (0, 0)),
    "shared operand": (lambda x, w: x @ w, [array(ROWS, SIZE), array(SIZE, 5)], (0, None)),
    "matrices": (lambda a, b: a @ b, [array(ROWS, 4, SIZE), array(ROWS, SIZE, 3)], (0, 0)),
    "other dim": (lambda x, y: x + y, [array(SIZE, ROWS), array(ROWS, SIZE)], (1, 0)),
    "negative dim": (lambda x: np.sum(x, axis=0), [array(4, SIZE, ROWS)], (-1,)),
    "reduce": (lambda x: np.max(x, axis=1) + np.prod(x, axis=1), [array(ROWS, 3, SIZE)], (0,)),
    "running": (
        lambda x: np.cumsum(x, axis=1) + np.maximum.accumulate(x, axis=0) * np.cumprod(x, axis=1),
        [array(ROWS, 3, SIZE)],
        (0,),
    ),
    "layout": (lambda x: np.transpose(x)[::-1].reshape(-1), [array(ROWS, 3, SIZE)], (0,)),
    "broadcast": (lambda x: np.broadcast_to(x, (4, SIZE)) * 2, [array(ROWS, SIZE)], (0,)),
    "slice, pad, join": (
        lambda x: np.concatenate([np.pad(x[1:5:2], 1), x, x[::-1]]),
        [array(ROWS, SIZE)],
        (0,),
    ),
    "select": (lambda x, c: np.where(c > 0, x, -x), [array(ROWS, SIZE), array(ROWS, SIZE)], (0, 0)),
    "scalar condition": (lambda x, c: np.where(c > 0, x, -x), [array(ROWS, SIZE), array(ROWS)], (0, 0)),
    "clip": (lambda x, low: np.clip(x, low, low + 1), [array(ROWS, SIZE), array(ROWS)], (0, 0)),
    "dynamic index": (lambda x, i: x[i], [array(ROWS, SIZE), np.arange(ROWS) % SIZE], (0, 0)),
    "gather": (
        lambda x, i: x[i] + x[[0, 2, -1]],
        [array(ROWS, SIZE), np.arange(3 * ROWS).reshape(ROWS, 3) % SIZE],
        (0, 0),
    ),
    "integers": (lambda x: (x * 3 + 1) // 2 % 5, [np.arange(ROWS * SIZE).reshape(ROWS, SIZE)], (0,)),
    "iota and constants": (lambda x: np.tril(x) + np.arange(4.0), [array(ROWS, 4, 4)], (0,)),
}


def loop(fun, args, in_axes) -> np.ndarray:
    def example(i):
        return [a if axis is None else np.take(a, i, axis) for a, axis in zip(args, in_axes)]

    return np.stack([fun(*example(i)) for i in range(ROWS)])


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize("case", CASES)
def test_vmap_is_a_loop_over_the_examples(case: str, sharded: bool) -> None:
    fun, args, in_axes = CASES[case]
    specs = tuple(None if a is None or not sharded else P(*[None] * (a % x.ndim), "x") for a, x in zip(in_axes, args))
    program = sw.jit(sw.vmap(fun, in_axes), mesh=MESH, in_shardings=specs).lower(*args).compile()
    expected = loop(fun, args, in_axes)
    for options in ({}, {"faithful": True, "poison": True}):
        result = np.asarray(program.run(*args, **options))
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-13)


def test_keyword_arguments_are_mapped_over_their_first_dim() -> None:
    def rows(a, b=1.0, *, c):
        return a * b + c["w"]

    a, b = array(SIZE, ROWS), array(ROWS, SIZE)
    mapped = sw.vmap(rows, 1)
    with sw.set_mesh(MESH):
        for result in (mapped(a, c={"w": b - 1}, b=b), sw.jit(mapped)(a, b=b, c={"w": b - 1})):
            np.testing.assert_array_equal(result, a.T * b + (b - 1))
    jitted = sw.jit(lambda a, b: mapped(a, b=b, c={"w": b - 1}), mesh=MESH)
    sw.testing.assert_matches_unpartitioned(jitted, a, b)
    with pytest.raises(sw.ShapeError, match=r"mapped dims must have one size, got 9 for a, 6 for b, 9 for c\['w'\]"):
        sw.jit(mapped, mesh=MESH)(a, b=b.T, c={"w": b})


def test_vmap_nests_and_places_the_new_dim() -> None:
    outer = sw.vmap(sw.vmap(lambda a, b: a * b, (0, None)), (None, 0), out_axes=1)
    result = sw.jit(outer, mesh=MESH)(np.arange(3.0), np.arange(4.0))
    np.testing.assert_array_equal(result, np.multiply.outer(np.arange(3.0), np.arange(4.0)))


def test_vmap_and_grad_commute_with_the_sum() -> None:
    x, w = array(ROWS, SIZE), array(SIZE, 5)

    def loss(w, row):
        return np.sum(np.tanh(row @ w) ** 2)

    def total(w, x):
        return np.sum(sw.vmap(loss, (None, 0))(w, sw.split(x, 0, "x")))

    per_example = sw.jit(sw.vmap(sw.grad(loss), (None, 0)), mesh=MESH)(w, x)
    whole = sw.jit(sw.grad(total), mesh=MESH)(w, x)
    np.testing.assert_allclose(np.asarray(per_example).sum(0), whole, rtol=1e-12, atol=1e-12)


def test_vmap_outside_jit_runs_on_the_mesh_of_its_arguments_once_compiled() -> None:
    calls = []

    def square(x):
        calls.append(x)
        return x * x

    x = sw.device_put(np.arange(8.0), sw.NamedSharding(MESH, P("x")))
    mapped = sw.vmap(square)
    for _ in range(3):
        np.testing.assert_array_equal(mapped(x), np.arange(8.0) ** 2)
    assert len(calls) == 1


def test_vmap_takes_trees_closures_and_results_that_no_example_changes() -> None:
    scale = np.arange(20.0)  # a hidden argument of the program, not of the region

    def f(params, x):
        return {"y": params["w"] * x, "z": params["b"] + scale}

    params = {"w": np.arange(6.0).reshape(3, 2), "b": np.ones(20)}
    f_mapped = sw.vmap(f, ({"w": 0, "b": None}, None), out_axes={"y": 0, "z": None})
    result = sw.jit(f_mapped, mesh=MESH)(params, np.array([2.0, 3.0]))
    np.testing.assert_array_equal(result["y"], params["w"] * [2.0, 3.0])
    np.testing.assert_array_equal(result["z"], 1 + scale)


@pytest.mark.parametrize(
    ("mapped", "args", "text"),
    [
        (sw.vmap(np.add), (np.ones(3), np.ones(4)), "mapped dims must have one size, got 3 for x1?, 4 for x2?"),
        (sw.vmap(np.add, (None, None)), (np.ones(3), np.ones(3)), "in_axes must map an argument"),
        (sw.vmap(np.negative, 2), (np.ones(3),), "in_axes must be in"),
        (sw.vmap(np.negative, "x"), (np.ones(3),), "in_axes"),
        (
            sw.vmap(np.negative, (0, 0)),
            (np.ones(3),),
            "in_axes must have one entry for each of the 1 positional arguments",
        ),
        (sw.vmap(np.negative, 0, None), (np.ones(3),), "out_axes None"),
    ],
)
def test_vmap_refuses_what_does_not_fit(mapped, args, text: str) -> None:
    with pytest.raises(sw.ShapeError, match=text):
        sw.jit(mapped, mesh=MESH)(*args)


def test_recording_goes_on_after_a_mapped_function_raised() -> None:
    def raises(x):
        raise ValueError("no")

    def f(x):
        with pytest.raises(ValueError, match="no"):
            sw.vmap(raises)(x)
        return sw.vmap(lambda row: row + 1)(x)

    np.testing.assert_array_equal(sw.jit(f, mesh=MESH)(np.arange(3.0)), [1, 2, 3])
