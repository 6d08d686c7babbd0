# SPDX-License-Identifier: Apache-2.0
"""Policies of :func:`shardwise.checkpoint`: what the gradient keeps and what it computes again.

    sw.checkpoint_policies.nothing_saveable                   the default: everything is computed again
    sw.checkpoint_policies.dots_saveable                      results of matrix products and convolutions are kept
    sw.checkpoint_policies.dots_with_no_batch_dims_saveable   … of matrix products without batch dims
    sw.checkpoint_policies.save_only_these_names("h")         values that `sw.name(x, "h")` names are kept
    sw.checkpoint_policies.save_any_names_but_these("h")      values with another name are kept
    sw.checkpoint_policies.save_anything_except_these_names("h")  all values but those of this name are kept
    sw.checkpoint_policies.save_from_both_policies(a, b)      what either policy keeps
    sw.checkpoint_policies.everything_saveable                as without checkpoint

Source: `jax.checkpoint_policies`. `checkpoint_dots` and `checkpoint_dots_with_no_batch_dims` are JAX's other names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import message, shown

__all__ = [
    "Policy",
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]


@dataclass(frozen=True)
class Policy:
    """A choice of the values that a gradient keeps: a ``kind``, by ``names``, or what one of ``parts`` keeps."""

    kind: str
    names: tuple[str, ...] = ()
    parts: tuple[Policy, ...] = ()

    def attributes(self) -> dict[str, Any]:
        """The attributes of a checkpoint op."""
        if self.parts:
            words = [word for part in self.parts for word in (part.kind, *(f"={name}" for name in part.names))]
            return {"policy": self.kind, "policies": tuple(words)}
        if self.names:
            return {"policy": self.kind, "names": self.names}
        return {"policy": self.kind}


everything_saveable = Policy("everything")
nothing_saveable = Policy("nothing")
dots_saveable = checkpoint_dots = Policy("dots")
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy("dots without batch dims")


def _strings(function: str, names: tuple[str, ...]) -> tuple[str, ...]:
    for given in names:
        if not isinstance(given, str):
            raise TypeError(message(function, "names must be strings", shown(given)))
    return names


def save_only_these_names(*names: str) -> Policy:
    """Keep the values that :func:`shardwise.name` gave one of these names.

    Raises:
        TypeError: a name is not a string.

    >>> save_only_these_names("h", "scores").names
    ('h', 'scores')
    """
    return Policy("names", names) if _strings("save_only_these_names", names) else nothing_saveable


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values that :func:`shardwise.name` gave another name than these.

    Raises:
        TypeError: a name is not a string.
    """
    return Policy("other names", _strings("save_any_names_but_these", names))


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep all values, named or not, except those that :func:`shardwise.name` gave one of these names.

    Raises:
        TypeError: a name is not a string.
    """
    return (
        Policy("all but names", names) if _strings("save_anything_except_these_names", names) else everything_saveable
    )


def save_from_both_policies(policy_1: Any, policy_2: Any) -> Policy:
    """Keep what either policy keeps.

    Raises:
        TypeError: an argument is not a policy.
    """
    parts: list[Policy] = []
    for policy in (policy_1, policy_2):
        if not isinstance(policy, Policy):
            way_out = "pass two of sw.checkpoint_policies"
            raise TypeError(message("save_from_both_policies", "takes checkpoint policies", shown(policy), way_out))
        parts += policy.parts or (policy,)
    if everything_saveable in parts:
        return everything_saveable
    return Policy("any", (), tuple(parts))
