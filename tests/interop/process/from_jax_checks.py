# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX in programs of Shardwise give JAX's values and gradients. Runs in a process of its own.

Each commit compares a third of the functions in turn: JAX takes a second to compile each with its gradients.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as Q

import shardwise as sw
from shardwise import P
from tests.interop.process.jax_functions import FUNCTIONS, JaxCase
from tests.support.run_seed import in_turn

MESHES = {"whole": sw.Mesh({"x": 1}), "8 devices": sw.Mesh({"x": 4, "y": 2})}
each_function = pytest.mark.parametrize("case", in_turn(FUNCTIONS), ids=lambda case: case.name)


def derivatives(function: Any, library: Any, orders: int) -> Any:
    """The value, the gradient, and the gradient of the squared gradient."""

    def squares(first: Any, *rest: Any) -> Any:
        leaves = jax.tree.leaves(library.grad(function)(first, *rest))
        return sum(((leaf * leaf).sum() for leaf in leaves[1:]), (leaves[0] * leaves[0]).sum())

    def both(first: Any, *rest: Any) -> Any:
        found = library.value_and_grad(function)(first, *rest)
        return (found, library.grad(squares)(first, *rest)) if orders == 2 else found

    return both


def specs_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """A spec for each array: two neighboring dims are split, not the same ones in each array."""
    leaves, tree = jax.tree.flatten(arguments)
    specs = []
    for i, leaf in enumerate(leaves):
        dims: list[Any] = [None] * np.ndim(leaf)
        for j, axis in enumerate(MESHES["8 devices"].axis_names[: len(dims)]):
            dims[(i + j) % len(dims)] = axis
        specs.append(P(*dims))
    return tuple(jax.tree.unflatten(tree, specs))


EPS = float(np.finfo(np.float32).eps)


def exact_leaves(case: JaxCase) -> list[np.ndarray]:
    """The same derivatives by JAX in float64."""
    with jax.enable_x64(True):
        leaves, tree = jax.tree.flatten(case.arguments)
        wide = [x.astype(np.float64) if getattr(x, "dtype", None) == np.float32 else x for x in leaves]
        function = jax.jit(derivatives(case.function, jax, case.orders))
        arguments = jax.tree.unflatten(tree, wide)
        compiled = function.lower(*arguments).compile(compiler_options={"xla_backend_optimization_level": 0})
        return [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]


# Compiled by JAX 0.12, a leaf of these is off by 2e-4 of its largest element; op by op, by 1e-5.
OP_BY_OP = ("module_like_flax",)


def leaves_of_jax(case: JaxCase) -> list[Any]:
    """The derivatives by JAX."""
    function = derivatives(case.function, jax, case.orders)
    return jax.tree.leaves((function if case.name in OP_BY_OP else jax.jit(function))(*case.arguments))


def bound_of(theirs: np.ndarray, exact: np.ndarray) -> float:
    """How far a leaf can be from the float64 leaf.

    A sum or a product of matrices errs by at most 8 eps of its terms, and two or three follow one another: 16 eps of
    the largest element. Functions with cancellation amplify rounding, by as much in JAX. Sums are in another order
    there, so twice JAX's own distance from float64 is added.
    """
    return 16 * EPS * float(np.abs(exact).max(initial=0)) + 2 * float(np.abs(theirs - exact).max(initial=0))


def assert_near_exact(found: list[Any], theirs: list[Any], exact: list[np.ndarray], what: str) -> None:
    assert len(found) == len(theirs) == len(exact)
    for i, (ours, other, best) in enumerate(zip(found, theirs, exact)):
        assert (ours.shape, ours.dtype) == (other.shape, other.dtype)
        bound = bound_of(np.asarray(other), best)
        apart = np.abs(np.asarray(ours).astype(np.float64) - best).max(initial=0)
        assert apart <= bound, f"{what}, leaf {i}: {apart} is above {bound}"


@each_function
def test_values_and_gradients_are_those_of_jax(case: JaxCase) -> None:
    theirs = leaves_of_jax(case)
    exact = exact_leaves(case)
    for other, best in zip(theirs, exact):
        assert bound_of(np.asarray(other), best) <= 3e-5 * np.abs(best).max(initial=0)
    function = derivatives(sw.from_jax(case.function), sw, case.orders)
    for name, mesh in MESHES.items():
        options: Any = {"in_shardings": specs_of(case.arguments)} if mesh.size > 1 else {}
        program = sw.jit(function, mesh=mesh, **options).lower(*case.arguments).compile()
        if mesh.size > 1:
            arrays = [x for x in jax.tree.leaves(case.arguments) if np.ndim(x)]
            split = [x for x in jax.tree.leaves(program.input_shardings) if any(x.spec)]
            assert len(split) == len(arrays) > 0
        assert_near_exact(jax.tree.leaves(program(*case.arguments)), theirs, exact, f"{case.name}, {name}")


@pytest.mark.parametrize("name", ["attention", "rms_norm", "straight_through_round", "module_like_flax"])
def test_the_bound_refuses_a_leaf_that_is_off(name: str) -> None:
    """One element of one leaf, by 4e-5 of the largest element. No bound is above 3e-5."""
    case = next(case for case in FUNCTIONS if case.name == name)
    theirs = leaves_of_jax(case)
    exact = exact_leaves(case)
    assert_near_exact(theirs, theirs, exact, name)
    for i in range(len(theirs)):
        wrong = [np.array(leaf) for leaf in theirs]
        wrong[i].reshape(-1)[-1] += np.float32(4e-5 * np.abs(exact[i]).max())
        with pytest.raises(AssertionError, match=f"leaf {i}"):
            assert_near_exact(wrong, theirs, exact, name)


def test_the_bound_refuses_the_gradient_of_the_text() -> None:
    """The text of relu is a maximum, whose gradient at 0 is 1/2."""
    case = next(case for case in FUNCTIONS if case.name == "relu_at_zero")
    theirs = jax.tree.leaves(jax.jit(derivatives(case.function, jax, 1))(*case.arguments))
    of_text = jax.value_and_grad(lambda x: (jnp.maximum(x, 0) * (x + 3)).sum())(*case.arguments)
    with pytest.raises(AssertionError, match="leaf 1"):
        assert_near_exact(jax.tree.leaves(of_text), theirs, [np.asarray(x, np.float64) for x in theirs], case.name)


# ---- documented differences ------------------------------------------------------------------------------------------


def test_the_gradient_by_a_python_float_is_float64() -> None:
    function = lambda s: jnp.sin(s)  # noqa: E731
    assert sw.jit(sw.grad(sw.from_jax(function)), mesh=MESH)(2.0).dtype == np.float64
    assert jax.grad(function)(2.0).dtype == np.float32


def test_a_window_counts_its_initial_value_at_padded_positions() -> None:
    x = np.arange(6, dtype=np.float32)
    sums = lambda x: jax.lax.reduce_window(x, 10.0, jax.lax.add, (3,), (1,), ((1, 1),))  # noqa: E731
    expected = [21, 13, 16, 19, 22, 29]
    np.testing.assert_array_equal(np.asarray(sw.from_jax(sums, mesh=MESH)(x)), np.float32(expected))
    assert np.asarray(sums(x)).tolist() == [11, *expected[1:-1], 19]


# ---- meshes, shardings, names, lines ---------------------------------------------------------------------------------

MESH = sw.Mesh({"data": 4, "model": 2})
X, W = np.ones((8, 6), np.float32), np.ones((6, 4), np.float32)


def layer(x: Any, w: Any) -> Any:
    hidden = checkpoint_name(jax.nn.relu(x @ w), "hidden")  # the line of the layer
    return hidden.sum()


LINE = f"{__file__}:{layer.__code__.co_firstlineno + 1}"


def test_names_and_lines_are_those_of_the_jax_program() -> None:
    both = sw.value_and_grad(sw.from_jax(layer), argnums=(0, 1))
    program = sw.jit(both, mesh=MESH, in_shardings=(P("data"), P(None, "model"))).lower(X, W).compile()
    assert program.why("hidden").values[0].sharding == '[{"data"}, {"model"}]'
    assert {row.location for row in program.collectives()} <= {LINE, f"{__file__}:{int(LINE.rpartition(':')[2]) + 1}"}
    assert program.why("w").values[0].sharding == '[{}, {"model"}]'


def test_shardings_of_jax_are_annotations_and_give_the_mesh() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    sharding = jax.sharding.NamedSharding(mesh, Q("data", "model"))

    def f(x: Any, w: Any) -> Any:
        return jax.lax.with_sharding_constraint(x @ w, sharding) * 2

    program = sw.from_jax(f).lower(X, W).compile()
    assert (program.mesh, program.output_shardings.spec) == (MESH, P("data", "model"))
    assert [s.spec for s in program.input_shardings] == [P("data", None), P(None, "model")]
    jitted = jax.jit(jnp.tanh, in_shardings=jax.sharding.NamedSharding(mesh, Q("data")))
    assert sw.from_jax(jitted).lower(X).compile().input_shardings[0].spec == P("data", None)


def test_arguments_keep_their_shardings() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, Q("data")))
    function = sw.from_jax(jnp.tanh)
    result = function(x)
    assert isinstance(result, sw.Array)
    assert (result.sharding.spec, result.sharding.mesh) == (P("data", None), MESH)
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=x.sharding)
    assert function.lower(shape).compile().input_shardings[0].spec == P("data", None)
    assert function.eval_shape(shape).shape == X.shape


def test_states_of_optimizers_of_shapes_of_jax() -> None:
    shapes = {"w": jax.ShapeDtypeStruct((256, 160), jnp.bfloat16)}
    for optimizer in (sw.optim.adam(1e-3), sw.optim.with_float32_masters(sw.optim.adafactor(1e-3))):
        found, wanted = optimizer.init(shapes), sw.eval_shape(optimizer.init, shapes)
        types = [[(tuple(leaf.shape), leaf.dtype) for leaf in sw.tree.leaves(state)] for state in (found, wanted)]
        assert types[0] == types[1]
        assert all(isinstance(leaf, sw.ShapeDtypeStruct) for leaf in sw.tree.leaves(found) if leaf.ndim)


def test_a_sharding_on_another_mesh_is_an_error() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    f = sw.from_jax(lambda x: jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, Q("data"))))
    message = r"^from_jax: the shardings of a JAX function must be on the program's mesh, Mesh\('data': 4"
    with pytest.raises(sw.MeshError, match=message):
        sw.jit(f, mesh=MESH)(X)


def test_stages_trees_and_static_arguments() -> None:
    def f(params: Any, power: int, *, scale: Any) -> Any:
        return {"y": (params["w"] ** power * scale, None), "n": params["n"]}

    function = sw.from_jax(f, mesh=MESH, static_argnums=1)
    arguments = ({"w": W, "n": np.int32(3)}, 2)
    traced = function.trace(*arguments, scale=0.5)
    assert traced.in_names == ["params['n']", "params['w']", "scale"]
    assert traced.out_info["y"][0] == sw.ShapeDtypeStruct(W.shape, W.dtype)
    result = traced.lower().compile()({"w": W, "n": np.int32(3)}, scale=0.5)
    assert result["y"][1] is None
    np.testing.assert_array_equal(np.asarray(result["y"][0]), W**2 * np.float32(0.5))
    assert repr(function).startswith("<from_jax of test_stages")
    again = function(*arguments, scale=0.5)
    np.testing.assert_array_equal(np.asarray(again["y"][0]), np.asarray(result["y"][0]))


def test_a_function_is_lowered_once_per_shape() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return x + 1

    function = sw.from_jax(f, mesh=MESH)
    for x in (X, X + 1, W, X):
        function(x)
    assert calls == [X.shape, W.shape]


def test_vmap_of_a_function_and_of_its_gradient() -> None:
    function = sw.from_jax(lambda x: jnp.sin(x).prod())
    expected = jax.vmap(jax.grad(lambda x: jnp.sin(x).prod()))(X)
    found = sw.jit(sw.vmap(sw.grad(function)), mesh=MESH)(X)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(sw.jit(sw.vmap(function), mesh=MESH)(X)), np.sin(X).prod(1), rtol=1e-5)


def test_a_gradient_of_a_vmap_and_forward_mode() -> None:
    rule = jax.custom_vjp(lambda x, w: (jnp.sin(x) * w).sum())
    rule.defvjp(lambda x, w: ((jnp.sin(x) * w).sum(), (x, w)), lambda res, g: (3 * g * res[1], 5 * g * res[0]))
    w = np.arange(X.shape[1], dtype=np.float32)
    function = sw.from_jax(rule)
    found = sw.jit(sw.grad(lambda x, w: sw.vmap(function, (0, None))(x, w).sum(), (0, 1)), mesh=MESH)(X, w)
    wanted = jax.grad(lambda x, w: jax.vmap(rule, (0, None))(x, w).sum(), (0, 1))(X, w)
    for ours, theirs in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)
    sine = sw.from_jax(jnp.sin)
    tangent = sw.jit(lambda x, t: sw.jvp(sine, (x,), (t,))[1], mesh=MESH)(X, X)
    np.testing.assert_allclose(np.asarray(tangent), X * np.cos(X), rtol=1e-5)


def test_a_function_in_a_scan_with_gradients() -> None:
    cell = jax.custom_vjp(lambda h, x: jnp.tanh(h + x))
    cell.defvjp(lambda h, x: (jnp.tanh(h + x), h), lambda h, g: (3 * g * h, g))

    def ours(h: Any, xs: Any) -> Any:
        inside = sw.from_jax(cell)
        return sw.scan(lambda h, x: (inside(h, x), None), h, xs)[0].sum()

    def theirs(h: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda h, x: (cell(h, x), None), h, xs)[0].sum()

    found = sw.jit(sw.grad(ours, argnums=(0, 1)), mesh=MESH)(X[0], X)
    for got, want in zip(found, jax.grad(theirs, argnums=(0, 1))(X[0], X)):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


# ---- calls ----------------------------------------------------------------------------------------------------------


@jax.jit
def block(x: Any, w: Any) -> Any:
    """A layer of more than 12 ops."""
    mean = x.mean(-1, keepdims=True)
    normal = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3)
    return x + jnp.tanh(jax.nn.softmax(normal @ w) * normal)


def blocks(count: int) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights[:count]:
            x = block(x, w)
        return (x * x).mean()

    return loss


@pytest.mark.parametrize("transform", ["value", "gradient", "batched"])
def test_a_jitted_layer_that_is_called_often_is_one_function(transform: str) -> None:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((6, 6), dtype=np.float32) for _ in range(8)]
    x = rng.standard_normal((8, 6), dtype=np.float32)
    lines = {}
    for count in (4, 8):
        loss = blocks(count)
        if transform == "value":
            ours, theirs = sw.from_jax(loss), loss
        elif transform == "gradient":
            ours, theirs = sw.value_and_grad(sw.from_jax(loss), argnums=(0, 1)), jax.value_and_grad(loss, (0, 1))
        else:
            ours, theirs = sw.vmap(sw.from_jax(loss), (None, 0)), jax.vmap(loss, (None, 0))
        arguments = (weights, x)
        program = sw.jit(ours, mesh=MESH, in_shardings=(None, P("data")))
        expected = jax.tree.leaves(jax.jit(theirs)(*arguments))
        found = jax.tree.leaves(program(*arguments))
        assert len(found) == len(expected)
        for got, want in zip(found, expected):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-5)
        lines[count] = program.lower(*arguments).compile().as_text("local").splitlines()
        if transform != "batched":  # vmap expands calls
            calls = [line for line in lines[count] if "call @block" in line]
            assert len(calls) >= count
    if transform != "batched":
        bodies = [sum("func.func private @block" in line for line in lines[count]) for count in (4, 8)]
        assert bodies[0] == bodies[1] <= 2 + 2 * (transform == "gradient")
        assert len(lines[8]) - len(lines[4]) <= 4 * (2 if transform == "value" else 8)


def test_two_functions_of_jax_share_an_equal_layer() -> None:
    weights = [np.full((6, 6), 0.1, np.float32)] * 2
    first, second = sw.from_jax(blocks(2)), sw.from_jax(lambda ws, x: 2 * blocks(2)(ws, x))
    program = sw.jit(lambda ws, x: first(ws, x) + second(ws, 1 + x), mesh=MESH).lower(weights, X).compile()
    assert program.as_text("global").count("func.func private @block") == 1
    assert program.as_text("global").count("call @block") == 4


def fsdp(params: dict[str, Any], ids: Any, column: Any = lambda ids: ids[..., None]) -> Any:
    """A layer behind a lookup. ``column`` adds the dim of size 1 that the gather of rows needs."""
    numbers = jax.lax.GatherDimensionNumbers(offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,))
    x = jax.lax.gather(params["e"], column(ids), numbers, (1, 128), mode="promise_in_bounds")
    return jnp.mean((x + jax.nn.gelu(x @ params["w1"]) @ params["w2"]) ** 2)


def test_parameters_that_are_split_over_the_batch_axis_need_no_annotated_activations() -> None:
    """At most, each is gathered once, and its gradient is reduced once; without the batch, activations are gathered."""
    shapes = {"e": (512, 128), "w1": (128, 512), "w2": (512, 128)}
    params = {name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in shapes.items()}
    ids = jax.ShapeDtypeStruct((16, 128), np.int32)
    specs = dict.fromkeys(shapes, P("x"))
    sent = []
    for loss in (
        sw.from_jax(jax.grad(fsdp)),
        sw.grad(sw.from_jax(fsdp)),
        sw.from_jax(jax.grad(lambda params, ids: fsdp(params, ids, lambda ids: ids.reshape(*ids.shape, 1)))),
    ):
        jitted = sw.jit(loss, mesh=sw.Mesh({"x": 8}), in_shardings=(specs, P("x")), out_shardings=specs)
        sent.append(jitted.lower(params, ids).compile().collectives().total_bytes)
    assert sent == [sent[0]] * 3
    assert 0 < sent[0] <= 6 * (512 * 128 * 4 * 7 // 8)
