# SPDX-License-Identifier: Apache-2.0
"""Counts heap allocations: a malloc that counts, built on the spot and preloaded into a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_SOURCE = """
#include <stddef.h>
void *__libc_malloc(size_t size);
static unsigned long long count;
void *malloc(size_t size) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); return __libc_malloc(size); }
unsigned long long shardwise_allocation_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
"""


def current() -> int:
    """Allocations so far in a process that :func:`run_counting` started."""
    counter = ctypes.CDLL(None).shardwise_allocation_count
    counter.restype = ctypes.c_ulonglong
    return int(counter())


def run_counting(arguments: Sequence[str]) -> str:
    """Standard output of ``python *arguments`` in a process whose allocations are counted (glibc)."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "count.c", Path(folder) / "libcount.so"
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONHASHSEED": "0"}
        return subprocess.run(
            [sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True
        ).stdout
