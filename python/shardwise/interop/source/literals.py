# SPDX-License-Identifier: Apache-2.0
"""NumPy values as Python text."""

from __future__ import annotations

import keyword
import re
from typing import Any

import numpy as np

__all__ = ["array_text", "axes_text", "identifier", "scalar_text", "wrapped"]

_WIDTH = 116


def scalar_text(value: Any, dtypes: str) -> str:
    """A scalar of its dtype: ``np.float32(0.5)``; the module ``dtypes`` has the dtypes that NumPy lacks."""
    dtype = np.asarray(value).dtype
    function = f"{'np' if dtype.isbuiltin == 1 else dtypes}.{dtype.name}"
    if dtype.kind == "b":
        return f"np.bool_({bool(value)})"
    if dtype.kind == "c":
        return f"{function}(complex({_number(value.real)}, {_number(value.imag)}))"
    return f"{function}({int(value) if 'int' in dtype.name else _number(value)})"


def _number(value: Any) -> str:
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return f'float("{number}")'
    if np.asarray(value).dtype == np.float32:
        return str(value.item() if not _is_short(value) else np.format_float_positional(value, trim="0"))
    return repr(int(number)) if number == int(number) and abs(number) < 1e6 and number != 0 else repr(number)


def _is_short(value: Any) -> bool:
    text = np.format_float_positional(value, trim="0")
    return len(text) < 16 and np.float32(text) == value


def array_text(array: np.ndarray, dtypes: str) -> str:
    """A small array: ``np.array([1, 2], "int32")``."""
    is_short = array.dtype.kind in "iub" or (array.dtype.kind in "fc" and np.isfinite(array).all())
    if array.dtype.kind == "c":  # Python loses the sign of a zero beside another part
        is_short = is_short and not any((np.signbit(part) & (part == 0)).any() for part in (array.real, array.imag))
    if is_short and array.dtype.isbuiltin == 1:
        return f'np.array({array.tolist()}, "{array.dtype.name}")'
    items = f"[{', '.join(scalar_text(x, dtypes) for x in array.reshape(-1))}]"
    is_plain = array.dtype.isbuiltin == 1 or dtypes != "jnp"  # NumPy knows no dtypes of jax.numpy
    text = f"np.array({items}, {_dtype_text(array.dtype, dtypes)})" if is_plain else f"jnp.stack({items})"
    return text if array.ndim == 1 else f"{text}.reshape{array.shape}"


def _dtype_text(dtype: np.dtype[Any], dtypes: str) -> str:
    return f'"{dtype.name}"' if dtype.isbuiltin == 1 else f"{dtypes}.{dtype.name}"


def axes_text(axes: tuple[str, ...]) -> str:
    """Mesh axes as JAX takes them: a name, or a tuple of names."""
    return repr(axes[0]) if len(axes) == 1 else repr(axes)


def identifier(name: str) -> str:
    """A name of the user as a Python identifier: ``params['w'][0]`` becomes ``params_w_0``."""
    text = re.sub(r"\W+", "_", name).strip("_")
    if not text or text[0].isdigit():
        text = f"v{text}"
    return f"{text}_" if keyword.iskeyword(text) else text


def wrapped(line: str, indent: str) -> list[str]:
    """A statement in lines of bounded length, broken after commas of its outermost brackets."""
    if len(indent) + len(line) <= _WIDTH:
        return [indent + line]
    code, _, comment = line.partition("  # ")
    start = code.find("(")
    if start < 0 or not code.endswith(")"):
        return [indent + line]
    first = indent + code[: start + 1] + (f"  # {comment}" if comment else "")
    return [first, *_filled(_parts(code[start + 1 : -1]), indent + "    "), f"{indent})"]


def _filled(items: list[str], indent: str) -> list[str]:
    """As many items in a line as fit; a list that is too long has lines of its own."""
    lines, row = [], indent
    for i, item in enumerate(items):
        comma = "," if i + 1 < len(items) else ""
        if len(row) + len(item) + len(comma) > _WIDTH and row.strip():
            lines.append(row.rstrip())
            row = indent
        if len(row) + len(item) > _WIDTH and item.startswith("[") and item.endswith("]"):
            lines += [f"{row}[", *_filled(_parts(item[1:-1]), indent + "    "), f"{indent}]{comma}"]
        else:
            row += f"{item}{comma} "
    return [*lines, row.rstrip()] if row.strip() else lines


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]
