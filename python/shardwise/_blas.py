# SPDX-License-Identifier: Apache-2.0
"""The kernels of our OpenBLAS, chosen by what the CPU can do.

OpenBLAS chooses by the CPU's model number. On a model that it does not know it takes AVX2 kernels, which are half as
fast as the AVX-512 kernels. It reads OPENBLAS_CORETYPE once, while it loads.

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
    """OpenBLAS's name of the AVX-512 kernels for these CPU flags; None leaves the choice to OpenBLAS.

    >>> coretype_for("avx2 fma avx512f avx512cd avx512dq avx512bw avx512vl".split())
    'SkylakeX'
    >>> coretype_for(["avx2", "fma"])
    """
    has = set(flags)
    if not has >= _SKYLAKEX:
        return None
    return "Cooperlake" if "avx512_bf16" in has else "SkylakeX"


def cpu_flags(path: str = "/proc/cpuinfo") -> list[str]:
    """The flags of the first CPU: what cpuid reports and the kernel enabled (XCR0). Empty where they are unknown."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].split() for line in file if line.startswith("flags")), [])
    except OSError:
        return []


@contextmanager
def coretype_for_this_cpu() -> Iterator[None]:
    """Set OPENBLAS_CORETYPE for the libraries that load inside, unless the user set it.

    Only C code sees the variable: ``os.environ`` never changes. An OpenBLAS that is loaded already has made its choice.
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
