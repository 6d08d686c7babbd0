# SPDX-License-Identifier: Apache-2.0
"""Collectives and device numbers of a program of one device (tests/conformance/jax/manual has several), and tokens."""

from __future__ import annotations

from collections.abc import Callable

from tests.op.case import OpCase
from tests.op.catalogue.instance import EVERY, Build, Row, Table, tensor
from tests.op.catalogue.scalar_regions import combiner
from tests.op.dtype_values import ALL_DTYPES, NARROW_FLOATS, NARROW_INTEGERS

WIDE = tuple(d for d in ALL_DTYPES if d not in NARROW_FLOATS)
ALONE = "dense<0> : tensor<1x1xi64>"
TOKEN = "!stablehlo.token"
GROUPS = f"replica_groups = {ALONE}"


def _as_identity(b: Build, x: str) -> None:
    """XLA:CPU lacks a form of the op, which is the identity on one device."""
    b.tell_xla(f"%r = stablehlo.optimization_barrier {x} : {b.type_of(x)}")


def _of_one_array(*dims: str, region: bool = False, more: str = "") -> Callable[[Build], None]:
    """A collective of an array with some dims as properties."""

    def make(b: Build) -> None:
        shape = b.filled_shape(1) if dims else b.shape()
        x = b.argument(b.wild(shape))
        named = "".join(f", {dim} = {b.below(0, len(shape) - 1)} : i64" for dim in dims)
        regions = combiner("or" if b.dtype == "bool" else "add", b.dtype) if region else ""
        b.op([x], [(shape, b.dtype)], GROUPS + named + more, regions)
        if b.dtype in NARROW_INTEGERS or b.op_name == "stablehlo.collective_broadcast":
            _as_identity(b, x)

    return make


def draw_permute(b: Build) -> None:
    """To itself, or to no device: then the result is zeros."""
    shape, pairs = b.shape(), b.pick((ALONE.replace("1x1", "1x2"), "dense<> : tensor<0x2xi64>"))
    x = b.argument(b.wild(shape))
    b.op([x], [(shape, b.dtype)], f"source_target_pairs = {pairs}")
    if b.dtype in NARROW_INTEGERS and "dense<>" in pairs:  # XLA:CPU sometimes crashes on these
        b.tell_xla(f"%r = stablehlo.constant dense<0> : {b.type_of(x)}")
    elif b.dtype in NARROW_INTEGERS:
        _as_identity(b, x)


def draw_number(b: Build) -> None:
    b.op([], [((), "uint32")])


def _token(*lines: str) -> Callable[[Build], None]:
    """The lines make %t, which goes through a barrier beside an array: a program returns no token."""

    def make(b: Build) -> None:
        shape = b.shape()
        x, t = b.argument(b.wild(shape)), f"{tensor(shape, b.dtype)}, {TOKEN}"
        for line in lines:
            b.line(line)
        b.line(f'%r:2 = "stablehlo.optimization_barrier"({x}, %t) : ({t}) -> ({t})')
        b.returned, b.results = ["%r#0"], [(shape, b.dtype)]

    return make


DRAWS: Table = {
    "stablehlo.all_gather": Row(EVERY, _of_one_array("all_gather_dim")),
    "stablehlo.all_reduce": Row(WIDE, _of_one_array(region=True)),
    "stablehlo.reduce_scatter": Row(WIDE, _of_one_array("scatter_dimension", region=True)),
    "stablehlo.all_to_all": Row(
        EVERY, _of_one_array("split_dimension", "concat_dimension", more=", split_count = 1 : i64")
    ),
    "stablehlo.collective_permute": Row(EVERY, draw_permute),
    "stablehlo.collective_broadcast": Row(EVERY, _of_one_array()),
    "stablehlo.cross-replica-sum": Row(WIDE, _of_one_array()),
    "stablehlo.create_token": Row(EVERY, _token(f'%t = "stablehlo.create_token"() : () -> {TOKEN}')),
    "stablehlo.after_all": Row(
        EVERY,
        _token(
            f'%u = "stablehlo.create_token"() : () -> {TOKEN}',
            f'%v = "stablehlo.after_all"() : () -> {TOKEN}',
            f'%t = "stablehlo.after_all"(%u, %v) : ({TOKEN}, {TOKEN}) -> {TOKEN}',
        ),
    ),
    "stablehlo.partition_id": Row(("uint32",), draw_number),
    "stablehlo.replica_id": Row(("uint32",), draw_number),
}
CASES: list[OpCase] = []  # they need a manual region: see OF_DEVICES of tests/op/cases.py
