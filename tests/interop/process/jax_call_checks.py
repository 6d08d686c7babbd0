# SPDX-License-Identifier: Apache-2.0
"""Calls of JAX functions: Python numbers, the settings of JAX, static arguments, keys, and errors that JAX raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shardwise as sw
from shardwise import P
from shardwise.interop.jax_calls import value_key

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(1, 33, dtype=np.float32).reshape(8, 4)


# ---- Python numbers ------------------------------------------------------------------------------------------------

DIFFERENT = [
    *[0.0, -0.0, 1, 1.0, True, 0, False, float("nan"), -float("nan"), 0j, -0j, complex(0.0, -0.0), "0", None],
    *[np.float32(0.0), np.float32(-0.0), np.float64(0.0), np.int32(0), (0.0,), (-0.0,), (0,), ((0.0,),)],
]


def test_values_of_other_types_or_bits_have_other_keys() -> None:
    assert len({value_key(value) for value in DIFFERENT}) == len(DIFFERENT)
    assert [value_key(value) for value in DIFFERENT] == [value_key(value) for value in DIFFERENT]
    assert value_key(float("nan")) == value_key(float("nan"))


@pytest.mark.parametrize("numbers", [(0.0, -0.0), (1, 1.0, True), (0j, -0j)], ids=["zeros", "types", "complex"])
@pytest.mark.parametrize("is_static", [False, True])
def test_a_function_is_traced_for_each_number(numbers: tuple[Any, ...], is_static: bool) -> None:
    seen = []

    def f(x: Any, number: Any) -> Any:
        seen.append(number)
        return jnp.copysign(x, jnp.real(number)) + jnp.asarray(number).dtype.itemsize

    function = sw.from_jax(f, static_argnums=1 if is_static else ())
    program = sw.jit(lambda x: [function(x, number) for number in (*numbers, *numbers)], mesh=MESH)
    with jax.numpy_dtype_promotion("standard"):
        results = program(X)
        assert len(seen) == len(numbers)
        for number, result in zip((*numbers, *numbers), results):
            np.testing.assert_array_equal(np.asarray(result), np.asarray(f(X, number)))


def test_a_static_number_of_a_call_on_its_own() -> None:
    function = sw.from_jax(lambda x, s: jnp.copysign(x, jnp.real(s)), mesh=MESH, static_argnums=1)
    for number in (0.0, -0.0, np.float32(0.0), np.float32(-0.0), 0j, complex(-0.0, 0.0)):
        np.testing.assert_array_equal(np.asarray(function(X, number)), np.copysign(X, number.real))


# ---- settings of JAX -----------------------------------------------------------------------------------------------


@contextmanager
def setting(name: str, value: Any) -> Iterator[None]:
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def draws() -> Any:
    return jax.random.normal(jax.random.key(0), (4,))


@pytest.mark.parametrize(
    ("name", "value"), [("jax_threefry_partitionable", False), ("jax_default_prng_impl", "rbg")], ids=["bits", "key"]
)
def test_settings_of_random_numbers(name: str, value: Any) -> None:
    function = sw.from_jax(draws, mesh=MESH)
    inlined = sw.from_jax(lambda x: x + draws())
    usual = np.asarray(function())
    np.testing.assert_allclose(usual, np.asarray(draws()), rtol=1e-6)
    for _ in range(2):
        with setting(name, value):
            found = np.asarray(function())
            np.testing.assert_allclose(found, np.asarray(draws()), rtol=1e-6)
            zero = np.zeros(4, np.float32)
            np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: inlined(x), mesh=MESH)(zero)), found)
        assert not np.array_equal(found, usual)
        np.testing.assert_array_equal(np.asarray(function()), usual)
        np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: inlined(x), mesh=MESH)(zero)), usual)


def test_settings_that_are_a_context() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.dtype)
        return x + np.ones(4, np.int32)

    function = sw.from_jax(f, mesh=MESH)
    function(X)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion path"):
        function(X)
    function(X)
    assert len(calls) == 2
    with jax.enable_x64(True):
        assert function(X.astype(np.float64)).dtype == np.float64
    with pytest.raises(sw.DTypeError, match="without x64"):
        function(X.astype(np.float64))


@pytest.mark.parametrize(
    "number", [np.float64(0.1), np.float32(0.1), np.int32(3)], ids=lambda number: type(number).__name__
)
def test_numbers_of_numpy_are_arrays(number: Any) -> None:
    function = sw.from_jax(lambda x, s: x * s, mesh=MESH)
    calls: list[Callable[[], Any]] = [
        lambda: function(X, number),
        lambda: sw.jit(lambda x: function(x, number), mesh=MESH)(X),
    ]
    for call in calls:
        if number.dtype == np.float64:
            with pytest.raises(
                sw.DTypeError, match=r"must have dtypes that JAX keeps without x64, got float64\[\] for s"
            ):
                call()
        else:
            np.testing.assert_array_equal(np.asarray(call()), X * number)


# ---- static arguments ----------------------------------------------------------------------------------------------


def power(x: Any, n: int, *, kind: str = "power") -> Any:
    return x ** len(range(n)) if kind == "power" else x


class Model:
    @partial(jax.jit, static_argnums=(0, 2))
    def apply(self, x: Any, n: int) -> Any:
        return x ** len(range(n))


JITTED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "static_argnums": (jax.jit(power, static_argnums=1), (3,), {}),
    "static_argnames": (jax.jit(power, static_argnames=("n", "kind")), (3,), {}),
    "by name": (jax.jit(power, static_argnames=("n", "kind")), (), {"n": 3, "kind": "power"}),
    "both": (jax.jit(power, static_argnums=1, static_argnames="kind"), (3,), {"kind": "power"}),
    "partial": (partial(jax.jit(lambda n, x: power(x, n), static_argnums=0), 3), (), {}),
    "method": (Model().apply, (3,), {}),
    "given to from_jax": (lambda x, n: jax.jit(power, static_argnums=1)(x, n), (3,), {}),
}


@pytest.mark.parametrize("name", JITTED)
def test_static_arguments_of_a_jitted_function(name: str) -> None:
    jitted, args, kwargs = JITTED[name]
    function = sw.from_jax(jitted, mesh=MESH, static_argnums=1 if name == "given to from_jax" else ())
    np.testing.assert_array_equal(np.asarray(function(X, *args, **kwargs)), X**3)
    np.testing.assert_array_equal(np.asarray(function.lower(X, *args, **kwargs).compile()(X)), X**3)
    program = sw.jit(lambda x: function(x, *args, **kwargs), mesh=MESH)
    np.testing.assert_array_equal(np.asarray(program(X)), X**3)
    if args:
        program = sw.jit(function, mesh=MESH, static_argnums=1)
        np.testing.assert_array_equal(np.asarray(program(X, *args)), X**3)


def test_values_that_are_no_arrays_are_static() -> None:
    function = sw.from_jax(lambda x, kind, scale=2: x * scale if kind == "scaled" else kind(x), mesh=MESH)
    np.testing.assert_array_equal(np.asarray(function(X, "scaled")), X * 2)
    np.testing.assert_array_equal(np.asarray(function(X, kind="scaled", scale=3)), X * 3)
    np.testing.assert_array_equal(np.asarray(function(X, jnp.negative)), -X)
    program = function.lower(X, "scaled", np.float32(3)).compile()
    assert program._traced.in_names == ["x", "scale"]
    np.testing.assert_array_equal(np.asarray(program(X, np.float32(3))), X * 3)
    np.testing.assert_array_equal(np.asarray(sw.jit(lambda x: function(x, "scaled"), mesh=MESH)(X)), X * 2)
    with pytest.raises(TypeError, match="too many positional arguments"):
        function(X, "scaled", 2, "more")


# ---- annotations of programs with static arguments and keys --------------------------------------------------------


def test_annotations_of_a_program_with_a_static_argument() -> None:
    def f(x: Any, n: int, params: Any, name: str) -> Any:
        return {"y": power(x, n) @ params["w"], "b": params["b"] if name == "b" else None}

    params = {"w": np.ones((4, 4), np.float32), "b": np.ones(4, np.float32)}
    function = sw.from_jax(f, static_argnums=(1, 3))
    program = sw.jit(lambda x, params: function(x, 3, params, "b"), mesh=MESH, in_shardings=(P("x"), None))
    compiled = program.lower(X, params).compile()
    expected = f(X, 3, params, "b")
    annotated = sw.annotate_jax(f, compiled)
    jitted = jax.jit(annotated, static_argnums=(1, 3))
    assert jitted.lower(X, 3, params, "b").as_text().count('@mesh, [{"x"}, {}]') == 2  # x and y
    found = jax.jit(f, static_argnums=(1, 3), **compiled.jax_shardings()._asdict())
    for results in (annotated(X, 3, params, "b"), jitted(X, 3, params, "b"), found(X, 3, params, "b")):
        for key in ("y", "b"):
            np.testing.assert_allclose(results[key], expected[key], rtol=1e-6)
    by_name = jax.jit(annotated, static_argnames=("n", "name"))(X, n=3, params=params, name="b")
    np.testing.assert_allclose(by_name["y"], expected["y"], rtol=1e-6)


def noisy(key: Any, x: Any) -> Any:
    used, rest = jax.random.split(key)
    return x + jax.random.uniform(used, x.shape), rest


def noisy_rows(keys: Any, x: Any) -> Any:
    return jax.vmap(lambda key, row: row + jax.random.uniform(key, row.shape))(keys, x), keys


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("function", [noisy, noisy_rows])
def test_annotations_of_a_program_with_a_key(function: Any, impl: str) -> None:
    key = jax.random.key(3, impl=impl)
    keys, spec = (key, None) if function is noisy else (jax.random.split(key, 8), P("x"))
    program = sw.jit(sw.from_jax(function), mesh=MESH, in_shardings=(spec, P("x"))).lower(keys, X).compile()
    assert program._traced.in_names == ["key" if function is noisy else "keys", "x"]
    found = program.jax_shardings()
    own = jax.sharding.PartitionSpec() if function is noisy else jax.sharding.PartitionSpec("x")
    assert [sharding.spec for sharding in found.in_shardings] == [own, jax.sharding.PartitionSpec("x")]
    assert found.out_shardings[1].spec == own
    expected, rest = jax.jit(function)(keys, X)
    annotated = sw.annotate_jax(function, program)
    for call in (jax.jit(function, **found._asdict()), jax.jit(annotated), annotated):
        result, key_result = call(keys, X)
        np.testing.assert_allclose(result, expected, rtol=1e-6)
        assert key_result.dtype == rest.dtype
        np.testing.assert_array_equal(jax.random.key_data(key_result), jax.random.key_data(rest))


def test_a_key_whose_data_is_split_is_whole_in_jax() -> None:
    key = jax.random.key(3)
    program = sw.jit(sw.from_jax(noisy), mesh=MESH, in_shardings=(P("y"), P("x"))).lower(key, X).compile()
    assert program.input_shardings[0].spec == P("y")
    found = program.jax_shardings()
    assert found.in_shardings[0].spec == jax.sharding.PartitionSpec()
    result, _ = jax.jit(noisy, **found._asdict())(key, X)
    np.testing.assert_allclose(result, jax.jit(noisy)(key, X)[0], rtol=1e-6)


def test_trees_take_numbers_that_jax_traces_after_keys() -> None:
    """Both are of one class, which must not become that of keys."""
    jax.jit(lambda key: sw.tree.leaves({"key": key})[0])(jax.random.key(0))
    assert jax.jit(lambda x: len(sw.tree.leaves([x, x])))(X) == 2


# ---- errors of JAX ---------------------------------------------------------------------------------------------------


def chosen(params: Any, x: Any, *, scale: Any = 1) -> Any:
    return x * scale if params["w"][0].sum() > 0 else -x


def test_errors_of_jax_name_the_function_and_the_argument() -> None:
    place = f"chosen at {__file__}:{chosen.__code__.co_firstlineno}"
    for function in (chosen, jax.jit(chosen), partial(chosen, scale=2)):
        with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
            sw.from_jax(function, mesh=MESH)({"w": [X], "b": X}, X, scale=2)
        assert place in str(caught.value)
        assert "value of the argument params['w'][0]" in str(caught.value)
        assert "leaves[" not in str(caught.value)
    program = sw.jit(sw.from_jax(lambda params, x: x), mesh=MESH).lower({"w": [X]}, X).compile()
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        sw.annotate_jax(chosen, program)({"w": [X]}, X)
    assert place in str(caught.value)
    assert "value of the argument params['w'][0]" in str(caught.value)


def test_errors_of_an_object_and_of_other_parameters() -> None:
    class Layer:
        def __call__(self, *xs: Any, **named: Any) -> Any:
            return xs[0] if named["scale"].sum() > 0 else xs[1]

    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        sw.from_jax(Layer(), mesh=MESH)(X, X, scale=X)
    assert f"__call__ at {__file__}" in str(caught.value)
    assert "value of the argument scale" in str(caught.value)


WITH_CAPTURE: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, w: x * w,
    "left operand": lambda x, w: w @ x.T,
    "function": lambda x, w: jnp.where(x > 0, x, w),
    "lax": lambda x, w: jax.lax.add(x, w),
    "conversion": lambda x, w: jnp.asarray(w) + x,
    "numpy": lambda x, w: np.sin(w) + x,
    "branch": lambda x, w: jax.lax.cond(x.sum() > 0, lambda: x, lambda: w + x),
    "update": lambda x, w: x.at[0].set(w[0]),
}


@pytest.mark.parametrize("name", WITH_CAPTURE)
def test_a_traced_value_that_a_function_closes_over_is_named(name: str) -> None:
    def program(x: Any, weights: Any) -> Any:
        w = weights["up"]
        return sw.from_jax(lambda x: WITH_CAPTURE[name](x, w))(x)

    rule = (
        r"^from_jax: a JAX function must not close over traced values of Shardwise, got w, Tracer<float32\[8,4\]>; pass"
    )
    with pytest.raises(sw.TracerConversionError, match=rule):
        sw.jit(program, mesh=MESH)(X, {"up": X})


def test_an_error_beside_a_traced_value_is_kept() -> None:
    def program(x: Any) -> Any:
        return sw.from_jax(lambda y: (y.reshape(x.size), jnp.reshape(y, (3, 5))))(x)

    with pytest.raises(TypeError, match=r"cannot reshape"):
        sw.jit(program, mesh=MESH)(X)

    def fails(x: Any) -> Any:
        def read(y: Any) -> Any:
            raise ValueError(f"cannot read /data/shardwise/{x.ndim}")

        return sw.from_jax(read)(x)

    with pytest.raises(ValueError, match=r"^cannot read /data/shardwise/2"):
        sw.jit(fails, mesh=MESH)(X)


def test_a_call_with_known_arrays_runs_in_a_function_of_jax_jit() -> None:
    function = sw.from_jax(lambda x: x * 2, mesh=MESH)
    np.testing.assert_array_equal(jax.jit(lambda x: x + np.asarray(function(X)))(X), 3 * X)


LEAKS: dict[str, Callable[[Any, Any], Any]] = {
    "operand": lambda x, leaked: x + leaked,
    "of another shape": lambda x, leaked: x + leaked.sum(),
    "in a jitted function": lambda x, leaked: jax.jit(lambda y: y * leaked)(x),
    "in a loop": lambda x, leaked: jax.lax.map(lambda row: row + leaked[0], x),
    "result": lambda x, leaked: leaked,
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("is_differentiated", [False, True])
def test_a_tracer_that_another_call_leaked_is_jax_s_error(name: str, is_differentiated: bool) -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        kept.append(x * 2)
        return x

    sw.from_jax(leaking, mesh=MESH)(X)
    function = sw.from_jax(lambda x: LEAKS[name](x, kept[0]).sum(), mesh=MESH)
    line = leaking.__code__.co_firstlineno
    with pytest.raises(jax.errors.UnexpectedTracerError, match=rf"leaked was leaking at {__file__}:{line} "):
        (sw.jit(sw.grad(function), mesh=MESH) if is_differentiated else function)(X)


def test_only_an_op_without_a_rule_for_tpus_is_lowered_for_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    platforms: list[Any] = []
    lower = jax.stages.Traced.lower

    def spied(self: Any, *args: Any, **kwargs: Any) -> Any:
        platforms.append(kwargs["lowering_platforms"])
        if self.fun_name == "run" and fails:
            raise ValueError("a bug")
        return lower(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Traced, "lower", spied)
    fails = False
    sw.from_jax(lambda x: jnp.linalg.eigvals(x), mesh=MESH)(X[:4])
    sw.from_jax(lambda x: jnp.sin(x), mesh=MESH)(X[:4])
    assert platforms == [("tpu",), ("cpu",), ("tpu",)]
    fails = True
    with pytest.raises(ValueError, match="a bug"):
        sw.from_jax(lambda x: jnp.cos(x), mesh=MESH)(X[:4])
    assert len(platforms) == 4


# ---- functions of jax.export -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu",), ("cuda", "cpu"), ("tpu", "cpu")], ids="-".join)
@pytest.mark.parametrize("inside", ["alone", "in a loop"])
def test_an_exported_function_is_lowered_for_a_platform_that_it_has(platforms: tuple[str, ...], inside: str) -> None:
    exported = export.export(jax.jit(jnp.sin), platforms=platforms)(X[0])
    call = exported.call if inside == "alone" else lambda x: jax.lax.fori_loop(0, 1, lambda _, y: exported.call(y), x)
    np.testing.assert_allclose(np.asarray(sw.from_jax(call, mesh=MESH)(X[0])), np.sin(X[0]), rtol=1e-6)


def test_an_exported_function_has_its_gradient() -> None:
    exported = export.export(jax.jit(jnp.sin))(X[0])
    found = sw.jit(sw.grad(lambda x: sw.from_jax(exported.call)(x).sum()), mesh=MESH)(X[0])
    np.testing.assert_allclose(np.asarray(found), np.cos(X[0]), rtol=1e-6)


def test_an_exported_function_without_a_check_of_platforms() -> None:
    unchecked = [export.DisabledSafetyCheck.platform()]
    exported = export.export(jax.jit(jnp.sin), platforms=("cuda",), disabled_checks=unchecked)(X[0])
    np.testing.assert_allclose(np.asarray(sw.from_jax(exported.call, mesh=MESH)(X[0])), np.sin(X[0]), rtol=1e-6)
