# SPDX-License-Identifier: Apache-2.0
"""Rows of cases.py for reduce_window: the prefix form of cumulative ops, and windows of every other kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.op import references as ref, window_references
from tests.op.case import ALL, INTEGERS, Application, OpCase
from tests.op.inputs import Shape, dtype_of, extreme, near_one, plain
from tests.op.references import Array

Padding = tuple[tuple[int, int], ...]


def neutral_init(reducer: str, dtype: str) -> Array:
    return ref.neutral("or" if dtype == "bool" and reducer == "add" else reducer, dtype_of(dtype))


def weak_init(reducer: str, dtype: str) -> Array | None:
    """An init value that changes some results and not all; None where every one does."""
    to = dtype_of(dtype)
    if reducer in ("add", "multiply"):
        return None
    if to == np.bool_:
        return np.asarray(reducer in ("minimum", "and"))
    value = {"maximum": 1 if to.kind == "u" else -1, "minimum": 20 if to.kind == "u" else 1, "and": ~1, "or": 1}[
        reducer
    ]
    return np.asarray(value).astype(to)


def _window_application(
    reducer: str, dtype: str, shape: Shape, sizes: Shape, padding: Padding, neutral: bool = False,
    *, differentiable: bool = True, **lists: Shape,
) -> Application:  # fmt: skip
    attrs = {"window_dimensions": sizes, "padding": np.array(padding, np.int64).reshape(-1, 2)}
    attrs |= {{"strides": "window_strides"}.get(name, name): value for name, value in lists.items()}
    init = neutral_init(reducer, dtype) if neutral else weak_init(reducer, dtype)
    return Application(
        (shape, ()),
        partial(window_references.reduce_window, reducer=reducer, sizes=sizes, padding=padding, **lists),
        attrs,
        region=f"stablehlo.{reducer}",
        fixed={} if init is None else {1: init},
        baked=neutral,
        differentiable=differentiable,
        label=f"{shape}{sizes}{padding}{lists}{neutral}",
    )


def _prefixes(reducer: str) -> Callable[[int, str], list[Application]]:
    """Along the dims, forward and in reverse, from a neutral constant; then from any init value."""

    def applications(n: int, dtype: str) -> list[Application]:
        w = max(n, 1)
        forward, reverse, none = (w - 1, 0), (0, w - 1), (0, 0)
        rows: list[tuple[Shape, Shape, Padding, bool]] = [
            ((n, 4), (w, 1), (forward, none), True),
            ((n, 4), (w, 1), (reverse, none), True),
            ((n,), (w,), (forward,), True),
            ((2, n, 3), (1, w, 1), (none, reverse, none), True),
            ((3, n), (1, w), (none, forward), True),
            ((n, 3), (w, 3), (forward, (0, 2)), True),
            ((n, 3), (w, 2), (reverse, (1, 0)), True),
            ((n, 4), (w, 1), (forward, none), False),
            ((3, n), (1, w), (none, reverse), False),
            ((n, 3), (w, 2), (reverse, (1, 0)), False),
        ]
        return [_window_application(reducer, dtype, *row) for row in rows]

    return applications


def _windows(reducer: str) -> Callable[[int, str], list[Application]]:
    def applications(n: int, dtype: str) -> list[Application]:
        make = partial(_window_application, reducer, dtype)
        finite = reducer in ("add", "multiply")  # the maximum of what comes before the first row is not
        return [
            make((n, 4), (2, 3), ((1, 0), (1, 1)), strides=(1, 2)),
            make((n, 3), (3, 1), ((2, 2), (0, 0)), strides=(2, 1), window_dilations=(2, 1)),
            make((n, 3), (2, 2), ((1, -1), (0, 0)), base_dilations=(2, 1)),
            make((n, 4), (2, 2), ((-1, 1), (2, 2)), base_dilations=(3, 2), window_dilations=(1, 2), strides=(2, 3)),
            make((n, 3), (1, 2), ((0, 0), (0, 0))),
            make((n, 3), (1, 1), ((0, 0), (0, 0)), strides=(3, 1)),
            make((n, 2), (max(n, 1), 1), ((max(n, 1), -1), (0, 0)), True, differentiable=finite),
            make((n, 3), (2, 2), ((0, 0), (1, 0)), True),
        ]

    return applications


def _window_cases(reducer: str, dtypes: tuple[str, ...], draw: Any, kind: str, **options: Any) -> list[OpCase]:
    return [
        OpCase("stablehlo.reduce_window", dtypes, rows(reducer), draw, kind, variant=f"{reducer}-{name}", **options)
        for name, rows in (("prefix", _prefixes), ("windows", _windows))
    ]


WINDOWS = [
    *_window_cases("add", ALL, plain, "sum"),
    *_window_cases("multiply", ALL, near_one, "product"),
    *_window_cases("maximum", ALL, extreme, "exact", gradient_draw=plain),
    *_window_cases("minimum", ALL, extreme, "exact", gradient_draw=plain),
    *_window_cases("and", (*INTEGERS, "bool"), plain, "exact"),
    *_window_cases("or", (*INTEGERS, "bool"), plain, "exact"),
]
