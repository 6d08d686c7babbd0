# SPDX-License-Identifier: Apache-2.0
"""Functions for JAX to lower, on ops that exist here: what a user of JAX would bring as text.

The Shardy worker lowers them with the installed JAX; nothing else imports this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib.mlir import ir

from tests.conformance.jax.models import MODELS, ON_TPU


def mesh() -> Mesh:
    import numpy as np

    return Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def sharded(spec: P, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh(), spec))


def constrain(x: Any, *spec: Any) -> Any:
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*spec)))


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    x = constrain(x, "data", P.UNCONSTRAINED)
    h = jnp.maximum(x @ constrain(w1, None, "model"), 0)
    return jnp.einsum("bh,hm->bm", h, w2)


def loss(w1: Any, w2: Any, x: Any) -> Any:
    return jnp.mean(lax.square(mlp(x, w1, w2)))


def softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    shifted = logits - lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return -jnp.sum(labels * (shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True)))) / logits.shape[0]


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    mask = lax.broadcasted_iota(jnp.int32, scores.shape, 2) >= lax.broadcasted_iota(jnp.int32, scores.shape, 3)
    scores = lax.select(mask, scores, lax.full_like(scores, -1e30))
    weights = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    return jnp.einsum("bhqk,bkhd->bqhd", weights / jnp.sum(weights, -1, keepdims=True), v)


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean(lax.square(x - mean), -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def elementwise(x: Any, y: Any) -> Any:
    a = lax.tanh(x) + lax.logistic(y) - lax.erf(x) * lax.log1p(lax.abs(y)) + lax.cbrt(x) + lax.expm1(y)
    b = lax.atan2(x, y) + lax.pow(lax.abs(x), y) + lax.rem(x, y) + lax.sign(x) + lax.floor(x) + lax.ceil(y)
    c = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN) + lax.sin(x) + lax.cos(y) + lax.reduce_precision(x, 5, 10)
    return lax.clamp(jnp.float32(-1), a + b, jnp.float32(1)), c, lax.is_finite(a), x <= y, x != y


def integers(x: Any, y: Any) -> Any:
    a = lax.shift_left(x, y) ^ lax.shift_right_logical(x, y) | lax.shift_right_arithmetic(x, y) & ~x
    return lax.population_count(a), lax.clz(a), lax.convert_element_type(a, jnp.bfloat16), lax.max(a, y), a < y


def movement(x: Any, i: Any) -> Any:
    a = lax.slice(x, (1, 0), (7, 6), (2, 1))
    b = lax.pad(x, jnp.float32(0), ((1, -1, 0), (0, 2, 1)))
    c = lax.concatenate([x, lax.rev(x, (0, 1))], 1)
    d = lax.dynamic_slice(x, (i, i), (2, 3))
    e = lax.dynamic_update_slice(x, d, (i, i))
    return (
        a,
        b,
        lax.transpose(c, (1, 0)),
        d,
        e,
        lax.reshape(x, (2, 4, 3, 2)),
        lax.broadcast_in_dim(x, (2, 8, 6), (1, 2)),
    )


def reductions(x: Any, m: Any) -> Any:
    return x.sum(0), x.max(), x.min((0, 1)), x.prod(1), m.all(0), m.any(), lax.reduce_max(x, (1,))


def windows(x: Any, m: Any) -> Any:
    """The prefix form, pooling, several operands, and a region that no reducer has."""
    sums = lax.reduce_window(x, jnp.float32(0), lax.add, (4, 1), (1, 1), [(3, 0), (0, 0)])
    pooled = lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 1), [(1, 0), (-1, 2)], (1, 2), (2, 1))
    both = lax.reduce_window(m, jnp.bool_(False), lax.bitwise_or, (1, 6), (1, 1), [(0, 0), (0, 5)])

    def pairs(a: Any, b: Any) -> Any:
        larger = a[0] >= b[0]
        return lax.select(larger, a[0], b[0]), lax.select(larger, a[1], b[1])

    index = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    largest, places = lax.reduce_window(
        (x, index), (jnp.float32(-jnp.inf), jnp.int32(0)), pairs, (1, 2), (1, 1), "VALID"
    )
    return sums, pooled, both, largest, places


def affine(scale: Any, shift: Any) -> Any:
    def compose(first: Any, second: Any) -> Any:
        return first[0] * second[0], first[1] * second[0] + second[1]

    return lax.reduce((scale, shift), (jnp.float32(1), jnp.float32(0)), compose, (1,))


def statistics(x: Any, m: Any) -> Any:
    def combine(first: Any, second: Any) -> Any:
        (low, high, count), (other_low, other_high, other_count) = first, second
        return lax.min(low, other_low), lax.max(high, other_high), count + other_count

    inits = (jnp.float32(jnp.inf), jnp.float32(-jnp.inf), jnp.int32(0))
    return lax.reduce((x, x, m.astype(jnp.int32)), inits, combine, (0, 1))


def constants(x: Any) -> Any:
    table = jnp.asarray([[1.5, -2.0, jnp.inf], [jnp.nan, -jnp.inf, 1e-40]], jnp.float32)
    return x + table, x * jnp.float32(3), lax.iota(jnp.uint8, 7), jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3)


def indexing(x: Any, i: Any, j: Any) -> Any:
    batched = jax.vmap(lambda row, k: row[k])(x, i)
    return x[i], x[:, j], x[i, j], x.at[i].add(x), x.at[:, j].set(0.0), x.at[i, j].max(1.0), batched


def embedding_gradient(table: Any, ids: Any) -> Any:
    return jax.grad(lambda t: jnp.sum(lax.square(t[ids])))(constrain(table, "data", None))


INTS = jax.ShapeDtypeStruct((4, 6), jnp.int32)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "mlp": (mlp, [sharded(P("data"), 8, 16), f32(16, 32), sharded(P("model", None), 32, 16)]),
    "mlp_gradient": (
        jax.value_and_grad(loss, (0, 1)),
        [f32(16, 32), f32(32, 16), sharded(P(("data", "model")), 8, 16)],
    ),
    "softmax_cross_entropy": (softmax_cross_entropy, [f32(32, 10), f32(32, 10)]),
    "softmax_gradient": (jax.grad(softmax_cross_entropy), [sharded(P("data"), 32, 10), f32(32, 10)]),
    "attention": (attention, [f32(2, 8, 4, 16), f32(2, 8, 4, 16), f32(2, 8, 4, 16)]),
    "layer_norm": (layer_norm, [f32(4, 8, 16), f32(16), f32(16)]),
    "elementwise": (elementwise, [f32(4, 6), f32(4, 6)]),
    "integers": (integers, [INTS, INTS]),
    "movement": (movement, [f32(8, 6), jax.ShapeDtypeStruct((), jnp.int32)]),
    "reductions": (reductions, [f32(4, 6), jax.ShapeDtypeStruct((4, 6), jnp.bool_)]),
    "indexing": (indexing, [f32(8, 6), *[jax.ShapeDtypeStruct((8,), jnp.int32)] * 2]),
    "embedding_gradient": (embedding_gradient, [f32(32, 4), jax.ShapeDtypeStruct((16,), jnp.int32)]),
    "windows": (windows, [f32(4, 6), jax.ShapeDtypeStruct((4, 6), jnp.bool_)]),
    "constants": (constants, [f32(2, 3)]),
    "affine": (affine, [f32(4, 6), f32(4, 6)]),
    "statistics": (statistics, [f32(4, 6), jax.ShapeDtypeStruct((4, 6), jnp.bool_)]),
    "argmax": (lambda x: jnp.argmax(x, 1), [f32(4, 6)]),
    "argmin": (jnp.argmin, [INTS]),
}
PROGRAMS |= MODELS
# JAX writes these as a call of one function; it is taken alone.
CALLED = ("argmax", "argmin")


def lower(name: str, locations: bool) -> str:
    """The text that a user of JAX would print."""
    function, arguments = PROGRAMS[name]
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",) if name in ON_TPU else None)
    if name not in CALLED:
        return lowered.as_text(debug_info=locations)
    module = lowered.compiler_ir().operation.clone()  # JAX keeps its own
    with module.context:
        for function in list(module.regions[0].blocks[0]):
            if ir.StringAttr(function.attributes["sym_name"]).value == "main":
                function.operation.erase()
            else:
                function.attributes["sym_name"] = ir.StringAttr.get("main")
                function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return str(module.get_asm(enable_debug_info=locations))
