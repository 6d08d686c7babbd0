# SPDX-License-Identifier: Apache-2.0
"""NumPy values as Python text."""

from __future__ import annotations

import base64
import keyword
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["array_text", "axes_text", "embedded", "identifier", "scalar_text", "wrapped"]

_WIDTH = 116
_OPENING, _CLOSING = tuple("([{"), tuple(")]}")
_TOKEN = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?P<mark>[()\[\]{},#])""")


def scalar_text(value: Any, dtypes: str) -> str:
    """A scalar of its dtype: ``np.float32(0.5)``; the module ``dtypes`` has the dtypes that NumPy lacks.

    A NaN with a sign or a payload is written by its bits, ``np.uint32(0xffffffff).view("float32")``: it has a place of
    its own in the total order.
    """
    dtype = np.asarray(value).dtype
    if not _is_plain(value):
        return f"{_bits_text(value)}.view({_dtype_text(dtype, dtypes)}){'[0]' if dtype.kind == 'c' else ''}"
    function = f"{'np' if dtype.isbuiltin == 1 else dtypes}.{dtype.name}"
    if dtype.kind == "b":
        return f"np.bool_({bool(value)})"
    if dtype.kind == "c":
        return f"{function}(complex({_number(value.real)}, {_number(value.imag)}))"
    return f"{function}({int(value) if 'int' in dtype.name else _number(value)})"


def _is_plain(value: Any) -> bool:
    """Whether a scalar has no NaN, or only those of ``float("nan")``."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return _is_plain(array.real) and _is_plain(array.imag)
    return bool(value == value) or array.tobytes() == np.asarray(float("nan")).astype(array.dtype).tobytes()


def _bits_text(value: Any) -> str:
    """The bits of a float as an unsigned integer; of a complex number, as an array of two."""
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind == "c":
        bits = array.view(f"u{array.itemsize // 2}")
        return f'np.array([{bits[0]:#x}, {bits[1]:#x}], "{bits.dtype.name}")'
    (bits,) = array.view(f"u{array.itemsize}")
    return f"np.{bits.dtype.name}({bits:#x})"


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
    is_plain = array.dtype.isbuiltin == 1 or dtypes != "jnp"  # NumPy does not accept dtypes of jax.numpy
    text = f"np.array({items}, {_dtype_text(array.dtype, dtypes)})" if is_plain else f"jnp.stack({items})"
    return text if array.ndim == 1 else f"{text}.reshape{array.shape}"


def _dtype_text(dtype: np.dtype[Any], dtypes: str) -> str:
    return f'"{dtype.name}"' if dtype.isbuiltin == 1 else f"{dtypes}.{dtype.name}"


def embedded(array: np.ndarray, dtypes: str, indent: str) -> list[str]:
    """The expression of an array whose bytes are encoded in base85, in lines of bounded length."""
    data = base64.b85encode(array.tobytes()).decode()
    size = _WIDTH - len(indent) - 6
    rows = [f'{indent}    "{data[i : i + size]}"' for i in range(0, len(data), size)]
    end = f"{indent}), {_dtype_text(array.dtype, dtypes)}).reshape({array.shape})"
    return ["np.frombuffer(base64.b85decode(", *rows, end]


def axes_text(axes: tuple[str, ...]) -> str:
    """Mesh axes as JAX takes them: a name, or a tuple of names."""
    return repr(axes[0]) if len(axes) == 1 else repr(axes)


def identifier(name: str) -> str:
    """A name of the user as a Python identifier: ``params['w'][0]`` becomes ``params_w_0``."""
    text = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name)).strip("_")  # Python reads names in this form
    if not text or text[0].isdigit():
        text = f"v{text}"
    return f"{text}_" if keyword.iskeyword(text) else text


def wrapped(line: str, indent: str) -> list[str]:
    """A statement, or the first line of a block, in lines of bounded length, broken after commas in its brackets."""
    if len(indent) + len(line) <= _WIDTH:
        return [indent + line]
    code, comment = line, ""
    for begin, token in _tokens(line):
        if token == "#":
            code, comment = line[:begin].rstrip(), f"  {line[begin:]}"
            break
    expression = code.removesuffix(":")
    opening = _first_opening(expression)
    if opening is None:
        return [indent + line]
    head, inside, end = _opened(expression, opening)
    end += code[len(expression) :]
    return [f"{indent}{head}{comment}", *_filled(_parts(inside), f"{indent}    "), f"{indent}{end}"]


def _first_opening(code: str) -> int | None:
    """The place of the first bracket of an expression that ends with one."""
    if not code.endswith(_CLOSING):
        return None
    return next((i for i, token in _tokens(code) if token in _OPENING), None)


def _opened(code: str, opening: int) -> tuple[str, str, str]:
    """The text up to the bracket, what is inside, and the closing one. Brackets around a single item stay together."""
    head, inside, end = code[: opening + 1], code[opening + 1 : -1], code[-1]
    while inside.startswith(_OPENING) and inside.endswith(_CLOSING) and len(_parts(inside)) == 1:
        head, inside, end = head + inside[0], inside[1:-1], inside[-1] + end
    return head, inside, end


def _filled(items: list[str], indent: str) -> list[str]:
    """As many items in a line as fit; the inside of an item that is too long has lines of its own."""
    lines, row = [], indent
    for i, item in enumerate(items):
        text = item + ("," if i + 1 < len(items) else "")
        if len(row) + len(text) > _WIDTH and row.strip():
            lines.append(row.rstrip())
            row = indent
        code = item.rstrip(",")
        opening = _first_opening(code)
        if len(row) + len(text) > _WIDTH and opening is not None:
            head, inside, end = _opened(code, opening)
            inner = _filled(_parts(inside), indent + "    ")
            lines += [indent + head, *inner, f"{indent}{end}{text[len(code) :]}"]
        else:
            row += f"{text} "
    return [*lines, row.rstrip()] if row.strip() else lines


def _parts(text: str) -> list[str]:
    """The items between commas outside of brackets. The last one keeps its comma, which makes a tuple of one item."""
    parts, depth, start = [], 0, 0
    for i, token in _tokens(text):
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest or not parts else [*parts[:-1], f"{parts[-1]},"]


def _tokens(code: str) -> Iterator[tuple[int, str]]:
    """The places of brackets, commas and comments, none of them inside of a string."""
    for found in _TOKEN.finditer(code):
        if found["mark"]:
            yield found.start(), found["mark"]
