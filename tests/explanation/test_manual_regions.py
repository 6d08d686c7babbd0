# SPDX-License-Identifier: Apache-2.0
"""why() of values of `shard_map`: their types on a device, and the axes along which they differ; results of loops."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.ones((16, 8), np.float32)


def compiled(function: Any, **options: Any) -> sw.Program:
    return sw.jit(function, mesh=MESH, **options).lower(X).compile()


def test_a_value_of_a_region_has_its_type_on_a_device() -> None:
    def body(rows: Any) -> Any:
        scaled = np.sin(rows) * 2
        total = sw.lax.psum(scaled.sum(), "x")

        def step(carry: Any, _: None) -> tuple[Any, None]:
            inner = np.tanh(carry)
            return inner, None

        last, _ = sw.scan(step, scaled, None, length=3)
        return last + total

    region = sw.shard_map(body, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    program = compiled(lambda x: region(x) * 2)
    for name, shape in {"scaled": "4x8", "inner": "4x8", "last": "4x8"}.items():
        [value] = program.why(name).values
        assert (value.manual_axes, value.device_type, value.differs) == (("x",), f"tensor<{shape}xf32>", True)
        first, second = str(value).splitlines()
        assert f'is tensor<{shape}xf32> on each device of the manual region over "x" at ' in first
        assert second == '  It differs along "x".'
    [total] = program.why("total").values
    assert (total.device_type, total.differs) == ("tensor<f32>", False)
    assert 'It is the same on all devices along "x".' in str(total)


def test_an_axis_that_is_not_manual_splits_a_value_of_a_region() -> None:
    def body(rows: Any) -> Any:
        split = sw.split(np.sin(rows), 1, "y")
        return split * 2

    region = sw.shard_map(body, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    [value] = [each for each in compiled(lambda x: region(x)).why("split").values if each.differs]
    assert 'dim 1 is split over "y": ' in str(value)
    assert value.manual_axes == ("x",)


def test_values_outside_of_a_region_are_explained_as_before() -> None:
    region = sw.shard_map(lambda rows: rows * 2, in_specs=P("x"), out_specs=P("x"))

    def program(x: Any) -> Any:
        inside = region(x)
        after = np.tanh(inside)
        return after * 2

    [value] = compiled(program).why("after").values
    assert (value.manual_axes, value.device_type, value.region_at) == ((), "", "")
    assert 'sharded [{"x"}, {}]' in str(value)


def test_the_result_of_a_loop_is_not_its_counter() -> None:
    def program(x: Any) -> Any:
        scanned, _ = sw.scan(lambda c, _: (np.tanh(c), None), x, None, length=2)
        counted = sw.fori_loop(0, 3, lambda i, c: c * 2, scanned)
        i, repeated = sw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, counted))
        return repeated * i

    explained = compiled(program, in_shardings=P("x"))
    for name in ("scanned", "counted", "repeated"):
        [value] = explained.why(name).values
        assert value.type == "tensor<16x8xf32>"
        assert value.axes[0].axis == '"x"'
    assert [value.type for value in explained.why("i").values if value.op == "stablehlo.while"] == ["tensor<i64>"]
