# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, so that errors name the function that was called, and what is wrong with which argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..dtypes import is_float
from ..errors import DTypeError, ShapeError, described
from .configs import message

__all__ = [
    "check_config",
    "check_floats",
    "check_forms",
    "check_ids",
    "check_keys",
    "check_mask",
    "check_random",
    "check_shapes",
]


def check_config(what: str, config: Any, kind: type) -> None:
    """Raise TypeError unless ``config`` is a configuration of this class."""
    if not isinstance(config, kind):
        raise TypeError(message(what, f"config must be a {kind.__name__}", described(config)))


def check_keys(what: str, place: str, value: Any, keys: Iterable[str]) -> None:
    """Raise TypeError unless a value is a dict, and ValueError if it lacks one of these keys."""
    if not isinstance(value, Mapping):
        raise TypeError(message(what, f"{place} must be a dict", described(value)))
    missing = [key for key in keys if key not in value]
    if missing:
        rule = f"{place} must have {', '.join(map(repr, missing))}"
        raise ValueError(message(what, rule, f"the keys {', '.join(map(repr, value)) or 'of an empty dict'}"))


def check_floats(what: str, name: str, value: Any, form: str = "") -> None:
    """Raise DTypeError unless ``value`` is an array of floats, and ShapeError unless its dims are those of ``form``.

    >>> check_floats("layer", "x", np.ones((2, 3, 4)), "GSM")
    """
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "shape") or not is_float(np.dtype(dtype)):
        raise DTypeError(message(what, f"{name} must be an array of floats", described(value)))
    if form and len(value.shape) != len(form):
        raise ShapeError(message(what, f"{name} must be ({', '.join(form)})", described(value)))


def check_forms(what: str, params: Any, forms: Mapping[str, str], **sizes: int) -> None:
    """Raise unless the arrays ``params[name]`` have the dims ``forms[name]``. A letter has one size, of ``sizes`` too.

    >>> check_forms("layer", {"wi": np.ones((8, 4)), "wo": np.ones((4, 8))}, {"wi": "MH", "wo": "HM"}, M=8)
    """
    check_keys(what, "params", params, forms)
    for name, form in forms.items():
        place, weight = f"params[{name!r}]", params[name]
        check_floats(what, place, weight, form)
        for letter, size in zip(form, weight.shape):
            sizes.setdefault(letter, size)
        wanted = tuple(sizes[letter] for letter in form)
        if tuple(weight.shape) != wanted:
            shape = ", ".join(form) + ("," if len(form) == 1 else "")
            raise ShapeError(message(what, f"{place} must be ({shape}) = {wanted}", tuple(weight.shape)))


def check_shapes(what: str, place: str, value: Any, expected: Any, maker: str) -> None:
    """Raise unless ``value`` is a tree of floats with the dicts, lists and shapes of ``expected``.

    Dicts may have other keys, too, and ``"positions"`` more rows. ``maker`` is the function that makes such a tree.
    """
    if isinstance(expected, dict):
        check_keys(what, place, value, expected)
        for key, inner in expected.items():
            check_shapes(what, f"{place}[{key!r}]", value[key], inner, maker)
    elif isinstance(expected, list):
        if not isinstance(value, (list, tuple)) or len(value) != len(expected):
            got = len(value) if isinstance(value, (list, tuple)) else described(value)
            raise ValueError(message(what, f"{place} must be a list of {len(expected)}", got))
        for i, inner in enumerate(expected):
            check_shapes(what, f"{place}[{i}]", value[i], inner, maker)
    else:
        check_floats(what, place, value)
        found = tuple(value.shape)
        is_longer = place.endswith("['positions']") and found[:1] > expected[:1] and found[1:] == expected[1:]
        if found != expected and not is_longer:
            way_out = f"make the parameters with {maker} for this configuration"
            raise ShapeError(message(what, f"{place} must have the shape {expected}", found, way_out))


def check_ids(what: str, name: str, value: Any, form: str, size: int | None = None, counted: Any = None) -> None:
    """Raise unless ``value`` is an integer array with these dims, and in a NumPy array from 0 to below ``size``.

    ``counted`` is bool, of the same shape: the elements that are looked at.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    rule = f"{name} must be an integer array of shape ({', '.join(form)})" if form else f"{name} must be integers"
    if shape is None or dtype is None or np.dtype(dtype).kind not in "iu":
        raise DTypeError(message(what, rule, described(value)))
    if form and len(shape) != len(form):
        raise ShapeError(message(what, rule, described(value)))
    if size is None or not isinstance(value, np.ndarray):
        return
    if isinstance(counted, np.ndarray):
        value = value[counted]
    if value.size and not 0 <= int(value.min()) <= int(value.max()) < size:
        least, most = int(value.min()), int(value.max())
        raise ValueError(message(what, f"{name} must be from 0 to {size - 1}", least if least < 0 else most))


def check_mask(what: str, mask: Any, form: str, shape: tuple[int, ...]) -> None:
    """Raise unless a mask is None, or bool of this shape."""
    if mask is None:
        return
    dtype = getattr(mask, "dtype", None)
    if dtype is None or np.dtype(dtype) != np.bool_:
        raise DTypeError(message(what, "mask must be bool", described(mask), "compare it with the padding"))
    if tuple(mask.shape) != tuple(shape):
        raise ShapeError(message(what, f"mask must be {form} = {tuple(shape)}", described(mask)))


def check_random(what: str, random: Any, shape: tuple[int, ...]) -> None:
    """Raise unless ``random`` is None, a key, or an array of a number for each token of this shape."""
    if random is None:
        return
    dtype, found = getattr(random, "dtype", None), tuple(getattr(random, "shape", ()))
    if dtype == np.uint32 and found == (2,):
        return
    if dtype is None or not is_float(np.dtype(dtype)):
        rule = "random must be a key, or an array of a number for each token"
        raise DTypeError(message(what, rule, described(random), "make a key with sw.random.key(seed)"))
    if found != tuple(shape):
        got = f"{found} for {tuple(shape)} tokens"
        raise ShapeError(message(what, "random must have a number for every token", got, "or pass a key"))
