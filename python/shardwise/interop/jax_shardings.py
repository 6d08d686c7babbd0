# SPDX-License-Identifier: Apache-2.0
"""The shardings that Shardwise found, for functions that XLA partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

from ..errors import ShardingError, composed
from ..programs.stages import Program
from ..trees import flatten, unflatten
from .jax_arguments import ProgramArguments
from .jax_calls import Origin, with_parameters
from .jax_errors import users_place
from .jaxprs import constraint_of_name, rewritten
from .named_values import named_values, shardings_by_equation
from .optional import jax
from .random_keys import LeafSharding, without_keys
from .source.mesh_axes import AxisRef, MeshAxes
from .to_jax.meshes import jax_mesh, named_sharding

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
        self.named = named_values(program._compiled.stages["propagated"])
        all_shardings = [*self.inputs, *self.outputs, *(value.sharding for value in self.named)]
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
                way_out = "pad it, or use to_jax, which keeps uneven dims"
                raise ShardingError(composed(self._what, rule, got, way_out, *users_place()))
        return self.of(sharding, what)


def _refs(sharding: Any) -> Iterator[AxisRef]:
    for axes, _, _ in sharding.dims:
        yield from axes


def shardings_of(program: Program, devices: Sequence[Any] | None, mesh: Any) -> JaxShardings:
    """Implements :meth:`Program.jax_shardings`."""
    found = _Found("jax_shardings", program, devices, mesh)
    traced = program._traced

    def tree_of(structure: Any, shardings: Sequence[Any], whats: Sequence[str]) -> Any:
        leaves = [LeafSharding(found.of(s, what), len(s.dims)) for s, what in zip(shardings, whats)]
        own, by_key = flatten(unflatten(structure, leaves))  # a key is a leaf now
        return unflatten(by_key, [leaf.sharding for leaf in own])

    inputs = tree_of(traced.in_tree, found.inputs, [f"argument {name}" for name in traced.in_names])
    outputs = tree_of(traced.out_tree, found.outputs, [f"result {i}" for i in range(len(found.outputs))])
    return JaxShardings(inputs[0], outputs)


def annotated(
    fun: Callable[..., Any], program: Program, devices: Sequence[Any] | None, mesh: Any
) -> Callable[..., Any]:
    """Implements :func:`annotate_jax`."""
    found = _Found("annotate_jax", program, devices, mesh)
    arguments = ProgramArguments(program)
    count = len(found.outputs)

    def constrained(leaf: Any, sharding: Any, what: str) -> Any:
        return jax.lax.with_sharding_constraint(leaf, found.even(sharding, jax.numpy.shape(leaf), what))

    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        plain_args, plain_kwargs = without_keys((args, kwargs))
        leaves, tree = flatten((plain_args, plain_kwargs))
        places = arguments.places_of("annotate_jax", plain_args, plain_kwargs)
        rows = [(leaf, found.inputs[i], arguments.names[i]) for leaf, i in zip(leaves, places) if i is not None]
        operands = [constrained(leaf, own, f"argument {name}") for leaf, own, name in rows]
        structure: Any = None

        def flat(*values: Any) -> Any:
            nonlocal structure
            given = iter(values)
            own = [leaf if place is None else next(given) for leaf, place in zip(leaves, places)]
            inner_args, inner_kwargs = unflatten(tree, own)
            results, structure = flatten(without_keys(fun(*inner_args, **inner_kwargs)))
            return results

        named, given = with_parameters(flat, Origin(fun, [name for _, _, name in rows]), operands)
        closed = jax.make_jaxpr(named)(*given)
        shardings = shardings_by_equation(closed.jaxpr, found.named)

        def as_constraint(eqn: Any) -> Any:
            """The equation of a checkpoint_name as a constraint."""
            sharding = shardings.get(id(eqn))
            if sharding is None:
                return eqn
            return constraint_of_name(eqn, found.even(sharding, eqn.outvars[0].aval.shape, eqn.params["name"]))

        results = jax.core.eval_jaxpr(rewritten(closed.jaxpr, as_constraint), closed.consts, *operands)
        if len(results) != count:
            rule, way_out = f"the function must have the {count} results of the program", "pass its function"
            raise ShardingError(composed("annotate_jax", rule, len(results), way_out, *users_place()))
        pairs = zip(results, found.outputs)
        return unflatten(structure, [constrained(x, own, f"result {i}") for i, (x, own) in enumerate(pairs)])

    return wrapped
