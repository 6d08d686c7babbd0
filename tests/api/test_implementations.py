# SPDX-License-Identifier: Apache-2.0
"""The table of functions that arrays call: filled once, and complete after the import."""

from __future__ import annotations

import numpy as np
import pytest

import shardwise as sw
from shardwise.process.implementations import IMPLEMENTATIONS, Implementations


def test_the_import_sets_every_operation() -> None:
    unset = Implementations()
    assert Implementations.__annotations__
    for operation in Implementations.__annotations__:
        assert type(getattr(IMPLEMENTATIONS, operation)) is not type(getattr(unset, operation))


def test_a_call_of_an_operation_that_is_not_set_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"^implementations: getitem is not set; import shardwise as a whole$"):
        Implementations().getitem(np.zeros(2), 0)


def test_an_operation_is_set_once() -> None:
    table = Implementations()
    table.provide("view", len)
    assert table.view([1, 2]) == 2
    with pytest.raises(RuntimeError, match=r"^implementations: view is set already$"):
        table.provide("view", len)
    with pytest.raises(RuntimeError, match=r"^implementations: sort is not an operation of arrays$"):
        table.provide("sort", sorted)


def test_an_operation_may_be_set_at_its_first_call() -> None:
    table = Implementations()
    calls: list[str] = []
    table.provide_later("view", lambda: calls.append("view") or table.provide("view", len))
    table.provide_later("at", lambda: calls.append("at"))
    assert calls == []
    assert [table.view([1, 2]), table.view([1])] == [2, 1]
    with pytest.raises(RuntimeError, match=r"^implementations: at is not set; import shardwise as a whole$"):
        table.at([1])
    assert calls == ["view", "at"]


def test_the_mesh_is_fixed_while_any_program_is_recorded() -> None:
    mesh = sw.Mesh({"x": 2})

    def inner(x: np.ndarray) -> np.ndarray:
        with pytest.raises(sw.MeshError, match=r"^set_mesh: must not be called in a traced function"):
            sw.set_mesh(mesh)
        return x + 1

    def outer(x: np.ndarray) -> np.ndarray:
        y = sw.eval_shape(inner, x)
        with pytest.raises(sw.MeshError, match=r"^set_mesh: must not be called in a traced function"):
            sw.set_mesh(mesh)
        return x + y.size

    sw.jit(outer, mesh=mesh)(np.zeros(4))
    with pytest.raises(ZeroDivisionError):
        sw.jit(lambda x: 1 / 0, mesh=mesh)(np.zeros(4))
    with sw.set_mesh(mesh):
        assert sw.get_mesh() is mesh
