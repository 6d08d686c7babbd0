# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX with their arguments. The first one's floating leaves are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

__all__ = ["FUNCTIONS", "JaxCase"]

RNG = np.random.default_rng(17)


class JaxCase(NamedTuple):
    function: Callable[..., Any]  # a scalar loss
    arguments: tuple[Any, ...]
    orders: int = 2  # of gradients to compare

    @property
    def name(self) -> str:
        return self.function.__name__


FUNCTIONS: list[JaxCase] = []


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def case(*arguments: Any, orders: int = 2) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the decorated loss with these arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.append(JaxCase(function, arguments, orders))
        return function

    return add


X = normal(8, 6)
MLP = {"layers": [(normal(6, 8), normal(8)), (normal(8, 4), normal(4))], "scale": None}


@case(MLP, X)
def mlp(params: Any, x: Any) -> Any:
    for w, b in params["layers"]:
        x = jnp.tanh(x @ w + b)
    return (x**2).mean()


@case({"q": normal(8, 8) / 3, "k": normal(8, 8) / 3, "v": normal(8, 8) / 3}, normal(2, 5, 8))
def attention(params: Any, x: Any) -> Any:
    q, k, v = (jnp.einsum("btd,de->bte", x, params[name]).reshape(2, 5, 2, 4) for name in "qkv")
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / 2
    mask = jnp.tril(jnp.ones((5, 5), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return (jnp.einsum("bhts,bshe->bthe", weights, v) ** 2).sum()


@case({"router": normal(6, 4), "experts": normal(4, 6, 6) / 2}, X)
def mixture_of_experts(params: Any, x: Any) -> Any:
    gates = jax.nn.softmax(x @ params["router"])
    best = jax.nn.one_hot(jnp.argmax(gates, axis=-1), 4)
    inside = jnp.einsum("be,bd,edf->bf", best, x, params["experts"])
    return (inside * (gates * best).sum(-1, keepdims=True)).sum() ** 2


@case((normal(6), normal(6)), X)
def layer_norm(params: Any, x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    y = centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    return ((y * params[0] + params[1]) ** 3).sum()


@jax.custom_vjp
def straight_through(x: Any) -> Any:
    return jnp.round(x)


straight_through.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))


@case(4 * X)
def straight_through_round(x: Any) -> Any:
    return (straight_through(x) ** 2 * jnp.sin(x)).sum()


@jax.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, -1.0, 1.0)


clipped.defjvp(lambda primals, tangents: (clipped(primals[0]), tangents[0] * jnp.cos(primals[0])))


@case(2 * X)
def custom_jvp_rule(x: Any) -> Any:
    return (clipped(x) * x).sum()


@case(np.array([-1.0, 0.0, 0.0, 2.0], np.float32))
def relu_at_zero(x: Any) -> Any:
    return (jax.nn.relu(x) * (x + 3)).sum()


@case(normal(6, 6) / 2, normal(5, 4, 6))
def recurrent_scan(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x)
        return h, h.sum()

    last, sums = lax.scan(step, jnp.zeros((4, 6)), xs)
    return (last**2).sum() + (sums**2).sum()


@case(normal(6, 6) / 2, X)
def checkpointed_layers(w: Any, x: Any) -> Any:
    layer = jax.checkpoint(lambda h: jnp.sin(jnp.sin(h @ w)))
    return layer(layer(layer(x))).sum()


@case(normal(6, 6) / 2, X)
def saved_by_name(w: Any, x: Any) -> Any:
    policy = jax.checkpoint_policies.save_only_these_names("hidden")

    @partial(jax.checkpoint, policy=policy)
    def layer(h: Any) -> Any:
        return jnp.cos(checkpoint_name(jnp.sin(h @ w), "hidden") * h)

    return (layer(x) ** 2).sum()


@case(normal(6, 6) / 2, X)
def checkpointed_scan(w: Any, x: Any) -> Any:
    body = jax.checkpoint(lambda h, _: (jnp.tanh(h @ w), h.sum()))
    last, sums = lax.scan(body, x, None, length=4)
    return (last**2).sum() + sums.sum()


@case(X, jax.random.key_data(jax.random.key(3)))
def dropout_of_a_key(x: Any, data: Any) -> Any:
    key = jax.random.wrap_key_data(data)
    keep = jax.random.bernoulli(key, np.float32(0.5), x.shape)  # the same draws with x64
    return (jnp.where(keep, 2 * x, 0.0) ** 3).sum()


@case(X)
def random_normal_of_a_constant_key(x: Any) -> Any:
    noise = jax.random.normal(jax.random.fold_in(jax.random.key(0), 5), x.shape, jnp.float32)
    return ((x + noise) ** 3).sum()


@partial(jax.jit, static_argnames=("power", "kind"))
def raised(x: Any, power: int, kind: str) -> Any:
    return x**power if kind == "power" else x


@case(X)
def nested_jit_with_static_arguments(x: Any) -> Any:
    return raised(jnp.sin(x), 3, kind="power").sum()


class Pair(NamedTuple):
    left: Any
    right: Any


@case(Pair({"a": normal(4), "none": None}, [normal(3), (normal(2),)]))
def trees(tree: Any) -> Any:
    return sum((leaf**3).sum() for leaf in jax.tree.leaves(tree)) * tree.left["a"][0]


class Module:
    """As in flax: parameters outside, `apply` inside."""

    def __init__(self, width: int) -> None:
        self.width = width

    def init(self) -> Any:
        return {"params": {"kernel": normal(6, self.width), "bias": normal(self.width)}}

    def apply(self, variables: Any, x: Any) -> Any:
        params = variables["params"]
        return jax.nn.gelu(x @ params["kernel"] + params["bias"])


MODEL = Module(5)


@case(MODEL.init(), X)
def module_like_flax(variables: Any, x: Any) -> Any:
    return (MODEL.apply(variables, x) ** 2).sum()


@jax.tree_util.register_pytree_node_class
class Linear:
    """As in equinox: a callable tree of its parameters."""

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b

    def tree_flatten(self) -> Any:
        return (self.w, self.b), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        return cls(*children)


@case(Linear(normal(6, 3), normal(3)), X)
def module_like_equinox(model: Any, x: Any) -> Any:
    return jax.nn.silu(model(x)).sum() ** 2


@case(X, np.arange(8, dtype=np.int32) % 6)
def cross_entropy(logits: Any, labels: Any) -> Any:
    rows = jax.nn.log_softmax(logits)
    return -(jnp.take_along_axis(rows, labels[:, None], axis=1).mean() ** 2)


@case(normal(10, 4), np.array([3, 1, 3, 9], np.int32))
def embedding(table: Any, ids: Any) -> Any:
    return (table[ids] ** 3).sum()


@case(normal(10, 4), np.array([3, 1, 3, 9], np.int32))
def scattered_addition(x: Any, ids: Any) -> Any:
    return (x.at[ids].add(x[:4] ** 2) ** 2).sum()


@case(X)
def branches(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda: jnp.sin(x).sum(), lambda: (x**3).sum()) ** 2


@case(X)
def counted_loop(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, h: jnp.sin(h) * (i + 1), x).sum()


@case(normal(6, 3), X)
def vectorized(w: Any, x: Any) -> Any:
    return jax.vmap(lambda row: jnp.tanh(row @ w).prod())(x).sum()


@case(X)
def cumulative(x: Any) -> Any:
    return (jnp.cumsum(x, 0) * jnp.cumsum(x[::-1], 1)).sum() ** 2


@case(X)
def reductions(x: Any) -> Any:
    return x.max() * x.min(0).sum() + jax.nn.logsumexp(x, axis=1).sum() ** 2 + jnp.linalg.norm(x)


CLOSED_OVER = jnp.asarray(normal(6, 5))


@case(X)
def a_closed_over_array(x: Any) -> Any:
    return ((x @ CLOSED_OVER) ** 3).sum()


@case(X, np.float32(0.5), 3)
def numbers_as_arguments(x: Any, rate: Any, count: Any) -> Any:
    return (x**2 * rate * count).sum() ** 2


@case(X)
def gradient_of_a_gradient_inside(x: Any) -> Any:
    return (jax.grad(lambda y: jnp.sin(y).prod(1).sum())(x) ** 2).sum()


@case(X)
def pads_slices_and_reversals(x: Any) -> Any:
    y = jnp.pad(x, ((1, 2), (0, 1)))[1::2, :4]
    return (jnp.concatenate([y, jnp.flip(y)], 0) ** 3).sum()


@case(X, orders=1)
def stopped(x: Any) -> Any:
    return (x * lax.stop_gradient(jnp.exp(x))).sum()


@case(normal(4, 4) / 3)
def linear_custom_solve(a: Any) -> Any:
    b = jnp.ones(4)
    solve = lambda matvec, y: 2 * y - matvec(y)  # noqa: E731
    return (lax.custom_linear_solve(lambda v: v + 0.1 * a @ v, b, solve, transpose_solve=solve) ** 2).sum()


@case(X)
def associative(x: Any) -> Any:
    return lax.associative_scan(jnp.multiply, jnp.cos(x)).sum()


@case({"w": normal(6, 6) / 3, "u": normal(6, 6) / 3, "b": normal(3, 6)}, normal(4, 2, 6))
def gated_recurrence(params: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        z, r, c = (x @ params["w"] + h @ params["u"] + b for b in params["b"])
        h = jax.nn.sigmoid(z) * h + (1 - jax.nn.sigmoid(z)) * jnp.tanh(c * jax.nn.sigmoid(r))
        return h, None

    return (lax.scan(step, jnp.zeros((2, 6)), xs)[0] ** 2).sum()


@case({"q": normal(8, 8) / 3, "kv": normal(8, 4) / 3}, normal(2, 4, 8))
def grouped_query_attention(params: Any, x: Any) -> Any:
    q = (x @ params["q"]).reshape(2, 4, 2, 2, 2)
    k, v = jnp.split((x @ params["kv"]).reshape(2, 4, 2, 2), 2, axis=2)
    weights = jax.nn.softmax(jnp.einsum("btgqe,bsge->bgqts", q, k), -1)
    return (jnp.einsum("bgqts,bsge->btgqe", weights, v) ** 2).sum()


@case(normal(2, 6, 8))
def rotary_positions(x: Any) -> Any:
    angles = jnp.arange(6.0)[:, None] / 10.0 ** jnp.arange(4.0)
    left, right = jnp.split(x, 2, -1)
    turned = jnp.concatenate([left * jnp.cos(angles) - right * jnp.sin(angles), left * jnp.sin(angles) + right], -1)
    return (turned**3).sum()


@case(normal(8), X[:, :4].repeat(2, 1))
def rms_norm(scale: Any, x: Any) -> Any:
    return ((x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale) ** 3).sum()


@case({"up": normal(6, 8) / 2, "gate": normal(6, 8) / 2, "down": normal(8, 6) / 2}, X)
def gated_mlp(params: Any, x: Any) -> Any:
    return ((jax.nn.silu(x @ params["gate"]) * (x @ params["up"]) @ params["down"]) ** 2).mean()


@case(normal(4, 3, 3, 3) / 3, normal(2, 3, 6, 6))
def convolution(kernel: Any, x: Any) -> Any:
    y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME")
    return (jax.nn.softplus(y) ** 2).mean()


@case(normal(2, 6, 6))
def average_pooling(x: Any) -> Any:
    return (lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "VALID") ** 3).sum()


@case(normal(5, 5) / 4)
def matrix_powers(a: Any) -> Any:
    return jnp.trace(jnp.linalg.matrix_power(a, 3) @ a.T)


@case(normal(6), normal(6))
def interpolation(x: Any, y: Any) -> Any:
    return (jnp.where(x > y, x**2, y * x) + jnp.clip(x, -0.7, 0.9) * jnp.minimum(x, 2.0)).sum() ** 2


@case(normal(4, 5))
def log_probabilities(x: Any) -> Any:
    return (jax.nn.log_sigmoid(x) * jax.nn.logsumexp(x, axis=0)).sum() + jax.nn.softplus(x).prod(1).sum()


@case(normal(4, 5))
def activations(x: Any) -> Any:
    return sum((f(x) ** 2).sum() for f in (jax.nn.elu, jax.nn.gelu, jax.nn.selu, jax.nn.mish, jax.nn.hard_swish))


@case(normal(3, 4), normal(3, 4))
def distances(x: Any, y: Any) -> Any:
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    return jnp.sqrt(squares + 1e-2).sum() + jnp.exp(-squares).min()


@case((normal(4, 3), normal(3)), X[:, :4])
def mapped_over_parameters(params: Any, x: Any) -> Any:
    losses = jax.vmap(lambda w, b: (jnp.tanh(x @ w + b) ** 2).mean(), in_axes=(1, 0))(*params)
    return (losses**2).sum()


@case(X)
def switched(x: Any) -> Any:
    parts = [lax.switch(i, [jnp.sin, jnp.cos, lambda y: y**3], x[i]) for i in range(3)]
    return sum((part**2).sum() for part in parts)


@case(normal(5))
def nested_loops(x: Any) -> Any:
    def outer(h: Any, _: Any) -> Any:
        return lax.scan(lambda g, s: (jnp.sin(g) * s, None), h, jnp.arange(1.0, 3.0))[0], h.sum()

    last, sums = lax.scan(outer, x, None, length=3)
    return (last**2).sum() + sums.prod()


@case(X, np.int32(2))
def dynamic_rows(x: Any, i: Any) -> Any:
    row = lax.dynamic_slice_in_dim(x, i, 3)
    return (lax.dynamic_update_slice_in_dim(x, row * 2, i + 1, 0) ** 3).sum()


@case(normal(9))
def sorted_values(x: Any) -> Any:
    return (jnp.sort(x) * jnp.arange(9.0)).sum() ** 2 + x[jnp.argsort(x)[-3:]].prod()


@case(normal(3, 7))
def best_of_each_row(x: Any) -> Any:
    values, places = lax.top_k(x, 2)
    return (values**3).sum() + places.sum() * x.max()


@jax.custom_vjp
def scaled_gradient(x: Any, scale: Any) -> Any:
    return x * 1.0


scaled_gradient.defvjp(lambda x, scale: (x, scale), lambda scale, g: (g * scale, jnp.zeros_like(scale)))


@case(X, np.float32(0.3))
def custom_vjp_with_residuals(x: Any, scale: Any) -> Any:
    return (jnp.sin(scaled_gradient(x, scale)) * x).sum()


@jax.custom_jvp
def safe_sqrt(x: Any) -> Any:
    return jnp.sqrt(jnp.maximum(x, 1e-3))


@safe_sqrt.defjvp
def _(primals: Any, tangents: Any) -> Any:
    root = safe_sqrt(primals[0])
    return root, tangents[0] / (2 * root)


@case(np.abs(X) + 0.1)
def custom_jvp_under_vmap(x: Any) -> Any:
    return jax.vmap(lambda row: safe_sqrt(row).sum() ** 2)(x).sum()


@case(X, jax.random.key_data(jax.random.key(8)))
def noise_of_split_keys(x: Any, data: Any) -> Any:
    keys = jax.random.split(jax.random.wrap_key_data(data), 2)
    noise = jax.random.normal(keys[0], x.shape, jnp.float32) + jax.random.uniform(keys[1], x.shape, jnp.float32)
    return ((x * noise) ** 2).sum()


@case(X)
def permuted_rows(x: Any) -> Any:
    order = jax.random.permutation(jax.random.key(2), 8)
    return (x[order] * jnp.arange(8.0)[:, None]).sum() ** 2


@case({"a": normal(3), "b": (normal(2, 3), None)})
def flat_parameters(tree: Any) -> Any:
    flat, rebuild = jax.flatten_util.ravel_pytree(tree)
    again = rebuild(flat * jnp.cos(flat))
    return (again["a"] * again["b"][0]).sum() ** 2


@case(normal(4, 4))
def polynomial_by_horner(x: Any) -> Any:
    return jnp.polyval(jnp.array([0.5, -1.0, 2.0, 0.25]), x).sum() + jnp.cumprod(jnp.cos(x), 1).sum()


@case(normal(8, 3), normal(8))
def least_squares_step(x: Any, y: Any) -> Any:
    w = jnp.linalg.solve(jnp.eye(3) * 4 + jnp.tanh(x.T @ x) / 8, x.T @ y)
    return ((x @ w - y) ** 2).mean()


@case(normal(3, 8))
def circular_convolution(x: Any) -> Any:
    kernel = jnp.exp(-jnp.arange(8.0))
    return (sum(jnp.roll(x, i, 1) * kernel[i] for i in range(4)) ** 3).sum()


@case(normal(6, 6) / 3, X)
def hessian_vector_product(w: Any, x: Any) -> Any:
    loss = lambda v: jnp.tanh(x @ v).sum()  # noqa: E731
    return (jax.jvp(jax.grad(loss), (w,), (jnp.ones_like(w),))[1] ** 2).sum()


@case(normal(4, 6), np.array([4, 2, 6, 1], np.int32))
def masked_mean(x: Any, lengths: Any) -> Any:
    mask = jnp.arange(6) < lengths[:, None]
    return ((jnp.where(mask, x, 0).sum(1) / lengths) ** 3).sum()
