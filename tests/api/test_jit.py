# SPDX-License-Identifier: Apache-2.0
"""jit as a user of JAX and NumPy meets it: forms, arguments, caching, closures, exceptions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P
from shardwise.recording.tracing import current_trace

MESH = sw.Mesh({"x": 4, "y": 2})
X = np.arange(24, dtype=np.float32).reshape(6, 4)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.traces = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.traces += 1
        return self.fun(*args, **kwargs)


def same(result: Any, expected: Any) -> None:
    assert isinstance(result, sw.Array)
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(result), expected)


# ---- forms ----------------------------------------------------------------------------------------------------------


def test_jit_is_a_function_a_decorator_and_a_decorator_factory() -> None:
    def double(x: Any) -> Any:
        """Twice."""
        return x + x

    @sw.jit
    def plain(x: Any) -> Any:
        return x + x

    @sw.jit(mesh=MESH)
    def made(x: Any) -> Any:
        return x + x

    with sw.set_mesh(MESH):
        same(plain(X), X + X)
    same(made(X), X + X)
    called = sw.jit(double, mesh=MESH)
    same(called(X), X + X)
    assert called.__name__ == "double"
    assert called.__doc__ == "Twice."
    assert "double" in repr(called)


def test_lambdas_partials_callables_and_builtins_can_be_jitted() -> None:
    same(sw.jit(lambda x: x * 2, mesh=MESH)(X), X * 2)
    same(sw.jit(functools.partial(np.add, 1), mesh=MESH)(X), X + 1)
    same(sw.jit(functools.partial(np.sum, axis=0), mesh=MESH)(X), X.sum(0))
    same(sw.jit(np.tanh, mesh=MESH)(np.zeros(3)), np.zeros(3))
    same(sw.jit(Counted(np.negative), mesh=MESH)(X), -X)


def test_methods_can_be_jitted_bound_and_in_the_class() -> None:
    class Model:
        def __init__(self, scale: int) -> None:
            self.scale = scale

        def plain(self, x: Any) -> Any:
            return x * self.scale

        @functools.partial(sw.jit, mesh=MESH, static_argnums=0)
        def jitted(self, x: Any) -> Any:
            return x * self.scale

    a, b = Model(2), Model(3)
    same(sw.jit(a.plain, mesh=MESH)(X), X * 2)
    same(a.jitted(X), X * 2)
    same(b.jitted(X), X * 3)
    same(a.jitted(X), X * 2)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"mesh": {"x": 2}}, sw.MeshError, "mesh must be a Mesh"),
        ({"strategy": "best"}, ValueError, "strategy"),
        ({"static_argnums": 2}, ValueError, "static_argnums"),
        ({"static_argnums": (0, -3)}, ValueError, "static_argnums"),
        ({"static_argnames": "z"}, ValueError, "static_argnames"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        sw.jit(lambda x, y: x, **options)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function, got 3"):
        sw.jit(3)  # type: ignore[call-overload]


# ---- arguments ------------------------------------------------------------------------------------------------------


def test_keyword_arguments_and_defaults() -> None:
    f = sw.jit(lambda x, y=1.0, *, z: x * y + z, mesh=MESH)
    same(f(X, z=X), X + X)
    same(f(X, y=X, z=1), X * X + 1)
    same(f(z=X, x=X), X + X)


def test_trees_go_in_and_come_out_with_none_leaves() -> None:
    def f(params: Any, batch: Any) -> Any:
        return {"sum": params["w"] + batch[0], "none": None, "rest": [batch[1], (params["b"], ())]}

    result = sw.jit(f, mesh=MESH)({"w": X, "b": X[0], "unused": None}, (X, X[1]))
    same(result["sum"], X + X)
    assert result["none"] is None
    same(result["rest"][0], X[1])
    same(result["rest"][1][0], X[0])
    assert result["rest"][1][1] == ()


def test_a_function_without_arguments_and_one_without_results() -> None:
    same(sw.jit(lambda: np.ones((2, 3)), mesh=MESH)(), np.ones((2, 3)))
    assert sw.jit(lambda x: None, mesh=MESH)(X) is None
    assert sw.jit(lambda x: (), mesh=MESH)(X) == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, np.asarray(3)),
        (2.5, np.asarray(2.5)),
        (True, np.asarray(True)),
        (np.float32(1.5), np.asarray(np.float32(1.5))),
        (np.arange(40), np.arange(40)),
        (np.ones(3, np.int8), np.ones(3, np.int8)),
    ],
)
def test_constants_can_be_returned(value: Any, expected: np.ndarray) -> None:
    same(sw.jit(lambda: value, mesh=MESH)(), expected)


def test_arguments_can_be_returned_unchanged_and_twice() -> None:
    a, b, c = sw.jit(lambda x, y: (x, y, x), mesh=MESH)(X, 2)
    same(a, X)
    same(b, 2)
    same(c, X)
    d, e = sw.jit(lambda x: (lambda z: (z, z))(x + 1), mesh=MESH, in_shardings=P("x"))(X)
    same(d, X + 1)
    same(e, X + 1)


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "bfloat16"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_arguments_of_every_dtype_keep_their_bits(dtype: str) -> None:
    kind = sw.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (7, 5)).astype(kind)
    same(sw.jit(lambda x: x.T, mesh=MESH, in_shardings=P("x", "y"))(x), x.T)
    same(sw.jit(lambda x: np.concatenate([x, x]), mesh=MESH, in_shardings=P("x"))(x), np.concatenate([x, x]))


def test_extreme_integers_keep_their_bits() -> None:
    for dtype in ("int64", "uint64", "int8"):
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 0, 1], dtype)
        same(sw.jit(lambda x: x + x, mesh=MESH, in_shardings=P("x"))(x), x + x)


def _read_only() -> np.ndarray:
    x = X.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "fortran": np.asfortranarray(X),
    "transposed": X.reshape(4, 6).T,
    "every other": np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3],
    "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": np.broadcast_to(X[:1], (6, 4)),
    "read-only": _read_only(),
    "big-endian": X.astype(">f4"),
    "unaligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(6, 4),
    "offset view": np.pad(X, 2)[2:-2, 2:-2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_memory_layout_is_read_and_none_is_written(layout: str) -> None:
    x = LAYOUTS[layout]
    before = x.tobytes(), x.strides, x.flags.writeable
    f = sw.jit(lambda x: (x * 2 + x.T.reshape(x.shape), x), mesh=MESH, in_shardings=P("x", "y"))
    for _ in range(2):
        changed, kept = f(x)
        np.testing.assert_array_equal(np.asarray(changed), x * 2 + x.T.reshape(x.shape))
        np.testing.assert_array_equal(np.asarray(kept), x)
    assert (x.tobytes(), x.strides, x.flags.writeable) == before


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (0, 0), (1,), (1, 1), ()])
def test_empty_and_tiny_arrays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    same(sw.jit(lambda x: x + 1, mesh=MESH)(x), x + 1)
    if shape:
        same(sw.jit(lambda x: np.sum(x, 0), mesh=MESH, in_shardings=P("x"))(x), x.sum(0))


@pytest.mark.parametrize("x", [X.copy(), np.arange(8.0), np.ones((4, 4), np.int8)], ids=lambda x: str(x.shape))
def test_results_never_share_memory_with_arguments(x: np.ndarray) -> None:
    f = sw.jit(lambda x: (x, x.T, x.reshape(-1), x[1:], np.broadcast_to(x, (2, *x.shape))), mesh=MESH)
    results = f(x)
    expected = [np.asarray(result).copy() for result in results]
    x[...] = 7
    assert len(results) == 5
    for result, kept in zip(results, expected):
        np.testing.assert_array_equal(np.asarray(result), kept)
        host = np.asarray(result)
        assert host.flags.writeable
        host[...] = 9
        np.testing.assert_array_equal(np.asarray(result), kept)


@pytest.mark.parametrize("scalar", [2, 2.5, -1, True])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "bfloat16", "bool"])
def test_python_numbers_as_arguments_are_weak_as_in_numpy(scalar: Any, dtype: str) -> None:
    x = np.ones(5, sw.bfloat16 if dtype == "bfloat16" else dtype)

    def f(x: Any, s: Any) -> Any:
        return x * s, s + x, x * (1 - s) if type(scalar) is not bool else x, np.where(x > 0, x, s)

    for result, expected in zip(sw.jit(f, mesh=MESH)(x, scalar), f(x, scalar), strict=True):
        same(result, expected)


def test_numpy_scalars_as_arguments_are_not_weak() -> None:
    same(sw.jit(lambda x, s: x * s, mesh=MESH)(X, np.float64(2)), X * np.float64(2))


@pytest.mark.parametrize(
    "value", ["text", np.ones(2, np.clongdouble), np.array(["a"]), object(), np.datetime64("2020")]
)
def test_arguments_that_are_no_numbers_are_refused(value: Any) -> None:
    with pytest.raises(sw.DTypeError, match="jit: argument x must be an array of numbers, got "):
        sw.jit(lambda x: x, mesh=MESH)(value)


def test_masked_arrays_are_refused_wherever_they_come_in() -> None:
    masked = np.ma.masked_array(X, X > 3)
    f = sw.jit(lambda x: x, mesh=MESH)
    f(X)
    for use in (
        lambda: f(masked),
        lambda: sw.jit(lambda x: x + masked, mesh=MESH)(X),
        lambda: sw.device_put(masked, MESH),
    ):
        with pytest.raises(sw.DTypeError, match="must not be masked"):
            use()


def test_arithmetic_of_python_numbers_that_are_arguments_stays_weak() -> None:
    def f(x: Any, s: Any, n: Any) -> Any:
        return [x * (1 - s), x * (s / 2 + 1), x * -s, x + n // 2, x[n], (x > s), x * (n < 5), x**n, divmod(n, 2)[0] + n]

    for result, expected in zip(sw.jit(f, mesh=MESH)(X, 0.25, 2), f(X, 0.25, 2), strict=True):
        same(result, expected)


def test_results_that_are_no_arrays_are_refused() -> None:
    for value in ("text", object(), np.clongdouble(1j)):
        with pytest.raises(sw.DTypeError):
            sw.jit(lambda x: value, mesh=MESH)(X)  # noqa: B023


# ---- static arguments -----------------------------------------------------------------------------------------------


def power(x: Any, n: int) -> Any:
    return x if n == 1 else x * power(x, n - 1)


@pytest.mark.parametrize(
    "options", [{"static_argnums": 1}, {"static_argnums": (1,)}, {"static_argnums": -1}, {"static_argnames": "n"},
                {"static_argnames": ("n",)}, {"static_argnums": 1, "static_argnames": "n"}],
    ids=repr,
)  # fmt: skip
def test_static_arguments_by_position_and_by_name(options: dict[str, Any]) -> None:
    counted = Counted(power)
    functools.update_wrapper(counted, power)
    f = sw.jit(counted, mesh=MESH, **options)
    same(f(X, 3), X**3)
    same(f(X, n=3), X**3)
    same(f(x=X, n=2), X**2)
    same(f(X, 2), X**2)
    before = counted.traces
    f(X, 3)
    f(X, n=3)
    assert counted.traces == before


def test_static_arguments_before_and_between_traced_ones() -> None:
    f = sw.jit(lambda a, x, b, y, *, c: x * a + y * b + c, mesh=MESH, static_argnums=(0, 2), static_argnames="c")
    same(f(2, X, 3, X, c=1), X * 2 + X * 3 + 1)


def test_a_static_keyword_only_argument_does_not_take_a_position() -> None:
    f = sw.jit(lambda *xs, n: sum(xs) * n, mesh=MESH, static_argnames="n")
    same(f(X, X, X, n=2), (X + X + X) * 2)


def test_static_values_that_are_equal_but_of_another_type_are_other_programs() -> None:
    f = sw.jit(lambda x, s: x * s, mesh=MESH, static_argnums=1)
    x = np.ones(3, np.int32)
    for s in (1, 1.0, True, np.int64(1), 0.0, -0.0):
        result = f(x, s)
        same(result, x * s)
        assert np.array_equal(np.signbit(np.asarray(result, float)), np.signbit(np.asarray(x * s, float)))


def test_static_arguments_must_be_hashable() -> None:
    with pytest.raises(TypeError, match="static arguments must be hashable"):
        sw.jit(lambda x, s: x, mesh=MESH, static_argnums=1)(X, [1])


# ---- caching --------------------------------------------------------------------------------------------------------


def test_equal_shapes_dtypes_and_shardings_share_a_program() -> None:
    counted = Counted(lambda x: x + 1)
    f = sw.jit(counted, mesh=MESH)
    calls: list[tuple[Any, int]] = [
        (X, 1),
        (X * 2, 1),
        (np.asfortranarray(X), 1),
        (X[:3], 2),
        (X[:3].astype(np.int8), 3),
        (sw.device_put(X, NamedSharding(MESH, P("x"))), 4),
        (sw.device_put(X * 3, NamedSharding(MESH, P("x"))), 4),
        (sw.device_put(X, NamedSharding(MESH, P("y"))), 5),
        (1, 6),
        (2, 6),
        (1.0, 7),
        (np.int64(1), 8),
        ((X,), 9),
        (X, 9),
    ]
    counted.fun = lambda x: (x[0] if isinstance(x, tuple) else x) + 1
    for x, traces in calls:
        f(x)
        assert counted.traces == traces
    f.clear_cache()
    f(X)
    assert counted.traces == 10


def test_the_ambient_mesh_is_part_of_the_cache_key() -> None:
    f = sw.jit(lambda x: sw.split(x, 0, "x") + 1)
    for size in (2, 3, 2):
        with sw.set_mesh(sw.Mesh({"x": size})):
            assert f(X).sharding.mesh.size == size


# ---- the mesh -------------------------------------------------------------------------------------------------------


def test_the_mesh_comes_from_the_option_arguments_shardings_or_the_ambient_one() -> None:
    ambient = sw.Mesh({"a": 2})

    def mesh_of(**options: Any) -> Callable[..., sw.Mesh]:
        return lambda x: sw.jit(lambda x: x, **options)(x).sharding.mesh

    put = sw.device_put(X, NamedSharding(MESH, P("x")))
    with sw.set_mesh(ambient):
        assert mesh_of()(X) == ambient
        assert mesh_of(mesh=MESH)(X) == MESH
        assert mesh_of()(put) == MESH
        assert mesh_of(in_shardings=NamedSharding(MESH, P("x")))(X) == MESH
        assert mesh_of(out_shardings=NamedSharding(MESH, P("x")))(X) == MESH


def test_without_a_mesh_jit_says_how_to_give_one() -> None:
    with pytest.raises(sw.MeshError, match="pass mesh= to jit, sharded arrays, or call set_mesh first"):
        sw.jit(lambda x: x)(X)


def test_arrays_on_several_meshes_are_refused() -> None:
    put = sw.device_put(X, sw.Mesh({"z": 2}))
    for call in (lambda: sw.jit(lambda x: x, mesh=MESH)(put), lambda: sw.jit(lambda x: x + put, mesh=MESH)(X)):
        with pytest.raises(sw.MeshError, match=r"move (it|arrays) with device_put"):
            call()


# ---- shardings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec", [P("x"), P(None, "y"), NamedSharding(MESH, P(("y", "x"))), '[{"x":(1)2}, {"y"}]', P(("x", "y"))], ids=repr
)
def test_in_and_out_shardings_are_kept(spec: Any) -> None:
    wanted = spec if isinstance(spec, NamedSharding) else NamedSharding(MESH, spec)
    program = sw.jit(lambda x: x + 1, mesh=MESH, in_shardings=spec).lower(X).compile()
    assert program.input_shardings[0].is_equivalent_to(wanted, 2)
    y = sw.jit(lambda x: x + 1, mesh=MESH, out_shardings=spec)(X)
    assert y.sharding.is_equivalent_to(wanted, 2)
    same(y, X + 1)


def test_shardings_are_prefix_trees() -> None:
    def f(params: Any, x: Any, *, k: Any) -> Any:
        return {"a": params["w"] @ params["v"], "b": (x, k)}

    params = {"w": np.ones((8, 4)), "v": np.ones((4, 2))}
    jitted = sw.jit(f, mesh=MESH, in_shardings=({"w": P("x"), "v": None}, P("y")),
                    out_shardings={"a": P("x", "y"), "b": P("x")})  # fmt: skip
    program = jitted.lower(params, X, k=X).compile()
    by_shape = dict(zip([aval.shape for aval in program._traced.in_avals], program.input_shardings))
    assert by_shape[8, 4].spec == P("x", None)
    assert program.output_shardings["a"].spec == P("x", "y")
    assert [s.spec for s in program.output_shardings["b"]] == [P("x", None)] * 2
    same(jitted(params, X, k=X)["a"], params["w"] @ params["v"])


def test_in_shardings_skip_static_arguments_and_may_be_a_list() -> None:
    f = sw.jit(lambda n, x, y: x * n + y, mesh=MESH, static_argnums=0, in_shardings=[P("x"), P("y")])
    same(f(2, X, X), X * 2 + X)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"in_shardings": (P("x"), P("x"))}, sw.ShardingError),
        ({"out_shardings": (P("x"), P("x"))}, sw.ShardingError),
        ({"in_shardings": P("nope")}, sw.ShardingError),
        ({"in_shardings": P("x", "y", None)}, sw.ShardingError),
        ({"out_shardings": P("x", "x")}, sw.ShardingError),
        ({"in_shardings": 3}, sw.ShardingError),
        ({"in_shardings": '[{"x"]'}, sw.ParseError),
        ({"in_shardings": NamedSharding(sw.Mesh({"x": 2}), P("x"))}, sw.MeshError),
    ],
)
def test_shardings_that_do_not_fit_are_refused(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sw.jit(lambda x: x, mesh=MESH, **options)(X)


def test_an_argument_is_resharded_to_in_shardings() -> None:
    f = sw.jit(lambda x: x * 2, mesh=MESH, in_shardings=P("y", "x"))
    same(f(sw.device_put(X, NamedSharding(MESH, P("x")))), X * 2)


# ---- closures -------------------------------------------------------------------------------------------------------


def test_closed_over_arrays_are_snapshots_and_hidden_arguments() -> None:
    big, small = np.arange(40.0).reshape(10, 4), np.arange(4.0)
    f = sw.jit(lambda x: x @ big.T + (big * small).sum(), mesh=MESH)
    expected = X @ big.T + (big * small).sum()
    same(f(X), expected)
    text = f.lower(X).compile().as_text("global")
    assert text.count("%arg") - text.count("%arg", text.index("-> tensor")) == 2  # x and big; small is a constant
    big[...] = 5
    small[...] = 5
    same(f(X), expected)
    f.clear_cache()
    same(f(X), X @ big.T + (big * small).sum())


def test_an_array_that_is_written_while_recording_has_both_values() -> None:
    buffer = np.zeros((6, 4), np.float32)

    def f(x: Any) -> Any:
        buffer[...] = 1
        y = x + buffer
        buffer[...] = 2
        return y * buffer

    same(sw.jit(f, mesh=MESH)(X), f(X))


def test_a_closed_over_array_on_the_mesh_keeps_its_sharding() -> None:
    w = sw.device_put(X, NamedSharding(MESH, P("x", "y")))
    f = sw.jit(lambda x: x + w * w, mesh=MESH)
    same(f(X), X + X * X)
    assert f.lower(X).compile().as_text("global").count('{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}') == 1
    same(sw.jit(lambda x: w, mesh=MESH)(X), X)


def test_an_argument_that_is_also_closed_over() -> None:
    same(sw.jit(lambda x: x + X, mesh=MESH)(X), X + X)


# ---- nesting --------------------------------------------------------------------------------------------------------


def test_nested_jit_is_recorded_inline() -> None:
    inner = sw.jit(lambda x, n: x * n, static_argnums=1)
    outer = sw.jit(lambda x: inner(x, 2) + inner(x, n=3), mesh=MESH)
    same(outer(X), X * 2 + X * 3)


def test_shardings_of_a_nested_jit_are_constraints() -> None:
    inner = sw.jit(lambda x, unused: x * 2, in_shardings=(P("x"), P("y")), out_shardings=P(None, "y"))
    f = sw.jit(lambda x: inner(x, x) + 1, mesh=MESH)
    same(f(X), X * 2 + 1)
    text = f.lower(X).compile().as_text("global")
    assert 'sharding_constraint %arg0 <@mesh, [{"x"}, {}]>' in text
    assert '<@mesh, [{}, {"y"}]>' in text


def test_a_nested_jit_on_another_mesh_is_refused() -> None:
    inner = sw.jit(lambda x: x, mesh=sw.Mesh({"z": 2}))
    with pytest.raises(sw.MeshError, match="nested"):
        sw.jit(lambda x: inner(x), mesh=MESH)(X)


# ---- exceptions -----------------------------------------------------------------------------------------------------


def test_an_exception_in_the_function_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    jitted = sw.jit(f, mesh=MESH)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jitted(X)
        assert current_trace() is None
    outer = sw.jit(lambda x: x + 1, mesh=MESH)
    same(outer(X), X + 1)


def test_a_caught_exception_of_an_inner_function_leaves_the_outer_program() -> None:
    def bad(x: Any) -> Any:
        _ = x * 2
        raise ValueError

    def f(x: Any) -> Any:
        try:
            return sw.jit(bad)(x)
        except ValueError:
            return x + 1

    same(sw.jit(f, mesh=MESH)(X), X + 1)


def test_a_leaked_tracer_is_refused_wherever_it_is_used() -> None:
    leaked: list[Any] = []
    sw.jit(lambda x: leaked.append(x) or x, mesh=MESH)(X)  # type: ignore[func-returns-value]
    uses: list[Callable[[], Any]] = [
        lambda: leaked[0] + 1,
        lambda: np.sum(leaked[0]),
        lambda: np.asarray(leaked[0]),
        lambda: float(leaked[0]),
        lambda: sw.jit(lambda y: y + leaked[0], mesh=MESH)(X),
        lambda: sw.jit(lambda y: y, mesh=MESH)(leaked[0]),
        lambda: sw.device_put(leaked[0], MESH),
        lambda: sw.split(leaked[0], 0, "x"),
    ]
    for use in uses:
        with pytest.raises(sw.Error):
            use()
        assert current_trace() is None


def test_the_mesh_may_come_from_an_annotation() -> None:
    rows = NamedSharding(MESH, P("x"))
    for annotate in (sw.with_sharding_constraint, sw.shard, sw.device_put, sw.reshard):
        f = sw.jit(lambda x, annotate=annotate: annotate(x * 2, rows))
        assert f(X).sharding == f(X).sharding == NamedSharding(MESH, P("x", None))
    assert sw.jit(lambda x: sw.jit(lambda x: x + 1, mesh=MESH)(x))(X).sharding.mesh == MESH
    lowered = sw.jit(lambda x: sw.manual(lambda x: x + 1, MESH, P("y"), P("y"))(x)).lower(np.ones((8, 8)))
    assert "sdy.manual_computation" in lowered.as_text()
    other = NamedSharding(sw.Mesh({"x": 2}), P("x"))
    with pytest.raises(sw.MeshError, match="program's"):
        sw.jit(lambda x: sw.shard(x, rows) + sw.shard(x, other))(X)
    with pytest.raises(sw.MeshError, match="jit: no mesh given"):
        sw.jit(lambda x: x + 1)(X)
    with pytest.raises(sw.MeshError, match="jit: no mesh given"):
        sw.jit(lambda x: sw.shard(x, rows), in_shardings=P("x"))(X)
