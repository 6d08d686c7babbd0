# SPDX-License-Identifier: Apache-2.0
"""The code that errors advise works, and errors of the user are not taken for errors of tracers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"d": 2})
X = np.arange(8.0)
HELD = sw.device_put(X, sw.NamedSharding(MESH, sw.P("d")))
PLACES = sw.device_put(np.arange(8) % 3, sw.NamedSharding(MESH, sw.P("d")))


def counted(y: Any, index: Any) -> Any:
    y = np.zeros_like(index, shape=(4,))
    return y.at[index].add(1)


ADVISED: dict[str, tuple[Any, Any]] = {
    "static shape": (
        sw.jit(lambda x, shape: x.reshape(shape), mesh=MESH, static_argnames="shape")(X, (2, 4)),
        X.reshape(2, 4),
    ),
    "static permutation": (
        sw.jit(lambda x, perm: np.transpose(x, perm), mesh=MESH, static_argnames="perm")(X.reshape(2, 4), (1, 0)),
        X.reshape(2, 4).T,
    ),
    "rate itself": (sw.jit(lambda x, lr: x * lr, mesh=MESH)(X, 0.5), X * 0.5),
    "rate as a float": (sw.jit(lambda x, n: x * (n + 1).astype(float), mesh=MESH)(X, 2), X * 3),
    "stacked operand": (sw.jit(lambda x: np.dot([1.0, 2.0], np.stack([x[1], x[2]])), mesh=MESH)(X), 5.0),
    "condition": (sw.jit(lambda x, s: np.where(s > 0, x * 2, x), mesh=MESH)(X, 1.0), X * 2),
    "static key": (sw.jit(lambda x, n: x * {1: 2.0}[n], mesh=MESH, static_argnames="n")(X, 1), X * 2),
    "static bound": (sw.jit(lambda x, n: x + np.eye(8)[:n], mesh=MESH, static_argnames="n")(X, 1), X + np.eye(8)[:1]),
    "table": (sw.jit(lambda n: np.asarray([1, 2, 3], like=n)[n], mesh=MESH)(1), 2),
    "update": (sw.jit(lambda i: counted(None, i), mesh=MESH)(np.array([1, 1, 3])), [0, 2, 0, 1]),
    "add at places": (sw.at(np.zeros(8), PLACES).add(1), [3, 3, 2, 0, 0, 0, 0, 0]),
    "reduceat": (np.add.reduceat(np.asarray(HELD), [0]), [28]),
}


@pytest.mark.parametrize("name", ADVISED)
def test_advised_code_gives_the_value(name: str) -> None:
    got, want = ADVISED[name]
    np.testing.assert_allclose(np.asarray(got), want)


def test_none_is_told_by_is() -> None:
    assert sw.jit(lambda x: 0 if x is None else 1, mesh=MESH)(X).item() == 1


def test_an_error_of_the_user_stays() -> None:
    def replaced(x: Any) -> Any:
        try:
            return np.zeros(x.sum())
        except TypeError:
            raise TypeError("mine") from None

    def caused(x: Any) -> Any:
        try:
            return float(x.sum())
        except TypeError as error:
            raise ValueError("mine") from error

    def later(x: Any) -> Any:
        try:
            return np.zeros(x.sum())
        except TypeError:
            return x + int("mine")

    for function in (replaced, caused, later):
        with pytest.raises((TypeError, ValueError), match="mine") as caught:
            sw.jit(function, mesh=MESH).trace(X)
        assert type(caught.value) in (TypeError, ValueError)


def test_a_traced_array_is_no_key() -> None:
    with pytest.raises(sw.TracerConversionError, match=r"^hash: this needs the value of a traced array"):
        sw.jit(lambda x: x if x[0] in {1: 2} else 0, mesh=MESH).trace(X)
