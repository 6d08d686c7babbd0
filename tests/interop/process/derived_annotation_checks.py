# SPDX-License-Identifier: Apache-2.0
"""Annotations of JAX functions whose results nothing uses. Runs in a process of its own on 8 host devices."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

import shardwise as sw
from shardwise import P

AUTO = jax.sharding.AxisType.Auto
JAX_MESH = jax.make_mesh((4,), ("x",), axis_types=(AUTO,), devices=jax.devices()[:4])
EXPLICIT = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices()[:4])
MESH = sw.Mesh({"x": 4})
SPLIT = NamedSharding(JAX_MESH, PartitionSpec("x"))
ROWS, WHOLE = PartitionSpec("x"), PartitionSpec()
X = np.arange(8, dtype=np.float32)


def shard_map(body: Any, ins: Any, outs: Any, **options: Any) -> Any:
    return jax.shard_map(body, mesh=JAX_MESH, in_specs=ins, out_specs=outs, **options)


def loss(w: Any, x: Any) -> Any:
    return shard_map(lambda w, x: lax.psum(((w * x) ** 2).sum(), "x"), (WHOLE, ROWS), WHOLE)(w, x)


def several(x: Any) -> Any:
    return shard_map(lambda x: (x * 2, lax.psum(x.sum(), "x")), ROWS, (ROWS, WHOLE))(x)


def with_unused_entry(tree: Any) -> Any:
    return shard_map(lambda tree: 2 * tree["a"], ({"a": ROWS, "b": ROWS},), ROWS)(tree)


UNUSED = jax.jit(lambda a, k: a * 2, in_shardings=(SPLIT, NamedSharding(JAX_MESH, WHOLE)))
TWO_RESULTS = jax.jit(lambda a: (a * 2, a + 1), out_shardings=(SPLIT, SPLIT))

# (function of JAX, arguments, value)
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "input that the body does not use": (shard_map(lambda x, y: 2 * x, (ROWS, ROWS), ROWS), (X, X), 2 * X),
    "gradient of a linear region": (
        jax.grad(shard_map(lambda x: lax.psum(jnp.sum(x), "x"), ROWS, WHOLE)), (X,), np.ones(8)
    ),
    "region of a constant": (shard_map(lambda x: jnp.zeros(2), ROWS, ROWS), (X,), np.zeros(8)),
    "region of the index": (shard_map(lambda x: lax.axis_index("x")[None], ROWS, ROWS), (X,), np.arange(4)),
    "entry of a tree": (with_unused_entry, ({"a": X, "b": X},), 2 * X),
    "value of a vjp": (lambda x: jax.vjp(lambda x: several(x)[1], x)[1](np.float32(1))[0], (X,), np.ones(8)),
    "gradient": (jax.grad(loss), (np.float32(3), X), 840),
    "gradient by the second argument": (jax.grad(loss, argnums=1), (np.float32(3), X), 18 * X),
    "gradient in the region": (
        shard_map(lambda w, x: lax.psum(jax.grad(lambda w: ((w * x) ** 2).sum())(w), "x"), (WHOLE, ROWS), WHOLE,
                  check_vma=False), (np.float32(3), X), 840
    ),
    "value and gradient": (lambda w, x: jax.value_and_grad(loss)(w, x)[1], (np.float32(3), X), 840),
    "one of several results": (lambda x: several(x)[1], (X,), 28),
    "unused argument with in_shardings": (UNUSED, (X, np.ones(2, np.float32)), 2 * X),
    "inner jit with an unused argument": (lambda a, k: UNUSED(a, k) + 1, (X, np.ones(2, np.float32)), 2 * X + 1),
    "dropped result of an inner jit": (lambda a: TWO_RESULTS(a)[1], (X,), X + 1),
}  # fmt: skip


def warned(function: Any, *arguments: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """The result, and warnings of shardings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sw.ShardingWarning)
        result = sw.jit(sw.from_jax(function), mesh=MESH)(*arguments)
    return result, [warning for warning in caught if warning.category is sw.ShardingWarning]


@pytest.mark.parametrize("name", PROGRAMS)
def test_annotations_that_jax_makes_are_no_mistake(name: str) -> None:
    function, arguments, value = PROGRAMS[name]
    result, caught = warned(function, *arguments)
    np.testing.assert_allclose(result, value, rtol=1e-6)
    assert not caught


@pytest.mark.parametrize("axes", [(), ("x",)], ids=["whole", "split"])
def test_explicit_axes(axes: tuple[str, ...]) -> None:
    a = (np.arange(32, dtype=np.float32) / 32).reshape(8, 4)
    rows = PartitionSpec("x", None)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return total + part, None

    programs = {
        "einsum": (
            lambda a: (jnp.einsum("ab,cb->ac", a, a, out_sharding=rows) ** 2).sum(),
            lambda a: (jnp.einsum("ab,cb->ac", a, a) ** 2).sum(),
        ),
        "scan": (
            lambda a: lax.scan(add, jnp.zeros((8, 4), out_sharding=rows), jnp.stack([a, a]))[0].sum(),
            lambda a: 2 * a.sum(),
        ),
        "reshard": (
            lambda a: (jax.sharding.reshard(a, rows) * 2).sum(),
            lambda a: (a * 2).sum(),
        ),
    }
    for function, plain in programs.values():
        for transform in (jax.grad, lambda f: f, lambda f: lambda a: jax.value_and_grad(f)(a)[1]):
            expected = jax.jit(transform(plain))(a)
            with jax.set_mesh(EXPLICIT):
                result, caught = warned(transform(function), a)
            np.testing.assert_allclose(result, expected, rtol=1e-5)
            assert not caught


def test_our_gradient_of_a_region_that_does_not_need_an_argument() -> None:
    f = sw.from_jax(shard_map(lambda w, x: jnp.tanh(w), (ROWS, WHOLE), ROWS))
    w, x = np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 4), np.ones((1, 4), np.float32)
    gradient = sw.jit(sw.grad(lambda w, x: np.sum(f(w, x) ** 2)), mesh=MESH)(w, x)
    np.testing.assert_allclose(gradient, 2 * np.tanh(w) * (1 - np.tanh(w) ** 2), rtol=1e-5)


# ---- hand-written and discarded --------------------------------------------------------------------------------------


def helper(x: Any) -> Any:
    return lax.with_sharding_constraint(x, SPLIT)


def statement(x: Any) -> Any:
    lax.with_sharding_constraint(x, SPLIT)
    return x * 2


def of_a_helper(x: Any) -> Any:
    helper(x)
    return x * 2


def another_element(x: Any) -> Any:
    return (lax.with_sharding_constraint(x, SPLIT), x * 2)[1]


def of_a_map(x: Any) -> Any:
    jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, SPLIT), {"x": x})
    return x * 2


def in_a_scan(x: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        lax.with_sharding_constraint(c, SPLIT)
        return c * 2, None

    return lax.scan(body, x, None, length=1)[0]


DISCARDED = (statement, of_a_helper, another_element, of_a_map, in_a_scan)
TRANSFORMS: dict[str, Any] = {
    "alone": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
    "checkpoint": jax.checkpoint,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("discarded", DISCARDED, ids=lambda f: f.__name__)
def test_a_discarded_constraint_has_a_warning_at_its_line(discarded: Any, transform: str) -> None:
    _, caught = warned(TRANSFORMS[transform](discarded), X)
    if discarded is in_a_scan and transform == "grad":  # JAX drops what a loop does not use when it differentiates it
        return
    [warning] = caught
    assert str(warning.message).startswith("with_sharding_constraint: its result must be used")
    assert "write x = with_sharding_constraint(x, …)" in str(warning.message)
    lines, first = inspect.getsourcelines(discarded)
    text = "helper(x)" if discarded is of_a_helper else "with_sharding_constraint"
    line = first + next(i for i, source in enumerate(lines) if text in source)
    assert (warning.filename, warning.lineno) == (__file__, line)


def dropped_part(x: Any) -> Any:
    def block(x: Any) -> Any:
        h = jnp.tanh(x)
        return lax.with_sharding_constraint(h, SPLIT), h.sum()

    return x * block(x)[1]


def dropped_value(x: Any) -> Any:
    return jax.grad(lambda x: lax.with_sharding_constraint((x**2).sum(), NamedSharding(JAX_MESH, WHOLE)))(x)


def dropped_aux(x: Any) -> Any:
    return jax.grad(lambda x: ((x**2).sum(), lax.with_sharding_constraint(x, SPLIT)), has_aux=True)(x)[0]


def dropped_call(x: Any) -> Any:
    jax.checkpoint(helper)(x)
    jax.jit(helper)(x)
    helper(jnp.tanh(x))
    return x


@pytest.mark.parametrize("kept", [dropped_part, dropped_value, dropped_aux, dropped_call], ids=lambda f: f.__name__)
def test_a_constraint_that_is_returned_has_none(kept: Any) -> None:
    result, caught = warned(kept, X)
    np.testing.assert_allclose(result, kept(X), rtol=1e-5)
    assert not caught


def test_places_in_reports_are_the_users() -> None:
    shardings = {"in_shardings": (SPLIT, None), "out_shardings": (None, SPLIT)}
    function = sw.from_jax(jax.jit(lambda a, k: (jnp.sin(a), a), **shardings))

    def program(a: Any, k: Any) -> Any:
        return function(a, k)  # this line

    compiled = sw.jit(program, mesh=MESH, in_shardings=P(), out_shardings=P()).lower(X, X).compile()
    text = compiled.as_text("global", locations=True)
    assert "/shardwise/interop/" not in text.replace("tests/interop", "")
    lines, first = inspect.getsourcelines(program)
    line = first + next(i for i, source in enumerate(lines) if "this line" in source)
    assert f'derived_annotation_checks.py":{line}:' in text
