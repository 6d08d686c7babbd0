# SPDX-License-Identifier: Apache-2.0
"""sw.checkpoint: the same numbers, fewer values that are kept for the gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"x": 2})
RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 4)).astype(np.float32)
W = RNG.standard_normal((4, 4)).astype(np.float32) / 2
H = RNG.standard_normal(4).astype(np.float32)

POLICIES = {
    "everything": sw.checkpoint_policies.everything_saveable,
    "dots": sw.checkpoint_policies.dots_saveable,
    "names": sw.checkpoint_policies.save_only_these_names("first"),
    "other names": sw.checkpoint_policies.save_only_these_names("second"),
    "but other names": sw.checkpoint_policies.save_any_names_but_these("second"),
    "but names": sw.checkpoint_policies.save_any_names_but_these("first"),
    "all but names": sw.checkpoint_policies.save_anything_except_these_names("first"),
    "unbatched dots": sw.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "both": sw.checkpoint_policies.save_from_both_policies(
        sw.checkpoint_policies.dots_saveable, sw.checkpoint_policies.save_only_these_names("first")
    ),
    "nothing": sw.checkpoint_policies.nothing_saveable,
    "default": None,
}


def layer(h: Any, x: Any, w: Any) -> Any:
    first = sw.name(np.tanh(h @ w + x), "first")
    return np.tanh(first @ w)


def loss(policy: Any, h: Any, xs: Any, w: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = layer(h, x, w)
        return h, h.sum()

    return (sw.scan(sw.checkpoint(body, policy=policy), h, xs)[1] ** 2).sum()


def gradient(policy: Any) -> Any:
    return sw.jit(sw.value_and_grad(partial(loss, policy), argnums=(0, 1, 2)), mesh=MESH)


def local_text(function: Any, *arrays: Any) -> str:
    return str(function.lower(*arrays).compile().as_text("local"))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_numbers_do_not_depend_on_the_policy(policy: str) -> None:
    found, expected = gradient(POLICIES[policy])(H, X, W), gradient(POLICIES["everything"])(H, X, W)
    assert sw.tree.structure(found) == sw.tree.structure(expected)
    for ours, theirs in zip(sw.tree.leaves(found), sw.tree.leaves(expected)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("policy", "rows", "products"),
    # Rows of four that the loop stacks: the carry, and what else is kept. Products: two forward and two for each
    # operand backward, and those that run again.
    [
        ("everything", 3, 6),
        ("dots", 3, 6),
        ("names", 2, 7),
        ("other names", 1, 8),
        ("but other names", 2, 7),
        ("but names", 1, 8),
        ("unbatched dots", 3, 6),
        ("both", 3, 6),
        ("nothing", 1, 8),
        ("default", 1, 8),
    ],
)
def test_the_policy_decides_what_a_scan_stacks(policy: str, rows: int, products: int) -> None:
    text = local_text(gradient(POLICIES[policy]), H, X, W)
    _, results = text.split("shardwise.scan")[1].split("\n    })")[1].splitlines()[0].split("->")
    assert results.count("tensor<6x4xf32>") == rows
    assert text.count("stablehlo.dot_general") == products
    assert ("stablehlo.optimization_barrier" in text) == (policy != "everything")


def test_layers_one_after_another() -> None:
    def layers(wrap: Any, h: Any, w: Any) -> Any:
        for x in X[:3]:
            h = wrap(layer)(h, x, w)
        return h.sum()

    kept, again = (
        sw.jit(sw.value_and_grad(partial(layers, wrap), argnums=(0, 1)), mesh=MESH)
        for wrap in (lambda f: f, sw.checkpoint)
    )
    for ours, theirs in zip(sw.tree.leaves(again(H, W)), sw.tree.leaves(kept(H, W))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert local_text(kept, H, W).count("stablehlo.tanh") == 6
    assert local_text(again, H, W).count("stablehlo.tanh") == 12


def test_what_depends_on_no_argument_is_computed_again() -> None:
    @sw.checkpoint
    def masked(x: Any, key: Any) -> Any:
        rows = np.arange(6, like=x)
        x = np.where(rows[:, None] >= rows, np.sin(x), 0)
        return np.where(sw.random.bernoulli(key, np.float32(0.5), x.shape), x, 0)

    arrays = RNG.standard_normal((6, 6)).astype(np.float32), np.array([1, 2], np.uint32)
    function = sw.jit(sw.value_and_grad(lambda x, key: masked(x, key).sum()), mesh=MESH, in_shardings=sw.P("x"))
    program = function.lower(*arrays).compile()
    parts = program.as_text("local").split("stablehlo.optimization_barrier")
    first, again = parts[0], parts[-1]
    # Otherwise the mask of positions and the counters of the random bits would be kept.
    for op in ("iota", "compare GE", "shift_left"):
        assert first.count(f"stablehlo.{op}") == again.count(f"stablehlo.{op}") > 0
    kept = sw.jit(sw.value_and_grad(lambda x, key: masked.__wrapped__(x, key).sum()), mesh=MESH)
    for ours, theirs in zip(function(*arrays), kept(*arrays)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_without_a_gradient_nothing_runs_twice() -> None:
    text = local_text(sw.jit(partial(loss, None), mesh=MESH), H, X, W)
    assert text.count("stablehlo.tanh") == 2
    assert "optimization_barrier" not in text


def test_arguments_and_results_are_passed_on() -> None:
    @sw.checkpoint
    def f(tree: Any, scale: float, *, power: int, mode: str = "a") -> Any:
        assert mode == "b"
        return {"y": tree["x"] ** power * scale, "none": None, "scale": scale, "array": W}

    def g(x: Any) -> Any:
        result = f({"x": x}, 2.0, power=3, mode="b")
        assert (result["none"], result["scale"]) == (None, 2.0)
        assert result["array"] is W
        return result["y"].sum()

    assert f.__name__ == "f"
    np.testing.assert_allclose(sw.jit(sw.grad(g), mesh=MESH)(X), 6 * X**2, rtol=1e-5)
    np.testing.assert_array_equal(f({"x": X}, 2.0, power=3, mode="b")["y"], X**3 * 2.0)


def test_weak_numbers_stay_weak() -> None:
    def f(x: Any) -> Any:
        return sw.fori_loop(0, 3, lambda i, c: c * sw.checkpoint(lambda: i + 1)(), x)

    result = sw.jit(f, mesh=MESH)(X)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, X * 6)


def test_the_text_keeps_the_policy() -> None:
    module = sw.jit(partial(loss, POLICIES["names"]), mesh=MESH).trace(H, X, W)
    text = module.as_text()
    assert '"shardwise.checkpoint"(' in text
    assert 'policy = "names", names = ["first"]' in text
    assert sw.parse(text).as_text() == text


def test_products_with_batch_dims_are_computed_again() -> None:
    a = RNG.standard_normal((3, 4, 4)).astype(np.float32)

    def products(policy: Any) -> int:
        layer = sw.checkpoint(lambda x: np.tanh(np.einsum("bij,bjk->bik", x, x)) @ W, policy=policy)
        return local_text(sw.jit(sw.value_and_grad(lambda x: layer(x).sum()), mesh=MESH), a).count(
            "stablehlo.dot_general"
        )

    policies = sw.checkpoint_policies
    assert products(policies.dots_with_no_batch_dims_saveable) == products(policies.nothing_saveable)
    assert products(policies.dots_saveable) == products(policies.nothing_saveable) - 1


def test_policies_have_the_names_of_jax() -> None:
    names = {name for name in vars(sw.checkpoint_policies)["__all__"] if name != "Policy"}
    assert names == {
        "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable", "dots_with_no_batch_dims_saveable",
        "everything_saveable", "nothing_saveable", "save_any_names_but_these", "save_anything_except_these_names",
        "save_from_both_policies", "save_only_these_names",
    }  # fmt: skip
    everything = sw.checkpoint_policies.everything_saveable
    assert sw.checkpoint_policies.save_from_both_policies(everything, everything) == everything
    with pytest.raises(TypeError, match="save_from_both_policies"):
        sw.checkpoint_policies.save_from_both_policies(everything, "dots")  # type: ignore[arg-type]
