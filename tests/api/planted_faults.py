# SPDX-License-Identifier: Apache-2.0
"""Faults for the helpers of ``sw.testing`` to find: each one changes the local program of a device, or the trace.

A row is (program, what is wrong, the text to replace in the local stage, its replacement).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import shardwise as sw

MESH = sw.Mesh({"x": 2, "y": 2})
RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((7, 5))
W = RANDOM.standard_normal((5, 3))


def affine(x: Any, w: Any) -> Any:
    x = sw.split(x, 0, "x")
    h = np.tanh(x @ w)
    return (h * h + 0.5 * h).sum()


def contracted(x: Any, w: Any) -> Any:
    x = sw.split(x, 1, "x")
    # Moving x to rows would send less.
    y = sw.replicate(sw.shard(x @ w, sw.P(unreduced="x")))
    return np.exp(0.1 * y).sum(axis=0).max()


def normalised(x: Any, w: Any) -> Any:
    x = sw.split(x, 0, ("x", "y"))
    p = np.exp(x - x.max(axis=0))
    return ((p / p.sum(axis=0)) @ w).mean()


def ranked(x: Any, w: Any) -> Any:
    x = sw.split(x, 0, "x")
    y = sw.split(np.cumsum((x @ w).sum(axis=1)), 0, "x")  # of one dim: it cannot be moved to another one
    return (y[1:] * y[:-1]).sum() + np.roll(x, 2, axis=0)[0].sum()


def transposed(x: Any, w: Any) -> Any:
    x = sw.split(x, 0, "x")
    y = sw.split(x.T, 0, "y")
    return (y * np.arange(7.0)).sum() * w[0, 0]


def thresholded(x: Any, w: Any) -> Any:
    """Jumps at ties: what is exactly at a threshold must not count as rounding."""
    x = sw.split(np.round(4 * x) / 4, 0, "x")
    chosen = np.where(x >= 0.25, np.floor(2 * x) + 1, 0.5 * x)
    return (chosen @ w).sum() + np.argmax(np.round(x.sum(axis=0)), axis=0)


# How an Array in the place of X is sharded: as the program splits it.
HELD = {contracted: sw.P(None, "x")}
PROGRAMS = [affine, contracted, normalised, ranked, transposed, thresholded]


@dataclass(frozen=True)
class Fault:
    """One place of a local program that is wrong: the first match of ``find`` becomes ``put``."""

    name: str
    program: Callable[..., Any]  # a scalar function of X and W
    find: str
    put: str

    def __str__(self) -> str:
        return self.name

    def plant(self, text: str) -> str:
        """The text of the local stage with the fault."""
        changed, count = re.subn(self.find, self.put, text, count=1)
        assert count == 1, f"{self.name} found no place in\n{text}"
        return changed


# An operand, and the shape of a float tensor of at least one dim.
_VALUE, _TENSOR = r"%\w+", r"tensor<(?:\d+x)+f64>"

FAULTS = [
    # kernels
    Fault("tanh computes the logistic function", affine, r"stablehlo\.tanh", "stablehlo.logistic"),
    Fault("add subtracts", affine, r"stablehlo\.add", "stablehlo.subtract"),
    Fault(
        "multiply takes the maximum",
        affine,
        rf"stablehlo\.multiply(?= {_VALUE}, {_VALUE} : {_TENSOR})",
        "stablehlo.maximum",
    ),
    Fault("exp subtracts one", contracted, r"stablehlo\.exponential\b", "stablehlo.exponential_minus_one"),
    Fault(
        "divide multiplies", normalised, rf"stablehlo\.divide(?= {_VALUE}, {_VALUE} : {_TENSOR})", "stablehlo.multiply"
    ),
    Fault("a running sum takes products", ranked, r"stablehlo\.add (?=%arg\d+, %arg\d+)", "stablehlo.multiply "),
    Fault("a slice starts one element early", ranked, r"offset = 1 : i64", "offset = 0 : i64"),
    # what the rules say of sums that devices share
    Fault("partial sums are compared", affine, r'reducer = "sum"', 'reducer = "max"'),
    Fault("partial dots are multiplied", contracted, r'reducer = "sum"', 'reducer = "prod"'),
    Fault("partial sums are added along the wrong axis", contracted, r'(all_reduce.*axis_ref_list\{)"x"', r'\1"y"'),
    Fault("one of two axes is left out of a sum", normalised, r'(all_reduce.*)"x", "y"(.*"sum")', r'\1"x"\2'),
    Fault("a maximum is a minimum", normalised, r'(all_reduce.*"x", "y".*reducer = )"sum"', r'\1"min"'),
    Fault(
        "rows are received along the wrong axis",
        ranked,
        r'(exchange"\(%\w+\) .*? to = \[(?:\{rows = \d : i64\}, )?\{axes = #sdy<axis_ref_list\{)"x"',
        r'\1"y"',
    ),
    Fault(
        "totals are gathered along the wrong axis",
        ranked,
        r'(all_gather.*lists\[(?:\{\}, )?\{)"x"(.*totals)',
        r'\1"y"\2',
    ),
    # masks and offsets
    Fault("a mask keeps the padding", affine, rf"select ({_VALUE}), ({_VALUE}), ({_VALUE})", r"select \1, \3, \2"),
    Fault("a mask lets one row of padding in", affine, r"compare LT", "compare LE"),
    Fault("a mask drops a row", affine, r"dense<7> : tensor<i32>", "dense<6> : tensor<i32>"),
    Fault("a mask is inverted", normalised, r"compare LT", "compare GE"),
    Fault(
        "padding counts as one",
        normalised,
        r"dense<0.0+e\+00> : tensor<(3x)?2x5xf64>",
        r"dense<1.0> : tensor<\g<1>2x5xf64>",
    ),
    Fault("a scan counts its own shard twice", ranked, r"(compare) LT(?=.*tensor<2xi32>)", r"\1 LE"),
    Fault("an offset is one block too small", transposed, r"dense<4> : tensor<i32>", "dense<3> : tensor<i32>"),
    Fault("the index along another axis is read", transposed, r'(axis_index.*axis_ref_list\{)"x"', r'\1"y"'),
    # what jumps
    Fault("a threshold is not reached by what equals it", thresholded, r"compare GE", "compare GT"),
    Fault("floor rounds up", thresholded, r"stablehlo\.floor", "stablehlo.ceil"),
    Fault(
        "select takes the other value", thresholded, rf"select ({_VALUE}), ({_VALUE}), ({_VALUE})", r"select \1, \3, \2"
    ),
]
