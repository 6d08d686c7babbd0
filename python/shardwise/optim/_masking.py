# SPDX-License-Identifier: Apache-2.0
"""Transformations made of others: in a row, for some leaves, by labels, every few steps, and with wider weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ..array import ShapeDtypeStruct
from ..dtypes import as_dtype, is_complex, is_float, is_inexact
from ..errors import described, is_integer, message, shown
from ..flags import as_flag
from ..recording.tracing import Tracer, current_trace
from ..tree import leaves as tree_leaves, map as tree_map
from ..trees import leaf_names
from ._base import (
    GradientTransformation,
    apply_updates,
    as_part_of,
    call_update,
    checked_rate,
    full_like,
    like,
    mapped,
    named_in_errors,
    params_given,
    real_dtype,
    safe_increment,
)
from ._checks import expect_shapes, expect_state, wrong_state

__all__ = [
    "MaskedNode",
    "MaskedState",
    "MasterState",
    "MultiSteps",
    "MultiStepsState",
    "PartitionState",
    "chain",
    "check_transformation",
    "masked",
    "multi_transform",
    "named_chain",
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
        TypeError: an argument is not a transformation, or the state is not a tuple. ValueError: the state has another
        number of parts.

    Source: `optax.chain`.

    >>> import shardwise as sw
    >>> both = chain(sw.optim.clip(1.0), sw.optim.scale(-0.5))
    >>> both.update(np.array([4.0]), both.init(np.zeros(1)))[0]
    array([-0.5])
    """
    return named_chain("optim.chain", *args)


def named_chain(what: str, *args: GradientTransformation) -> GradientTransformation:
    """The same under the name of an optimizer, which errors begin with."""
    for each in args:
        check_transformation(what, each)

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        if not isinstance(state, (tuple, list)) or hasattr(type(state), "_fields"):
            raise wrong_state(what, f"a tuple of {len(args)} states", state)
        if len(args) != len(state):
            got = f"a state of {len(state)} parts for {len(args)} transformations"
            way_out = "call init(params), or load it with like=init(params)"
            raise ValueError(message(what, "the state must be one of this chain", got, way_out))
        states = []
        for each, part in zip(args, state):
            updates, new = call_update(each, updates, part, params, extra_args)
            states.append(new)
        return updates, tuple(states)

    return GradientTransformation(lambda params: tuple([each.init(params) for each in args]), update)


def check_transformation(what: str, value: Any) -> None:
    """Raise TypeError unless it has the functions init and update."""
    if not callable(getattr(value, "init", None)) or not callable(getattr(value, "update", None)):
        raise TypeError(message(what, "takes transformations with init and update", shown(value)))


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """``inner`` for some leaves; the others pass through, and have no state.

    Args:
        inner: a transformation.
        mask: a tree of bools, whose leaves may stand for subtrees; or a function that makes one of the parameters.

    Raises:
        TypeError: ``inner`` is not a transformation, the update gets the state of another one, or a leaf of the mask is
        no bool. ValueError, TypeError: the mask does not fit the tree.

    Source: `optax.masked`.

    >>> import shardwise as sw
    >>> part = masked(sw.optim.scale(2.0), {"a": True, "b": False})
    >>> grads = {"a": np.ones(1), "b": np.ones(1)}
    >>> part.update(grads, part.init(grads))[0]
    {'a': array([2.]), 'b': array([1.])}
    """
    return _masked("optim.masked", inner, mask)


def _masked(what: str, inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """The same under the name of the function that errors begin with."""
    check_transformation(what, inner)

    def of(tree: Any) -> Any:
        found = mask(tree) if callable(mask) else mask
        for leaf in tree_leaves(found):
            is_bool = isinstance(leaf, (bool, np.bool_)) or (isinstance(leaf, np.ndarray) and leaf.dtype == bool)
            if not is_bool or np.shape(leaf):
                rule = "the leaves of a mask must be True or False"
                raise TypeError(message(what, rule, described(leaf)))
        return found

    def hidden(mask_tree: Any, tree: Any) -> Any:
        with named_in_errors(what):
            return tree_map(lambda keep, part: part if keep else MaskedNode(), mask_tree, tree)

    def update(updates: Any, state: MaskedState, params: Any = None, **extra_args: Any) -> tuple[Any, MaskedState]:
        expect_state(what, MaskedState, state)
        mask_tree = of(updates)
        visible = None if params is None else hidden(mask_tree, params)
        new, inner_state = call_update(inner, hidden(mask_tree, updates), state.inner_state, visible, extra_args)
        with named_in_errors(what):
            result = tree_map(lambda keep, new, old: new if keep else old, mask_tree, new, updates)
        return result, MaskedState(inner_state)

    return GradientTransformation(lambda params: MaskedState(inner.init(hidden(of(params), params))), update)


def multi_transform(transforms: Mapping[Hashable, GradientTransformation], param_labels: Any) -> GradientTransformation:
    """Another transformation for each label of a leaf; `optax.partition` is the same.

    Args:
        transforms: label -> transformation.
        param_labels: a tree of labels, whose leaves may stand for subtrees; or a function that makes one.

    Raises:
        TypeError: a value is not a transformation, or the update gets the state of another one. ValueError: a label has
        no transformation, or no part in the state.

    Source: `optax.multi_transform`.

    >>> import shardwise as sw
    >>> labels = {"a": "train", "b": "freeze"}
    >>> both = multi_transform({"train": sw.optim.sgd(0.5), "freeze": sw.optim.set_to_zero()}, labels)
    >>> grads = {"a": np.ones(1), "b": np.ones(1)}
    >>> both.update(grads, both.init(grads))[0]
    {'a': array([-0.5]), 'b': array([0.])}
    """
    what = "optim.multi_transform"
    if not isinstance(transforms, Mapping):
        raise TypeError(message(what, "transforms must be a dict of transformations", described(transforms)))
    for each in transforms.values():
        check_transformation(what, each)

    def parts(tree: Any) -> dict[Hashable, GradientTransformation]:
        labels = param_labels(tree) if callable(param_labels) else param_labels
        for label in tree_leaves(labels):
            if not isinstance(label, Hashable):
                raise TypeError(message(what, "a label must have a hash, as a str has", described(label)))
        missing = {*tree_leaves(labels)} - {*transforms}
        if missing:
            rule = "each label must have a transformation"
            raise ValueError(message(what, rule, sorted(map(str, missing)), "add it to transforms"))
        return {
            label: _masked(what, each, tree_map(lambda own, label=label: own == label, labels))
            for label, each in transforms.items()
        }

    def init(params: Any) -> PartitionState:
        return PartitionState({label: each.init(params) for label, each in parts(params).items()})

    def update(updates: Any, state: PartitionState, params: Any = None, **extra: Any) -> tuple[Any, PartitionState]:
        found, states = parts(updates), {}
        expect_state(what, PartitionState, state)
        if not isinstance(state.inner_states, Mapping) or {*state.inner_states} != {*found}:
            raise wrong_state(what, f"the PartitionState of {', '.join(map(repr, found))}", state.inner_states)
        for label, each in found.items():
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

    _what = "optim.MultiSteps"

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: Any,
        use_grad_mean: bool = True,
        accumulator_dtype: Any = np.float32,
    ) -> None:
        check_transformation("optim.MultiSteps", opt)
        if not callable(every_k_schedule) and not is_integer(every_k_schedule, 1):
            rule = "every_k_schedule must be an integer of at least 1, or a function"
            raise ValueError(message("optim.MultiSteps", rule, shown(every_k_schedule)))
        self.inner_opt = opt
        every = checked_rate(self._what, "every_k_schedule", every_k_schedule)
        self._every = every if callable(every) else lambda step: every
        self._is_mean = as_flag(self._what, "use_grad_mean", use_grad_mean)
        self._dtype = as_dtype(self._what, accumulator_dtype)

    def init(self, params: Any) -> MultiStepsState:
        """The first state."""
        count = np.zeros((), np.int32)
        return MultiStepsState(count, count, self.inner_opt.init(params), mapped(self._what, self._sum_of_none, params))

    def _sum_of_none(self, param: Any) -> Any:
        """Zeros in the dtype of sums, which is complex for a complex leaf."""
        is_wide = self._dtype.itemsize > 4
        return full_like(
            param, 0, np.result_type(np.complex64, *[self._dtype] * is_wide) if is_complex(param.dtype) else self._dtype
        )

    def update(
        self, updates: Any, state: MultiStepsState, params: Any = None, **extra: Any
    ) -> tuple[Any, MultiStepsState]:
        """The updates of a step in each call that completes one, else zeros; and the next state.

        Raises:
            TypeError: the state of another transformation. DTypeError: leaves of integers. ShapeError: updates of other
            shapes than the parameters.
        """
        what = self._what
        expect_state(what, MultiStepsState, state)
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
        kept = mapped(what, lambda a, b: chosen(a, b).astype(b.dtype), inner_state, state.inner_opt_state, check=None)
        rest = mapped(what, lambda t, old: chosen(like(0, t), t).astype(old.dtype), total, state.acc_grads)
        mini_step = chosen(np.zeros((), np.int32), done + np.ones((), np.int32))
        result = mapped(what, lambda u: chosen(u, like(0, u)), new)
        return result, MultiStepsState(mini_step, following, kept, rest)

    def has_updated(self, state: MultiStepsState) -> Any:
        """Whether the last call completed a step. Raises TypeError for the state of another transformation."""
        expect_state(self._what, MultiStepsState, state)
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        """The same as init and update of a tuple."""
        return GradientTransformation(self.init, self.update)


def with_float32_masters(inner: GradientTransformation) -> GradientTransformation:
    """``inner`` on a copy of the weights in float32, which the state holds; the weights are its rounding.

    Weights of bfloat16 alone lose every update below 1/256 of their size. The gradients become float32 first, and so
    are the moments. ``apply_updates(params, updates)`` rounds the new copy to the dtype of the weights.

    The copy is what is trained. **Weights that are loaded, averaged or edited after** ``init`` **must get a new copy**,
    or the next update puts the old ones in their place: ``state = init(params)``, or, to keep the moments,
    ``state = state._replace(master=init(params).master)``. Outside of traced functions, the update compares the weights
    with the copy and raises an error; in a traced function, which has no values yet, nothing can tell.

    Args:
        inner: an optimizer.

    Raises:
        TypeError: ``inner`` is not a transformation, or the update is called without parameters, or with the state of
        another transformation. ValueError: outside of traced functions, the weights are not the rounding of the copy.

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
    check_transformation(what, inner)

    def widened(x: Any) -> Any:
        return x.astype(np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x

    def first(param: Any) -> Any:
        if isinstance(param, ShapeDtypeStruct):
            is_narrow = is_float(param.dtype) and param.dtype.itemsize < 4
            return full_like(param, 0, np.dtype(np.float32) if is_narrow else param.dtype)
        return widened(param) if param.dtype.itemsize < 4 else param.copy()

    def init(params: Any) -> MasterState:
        master = mapped(what, first, params, check=None)
        return MasterState(master, inner.init(master))

    def update(updates: Any, state: MasterState, params: Any = None, **extra_args: Any) -> tuple[Any, MasterState]:
        params_given(what, params)
        expect_state(what, MasterState, state)
        _expect_roundings(what, params, state.master)
        grads = mapped(what, widened, updates, check=None)
        new, inner_state = call_update(inner, grads, state.inner_state, state.master, extra_args)
        with as_part_of(what):
            master = apply_updates(state.master, new)
        result = mapped(what, lambda m, p: m - widened(p), master, params, check=expect_shapes)
        return result, MasterState(master, inner_state)

    return GradientTransformation(init, update)


def _expect_roundings(what: str, params: Any, masters: Any) -> None:
    """Raise ValueError unless the weights are the rounded copies, as far as a step of arithmetic keeps them so.

    A weight that falls from 1 to 1e-9 in one step is off by the rounding of a sum with the 1, so what is small beside
    the largest weight of the tree is not compared.
    """
    found: list[tuple[Any, Any]] = []
    mapped(what, lambda p, m: found.append((p, m)), params, masters, check=expect_shapes)
    if current_trace() is not None or any(isinstance(leaf, Tracer) for pair in found for leaf in pair):
        return
    with np.errstate(all="ignore"):
        largest = max((float(np.max(np.abs(m))) for _, m in found if m.size and is_inexact(m.dtype)), default=0.0)
        for number, (param, master) in enumerate(found):
            if not is_inexact(param.dtype):
                continue
            wide = param.astype(master.dtype)
            eps = float(ml_dtypes.finfo(real_dtype(param.dtype)).eps)  # type: ignore[no-untyped-call]
            rounding = 2 * eps * np.abs(master) + 2**-20 * largest
            if np.any(np.abs(wide - master) > rounding):
                name = leaf_names(params)[number]
                rule = "the weights must be the rounded float32 copies in the state"
                got = f"others{f' for tree{name}' if name else ''}: weights that were loaded or changed after init"
                way_out = "call init(params), or state._replace(master=init(params).master) to keep the moments"
                raise ValueError(message(what, rule, got, way_out))
