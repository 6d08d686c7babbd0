# SPDX-License-Identifier: Apache-2.0
"""Messages of programs from and to JAX, in a process with 8 devices of JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jaxlib import version

import shardwise as sw
from shardwise import P
from tests.errors.mistakes import Row
from tests.errors.mistakes_in_jax import MESH, ROWS, X
from tests.errors.test_messages import test_message_says_what_where_and_the_way_out as check
from tests.support.exports import refusal


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.program.__name__)
def test_message(row: Row) -> None:
    check(row)


def test_what_jax_refuses_is_an_error_of_jax() -> None:
    def f(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError):
        sw.from_jax(f, mesh=MESH)(X)


def test_a_shard_map_gives_what_jax_gives() -> None:
    mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    doubled = jax.shard_map(lambda x: jax.lax.psum(x * 2, "data"), mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P())

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    found = sw.from_jax(lambda x: doubled(x), mesh=MESH)(x)
    np.testing.assert_array_equal(found, x.sum(axis=0, keepdims=True) * 2)


def test_a_callback_is_named_with_the_line_of_jax() -> None:
    def f(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # the line

    with pytest.raises(sw.Error) as caught:
        sw.from_jax(f, mesh=MESH)(X)
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in str(caught.value), caught.value


def test_jax_must_not_be_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "__version_info__", (0, 4, 35))
    with pytest.raises(
        sw.UnsupportedError, match=r"^from_jax: needs JAX 0\.8 or newer, got 0\.4\.35; pip install --upg"
    ):
        sw.from_jax(np.sin)


def test_an_export_needs_a_jaxlib_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=(P("data"),)).lower(X).compile()
    monkeypatch.setattr(version, "__version_info__", (0, 10, 0))
    with pytest.raises(sw.UnsupportedError, match=refusal("0.10.0")):
        program.as_text("export")
    monkeypatch.setattr(version, "__version_info__", (0, 10, 1))
    assert program.as_text("export").startswith("module @jit_")
