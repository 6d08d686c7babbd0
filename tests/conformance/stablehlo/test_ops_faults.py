# SPDX-License-Identifier: Apache-2.0
"""Planted faults: the comparisons of the random instances find them, and no mechanism excuses one.

Each commit plants them in a third of the ops in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shardwise.dtypes import is_complex, is_inexact, numpy_dtype
from tests.conformance.stablehlo.ops.comparing import (
    CALL,
    MOVES,
    ROUNDED,
    Wide,
    differing,
    ordinals,
    ours,
    sizes_of,
    wide_results,
)
from tests.conformance.stablehlo.ops.drawing import TABLE, drawn
from tests.conformance.stablehlo.ops.invariants import broken, has_numbers
from tests.conformance.stablehlo.ops.mechanisms import MECHANISMS, Difference
from tests.conformance.stablehlo.ops.specified import convolved, scattered, selected_and_scattered
from tests.conformance.stablehlo.ops.xla import Xla
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array
from tests.support.run_seed import in_turn

OPS = in_turn(sorted(TABLE))
TRIED = 30  # seeds of each op and dtype
# float8_e8m0fnu has no negative numbers: most results are NaN.
WITHOUT_RESULTS = ("stablehlo.batch_norm_grad", "stablehlo.batch_norm_inference", "stablehlo.batch_norm_training")


@pytest.fixture(scope="module")
def xla() -> Iterator[Xla]:
    process = Xla()
    yield process
    process.close()


def of_dtype(op: str, dtype: str) -> Iterator[Instance]:
    dtypes = TABLE[op].dtypes
    for i in range(TRIED):
        yield drawn(op, dtypes.index(dtype) + i * len(dtypes))


def nonzero(instance: Instance) -> int:
    """The number of results that a planted fault changes."""
    found = [x for x in ours(instance) if is_inexact(x.dtype)]
    with np.errstate(all="ignore"):
        return sum(int(np.count_nonzero(np.isfinite(x) & (np.abs(x.astype(np.complex128)) >= 0.5))) for x in found)


def rounded() -> dict[tuple[str, str], Instance]:
    """One instance of each op that adds, in each of its floating and complex dtypes."""
    found: dict[tuple[str, str], Instance] = {}
    for op in OPS:
        for dtype in TABLE[op].dtypes:
            if is_inexact(numpy_dtype(dtype)):
                if op in WITHOUT_RESULTS and dtype == "float8_e8m0fnu":
                    continue
                instances = (x for x in of_dtype(op, dtype) if x.kind in ROUNDED and nonzero(x) > 3)
                instance = next(instances, None)
                if instance is not None:
                    found[op, dtype] = instance
    return found


def large(instance: Instance, k: int, got: Array, wide: Wide, least: int) -> Any:
    """The elements that are no small difference of large terms, and are not the least numbers of the dtype."""
    value = np.asarray(wide.values[k])
    terms = wide.terms[k] if wide.terms else sizes_of(instance, value)
    if instance.op.startswith(CALL):  # matrices with NaN or infinities are not compared
        finite = has_numbers(instance)
        value = np.where(finite.reshape(finite.shape + (1,) * (value.ndim - finite.ndim)), value, 0)
    bits = least + 1 if is_complex(got.dtype) else np.abs(ordinals(got))
    return np.isfinite(value) & np.isfinite(got) & (np.abs(value) >= terms / 16) & (np.abs(value) > 0) & (bits > least)


def test_negated_and_zeroed_sums_are_found_in_every_dtype(xla: Xla) -> None:
    instances = rounded()
    adding = {
        "stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.select_and_scatter",
        "stablehlo.dot_general", "stablehlo.convolution", "stablehlo.einsum", "chlo.ragged_dot", "stablehlo.fft",
        "stablehlo.batch_norm_grad", "stablehlo.triangular_solve", "stablehlo.cholesky",
    }  # fmt: skip
    assert {op for op, _ in instances} >= adding & set(OPS)
    tried: dict[tuple[str, str], int] = {}
    for (op, dtype), instance, wide in zip(instances, instances.values(), wide_results([*instances.values()], xla)):
        assert not isinstance(wide, str), f"{instance.name}: {wide}"
        for k, got in enumerate(ours(instance)):
            if not is_inexact(got.dtype) or (instance.kind == "triangle" and got.ndim < 2):
                continue
            for whole, least in ((True, 0), (False, 2)):
                wrong = large(instance, k, got, wide, least)
                if instance.kind == "triangle":
                    wrong &= (np.tril if "lower = true" in instance.body else np.triu)(np.ones(got.shape, bool))
                if op == "stablehlo.scatter":  # XLA drops windows that are partly outside
                    wrong &= ~differing(instance, k, got, got, whole, wide)
                tried[op, dtype] = tried.get((op, dtype), 0) + int(np.count_nonzero(wrong))
                for planted in (np.negative(got), np.zeros_like(got)):
                    found = differing(instance, k, planted, got, whole, wide)
                    assert found[wrong].all(), f"{instance.name} {dtype}: {planted[wrong]} for {got[wrong]}"
    assert min(tried.values()) > 0, [key for key, count in tried.items() if not count]


def planted(x: Array) -> Array:
    """Rolled by one element, plus one."""
    moved = np.roll(x, 1)
    if moved.dtype == np.bool_:
        return np.logical_not(moved)
    wide = moved.astype(np.complex128 if is_complex(x.dtype) else np.float64 if is_inexact(x.dtype) else np.int64)
    with np.errstate(all="ignore"):
        return np.asarray((wide + 1).astype(x.dtype))


def test_planted_faults_in_movement_and_integers_are_never_excused() -> None:
    tried = dict.fromkeys(MOVES & set(OPS), 0)
    for op in OPS:
        for seed in range(24 if op in MOVES else 8):
            instance = drawn(op, seed)
            if instance.kind in (*ROUNDED, "uniform", "normal"):
                continue
            for k, right in enumerate(ours(instance)):
                if op not in MOVES and is_inexact(right.dtype):
                    continue
                wrong = planted(right)
                found = Difference(instance, k, wrong, right, None, right)
                with np.errstate(all="ignore"):
                    bad = differing(instance, k, wrong, right, True)
                    bad &= ~(np.isnan(right) & np.isnan(wrong)) if is_inexact(right.dtype) else True
                    excused = {m.name for m in MECHANISMS if np.any(bad & m.explains(found))} if np.any(bad) else set()
                assert not excused, f"{instance.name} ({instance.dtype}): {excused}"
                if op in MOVES:
                    tried[op] += int(np.count_nonzero(bad))
    assert min(tried.values()) > 0, tried


def specified(instance: Instance) -> Array:
    functions = {"scatter": scattered, "select_and_scatter": selected_and_scattered, "convolution": convolved}
    return functions[instance.op.partition(".")[2]](instance)


@pytest.mark.parametrize("op", ["scatter", "select_and_scatter", "convolution"])
def test_what_mechanisms_compute_is_what_we_compute(op: str) -> None:
    """A mechanism excuses XLA only where our result is this one."""
    compared = 0
    for seed in range(120):
        instance = drawn(f"stablehlo.{op}", seed)
        dtype = numpy_dtype(instance.dtype)
        if is_complex(dtype) or (op == "convolution" and not is_inexact(dtype)):
            continue
        with np.errstate(all="ignore"):
            want, (got,) = specified(instance), ours(instance)
            terms = np.nan_to_num(np.abs(want)) + 32
            bad = differing(instance, 0, got, want.astype(got.dtype), True, Wide([want], [terms]))
        assert not bad.any(), f"{instance.name}: {got[bad]} and {want[bad]}"
        compared += 1
    assert compared >= 40


@pytest.mark.parametrize("row", [row for row in OPS if drawn(row, 0).kind == "definition"])
def test_faults_in_decompositions_are_found(row: str) -> None:
    """The first result of an SVD is workspace."""
    tried = 0
    for seed in range(40):
        instance = drawn(row, seed)
        if re.search(r"(mode|left|right) = 78 : ui8", instance.body) or not instance.arguments[0].size:
            continue
        if not has_numbers(instance).all() or instance.arguments[0].shape[-1] < 2:
            continue
        results = ours(instance)
        assert not broken(instance, results)
        for k in range(row.endswith(("gesdd", "gesvd")), len(results)):
            if is_inexact(results[k].dtype) and results[k].any():
                wrong = [np.zeros_like(x) if i == k else x for i, x in enumerate(results)]
                tried += 1
                assert broken(instance, wrong), f"{instance.name}: result {k}"
    assert tried > 10
