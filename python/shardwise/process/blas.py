# SPDX-License-Identifier: Apache-2.0
"""Selects the kernels of the bundled OpenBLAS by CPU features.

OpenBLAS chooses kernels by the CPU's model number. On an unknown model it takes AVX2 kernels, which are half as fast as
the AVX-512 kernels. It reads OPENBLAS_CORETYPE once, while it loads.

    with coretype_for_this_cpu():
        from . import _core
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

__all__ = ["coretype_for", "coretype_for_this_cpu", "cpu_flags"]

_VARIABLE = "OPENBLAS_CORETYPE"
_SKYLAKEX = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl"}


def coretype_for(flags: Iterable[str]) -> str | None:
    """OpenBLAS's name for its AVX-512 kernels if these CPU flags include AVX-512; None leaves the choice to OpenBLAS.

    >>> coretype_for("avx2 fma avx512f avx512cd avx512dq avx512bw avx512vl".split())
    'SkylakeX'
    >>> coretype_for(["avx2", "fma"])
    """
    has = set(flags)
    if not has >= _SKYLAKEX:
        return None
    return "Cooperlake" if "avx512_bf16" in has else "SkylakeX"


def cpu_flags(path: str = "/proc/cpuinfo") -> list[str]:
    """The flags of the first CPU that the kernel enabled (XCR0). Empty if they are unknown."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].split() for line in file if line.startswith("flags")), [])
    except OSError:
        return []


@contextmanager
def coretype_for_this_cpu() -> Iterator[None]:
    """Set OPENBLAS_CORETYPE for the libraries that load inside, unless the user set it.

    Only C code sees the variable: ``os.environ`` never changes. It has no effect on an OpenBLAS that is already loaded.
    """
    coretype = None if _VARIABLE in os.environ else coretype_for(cpu_flags())
    if coretype is None:
        yield
        return
    os.putenv(_VARIABLE, coretype)
    try:
        yield
    finally:
        os.unsetenv(_VARIABLE)
