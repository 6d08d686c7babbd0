# SPDX-License-Identifier: Apache-2.0
"""Dtypes whose values the libraries combine in a wider one."""

from __future__ import annotations

__all__ = ["is_narrow_float", "is_small_integer"]


def is_narrow_float(dtype: str) -> bool:
    """Whether it has less than 32 bits: sums and products of it are accumulated in float32."""
    return dtype in ("float16", "bfloat16") or dtype.startswith(("float8_", "float6_", "float4_"))


def is_small_integer(dtype: str) -> bool:
    """Whether it has less than a byte."""
    return dtype in ("int2", "int4", "uint2", "uint4")
