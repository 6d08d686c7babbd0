# SPDX-License-Identifier: Apache-2.0
"""Hardware, and the memory that a device has for a program, as options and methods take them.

>>> checked_limit("jit", "16GiB")
17179869184
>>> checked_hardware("jit", "h100_sxm").name
'h100_sxm'
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..errors import described, message, reworded, shown
from ..hardware import Hardware, list as list_hardware, load

__all__ = ["checked_hardware", "checked_limit", "checked_size"]

_UNITS: Final = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def checked_hardware(what: str, given: Any) -> Hardware:
    """``given``, or the hardware that it names.

    Raises:
        ValueError: no built-in name and no file. ParseError: a file of another form. TypeError: other values.
    """
    if isinstance(given, Hardware):
        return given
    if not isinstance(given, (str, os.PathLike, Mapping)):
        rule = "hardware must be that of hardware.load, a name or a path"
        raise TypeError(message(what, rule, described(given)))
    try:
        return load(given)
    except (OSError, TypeError, ValueError) as error:
        rest = str(error).removeprefix("hardware.load: ")
        text = f"{what}: hardware{' ' if rest.startswith('must ') else ': '}{rest}"
        raise (ValueError(text) if isinstance(error, OSError) else reworded(error, text)) from None


def checked_limit(what: str, given: Any) -> int:
    """The bytes that ``given`` stands for: a number, a size such as ``"80GB"``, or hardware, less what it reserves.

    Raises:
        ValueError: a negative size, or a text that is neither a size nor hardware. TypeError: other values.
    """
    found = _bytes_of(what, given)
    if found is not None:
        return found
    rule = "a limit of memory must be a size, such as '80GB' or '16GiB', or hardware"
    if isinstance(given, str) and given not in list_hardware() and not os.path.exists(given):
        raise ValueError(message(what, rule, shown(given)))
    if not isinstance(given, (str, os.PathLike, Mapping, Hardware)):
        raise TypeError(message(what, rule, described(given)))
    hardware = checked_hardware(what, given)
    return hardware.memory_bytes - hardware.reserved_bytes


def checked_size(what: str, given: Any) -> int:
    """The bytes of a size: a number, or text such as ``"30MiB"``.

    Raises:
        ValueError: a negative number, or no size.
    """
    found = _bytes_of(what, given, "combine_bytes")
    if found is None:
        raise ValueError(message(what, "combine_bytes must be a size, such as '30MiB' or 0", shown(given)))
    return found


def _bytes_of(what: str, limit: Any, name: str = "limit") -> int | None:
    """A limit in bytes: a number, or text such as ``"80GB"`` or ``"16 GiB"``; None for anything else.

    >>> _bytes_of("memory", "80GB"), _bytes_of("memory", "1.5 KiB"), _bytes_of("memory", 4096)
    (80000000000, 1536, 4096)
    """
    if isinstance(limit, (int, float, np.integer, np.floating)) and not isinstance(limit, bool):
        size = float(limit)
        if not 0 <= size < float("inf"):
            raise ValueError(message(what, f"{name} must be a number of bytes that is not negative", shown(limit)))
        return int(size)
    found = _SIZE.fullmatch(limit) if isinstance(limit, str) else None
    return int(float(found[1]) * _UNITS[(found[2] or "").lower()]) if found else None
