# SPDX-License-Identifier: Apache-2.0
"""What :func:`shardwise.hardware.load` takes: dicts become JSON, names and paths become the bytes of a file.

>>> document_bytes({"launch": 1e-6})
b'{"launch": 1e-06}'
>>> suggestion("H100", ["h100_sxm", "h200"])
'h100_sxm'
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .errors import described, message

__all__ = ["document_bytes", "file_bytes", "is_text", "shortened", "suggestion"]

_LOAD: Final = "hardware.load"
_MAX_BYTES: Final = 16 * 2**20  # kMostHardwareBytes of hardware_json.h, which refuses more
_MAX_DEPTH: Final = 64  # as of JSON texts
_MAX_SHOWN: Final = 120  # characters of a path


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """The JSON of a dict. Raises ValueError or TypeError with the place of a value that JSON does not support."""
    return json.dumps(_plain(document, "", [])).encode()


def _plain(value: Any, path: str, around: list[int]) -> Any:
    """``value`` at ``path`` as JSON supports it; ``around`` has the ids of the containers that hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and not is_text(value):
        raise _wrong(ValueError, path, "must be text that UTF-8 supports", ascii(value[:_MAX_SHOWN]))
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise _wrong(ValueError, path, "must fit in 64 bits", "an integer of more")
        return value
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise _wrong(ValueError, path, "must be finite", str(float(value)))
        return float(value)
    if not isinstance(value, (Mapping, list, tuple)):
        raise _wrong(TypeError, path, "must be a value that JSON supports", described(value))
    if id(value) in around:
        raise _wrong(ValueError, path, "must not contain itself")
    if len(around) == _MAX_DEPTH:
        raise _wrong(ValueError, path, f"must be nested at most {_MAX_DEPTH} deep")
    around.append(id(value))
    plain: Any
    if isinstance(value, Mapping):
        plain = {_key(key, path): _plain(each, f"{path}.{key}" if path else key, around) for key, each in value.items()}
    else:
        plain = [_plain(each, f"{path}[{i}]", around) for i, each in enumerate(value)]
    around.pop()
    return plain


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise _wrong(TypeError, path, "must have strings as keys", described(key))
    if not is_text(key):
        raise _wrong(ValueError, path, "must have keys that UTF-8 supports", ascii(key[:_MAX_SHOWN]))
    return key


def _wrong(error: type[Exception], path: str, must_hold: str, got: str | None = None) -> Exception:
    return error(message(_LOAD, f"{shortened(path) or 'the dict'} {must_hold}", got))


def file_bytes(path: str, names: Sequence[str]) -> bytes:
    """The file at ``path``, which is none of the built-in ``names``."""
    rule, got = "must be a built-in name or the path of a file", repr(shortened(path))
    if os.path.isdir(path):
        raise IsADirectoryError(message(_LOAD, rule, got, "this is a directory"))
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(message(_LOAD, rule, got, "this is a device or a pipe"))
    if not os.path.isfile(path):
        raise FileNotFoundError(message(_LOAD, rule, got, _way_out(path, names)))
    with open(path, "rb") as file:
        return file.read(_MAX_BYTES + 1)


def _way_out(path: str, names: Sequence[str]) -> str:
    if os.path.basename(path) != path or path.lower().endswith(".json"):
        return "there is no such file"
    near = suggestion(path, names)
    return f"{f'did you mean {near!r}? ' if near else ''}sw.hardware.list() returns the names"


def suggestion(name: str, names: Sequence[str]) -> str | None:
    """The name that is most likely meant, whatever the case, and with spaces or hyphens for underscores."""
    wanted = name[:_MAX_SHOWN].lower().replace("-", "_").replace(" ", "_")
    near = [known for known in names if wanted and known.startswith(wanted)]
    return next(iter(near or difflib.get_close_matches(wanted, names, n=1, cutoff=0.4)), None)


def is_text(text: str) -> bool:
    """Whether it has no lone surrogates, which stand for bytes in the names of files."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shortened(text: str) -> str:
    """``text`` for a message: long ones without their middle, bytes that are no UTF-8 with backslashes."""
    text = text.encode(errors="backslashreplace").decode()
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]}...{text[-half:]}"
