# SPDX-License-Identifier: Apache-2.0
"""The functions that a program is written with, so that one program has three meanings.

kit.grad(lambda x: (kit.constrain(kit.np.sin(x), ROWS) ** 2).sum())

shardwise    NumPy, sw.grad, sw.split             what is tested
jax          jax.numpy, jax.grad, jax's shardings  what is tested, by from_jax and as text
plain        jax.numpy, jax.grad, no shardings     the oracle
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.shard_alike import shard_alike

import shardwise as sw

Spec = tuple[str | None, ...]
AXES = {"x": 4, "y": 2}
ROWS: Spec = ("x", None)
COLUMNS: Spec = (None, "y")
WHOLE: Spec = (None, None)


@cache
def sw_mesh() -> sw.Mesh:
    return sw.Mesh(AXES)


@cache
def jax_mesh() -> jax.sharding.Mesh:
    """Of host devices."""
    return jax.make_mesh(tuple(AXES.values()), tuple(AXES), axis_types=(jax.sharding.AxisType.Auto,) * len(AXES))


@cache
def explicit_mesh() -> jax.sharding.Mesh:
    """Of host devices, with axes that are in the types of arrays."""
    return jax.make_mesh(tuple(AXES.values()), tuple(AXES), axis_types=(jax.sharding.AxisType.Explicit,) * len(AXES))


@dataclass(frozen=True)
class Kit:
    """Functions with the signatures of JAX's."""

    name: str
    np: Any
    grad: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    vmap: Callable[..., Any]
    checkpoint: Callable[..., Any]
    scan: Callable[..., Any]
    cond: Callable[..., Any]
    fori_loop: Callable[..., Any]
    while_loop: Callable[..., Any]
    constrain: Callable[[Any, Spec], Any]
    put: Callable[[Any, Spec], Any]
    jit: Callable[..., Any]  # (function, specs of arguments, specs of results)
    shard_map: Callable[..., Any]  # (function, specs of arguments, specs of results)
    psum: Callable[[Any, str], Any]
    alike: Callable[[Any, Any], tuple[Any, Any]]


def _unchanged(x: Any, _: Any) -> Any:
    return x


def _alone(function: Any, *_: Any) -> Any:
    return function


PLAIN = Kit(
    "plain", jnp, jax.grad, jax.value_and_grad, jax.vmap, jax.checkpoint, jax.lax.scan, jax.lax.cond, jax.lax.fori_loop,
    jax.lax.while_loop, _unchanged, _unchanged, _alone, _alone, _unchanged, lambda x, y: (x, y),
)  # fmt: skip


def _sharding(spec: Spec) -> Any:
    return jax.sharding.NamedSharding(jax_mesh(), _jax_spec(spec))


def _jax_spec(spec: Spec) -> Any:
    return jax.sharding.PartitionSpec(*spec)


JAX = replace(
    PLAIN,
    name="jax",
    constrain=lambda x, spec: jax.lax.with_sharding_constraint(x, _sharding(spec)),
    put=lambda x, spec: jax.device_put(x, _sharding(spec)),
    jit=lambda f, ins, outs: jax.jit(
        f, in_shardings=tuple(map(_sharding, ins)), out_shardings=tuple(map(_sharding, outs))
    ),
    shard_map=lambda f, ins, outs: jax.shard_map(
        f, mesh=jax_mesh(), in_specs=tuple(map(_jax_spec, ins)), out_specs=tuple(map(_jax_spec, outs))
    ),
    psum=jax.lax.psum,
    alike=shard_alike,
)


def _split(x: Any, spec: Spec) -> Any:
    """Like ``constrain``; an annotation by each function of ours, in turn of the spec."""
    if spec == ROWS:
        return sw.split(x, 0, "x")
    return sw.replicate(x) if spec == WHOLE else sw.shard(x, sw.P(*spec))


SHARDWISE = replace(
    PLAIN,
    name="shardwise",
    np=np,
    grad=sw.grad,
    value_and_grad=sw.value_and_grad,
    vmap=sw.vmap,
    checkpoint=sw.checkpoint,
    scan=sw.scan,
    cond=sw.cond,
    fori_loop=sw.fori_loop,
    while_loop=sw.while_loop,
    constrain=_split,
    put=lambda x, spec: sw.with_sharding_constraint(x, sw.P(*spec)),
    jit=lambda f, ins, outs: sw.jit(
        f, in_shardings=tuple(sw.P(*spec) for spec in ins), out_shardings=tuple(sw.P(*spec) for spec in outs)
    ),
    shard_map=lambda f, ins, outs: sw.shard_map(
        f, mesh=sw_mesh(), in_specs=tuple(sw.P(*spec) for spec in ins), out_specs=tuple(sw.P(*spec) for spec in outs)
    ),
)
KITS = {kit.name: kit for kit in (SHARDWISE, JAX)}

Results = tuple[Any, Any]
Construct = Callable[[Kit, Any, Any], Results]

# ---- constructs: functions of two (8, 4) arrays, with two results, scalars or (8, 4) ---------------------------------


def constrained(kit: Kit, x: Any, k: Any) -> Results:
    return kit.constrain(kit.np.sin(x), ROWS), kit.constrain(kit.np.cos(k), COLUMNS)


def constrained_arguments(kit: Kit, x: Any, k: Any) -> Results:
    x, k = kit.constrain(x, COLUMNS), kit.constrain(k, ROWS)
    return x * k, kit.np.tanh(k)


def placed(kit: Kit, x: Any, k: Any) -> Results:
    return kit.put(kit.np.sin(x), ROWS), kit.np.cos(kit.put(k, WHOLE))


def jitted(kit: Kit, x: Any, k: Any) -> Results:
    inner = kit.jit(lambda a, b: (kit.np.sin(a), a * b), (ROWS, COLUMNS), (ROWS, WHOLE))
    return tuple(inner(x, k))  # type: ignore[return-value]


def jitted_with_an_unused_argument(kit: Kit, x: Any, k: Any) -> Results:
    inner = kit.jit(lambda a, b: (kit.np.sin(a), 2 * a), (ROWS, COLUMNS), (COLUMNS, WHOLE))
    return tuple(inner(x, k))  # type: ignore[return-value]


def manual(kit: Kit, x: Any, k: Any) -> Results:
    return tuple(kit.shard_map(lambda a, b: (kit.np.sin(a), a * b), (ROWS, ROWS), (ROWS, ROWS))(x, k))  # type: ignore[return-value]


def manual_with_an_unused_input(kit: Kit, x: Any, k: Any) -> Results:
    return tuple(kit.shard_map(lambda a, b: (kit.np.sin(a), 2 * a), (ROWS, ROWS), (ROWS, ROWS))(x, k))  # type: ignore[return-value]


def manual_sums(kit: Kit, x: Any, k: Any) -> Results:
    def body(a: Any, b: Any) -> Results:
        return a * 2, kit.psum((a * b).sum(), "x")

    return tuple(kit.shard_map(body, (ROWS, ROWS), (ROWS, ()))(x, k))  # type: ignore[return-value]


def checkpointed(kit: Kit, x: Any, k: Any) -> Results:
    def block(a: Any, b: Any) -> Results:
        h = kit.np.tanh(kit.constrain(a, ROWS) * b)
        return kit.constrain(h * h, ROWS), kit.constrain(b, COLUMNS)

    return tuple(kit.checkpoint(block)(x, k))  # type: ignore[return-value]


def looped(kit: Kit, x: Any, k: Any) -> Results:
    def body(carry: Any, row: Any) -> tuple[Any, Any]:
        return kit.constrain(kit.np.sin(carry + row), ROWS), kit.constrain(row * carry, COLUMNS)

    carry, rows = kit.scan(body, x, kit.np.stack([k, 2 * k, k]))
    return carry, rows.sum(0)


def counted(kit: Kit, x: Any, k: Any) -> Results:
    def body(i: Any, carry: Any) -> Any:
        return kit.constrain(kit.np.sin(carry[0] * k), ROWS), kit.constrain(carry[1] + 1, COLUMNS)

    return tuple(kit.fori_loop(0, 3, body, (x, k)))  # type: ignore[return-value]


def branched(kit: Kit, x: Any, k: Any) -> Results:
    def positive(a: Any, b: Any) -> Results:
        return kit.constrain(kit.np.sin(a), ROWS), kit.constrain(b, COLUMNS)

    def negative(a: Any, b: Any) -> Results:
        return kit.constrain(kit.np.cos(a * b), COLUMNS), b + 1

    return tuple(kit.cond(x[0, 0] > 0, positive, negative, x, k))  # type: ignore[return-value]


def mapped(kit: Kit, x: Any, k: Any) -> Results:
    def one(a: Any, b: Any) -> Results:
        return kit.constrain(kit.np.sin(a), ROWS), kit.constrain(a * b, WHOLE)

    first, second = kit.vmap(one)(kit.np.stack([x, 2 * x]), kit.np.stack([k, k]))
    return first.sum(0), second[1]


def repeated(kit: Kit, x: Any, k: Any) -> Results:
    """A loop of unknown length, which has no reverse gradient."""

    def body(carry: Any) -> Any:
        return kit.constrain(carry[0] * 2, ROWS), kit.constrain(carry[1] + k, COLUMNS)

    return tuple(kit.while_loop(lambda carry: carry[0].sum() < 100, body, (x * x + 1, k)))  # type: ignore[return-value]


def ruled(kit: Kit, x: Any, k: Any) -> Results:
    """A function with its own gradient, which is annotated."""

    @jax.custom_vjp
    def f(a: Any) -> Any:
        return kit.constrain(kit.np.sin(a), ROWS)

    def forward(a: Any) -> tuple[Any, Any]:
        return f(a), (kit.constrain(a, COLUMNS), kit.constrain(2 * a, ROWS))

    f.defvjp(forward, lambda saved, g: (kit.constrain(g * kit.np.cos(saved[0]), ROWS),))
    return f(x), f(k) * x


def ruled_forward(kit: Kit, x: Any, k: Any) -> Results:
    @jax.custom_jvp
    def f(a: Any) -> Any:
        return kit.constrain(kit.np.sin(a), ROWS)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
        return f(*primals), kit.constrain(kit.np.cos(primals[0]) * tangents[0], COLUMNS)

    return f(x), f(k) * x


def alike(kit: Kit, x: Any, k: Any) -> Results:
    first, second = kit.alike(kit.np.sin(x), k * 2)
    return kit.constrain(first, ROWS), second


def out_sharded(kit: Kit, x: Any, k: Any) -> Results:
    """Shardings in types, where the mesh has explicit axes."""
    square = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
    if kit.name == "plain":
        return jnp.einsum("ab,bc->ac", x, square), jnp.zeros((8, 4)) + k
    rows = _jax_spec(ROWS)
    product = jnp.einsum("ab,bc->ac", x, square, out_sharding=rows)
    return product, jnp.zeros((8, 4), out_sharding=rows) + jax.sharding.reshard(k, rows)


IN_BOTH: tuple[Construct, ...] = (
    constrained, constrained_arguments, placed, jitted, jitted_with_an_unused_argument, manual,
    manual_with_an_unused_input, checkpointed, looped, counted, branched, mapped, repeated,
)  # fmt: skip
IN_JAX: tuple[Construct, ...] = (*IN_BOTH, manual_sums, ruled, ruled_forward, alike, out_sharded)
CONSTRUCTS = {"shardwise": IN_BOTH, "jax": IN_JAX}

# ---- wrappers: a construct in another function -----------------------------------------------------------------------

Pair = Callable[[Any, Any], Results]


def called(kit: Kit, f: Pair) -> Pair:
    return f


def in_scan(kit: Kit, f: Pair) -> Pair:
    def wrapped(x: Any, k: Any) -> Results:
        def body(carry: Any, _: Any) -> tuple[Any, Any]:
            first, second = f(carry, k)
            return carry + first, second

        carry, rows = kit.scan(body, x, None, length=2)
        return carry, rows[0]

    return wrapped


def in_checkpoint(kit: Kit, f: Pair) -> Pair:
    return lambda x, k: tuple(kit.checkpoint(f)(x, k))  # type: ignore[return-value]


def in_branch(kit: Kit, f: Pair) -> Pair:
    def other(x: Any, k: Any) -> Results:
        first, second = f(x, k)
        return first * 2, second + 1

    return lambda x, k: tuple(kit.cond(k[1, 1] > 0, f, other, x, k))  # type: ignore[return-value]


def in_vmap(kit: Kit, f: Pair) -> Pair:
    def wrapped(x: Any, k: Any) -> Results:
        first, second = kit.vmap(f)(kit.np.stack([x, x * 2]), kit.np.stack([k, k + 1]))
        return first.sum(0), second[0]

    return wrapped


def in_jit(kit: Kit, f: Pair) -> Pair:
    return lambda x, k: tuple(kit.jit(lambda a, b: (f(a, b)[0], b * a), (ROWS, WHOLE), (ROWS, COLUMNS))(x, k))  # type: ignore[return-value]


WRAPPERS = (called, called, in_scan, in_checkpoint, in_branch, in_vmap, in_jit)

# ---- uses: what a program does with both results ---------------------------------------------------------------------


def use_all(kit: Kit, f: Pair, x: Any, k: Any) -> Any:
    first, second = f(x, k)
    return first * 2 + second


def use_first(kit: Kit, f: Pair, x: Any, k: Any) -> Any:
    first, _ = f(x, k)
    return first


def use_second(kit: Kit, f: Pair, x: Any, k: Any) -> Any:
    return f(x, k)[1] * x


def use_none(kit: Kit, f: Pair, x: Any, k: Any) -> Any:
    f(x, k)
    return x * k


USES = (use_all, use_first, use_second, use_none)

# ---- transforms: of the whole ----------------------------------------------------------------------------------------

Used = Callable[[Any, Any], Any]


def _loss(used: Used) -> Callable[[Any, Any], Any]:
    return lambda x, k: (used(x, k) ** 2).mean()


def value(kit: Kit, used: Used) -> Any:
    return used


def gradient(kit: Kit, used: Used) -> Any:
    return kit.grad(_loss(used))


def gradient_of_second(kit: Kit, used: Used) -> Any:
    return kit.grad(_loss(used), argnums=1)


def value_and_gradients(kit: Kit, used: Used) -> Any:
    return kit.value_and_grad(_loss(used), argnums=(0, 1))


def gradient_without_its_aux(kit: Kit, used: Used) -> Any:
    def loss(x: Any, k: Any) -> tuple[Any, Any]:
        y = used(x, k)
        return (y**2).mean(), (kit.constrain(y, COLUMNS), y)

    return lambda x, k: kit.grad(loss, has_aux=True)(x, k)[0]


def value_with_aux(kit: Kit, used: Used) -> Any:
    def loss(x: Any, k: Any) -> tuple[Any, Any]:
        y = used(x, k)
        return (y**2).mean(), kit.constrain(y, ROWS)

    return lambda x, k: kit.value_and_grad(loss, has_aux=True)(x, k)[0]


def gradient_of_gradient(kit: Kit, used: Used) -> Any:
    return kit.grad(lambda x, k: (kit.grad(_loss(used))(x, k) * k).sum())


def forward(kit: Kit, used: Used) -> Any:
    return lambda x, k: jax.jvp(used, (x, k), (k, x))


def hessian(kit: Kit, used: Used) -> Any:
    return lambda x, k: jax.hessian(_loss(used))(x, k).sum((0, 1))


def over_examples(kit: Kit, used: Used) -> Any:
    return lambda x, k: kit.vmap(kit.grad(_loss(used)))(kit.np.stack([x, k]), kit.np.stack([k, k]))


BY_BOTH = (
    value, gradient, gradient_of_second, value_and_gradients, gradient_without_its_aux, value_with_aux,
    gradient_of_gradient, over_examples,
)  # fmt: skip
TRANSFORMS = {"shardwise": BY_BOTH, "jax": (*BY_BOTH, forward, hessian)}
FORWARD = (value, forward)  # the only ones of a loop of unknown length


def function_of(kit: Kit, construct: Construct, wrapper: Any, use: Any, transform: Any) -> Callable[[Any, Any], Any]:
    """The program, as a function of two (8, 4) arrays."""
    return transform(kit, partial(use, kit, wrapper(kit, partial(construct, kit))))
