# SPDX-License-Identifier: Apache-2.0
"""Constants that traced arrays index: with like=, by shardwise.numpy, and the errors where NumPy has no protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
import shardwise.numpy as snp
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
IDS = np.array([3, 0, 2, 1, -1], np.int32)
SMALL = np.arange(12.0).reshape(4, 3)
LARGE = np.arange(150, dtype=np.float32).reshape(10, 15)
on_mesh = sw.jit(mesh=MESH)


def positional_encodings(length: int, width: int) -> np.ndarray:
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    table = np.zeros((length, width))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


ENCODINGS = positional_encodings(10, 6)

# Each is plain NumPy of its ids, and a program of the same numbers.
LOOKUPS: dict[str, Callable[[Any], Any]] = {
    "eye like": lambda i: np.eye(4, like=i)[i],
    "eye wide": lambda i: np.eye(4, 6, -1, dtype=np.int8, like=i)[i],
    "eye": lambda i: snp.eye(5)[i],
    "identity": lambda i: snp.identity(4)[i],
    "identity like": lambda i: np.identity(4, np.float32, like=i)[i],
    "tri": lambda i: np.tri(4, k=-1, like=i)[i] + snp.tri(4, 4)[i],
    "small": lambda i: np.asarray(SMALL, like=i)[i],
    "large": lambda i: np.asarray(LARGE, like=i)[:, i],
    "large twice": lambda i: np.asarray(LARGE, like=i)[i] + np.asarray(LARGE, like=i)[i],
    "encodings": lambda i: snp.asarray(ENCODINGS)[i],
    "other byte order": lambda i: snp.asarray(SMALL.astype(">f4"))[i].astype(np.float64),
    "take": lambda i: snp.take(LARGE, i, axis=1),
    "take flat": lambda i: snp.take(SMALL, i),
    "take list": lambda i: snp.take([5, 6, 7, 8], i),
    "take wrap": lambda i: snp.take(SMALL, 7 * i, axis=0, mode="wrap"),
    "take known": lambda i: snp.take(SMALL, [2, 0], axis=0)[i % 2],
    "take at listed": lambda i: snp.take(SMALL, [i[0], 1, i[2]], axis=0),
    "zeros": lambda i: np.zeros((4, 2), like=i)[i] + snp.zeros(4, np.int16)[i][:, None],
    "ones": lambda i: np.ones(4, np.float32, like=i)[i] * snp.ones((4, 1))[i],
    "empty": lambda i: np.empty(4, np.int8, like=i)[i] * 0 + snp.empty(4)[i] * 0,
    "full": lambda i: np.full((4, 3), [1, 2, 3], like=i)[i] + snp.full(4, 2.5, np.float32)[i][:, None],
    "full traced": lambda i: snp.full((4,), i[1])[i],
    "arange": lambda i: np.arange(3, 11, 2, like=i)[i] + snp.arange(4)[i] + snp.arange(4.0)[i],
    "linspace": lambda i: snp.linspace(0, 1, 7)[i] + snp.linspace(0, 1, 4, retstep=True)[0][i],
    "array": lambda i: np.array(SMALL, np.float32, ndmin=3, like=i)[0][i],
    "fromfunction": lambda i: snp.fromfunction(lambda a, b: a + 10 * b, (4, 2))[i],
    "fromiter": lambda i: np.fromiter(range(4), float, like=i)[i],
    "list of tracers": lambda i: snp.array([i[0], i[1]]),
    "nested": lambda i: snp.array([[i[0], 2.5], (i[1], 4)]),
    "nested like": lambda i: np.array([i, [1, 2, 3, 4, 5]], np.float32, like=i),
    "of a tracer": lambda i: snp.asarray(i, np.float64) + snp.array(i, ndmin=2),
    "take by a list": lambda i: np.take(np.asarray(SMALL, like=i), [i[0], 1, i[2]], axis=0),
    "index list": lambda i: np.asarray(SMALL, like=i)[[i[0], 1]],
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_constant_indexed_by_traced_ids_is_numpys(name: str) -> None:
    function = LOOKUPS[name]
    want = np.asarray(function(IDS))
    for spec in (None, P("x"), P(("y", "x"))):
        program = sw.jit(function, mesh=MESH, in_shardings=spec).lower(IDS).compile()
        for options in ({}, {"faithful": True, "poison": True}):
            got = np.asarray(program.run(IDS, **options))
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-15)


def test_small_tables_are_constants_and_large_ones_hidden_arguments() -> None:
    def main(function: Any) -> tuple[str, str]:
        text = sw.jit(function, mesh=MESH).trace(IDS).as_text()
        return next(line for line in text.splitlines() if "@main" in line), text

    signature, text = main(lambda i: snp.asarray(SMALL)[i])
    assert "%arg1" not in signature
    assert "dense<[[0.0" in text
    signature, text = main(lambda i: np.asarray(LARGE, like=i)[i] + snp.asarray(LARGE)[i])
    assert "%arg1: tensor<10x15xf32>)" in signature  # one for both uses
    assert "dense<[" not in text
    signature, text = main(lambda i: snp.eye(1000)[i])
    assert "%arg1" not in signature
    assert "dense<[" not in text


def _almost(array: np.ndarray) -> np.ndarray:
    array[-1, -1] = 1
    return array


@pytest.mark.parametrize(
    ("array", "is_hidden"),
    [
        (np.zeros((100, 70), np.float32), False),
        (np.zeros((100, 70), np.complex128, order="F"), False),
        (np.full((100, 70), np.nan, sw.bfloat16), False),
        (np.ones((100, 70), bool), False),
        (np.broadcast_to(np.float64(3), (100, 70)), False),
        (np.ones((100, 140))[:, ::2], True),  # it would be copied to be looked at
        (np.where(np.arange(100)[:, None] < 99, 0.0, -0.0) + np.zeros(70), False),
        (np.copysign(np.zeros((100, 70)), _almost(np.full((100, 70), -1.0))), True),
        (_almost(np.zeros((100, 70))), True),
        (_almost(np.zeros((100, 70), np.int8)), True),
    ],
)
def test_arrays_of_one_repeated_element_are_constants(array: np.ndarray, is_hidden: bool) -> None:
    x = np.arange(70).astype(array.dtype)
    function = sw.jit(lambda x: x + array, mesh=MESH)
    assert ("%arg1" in function.trace(x).as_text()) is is_hidden
    assert np.asarray(function(x)).tobytes() == np.asarray(sw.jit(lambda x, a: x + a, mesh=MESH)(x, array)).tobytes()


def test_an_accumulator_of_zeros_is_not_sent() -> None:
    def accumulated(w: Any, xs: Any) -> Any:
        zeros = np.zeros(w.shape, w.dtype)
        total, _ = sw.scan(lambda g, x: (g + sw.grad(lambda w: np.mean(np.tanh(x @ w)))(w), None), zeros, xs)
        return w - 0.1 * total

    options: Any = {"mesh": sw.Mesh({"d": 8}), "in_shardings": (None, P(None, "d")), "shard_update": "d"}
    shapes = sw.ShapeDtypeStruct((1024, 4096), np.float32), sw.ShapeDtypeStruct((4, 8192, 1024), np.float32)
    program = sw.jit(accumulated, **options).lower(*shapes).compile()
    assert program.collectives().by_kind() == {"all_gather": 1, "reduce_scatter": 1}
    assert program.memory().argument_bytes == (1024 * 4096 + 4 * 8192 * 1024) // 8 * 4


def test_outside_jit_shardwise_numpy_is_numpy() -> None:
    for name in ("arange", "array", "asarray", "empty", "eye", "full", "identity", "ones", "tri", "zeros"):
        assert type(getattr(snp, name)(*((2, 2) if name == "full" else (2,)))) in (np.ndarray, np.float64), name
        assert getattr(snp, name).__name__ == name
    held = sw.device_put(np.arange(8.0), sw.NamedSharding(MESH, P("x")))
    assert type(snp.asarray(held)) is np.ndarray
    np.testing.assert_array_equal(snp.take(SMALL, [1, 2], axis=0), SMALL[1:3])
    assert type(np.eye(3, like=held)) is np.ndarray


def test_an_array_on_a_mesh_is_a_like_too() -> None:
    held = sw.device_put(np.arange(8.0), sw.NamedSharding(MESH, P("x")))
    got = on_mesh(lambda i: (np.eye(4, like=held)[i], snp.asarray(held)[i], snp.array([held, held])[0, i]))(IDS)
    for result, want in zip(got, (np.eye(4)[IDS], np.arange(8.0)[IDS], np.arange(8.0)[IDS]), strict=True):
        np.testing.assert_array_equal(np.asarray(result), want)


def test_the_gradient_reaches_what_is_stacked_from_a_list() -> None:
    def loss(w: Any, i: Any) -> Any:
        rows = snp.array([w[0], w[2], SMALL[1]])
        return np.sum(rows[i] * snp.asarray(SMALL)[i])

    got = sw.jit(sw.grad(loss), mesh=MESH)(SMALL, IDS[2:])
    want = np.zeros_like(SMALL)
    want[2] += SMALL[1]
    np.testing.assert_array_equal(np.asarray(got), np.where(np.arange(4)[:, None] == 2, want, 0))


def test_constants_are_lifted_under_vmap() -> None:
    got = sw.jit(sw.vmap(lambda i: snp.eye(4)[i]), mesh=MESH)(IDS)
    np.testing.assert_array_equal(np.asarray(got), np.eye(4)[IDS])


LOOKUP = "indexing: {} cannot be indexed by a traced array, got {}; use {}"
TAKE = "{}: a table of constants must be traced if its indices are, got the indices Tracer<int32[5]>; use {}"
VECTOR, NUMBER = "Tracer<int32[5]>", "Tracer<int32[]>"
# Each row: a call that is refused, its message, and the advised code.
REFUSED: dict[str, tuple[Callable[[Any], Any], str, Callable[[Any], Any]]] = {
    "eye": (
        lambda i: np.eye(4)[i],
        LOOKUP.format("a NumPy array", VECTOR, "np.asarray(np.eye(4), like=i)[i]"),
        lambda i: np.asarray(np.eye(4), like=i)[i],
    ),
    "column": (
        lambda i: SMALL[:, i],
        LOOKUP.format("a NumPy array", VECTOR, "np.asarray(SMALL, like=i)[:, i]"),
        lambda i: np.asarray(SMALL, like=i)[:, i],
    ),
    "number": (
        lambda i: SMALL[i[0]],
        LOOKUP.format("a NumPy array", NUMBER, "np.asarray(SMALL, like=i)[i[0]]"),
        lambda i: np.asarray(SMALL, like=i)[i[0]],
    ),
    "list": (
        lambda i: [1, 2, 3][i[0]],
        LOOKUP.format("a list", NUMBER, "np.asarray([1, 2, 3], like=i)[i[0]]"),
        lambda i: np.asarray([1, 2, 3], like=i)[i[0]],
    ),
    "tuple": (
        lambda i: (1, 2, 3)[i[0]],
        LOOKUP.format("a tuple", NUMBER, "np.asarray((1, 2, 3), like=i)[i[0]]"),
        lambda i: np.asarray((1, 2, 3), like=i)[i[0]],
    ),
    "list of traced arrays": (
        lambda i: [i, i + 1][i[0]],
        LOOKUP.format("a list", NUMBER, "np.stack([i, i + 1])[i[0]]"),
        lambda i: np.stack([i, i + 1])[i[0]],
    ),
    "take": (
        lambda i: np.take(SMALL, i),
        TAKE.format("np.take", "np.take(np.asarray(SMALL, like=i), i)"),
        lambda i: np.take(np.asarray(SMALL, like=i), i),
    ),
    "take axis": (
        lambda i: np.take(SMALL, i, axis=0),
        TAKE.format("np.take", "np.take(np.asarray(SMALL, like=i), i, axis=0)"),
        lambda i: np.take(np.asarray(SMALL, like=i), i, axis=0),
    ),
    "take method": (
        lambda i: SMALL.take(i),
        TAKE.format("SMALL.take", "np.asarray(SMALL, like=i).take(i)"),
        lambda i: np.asarray(SMALL, like=i).take(i),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_numpy_has_no_protocol_the_error_names_the_form_that_works(name: str) -> None:
    function, text, advised = REFUSED[name]
    with pytest.raises(sw.TracerConversionError) as caught:
        on_mesh(function).trace(IDS)
    assert str(caught.value) == f"{text} (at {__file__}:{function.__code__.co_firstlineno})"
    numbers = IDS % 2 if "list of" in name else IDS % 3
    np.testing.assert_array_equal(np.asarray(on_mesh(advised)(numbers)), function(numbers))
