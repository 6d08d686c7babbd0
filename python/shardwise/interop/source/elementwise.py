# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops that are operators of Python."""

from __future__ import annotations

__all__ = ["COMPARISONS", "INFIX"]

INFIX = {"stablehlo.add": "+", "stablehlo.subtract": "-", "stablehlo.multiply": "*"}
COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
