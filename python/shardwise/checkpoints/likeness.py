# SPDX-License-Identifier: Apache-2.0
"""Finds the leaves of ``like`` among those of a checkpoint, by their names, and lists those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import is_complex, is_dtype, is_float, is_integer, numpy_dtype
from ..errors import CheckpointError, message
from .structure import decoded_value, is_value

__all__ = ["matched"]

_MOST_SHOWN = 8  # names of each kind
_MOST_CHARACTERS = 120  # of a name


def matched(
    what: str, names: Sequence[str], examples: Sequence[Any], entries: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The entry of each leaf of ``like``. CheckpointError unless both have the same leaves."""
    saved = {entry["name"]: entry for entry in entries}
    wanted = set(names)
    changed = {
        name: f"{_entry_text(saved[name])} for {_example_text(example)}"
        for name, example in zip(names, examples)
        if name in saved and not _fits(saved[name], example)
    }
    differences = {
        "missing in the checkpoint": {name: "" for name in names if name not in saved},
        "missing in like": {name: "" for name in saved if name not in wanted},
        "of another type": changed,
    }
    got = "; ".join(f"{kind}: {_listed(found)}" for kind, found in differences.items() if found)
    if got:
        rule = "like must have the leaves of the checkpoint"
        way_out = "change like, or load without it and convert the tree"
        raise CheckpointError(message(what, rule, got, way_out))
    return [saved[name] for name in names]


def _listed(found: Mapping[str, str]) -> str:
    texts = [f"{_short(name)} {text}".rstrip() for name, text in list(found.items())[:_MOST_SHOWN]]
    more = len(found) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def _short(name: str) -> str:
    name = name or "the tree itself"
    return name if len(name) <= _MOST_CHARACTERS else f"{name[: _MOST_CHARACTERS - 1]}…"


def _fits(entry: dict[str, Any], example: Any) -> bool:
    if "array" not in entry:
        return type(decoded_value(entry["value"])) is type(example)
    dtype, shape = numpy_dtype(entry["dtype"]), tuple(entry["shape"])
    if is_value(example):
        return not shape and _is_number(type(example), dtype)
    found = _type_of(example)
    return found is not None and found == (dtype, shape)


def _is_number(kind: type, dtype: np.dtype[Any]) -> bool:
    """Whether a Python number of this class holds any number of the dtype."""
    if kind is bool:
        return dtype == np.bool_
    if kind is int:
        return is_integer(dtype)
    return is_float(dtype) if kind is float else kind is complex and is_complex(dtype)


def _type_of(example: Any) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
    shape, dtype = getattr(example, "shape", None), getattr(example, "dtype", None)
    if isinstance(shape, tuple) and isinstance(dtype, np.dtype) and is_dtype(dtype):
        return dtype.newbyteorder("="), shape
    return None


def _entry_text(entry: dict[str, Any]) -> str:
    if "array" not in entry:
        return type(decoded_value(entry["value"])).__name__
    return f"{entry['dtype']}{list(entry['shape'])}"


def _example_text(example: Any) -> str:
    found = _type_of(example)
    return type(example).__name__ if found is None else f"{found[0].name}{list(found[1])}"
