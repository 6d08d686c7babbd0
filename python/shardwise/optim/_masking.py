# SPDX-License-Identifier: Apache-2.0
"""Transformations made of others: in a row, for some leaves, by labels, every few steps, and with wider weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..array import ShapeDtypeStruct
from ..dtypes import is_float
from ..errors import is_integer, message, shown
from ..tree import leaves as tree_leaves, map as tree_map
from ._base import (
    GradientTransformation,
    apply_updates,
    call_update,
    full_like,
    like,
    mapped,
    named_in_errors,
    params_given,
    safe_increment,
    zeros,
)

__all__ = [
    "MaskedNode",
    "MaskedState",
    "MasterState",
    "MultiSteps",
    "MultiStepsState",
    "PartitionState",
    "chain",
    "masked",
    "multi_transform",
    "with_float32_masters",
]


class MaskedState(NamedTuple):
    """The state of the transformation behind a mask."""

    inner_state: Any


class MaskedNode(NamedTuple):
    """Stands where a mask hides a leaf: a node without leaves."""


class PartitionState(NamedTuple):
    """The state of the transformation of each label."""

    inner_states: Any


class MultiStepsState(NamedTuple):
    """Counters, the state of the optimizer, and the gradients so far."""

    mini_step: Any
    gradient_step: Any
    inner_opt_state: Any
    acc_grads: Any


class MasterState(NamedTuple):
    """The weights in float32, and the state of the optimizer."""

    master: Any
    inner_state: Any


def chain(*args: GradientTransformation) -> GradientTransformation:
    """Transformations one after the other; the state is a tuple of theirs.

    Raises:
        TypeError: an argument is not a transformation.
        ValueError: the state has another number of parts.

    Source: `optax.chain`.

    >>> import shardwise as sw
    >>> both = chain(sw.optim.clip(1.0), sw.optim.scale(-0.5))
    >>> both.update(np.array([4.0]), both.init(np.zeros(1)))[0]
    array([-0.5])
    """
    for each in args:
        _check_transformation("optim.chain", each)

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        if len(args) != len(state):
            got = f"a state of {len(state)} parts for {len(args)} transformations"
            raise ValueError(message("optim.chain", "the state must be one of this chain", got, "call init(params)"))
        states = []
        for each, part in zip(args, state):
            updates, new = call_update(each, updates, part, params, extra_args)
            states.append(new)
        return updates, tuple(states)

    return GradientTransformation(lambda params: tuple([each.init(params) for each in args]), update)


def _check_transformation(what: str, value: Any) -> None:
    if not callable(getattr(value, "init", None)) or not callable(getattr(value, "update", None)):
        raise TypeError(message(what, "takes transformations with init and update", shown(value)))


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """``inner`` for some leaves; the others pass through, and have no state.

    Args:
        inner: a transformation.
        mask: a tree of bools, whose leaves may stand for subtrees; or a function that makes one of the parameters.

    Raises:
        TypeError: ``inner`` is not a transformation. ValueError, TypeError: the mask does not fit the tree.

    Source: `optax.masked`.

    >>> import shardwise as sw
    >>> part = masked(sw.optim.scale(2.0), {"a": True, "b": False})
    >>> grads = {"a": np.ones(1), "b": np.ones(1)}
    >>> part.update(grads, part.init(grads))[0]
    {'a': array([2.]), 'b': array([1.])}
    """
    _check_transformation("optim.masked", inner)

    def of(tree: Any) -> Any:
        return mask(tree) if callable(mask) else mask

    def hidden(mask_tree: Any, tree: Any) -> Any:
        with named_in_errors("optim.masked"):
            return tree_map(lambda keep, part: part if keep else MaskedNode(), mask_tree, tree)

    def update(updates: Any, state: MaskedState, params: Any = None, **extra_args: Any) -> tuple[Any, MaskedState]:
        mask_tree = of(updates)
        visible = None if params is None else hidden(mask_tree, params)
        new, inner_state = call_update(inner, hidden(mask_tree, updates), state.inner_state, visible, extra_args)
        result = tree_map(lambda keep, new, old: new if keep else old, mask_tree, new, updates)
        return result, MaskedState(inner_state)

    return GradientTransformation(lambda params: MaskedState(inner.init(hidden(of(params), params))), update)


def multi_transform(transforms: Mapping[Hashable, GradientTransformation], param_labels: Any) -> GradientTransformation:
    """Another transformation for each label of a leaf; `optax.partition` is the same.

    Args:
        transforms: label -> transformation.
        param_labels: a tree of labels, whose leaves may stand for subtrees; or a function that makes one.

    Raises:
        TypeError: a value is not a transformation.
        ValueError: a label has no transformation.

    Source: `optax.multi_transform`.

    >>> import shardwise as sw
    >>> labels = {"a": "train", "b": "freeze"}
    >>> both = multi_transform({"train": sw.optim.sgd(0.5), "freeze": sw.optim.set_to_zero()}, labels)
    >>> grads = {"a": np.ones(1), "b": np.ones(1)}
    >>> both.update(grads, both.init(grads))[0]
    {'a': array([-0.5]), 'b': array([0.])}
    """
    for each in transforms.values():
        _check_transformation("optim.multi_transform", each)

    def parts(tree: Any) -> dict[Hashable, GradientTransformation]:
        labels = param_labels(tree) if callable(param_labels) else param_labels
        missing = {*tree_leaves(labels)} - {*transforms}
        if missing:
            rule = "each label must have a transformation"
            raise ValueError(message("optim.multi_transform", rule, sorted(map(str, missing)), "add it to transforms"))
        return {
            label: masked(each, tree_map(lambda own, label=label: own == label, labels))
            for label, each in transforms.items()
        }

    def init(params: Any) -> PartitionState:
        return PartitionState({label: each.init(params) for label, each in parts(params).items()})

    def update(updates: Any, state: PartitionState, params: Any = None, **extra: Any) -> tuple[Any, PartitionState]:
        states = {}
        for label, each in parts(updates).items():
            updates, states[label] = each.update(updates, state.inner_states[label], params, **extra)
        return updates, PartitionState(states)

    return GradientTransformation(init, update)


class MultiSteps:
    """Gradient accumulation: the optimizer takes a step every few calls, and the updates between are zero.

    Args:
        opt: the optimizer.
        every_k_schedule: the number of calls of a step, or a function of the number of steps so far.
        use_grad_mean: whether the gradients are averaged, or added.
        accumulator_dtype: the dtype of their sum.

    Raises:
        TypeError: ``opt`` is not a transformation. ValueError: fewer calls than 1.

    The step is computed in each call and dropped in the calls between, so that the program has no branches; to save
    that, add up the gradients in a :func:`shardwise.scan` and call the optimizer once.

    Source: `optax.MultiSteps`.

    >>> import shardwise as sw
    >>> every_second = MultiSteps(sw.optim.sgd(1.0), 2)
    >>> state = every_second.init(np.zeros(1))
    >>> first, state = every_second.update(np.array([1.0]), state)
    >>> second, state = every_second.update(np.array([3.0]), state)
    >>> first.tolist(), second.tolist()
    ([0.0], [-2.0])
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: Any,
        use_grad_mean: bool = True,
        accumulator_dtype: Any = np.float32,
    ) -> None:
        _check_transformation("optim.MultiSteps", opt)
        if not callable(every_k_schedule) and not is_integer(every_k_schedule, 1):
            rule = "every_k_schedule must be an integer of at least 1, or a function"
            raise ValueError(message("optim.MultiSteps", rule, shown(every_k_schedule)))
        self.inner_opt = opt
        self._every = every_k_schedule if callable(every_k_schedule) else lambda step: every_k_schedule
        self._is_mean = use_grad_mean
        self._dtype = np.dtype(accumulator_dtype)

    def init(self, params: Any) -> MultiStepsState:
        """The first state."""
        count = np.zeros((), np.int32)
        return MultiStepsState(
            count, count, self.inner_opt.init(params), zeros("optim.MultiSteps", params, self._dtype)
        )

    def update(
        self, updates: Any, state: MultiStepsState, params: Any = None, **extra: Any
    ) -> tuple[Any, MultiStepsState]:
        """The updates of a step in each call that completes one, else zeros; and the next state."""
        what = "optim.MultiSteps"
        every, done = self._every(state.gradient_step), state.mini_step

        def add(g: Any, total: Any) -> Any:
            return total + ((g - total) / like(done + 1, total) if self._is_mean else g)

        total = mapped(what, add, updates, state.acc_grads)
        grads = mapped(what, lambda t, g: t.astype(g.dtype), total, updates)
        new, inner_state = call_update(self.inner_opt, grads, state.inner_opt_state, params, extra)
        emits = done == every - 1

        def chosen(now: Any, later: Any) -> Any:
            return np.where(emits, now, later)

        following = chosen(safe_increment(state.gradient_step), state.gradient_step)
        kept = mapped(what, lambda a, b: chosen(a, b).astype(b.dtype), inner_state, state.inner_opt_state)
        rest = mapped(what, lambda t: chosen(like(0, t), t).astype(self._dtype), total)
        mini_step = chosen(np.zeros((), np.int32), done + np.ones((), np.int32))
        result = mapped(what, lambda u: chosen(u, like(0, u)), new)
        return result, MultiStepsState(mini_step, following, kept, rest)

    def has_updated(self, state: MultiStepsState) -> Any:
        """Whether the last call completed a step."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        """The same as init and update of a tuple."""
        return GradientTransformation(self.init, self.update)


def with_float32_masters(inner: GradientTransformation) -> GradientTransformation:
    """``inner`` on a copy of the weights in float32, which the state holds; the weights are its rounding.

    Weights of bfloat16 alone lose every update below 1/256 of their size. The gradients become float32 first, and so
    are the moments. ``apply_updates(params, updates)`` rounds the new copy to the dtype of the weights.

    Args:
        inner: an optimizer.

    Raises:
        TypeError: ``inner`` is not a transformation, or the update is called without parameters.

    Source: Micikevicius et al., "Mixed precision training", arXiv 1710.03740; Optax has no such wrapper.

    >>> import shardwise as sw
    >>> step = with_float32_masters(sw.optim.sgd(1.0))
    >>> w = np.ones(1, sw.bfloat16)
    >>> state = step.init(w)
    >>> for _ in range(8):
    ...     updates, state = step.update(np.full(1, 2**-10, sw.bfloat16), state, w)
    ...     w = sw.optim.apply_updates(w, updates)
    >>> float(w[0]), float(state.master[0])
    (0.9921875, 0.9921875)
    """
    what = "optim.with_float32_masters"
    _check_transformation(what, inner)

    def widened(x: Any) -> Any:
        return x.astype(np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x

    def first(param: Any) -> Any:
        if isinstance(param, ShapeDtypeStruct):
            is_narrow = is_float(param.dtype) and param.dtype.itemsize < 4
            return full_like(param, 0, np.dtype(np.float32) if is_narrow else param.dtype)
        return widened(param) if param.dtype.itemsize < 4 else param.copy()

    def init(params: Any) -> MasterState:
        master = mapped(what, first, params)
        return MasterState(master, inner.init(master))

    def update(updates: Any, state: MasterState, params: Any = None, **extra_args: Any) -> tuple[Any, MasterState]:
        params_given(what, params)
        grads = mapped(what, widened, updates)
        new, inner_state = call_update(inner, grads, state.inner_state, state.master, extra_args)
        master = apply_updates(state.master, new)
        return mapped(what, lambda m, p: m - widened(p), master, params), MasterState(master, inner_state)

    return GradientTransformation(init, update)
