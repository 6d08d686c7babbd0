# SPDX-License-Identifier: Apache-2.0
"""Policies of :func:`shardwise.checkpoint`: what the gradient keeps and what it computes again.

    sw.checkpoint_policies.nothing_saveable               the default: everything is computed again
    sw.checkpoint_policies.dots_saveable                  results of matrix products and convolutions are kept
    sw.checkpoint_policies.save_only_these_names("h")     values that `sw.name(x, "h")` names are kept
    sw.checkpoint_policies.everything_saveable            as without checkpoint

Source: `jax.checkpoint_policies`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import message, shown

__all__ = ["Policy", "dots_saveable", "everything_saveable", "nothing_saveable", "save_only_these_names"]


@dataclass(frozen=True)
class Policy:
    """A choice of the values that a gradient keeps: ``kind`` of values, or those with one of the ``names``."""

    kind: str
    names: tuple[str, ...] = ()


everything_saveable = Policy("everything")
nothing_saveable = Policy("nothing")
dots_saveable = Policy("dots")


def save_only_these_names(*names: str) -> Policy:
    """Keep the values that :func:`shardwise.name` gave one of these names.

    Raises:
        TypeError: a name is not a string.

    >>> save_only_these_names("h", "scores").names
    ('h', 'scores')
    """
    for given in names:
        if not isinstance(given, str):
            raise TypeError(message("save_only_these_names", "names must be strings", shown(given)))
    return Policy("names", names) if names else nothing_saveable
