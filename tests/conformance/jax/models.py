# SPDX-License-Identifier: Apache-2.0
"""Larger functions for JAX to lower: models, control flow, linear algebra, random numbers, narrow types, regions.

Like programs.py, which joins both tables, this is imported by the Shardy worker only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P


def struct(dtype: Any, *shape: int, spec: P | None = None) -> jax.ShapeDtypeStruct:
    if spec is None:
        return jax.ShapeDtypeStruct(shape, dtype)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh(), spec))


def mesh() -> Any:
    import numpy as np

    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def f32(*shape: int, spec: P | None = None) -> jax.ShapeDtypeStruct:
    return struct(jnp.float32, *shape, spec=spec)


def conv_net(params: Any, images: Any, labels: Any) -> Any:
    def loss(params: Any) -> Any:
        kernel1, kernel2, dense = params
        x = lax.conv_general_dilated(images, kernel1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = lax.conv_general_dilated(x, kernel2, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        logits = x.reshape(x.shape[0], -1) @ dense
        return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), -1))

    value, gradients = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def recurrent(weights: Any, inputs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        h = jnp.tanh(carry @ weights + x)
        return h, h

    return lax.scan(step, jnp.zeros(inputs.shape[1:]), inputs)


def recurrent_gradient(weights: Any, inputs: Any) -> Any:
    return jax.grad(lambda w: jnp.sum(recurrent(w, inputs)[1] ** 2))(weights)


def loops(x: Any, n: Any) -> Any:
    def body(state: Any) -> Any:
        i, y = state
        return i + 1, lax.cond(i % 2 == 0, jnp.sin, jnp.cos, y)

    _, y = lax.while_loop(lambda state: state[0] < n, body, (0, x))
    return lax.switch(n, [jnp.negative, jnp.exp, lambda v: v @ v], y)


def sorting(x: Any) -> Any:
    return jnp.sort(x, 1), jnp.argsort(x, 0), lax.top_k(x, 3), jnp.median(x), jnp.unique(x, size=8)


def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1, True), jnp.diff(x)


def spectra(x: Any) -> Any:
    y = jnp.fft.rfft(x)
    return jnp.fft.irfft(y * jnp.conj(y)), jnp.fft.fft2(x), jnp.abs(y)


def solves(a: Any, b: Any) -> Any:
    factor = lax.linalg.cholesky(a @ jnp.swapaxes(a, -1, -2) + jnp.eye(a.shape[-1]))
    return lax.linalg.triangular_solve(factor, b, left_side=True, lower=True), factor


def decompositions(a: Any) -> Any:
    return jnp.linalg.qr(a), jnp.linalg.eigh(a + jnp.swapaxes(a, -1, -2))


def normal(seed: Any) -> Any:
    key = jax.random.key(seed)
    first, second = jax.random.split(key)
    return jax.random.normal(first, (8, 4)), jax.random.bernoulli(second, 0.5, (8,)), jax.random.permutation(key, 16)


def hardware_bits(seed: Any) -> Any:
    return jax.random.uniform(jax.random.key(seed, impl="rbg"), (8, 4)), jax.random.bits(
        jax.random.key(seed, impl="unsafe_rbg"), (4,)
    )


def one_hot(ids: Any, table: Any) -> Any:
    return jax.nn.one_hot(ids, table.shape[0]) @ table, table.at[ids].add(1.0), table[ids]


def einsums(a: Any, b: Any, c: Any) -> Any:
    return jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bkj,k->ib", a, b, c), jnp.einsum("bii->bi", a)


def cross_entropy_step(w: Any, x: Any, labels: Any) -> Any:
    def loss(w: Any) -> Any:
        logits = jax.nn.log_softmax(x @ w)
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    return jax.value_and_grad(loss)(w)


def arguments_of_extrema(x: Any) -> Any:
    return jnp.argmax(x, 1), jnp.argmin(x), jnp.nanmax(x), jnp.argmax(x > 0, 0)


def pooling_gradient(x: Any) -> Any:
    def pooled(x: Any) -> Any:
        largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.sum(largest**2) + jnp.sum(lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"))

    return jax.grad(pooled)(x)


def dynamic_slices(x: Any, i: Any) -> Any:
    y = lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 0), (2, 6)), (0, i))
    return y, lax.dynamic_index_in_dim(x, i), jax.vmap(lambda r, k: lax.dynamic_slice(r, (k,), (3,)))(x, jnp.arange(8))


def narrow_types(a: Any, b: Any, c: Any, z: Any) -> Any:
    product = lax.dot_general(a, a, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    return product, b @ b.T, c.astype(jnp.float32) + c.astype(jnp.bfloat16), z * jnp.conj(z), b.astype(jnp.float8_e5m2)


def bits(x: Any, i: Any) -> Any:
    return (
        lax.bitcast_convert_type(x, jnp.int32),
        lax.bitcast_convert_type(x, jnp.int8),
        lax.pad(x, 0.0, ((-1, 2, 0), (0, -2, 1))),
        jnp.flip(x, 0),
        lax.population_count(i),
        lax.clz(i),
    )


def transformer_step(params: Any, x: Any) -> Any:
    def block(x: Any, p: Any) -> Any:
        q, k, v = jnp.split(jax.nn.standardize(x) @ p["qkv"], 3, -1)
        split = lambda t: t.reshape(*t.shape[:-1], 4, -1)  # noqa: E731
        x = x + jax.nn.dot_product_attention(split(q), split(k), split(v), is_causal=True).reshape(x.shape) @ p["out"]
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"], None

    def loss(params: Any) -> Any:
        return jnp.mean(lax.scan(jax.checkpoint(block), x, params)[0] ** 2)

    return jax.value_and_grad(loss)(params)


def manual_region(x: Any, w: Any) -> Any:
    def local(x: Any, w: Any) -> Any:
        return lax.psum(x @ w, "model")

    specs = (P("data", "model"), P("model", None))
    return jnp.tanh(jax.shard_map(local, mesh=mesh(), in_specs=specs, out_specs=P("data", None))(x, w))


def partly_manual(x: Any, w: Any) -> Any:
    def local(x: Any) -> Any:
        return lax.all_gather(jnp.sin(x @ w), "data", axis=0, tiled=True)

    region = jax.shard_map(
        local, mesh=mesh(), in_specs=P("data", None), out_specs=P(None, None), axis_names={"data"}, check_vma=False
    )
    return region(x) * 2


def special_functions(x: Any) -> Any:
    a = lax.lgamma(x) + lax.digamma(x) + lax.erf_inv(x) + lax.bessel_i1e(x) + jnp.sinh(x) + lax.asin(x)
    return a, lax.polygamma(x, x), lax.zeta(x, x), lax.nextafter(x, x), lax.acosh(x), lax.igamma(x, x)


def call_twice(x: Any, y: Any) -> Any:
    inner = jax.jit(lambda v, w: jnp.maximum(v @ w, 0))
    return inner(inner(x, y), y)


PARAMS = {"qkv": f32(2, 16, 48), "out": f32(2, 16, 16), "up": f32(2, 16, 64), "down": f32(2, 64, 16)}
INTS = struct(jnp.int32)
MODELS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "conv_net": (
        conv_net,
        [(f32(3, 3, 3, 8), f32(2, 2, 8, 16), f32(64, 10)), f32(8, 8, 8, 3, spec=P("data")), f32(8, 10)],
    ),
    "recurrent": (recurrent, [f32(16, 16, spec=P(None, "model")), f32(5, 8, 16, spec=P(None, "data"))]),
    "recurrent_gradient": (recurrent_gradient, [f32(16, 16), f32(5, 8, 16, spec=P(None, "data"))]),
    "loops": (loops, [f32(8, 8, spec=P("data", "model")), INTS]),
    "sorting": (sorting, [f32(8, 16, spec=P("data"))]),
    "cumulative": (cumulative, [f32(8, 16, spec=P("data", "model"))]),
    "spectra": (spectra, [f32(8, 16, spec=P("data"))]),
    "solves": (solves, [f32(4, 8, 8, spec=P("data")), f32(4, 8, 6)]),
    "decompositions": (decompositions, [f32(4, 8, 8, spec=P("data"))]),
    "normal": (normal, [INTS]),
    "hardware_bits": (hardware_bits, [INTS]),
    "one_hot": (one_hot, [struct(jnp.int32, 16, spec=P("data")), f32(32, 8, spec=P(None, "model"))]),
    "einsums": (einsums, [f32(4, 8, 8, spec=P("data", "model")), f32(4, 8, 8), f32(8)]),
    "cross_entropy_step": (cross_entropy_step, [f32(16, 10), f32(8, 16, spec=P("data")), struct(jnp.int32, 8)]),
    "arguments_of_extrema": (arguments_of_extrema, [f32(8, 6, spec=P("data"))]),
    "pooling_gradient": (pooling_gradient, [f32(8, 8, 8, 4, spec=P("data", None, None, "model"))]),
    "dynamic_slices": (dynamic_slices, [f32(8, 6, spec=P("data", "model")), INTS]),
    "narrow_types": (
        narrow_types,
        [
            struct(jnp.int8, 8, 4, spec=P("data")),
            struct(jnp.bfloat16, 8, 4, spec=P(None, "model")),
            struct(jnp.float8_e4m3fn, 8, spec=P("data")),
            struct(jnp.complex64, 8, spec=P("data")),
        ],
    ),
    "bits": (bits, [f32(8, 6, spec=P("data")), struct(jnp.int32, 8)]),
    "transformer_step": (transformer_step, [PARAMS, f32(8, 6, 16, spec=P("data"))]),
    "manual_region": (manual_region, [f32(8, 8), f32(8, 8)]),
    "partly_manual": (partly_manual, [f32(8, 8), f32(8, 8, spec=P(None, "model"))]),
    "special_functions": (special_functions, [f32(8, 6, spec=P("data"))]),
    "call_twice": (call_twice, [f32(8, 8, spec=P("data")), f32(8, 8, spec=P(None, "model"))]),
}
ON_TPU = ("solves", "decompositions")  # where JAX leaves the ops that CPU programs call LAPACK for
