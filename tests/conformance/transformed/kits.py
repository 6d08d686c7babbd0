# SPDX-License-Identifier: Apache-2.0
"""The functions that a program is written with, so that one program has several meanings.

kit.grad(lambda x: (kit.constrain(kit.np.sin(x), ROWS) ** 2).sum())

shardwise    NumPy, sw.grad, sw.split             what is tested
jax          jax.numpy, jax.grad, jax's shardings  what is tested, by from_jax and as text
mixed        a function of "jax" by from_jax, under sw.grad: what is tested
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


def _unchanged(x: Any, _: Any) -> Any:
    return x


def _alone(function: Any, *_: Any) -> Any:
    return function


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
    switch: Callable[..., Any]
    map: Callable[..., Any]
    associative_scan: Callable[..., Any]
    custom_vjp: Callable[..., Any]
    custom_jvp: Callable[..., Any]
    jvp: Callable[..., Any]
    vjp: Callable[..., Any]
    linearize: Callable[..., Any]
    hessian: Callable[..., Any]
    jacrev: Callable[..., Any]
    inside: Callable[[Any], Any] = _alone  # of a function that is written with the kit of the construct


PLAIN = Kit(
    "plain", jnp, jax.grad, jax.value_and_grad, jax.vmap, jax.checkpoint, jax.lax.scan, jax.lax.cond, jax.lax.fori_loop,
    jax.lax.while_loop, _unchanged, _unchanged, _alone, _alone, _unchanged, lambda x, y: (x, y),
    jax.lax.switch, jax.lax.map, jax.lax.associative_scan, jax.custom_vjp, jax.custom_jvp, jax.jvp, jax.vjp,
    jax.linearize, jax.hessian, jax.jacrev,
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
    psum=sw.lax.psum,
    alike=lambda x, y: sw.sharding_group((x, y)),
    switch=sw.switch,
    map=sw.map,
    associative_scan=sw.associative_scan,
    custom_vjp=sw.custom_vjp,
    custom_jvp=sw.custom_jvp,
    jvp=sw.jvp,
    vjp=sw.vjp,
    linearize=sw.linearize,
    hessian=sw.hessian,
    jacrev=sw.jacrev,
)
MIXED = replace(SHARDWISE, name="mixed", inside=sw.from_jax)
KITS = {kit.name: kit for kit in (SHARDWISE, JAX, MIXED)}


def kit_inside(kit: Kit) -> Kit:
    """The kit that a construct and its wrapper are written with."""
    return JAX if kit is MIXED else kit


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

    @kit.custom_vjp
    def f(a: Any) -> Any:
        return kit.constrain(kit.np.sin(a), ROWS)

    def forward(a: Any) -> tuple[Any, Any]:
        return f(a), (kit.constrain(a, COLUMNS), kit.constrain(2 * a, ROWS))

    f.defvjp(forward, lambda saved, g: (kit.constrain(g * kit.np.cos(saved[0]), ROWS),))
    return f(x), f(k) * x


def ruled_forward(kit: Kit, x: Any, k: Any) -> Results:
    @kit.custom_jvp
    def f(a: Any) -> Any:
        return kit.constrain(kit.np.sin(a), ROWS)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
        return f(*primals), kit.constrain(kit.np.cos(primals[0]) * tangents[0], COLUMNS)

    return f(x), f(k) * x


def switched(kit: Kit, x: Any, k: Any) -> Results:
    def first(a: Any, b: Any) -> Results:
        return kit.constrain(a + b, ROWS), b

    def second(a: Any, b: Any) -> Results:
        return kit.constrain(a, COLUMNS), kit.constrain(kit.np.sin(b), WHOLE)

    index = (x[1, 1] > 0).astype(np.int32) + (k[0, 0] > 0).astype(np.int32)
    return tuple(kit.switch(index, [first, second, lambda a, b: (a * b, kit.np.cos(b))], x, k))  # type: ignore[return-value]


def over_rows(kit: Kit, x: Any, k: Any) -> Results:
    """A map of rows, one after another."""

    def row(pair: Any) -> Results:
        return kit.constrain(kit.np.sin(pair[0]) * pair[1], ("y",)), pair[0] + 1

    return tuple(kit.map(row, (x, k)))  # type: ignore[return-value]


def cumulated(kit: Kit, x: Any, k: Any) -> Results:
    def combine(a: Any, b: Any) -> Any:
        return kit.constrain(a * 0.5 + b * 0.5, (None, "y"))

    return kit.associative_scan(lambda a, b: a + b, kit.constrain(x, ROWS)), combine(k, x)


def closing(kit: Kit, x: Any, k: Any) -> Results:
    """Functions that close over traced values of others."""
    rows = kit.constrain(kit.np.sin(x), ROWS)

    def body(carry: Any, _: Any) -> tuple[Any, Any]:
        return kit.constrain(carry * rows, COLUMNS), kit.checkpoint(lambda c: kit.constrain(c + rows, ROWS))(carry)

    carry, parts = kit.scan(body, k, None, length=2)
    return carry, kit.cond(k[0, 0] > 0, lambda c: c * rows, lambda c: kit.constrain(c, COLUMNS), parts[1])


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
    manual_with_an_unused_input, checkpointed, looped, counted, branched, mapped, repeated, manual_sums, ruled,
    ruled_forward, alike, switched, over_rows, cumulated, closing,
)  # fmt: skip
IN_JAX: tuple[Construct, ...] = (*IN_BOTH, out_sharded)
CONSTRUCTS = {"shardwise": IN_BOTH, "jax": IN_JAX, "mixed": IN_BOTH}

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
    return lambda x, k: kit.jvp(used, (x, k), (k, x))


def forward_without_its_value(kit: Kit, used: Used) -> Any:
    return lambda x, k: kit.jvp(used, (x, k), (k, x))[1]


def linearized(kit: Kit, used: Used) -> Any:
    def run(x: Any, k: Any) -> Any:
        value, tangent_of = kit.linearize(used, x, k)
        return value, tangent_of(k, x)

    return run


def pulled_back(kit: Kit, used: Used) -> Any:
    """Of two cotangents that a vjp gives, one is used, and its value is not."""
    return lambda x, k: kit.vjp(used, x, k)[1](k)[0]


def hessian(kit: Kit, used: Used) -> Any:
    return lambda x, k: kit.hessian(_loss(used))(x, k).sum((0, 1))


def jacobian(kit: Kit, used: Used) -> Any:
    return lambda x, k: kit.jacrev(lambda x: used(x, k).sum(1))(x).sum(0)


def over_examples(kit: Kit, used: Used) -> Any:
    return lambda x, k: kit.vmap(kit.grad(_loss(used)))(kit.np.stack([x, k]), kit.np.stack([k, k]))


TRANSFORMS = (
    value, gradient, gradient_of_second, value_and_gradients, gradient_without_its_aux, value_with_aux,
    gradient_of_gradient, over_examples, forward, forward_without_its_value, linearized, pulled_back, hessian, jacobian,
)  # fmt: skip
FORWARD = (value, forward, forward_without_its_value)  # the only ones of a loop of unknown length
BY_FORWARD = (*FORWARD[1:], linearized, hessian)  # they need forward mode, which a function with a vjp alone has not


# ---- arrays that a program closes over, and annotations that it discards ---------------------------------------------

HELD = np.cos(np.arange(32, dtype=np.float32)).reshape(8, 4)  # held as a hidden argument
SMALL = np.array([0.5, 0.25, 0.75, 0.828125], np.float32)  # a constant; its last number is in no other place
SMALL_TEXTS = {"local": "8.281250e-01", "jax": "0.828125", "mpi4py": "0.828125"}


@dataclass(frozen=True)
class Extras:
    """What is added to a construct.

    Attributes:
        closes: it uses ``HELD`` and ``SMALL``, or equal arrays, and so does the program around it.
        discards: it discards a hand-written annotation.
    """

    closes: bool = False
    discards: bool = False


def with_extras(construct: Construct, extras: Extras) -> Construct:
    """The construct with its extras."""

    def extended(kit: Kit, x: Any, k: Any) -> Results:
        if extras.discards:
            discard(kit, x)
        if extras.closes:
            x, k = x * SMALL.copy() + HELD.copy(), k * kit.np.asarray(HELD.tolist(), np.float32)
        first, second = construct(kit, x, k)
        return (first * SMALL, second) if extras.closes else (first, second)

    return extended if extras.closes or extras.discards else construct


def discard(kit: Kit, x: Any) -> None:
    """Write an annotation, and discard it."""
    kit.constrain(x, COLUMNS)


def function_of(
    kit: Kit, construct: Construct, wrapper: Any, use: Any, transform: Any, extras: Extras = Extras()
) -> Callable[[Any, Any], Any]:
    """The program, as a function of two (8, 4) arrays."""
    within = kit_inside(kit)
    pair = kit.inside(wrapper(within, partial(with_extras(construct, extras), within)))
    if not extras.closes:
        return transform(kit, partial(use, kit, pair))  # type: ignore[no-any-return]
    return transform(kit, lambda x, k: use(kit, pair, x, k) * HELD + SMALL)  # type: ignore[no-any-return]
