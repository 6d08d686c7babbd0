# SPDX-License-Identifier: Apache-2.0
"""Products of arrays with labelled dims, summed over some labels: einsum, matmul, dot and tensordot.

A term is an array with one label per dim. Two terms become one by ``dot_general``: labels of both that are still
needed are batch dims, labels of both that are not are contracted, all others are free.

    contract([x: "bm", w: "mh"], out="bh")      dot_general(x, w), contracting [1] x [0]
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _core
from ..errors import ShapeError, message
from ..recording.tracing import Tracer
from ._primitives import broadcast_dims, compare, convert, iota, reduce, reshape, select, splat, transpose
from ._promote import is_float

__all__ = ["Term", "contract"]

Label = Hashable


@dataclass
class Term:
    """An array and the label of each of its dims."""

    array: Tracer
    labels: tuple[Label, ...]


def contract(function: str, terms: list[Term], out: tuple[Label, ...]) -> Tracer:
    """The product of all terms, summed over the labels that are not in ``out``, with dims in the order of ``out``.

    Terms have one dtype, which the result has too. A dim of size 1 repeats along a longer one of its label.

    Raises:
        ShapeError: a label has two sizes.
    """
    if len(terms) == 2:
        first, second = terms
        plan = _one_dot(first.labels, first.array.shape, second.labels, second.array.shape, out)
        if plan is not None:
            attrs, permutation = plan
            result = first.array._trace.emit("stablehlo.dot_general", (first.array, second.array), attrs)
            return result if permutation is None else transpose(result, permutation)
    sizes = _label_sizes(function, terms)
    terms = [_without_units(_without_repeats(term), sizes) for term in terms]
    for step in _order(terms, out, sizes):
        second, first = terms.pop(max(step)), terms.pop(min(step))
        needed = set(out).union(*(term.labels for term in terms))
        terms.append(_pair(first, second, needed))
    term = _summed(terms[0], set(out))
    return _arranged(term, out, sizes)


@lru_cache(maxsize=4096)
def _one_dot(
    lhs: tuple[Label, ...],
    lhs_shape: tuple[int, ...],
    rhs: tuple[Label, ...],
    rhs_shape: tuple[int, ...],
    out: tuple[Label, ...],
) -> tuple[dict[str, Any], list[int] | None] | None:
    """Attributes and final permutation if a contraction is one dot_general, the usual case; else None."""
    shared = set(lhs) & set(rhs)
    sizes = dict(zip(lhs, lhs_shape))
    if (
        len(set(lhs)) < len(lhs)
        or len(set(rhs)) < len(rhs)
        or any(sizes[label] != size for label, size in zip(rhs, rhs_shape) if label in shared)
        or not set(out).issuperset(set(lhs) ^ set(rhs))
        or shared.issubset(out)
    ):
        return None
    attrs, labels = _dot_numbers(lhs, rhs, set(out))
    return attrs, None if labels == out else [labels.index(label) for label in out]


def _dot_numbers(
    lhs: tuple[Label, ...], rhs: tuple[Label, ...], needed: set[Label]
) -> tuple[dict[str, Any], tuple[Label, ...]]:
    """Attributes of a dot_general, and the labels of its result."""
    shared = [label for label in lhs if label in rhs]
    batch = [label for label in shared if label in needed]
    contracted = [label for label in shared if label not in needed]
    numbers = _core.ir.Struct(
        "stablehlo.dot",
        {
            "lhs_batching_dimensions": tuple(lhs.index(label) for label in batch),
            "rhs_batching_dimensions": tuple(rhs.index(label) for label in batch),
            "lhs_contracting_dimensions": tuple(lhs.index(label) for label in contracted),
            "rhs_contracting_dimensions": tuple(rhs.index(label) for label in contracted),
        },
    )
    free = [label for label in (*lhs, *rhs) if label not in shared]
    return {"dot_dimension_numbers": numbers}, (*batch, *free)


def _label_sizes(function: str, terms: Sequence[Term]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for term in terms:
        for label, size in zip(term.labels, term.array.shape):
            known = sizes.setdefault(label, size)
            if known != size and known != 1 and size != 1:
                got = f"{known} and {size} of shapes {' and '.join(str(t.array.shape) for t in terms)}"
                raise ShapeError(
                    message(
                        function, "dims that are multiplied must have one size", got, "transpose or reshape an operand"
                    )
                )
            if size != 1:
                sizes[label] = size
    return sizes


def _order(terms: Sequence[Term], out: tuple[Label, ...], sizes: dict[Label, int]) -> list[tuple[int, int]]:
    """The two terms to multiply at each step; NumPy's einsum_path orders more than two."""
    if len(terms) <= 2:
        return [(0, 1)][: len(terms) - 1]
    numbers = {label: i for i, label in enumerate(sizes)}
    operands: list[Any] = []
    for term in terms:
        operands += [np.broadcast_to(np.zeros(()), term.array.shape), [numbers[label] for label in term.labels]]
    strategy = "optimal" if len(terms) <= 5 else "greedy"
    present = set().union(*(term.labels for term in terms))
    kept = [numbers[label] for label in out if label in present]
    path, _ = np.einsum_path(*operands, kept, optimize=strategy)
    if any(len(step) != 2 for step in path[1:]):
        # einsum_path merges steps of more than two terms; these are contracted in pairs from the left.
        return [(0, 1)] * (len(terms) - 1)
    return list(path[1:])


def _without_repeats(term: Term) -> Term:
    """Take the diagonal for a label that occurs twice in a term: mask by the two indices, then sum over one."""
    x, labels = term.array, term.labels
    while len(set(labels)) < len(labels):
        second = next(i for i, label in enumerate(labels) if label in labels[:i])
        first = labels.index(labels[second])
        mask = compare("EQ", iota(x._trace, x.shape, first), iota(x._trace, x.shape, second))
        zero: Any = False if x.dtype.kind == "b" else 0
        x = reduce(select(mask, x, splat(x._trace, zero, x.shape, x.dtype)), _sum_op(x), (second,), zero)
        labels = labels[:second] + labels[second + 1 :]
    return Term(x, labels)


def _without_units(term: Term, sizes: dict[Label, int]) -> Term:
    """Drop dims of size 1 whose label has a larger size in another term: they broadcast."""
    kept = [i for i, (label, size) in enumerate(zip(term.labels, term.array.shape)) if size == sizes[label]]
    if len(kept) == len(term.labels):
        return term
    return Term(reshape(term.array, tuple(term.array.shape[i] for i in kept)), tuple(term.labels[i] for i in kept))


def _sum_op(x: Tracer) -> str:
    return "or" if x.dtype.kind == "b" else "add"


def _summed(term: Term, needed: set[Label]) -> Term:
    dims = [i for i, label in enumerate(term.labels) if label not in needed]
    if not dims:
        return term
    x = term.array
    wide = convert(x, np.dtype(np.float32)) if is_float(x.dtype) and x.dtype.itemsize < 4 else x
    total = convert(reduce(wide, _sum_op(x), dims, False if x.dtype.kind == "b" else 0), x.dtype)
    return Term(total, tuple(label for label in term.labels if label in needed))


def _pair(first: Term, second: Term, needed: set[Label]) -> Term:
    first = _summed(first, needed.union(second.labels))
    second = _summed(second, needed.union(first.labels))
    shared = set(first.labels) & set(second.labels)
    if shared <= needed:
        labels = (*first.labels, *(label for label in second.labels if label not in shared))
        return _product(first, second, labels)
    attrs, labels = _dot_numbers(first.labels, second.labels, needed)
    return Term(first.array._trace.emit("stablehlo.dot_general", (first.array, second.array), attrs), labels)


def _product(first: Term, second: Term, labels: tuple[Label, ...]) -> Term:
    """The product of two terms without a summed label: elementwise."""
    sizes = dict(zip(first.labels, first.array.shape)) | dict(zip(second.labels, second.array.shape))
    lhs, rhs = (_arranged(term, labels, sizes) for term in (first, second))
    op = "stablehlo.and" if lhs.dtype.kind == "b" else "stablehlo.multiply"
    return Term(lhs._trace.emit(op, (lhs, rhs)), labels)


def _arranged(term: Term, labels: tuple[Label, ...], sizes: dict[Label, int]) -> Tracer:
    """The term's array with a dim for each of ``labels``, broadcast along missing ones."""
    own = [label for label in labels if label in term.labels]
    x = transpose(term.array, [term.labels.index(label) for label in own])
    if len(own) == len(labels):
        return x
    return broadcast_dims(x, tuple(sizes[label] for label in labels), [labels.index(label) for label in own])
