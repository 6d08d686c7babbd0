# SPDX-License-Identifier: Apache-2.0
"""Layouts map names of dims to mesh axes, in every tensor (Mesh-TensorFlow's layout rules).

The program names dims with :func:`shardwise.logical`, and a layout maps the names to axes. To parallelize the program
differently, choose another layout. The presets are Mesh-TensorFlow's: ``data_parallel`` splits the batch,
``model_parallel`` splits the dims of the weights, and ``both`` does both on a mesh of two axes.

>>> dict(data_parallel)
{'batch': 'data'}
>>> with axis_rules(both(data="rows", model="columns")):
...     current_layout()["batch"]
'rows'
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .errors import ShardingError, message
from .process.traceback_filtering import entry_points
from .shardings.partition_spec import Axis, SubAxis

__all__ = ["Layout", "axis_rules", "both", "current_layout", "data_parallel", "model_parallel"]

Rule = tuple[Axis, ...]


@entry_points
class Layout(Mapping[str, Any]):
    """An immutable mapping from names of dims to mesh axes. A dim without a rule is not split.

    A rule whose axes are None states that a dim is unsharded; :func:`shardwise.logical` warns of names without a rule.

    Args:
        rules: a mapping from each name to an axis, a tuple of axes (major to minor) or None; a sequence of such pairs;
            or Mesh-TensorFlow's text, ``"batch:data;hidden:model"``.
        others_unsharded: all other names are unsharded, so that only a name close to one with a rule causes a warning.
            The presets set this.

    Raises:
        ShardingError: a malformed rule, or two rules for one name.

    Source: Mesh-TensorFlow (arXiv 1811.02084), section 3.

    >>> Layout("batch:data;hidden:model") == Layout({"batch": "data", "hidden": "model"})
    True
    """

    __slots__ = ("_others_unsharded", "_rules")

    def __init__(
        self, rules: Mapping[str, Any] | Iterable[tuple[str, Any]] | str, *, others_unsharded: bool = False
    ) -> None:
        self._others_unsharded = others_unsharded
        self._rules: dict[str, Rule] = {}
        for name, axes in _pairs(rules):
            if not isinstance(name, str) or not name.isidentifier():
                raise ShardingError(message("axis_rules", "the name of a dim must be an identifier", repr(name)))
            if name in self._rules:
                raise ShardingError(message("axis_rules", "a dim must have one rule", f"{name!r} again"))
            entries = () if axes is None else tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
            if not all(isinstance(axis, (str, SubAxis)) for axis in entries):
                raise ShardingError(
                    message("axis_rules", "a rule must name an axis, several or None", f"{name!r}: {axes!r}")
                )
            self._rules[name] = entries

    def axes(self, name: str) -> Rule:
        """The axes that split dims of this name, major to minor; empty without a rule."""
        return self._rules.get(name, ())

    def doubt(self, name: str) -> str | None:
        """A question about a name without a rule that is close to a known one. None if no name is close.

        >>> Layout({"batch": "data"}).doubt("bacth")
        "did you mean 'batch'?"
        """
        if name in self._rules or not self._rules:
            return None
        near = difflib.get_close_matches(name, self._rules, n=1, cutoff=0.8 if self._others_unsharded else 0.6)
        if near:
            return f"did you mean {near[0]!r}?"
        return None if self._others_unsharded else f"the rules are for {', '.join(map(repr, self._rules))}."

    def __call__(self, **axes: Axis) -> Layout:
        """The same layout with mesh axes renamed: ``both(data="rows", model="columns")``.

        Raises:
            ShardingError: the layout does not have one of these axes.
        """
        known = {axis for rule in self._rules.values() for axis in rule if isinstance(axis, str)}
        for name in axes:
            if name not in known:
                raise ShardingError(message("layout", f"the axes of this layout are {sorted(known)}", repr(name)))
        return Layout(
            {
                name: tuple(axes.get(axis, axis) if isinstance(axis, str) else axis for axis in rule)
                for name, rule in self._rules.items()
            },
            others_unsharded=self._others_unsharded,
        )

    def __getitem__(self, name: str) -> Any:
        rule = self._rules[name]
        return None if not rule else rule[0] if len(rule) == 1 else rule

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._rules == other._rules

    def __hash__(self) -> int:
        return hash(frozenset(self._rules.items()))

    def __repr__(self) -> str:
        return f"Layout({dict(self)!r})"


def _pairs(rules: Any) -> list[tuple[Any, Any]]:
    if isinstance(rules, str):
        entries = [tuple(part.strip() for part in entry.split(":")) for entry in rules.split(";") if entry.strip()]
        if any(len(entry) != 2 for entry in entries):
            raise ShardingError(message("axis_rules", "text must be 'name:axis;name:axis'", repr(rules)))
        return [(name, axis or None) for name, axis in entries]
    if isinstance(rules, Mapping):
        return list(rules.items())
    pairs = list(rules) if isinstance(rules, Sequence) else [rules]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ShardingError(message("axis_rules", "takes a mapping, pairs of names and axes, or text", repr(rules)))
    return [(name, axes) for name, axes in pairs]


data_parallel = Layout({"batch": "data"}, others_unsharded=True)
model_parallel = Layout(dict.fromkeys(("vocab", "hidden", "d_ff", "heads"), "model"), others_unsharded=True)
both = Layout({**data_parallel, **model_parallel}, others_unsharded=True)


class _Ambient(threading.local):
    layout: Layout | None = None


_ambient = _Ambient()


@entry_points
class axis_rules(AbstractContextManager[Layout]):  # noqa: N801
    """A context manager that sets the layout for :func:`shardwise.logical`. It replaces an outer layout.

    Args:
        rules: a :class:`Layout`, or the argument of one.

    Raises:
        ShardingError: a malformed rule, or two rules for one name.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> f = sw.jit(lambda x: sw.logical(x, "batch hidden"), mesh=sw.Mesh({"data": 2, "model": 2}))
    >>> with sw.axis_rules({"batch": "data", "hidden": "model"}):
    ...     f(np.zeros((4, 4))).sharding.spec
    P('data', 'model')
    """

    def __init__(self, rules: Layout | Mapping[str, Any] | Iterable[tuple[str, Any]] | str) -> None:
        self._layout = rules if isinstance(rules, Layout) else Layout(rules)
        self._outer: list[Layout | None] = []

    def __enter__(self) -> Layout:
        self._outer.append(_ambient.layout)
        _ambient.layout = self._layout
        return self._layout

    def __exit__(self, *exc: object) -> None:
        _ambient.layout = self._outer.pop()


def current_layout() -> Layout | None:
    """The layout that :func:`shardwise.axis_rules` set, or None."""
    return _ambient.layout


def __dir__() -> list[str]:
    return sorted(__all__)
