# SPDX-License-Identifier: Apache-2.0
"""The shardings that Shardwise found, for functions that XLA partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

from .. import _core
from ..errors import ShardingError, message
from ..stages import Program
from ..trees import unflatten
from .jax_lowering import rewritten
from .optional import jax
from .source.mesh_axes import AxisRef, MeshAxes
from .to_jax.program import jax_mesh, named_sharding

__all__ = ["JaxShardings", "annotated", "shardings_of"]


class JaxShardings(NamedTuple):
    """The options of `jax.jit`: a tuple with the tree of each argument, and the tree of the results."""

    in_shardings: Any
    out_shardings: Any


class _Found:
    """The shardings of a program on a mesh of JAX."""

    def __init__(self, what: str, program: Program, devices: Sequence[Any] | None, mesh: Any) -> None:
        self._what = what
        self._traced = program._traced
        count = len(self._traced.in_avals), self._traced.out_tree.num_leaves
        self.inputs = program._compiled.argument_shardings[: count[0]]
        self.outputs = program._compiled.result_shardings[: count[1]]
        self.named = dict(_named_values(program._compiled.stages["propagated"].main.body))
        all_shardings = [*self.inputs, *self.outputs, *self.named.values()]
        used = [ref for sharding in all_shardings for ref in _refs(sharding)]
        self._axes = MeshAxes.of(program.mesh._core, used)
        self.mesh = jax_mesh(self._axes, what, devices, mesh)

    def of(self, sharding: Any, what: str) -> Any:
        """JAX's form of a sharding."""
        return named_sharding(self.mesh, self._axes.spec([axes for axes, _, _ in sharding.dims], what, self._what))

    def even(self, sharding: Any, shape: Sequence[int], what: str) -> Any:
        """The same. ShardingError if a dim does not divide."""
        local = sharding.local_shape(shape)
        for d, (axes, _, _) in enumerate(sharding.dims):
            count = 1
            for _, _, size in axes:
                count *= size
            if local[d] * count != shape[d]:
                rule = f"JAX drops a constraint unless its {count} devices divide the dim"
                got = f"dim {d} of {what}, of size {shape[d]}"
                raise ShardingError(message(self._what, rule, got, "pad it, or use to_jax, which keeps uneven dims"))
        return self.of(sharding, what)


def _refs(sharding: Any) -> Iterator[AxisRef]:
    for axes, _, _ in sharding.dims:
        yield from axes


def _named_values(region: _core.ir.Region) -> Iterator[tuple[str, Any]]:
    for op in region.ops:
        for value in op.results:
            if value.name and value.sharding is not None:
                yield value.name, value.sharding
        for inner in op.regions:
            yield from _named_values(inner)


def shardings_of(program: Program, devices: Sequence[Any] | None, mesh: Any) -> JaxShardings:
    """Implements :meth:`Program.jax_shardings`."""
    found = _Found("jax_shardings", program, devices, mesh)
    traced = program._traced
    inputs = [found.of(s, f"argument {name}") for s, name in zip(found.inputs, traced.in_names)]
    outputs = [found.of(s, f"result {i}") for i, s in enumerate(found.outputs)]
    return JaxShardings(unflatten(traced.in_tree, inputs)[0], unflatten(traced.out_tree, outputs))


def annotated(
    fun: Callable[..., Any], program: Program, devices: Sequence[Any] | None, mesh: Any
) -> Callable[..., Any]:
    """Implements :func:`annotate_jax`."""
    found = _Found("annotate_jax", program, devices, mesh)
    names = program._traced.in_names

    def constrained(leaves: Sequence[Any], shardings: Sequence[Any], whats: Sequence[str]) -> list[Any]:
        if len(leaves) != len(shardings):
            rule = f"the function must have the {len(shardings)} arrays of the program"
            raise ShardingError(message("annotate_jax", rule, f"{len(leaves)}", "pass the function of the program"))
        constrain = jax.lax.with_sharding_constraint
        rows = zip(leaves, shardings, whats)
        return [constrain(x, found.even(sharding, jax.numpy.shape(x), what)) for x, sharding, what in rows]

    def name(eqn: Any) -> Any:
        """The equation of a checkpoint_name as a constraint."""
        sharding = found.named.get(eqn.params["name"])
        if sharding is None:
            return eqn
        aval = eqn.outvars[0].aval
        own = found.even(sharding, aval.shape, eqn.params["name"])
        shape = jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        made = jax.make_jaxpr(lambda x: jax.lax.with_sharding_constraint(x, own))(shape).jaxpr.eqns[0]
        return eqn.replace(primitive=made.primitive, params=made.params)

    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, kwargs))
        leaves = constrained(leaves, found.inputs, [f"argument {each}" for each in names])

        def flat(*values: Any) -> Any:
            inner_args, inner_kwargs = jax.tree.unflatten(tree, values)
            return fun(*inner_args, **inner_kwargs)

        closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*leaves)
        results = jax.core.eval_jaxpr(rewritten(closed.jaxpr, name), closed.consts, *leaves)
        whats = [f"result {i}" for i in range(len(results))]
        return jax.tree.unflatten(jax.tree.structure(shapes), constrained(results, found.outputs, whats))

    return wrapped
