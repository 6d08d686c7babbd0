# SPDX-License-Identifier: Apache-2.0
"""Rematerialization: functions whose gradient computes their values again instead of keeping them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from ..dtypes import dtype_name
from ..errors import message, shown
from ..process.traceback_filtering import entry_point
from ..recording.tracing import Trace, Tracer, WeakTracer, current_trace
from ..trees import flatten, unflatten
from .checkpoint_policies import Policy, everything_saveable, nothing_saveable
from .leaf_types import expect_function
from .regions import region

__all__ = ["checkpoint"]


@entry_point
def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[..., Any]:
    """Make a function whose gradient computes its values again; as `jax.checkpoint`.

    The gradient of ``fun`` needs values from inside it. They are usually kept until then; here, only the arguments and
    the values from around ``fun`` are kept, and the gradient runs ``fun`` again. This takes less memory and more time.
    The body of a :func:`shardwise.scan` is a good place: the rows that the loop would stack are not stored.

    Args:
        fun: a function of trees of arrays. Other arguments are passed on unchanged.
        policy: what is kept nevertheless, one of :mod:`shardwise.checkpoint_policies`; by default nothing.
        prevent_cse: has no effect: what is computed again is never merged with the first computation.
        static_argnums: has no effect: arguments that are not traced are static in any case.
        static_argnames: as ``static_argnums``.

    Returns:
        A function with the same arguments and results.

    Raises:
        TypeError: ``fun`` is not a function, or ``policy`` is not one of the policies.

    The numbers are the same with and without it. Outside a gradient it has no effect.

    Source: `jax.checkpoint`; Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).

    >>> import numpy as np
    >>> import shardwise as sw
    >>> layer = checkpoint(lambda x: np.sin(np.sin(x)))
    >>> f = sw.jit(sw.grad(lambda x: layer(x).sum()), mesh=sw.Mesh({"d": 2}))
    >>> np.asarray(f(np.zeros(2)))
    array([1., 1.])
    """
    expect_function("checkpoint", "fun", fun)
    chosen: Any = nothing_saveable if policy is None else policy
    if not isinstance(chosen, Policy):
        way_out = "pass one of sw.checkpoint_policies"
        raise TypeError(message("checkpoint", "policy must be a checkpoint policy", shown(policy), way_out))

    @entry_point
    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or chosen == everything_saveable:
            return fun(*args, **kwargs)
        return _recorded(trace, chosen, lambda: fun(*args, **kwargs))

    return wrapped


def _recorded(trace: Trace, policy: Policy, call: Callable[[], Any]) -> Any:
    """Record the call as a region of its own; what is not traced is returned as it is."""
    traced: dict[int, Tracer] = {}
    with region(trace, "checkpoint") as body:
        leaves, structure = flatten(call())
        traced.update((i, trace.lift(leaf)) for i, leaf in enumerate(leaves) if isinstance(leaf, Tracer))
        body.returns(list(traced.values()))
    if not traced:
        return unflatten(structure, leaves)
    operands = [value for value, _ in trace.core.capture(body.index)]
    types = [(x.shape, dtype_name(x.dtype)) for x in traced.values()]
    rows = trace.core.emit_op("shardwise.checkpoint", operands, policy.attributes(), types, [body.index])
    for (i, x), (value, shape, _) in zip(traced.items(), rows):
        made = Tracer(trace, value, shape, x.dtype)
        leaves[i] = WeakTracer.of(made, x.weak) if isinstance(x, WeakTracer) else made
    return unflatten(structure, leaves)
