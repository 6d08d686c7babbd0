# SPDX-License-Identifier: Apache-2.0
"""Mistakes with functions that are composed of others: interpolation, statistics, choices, elements taken out."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, N, X, on_mesh, row

V = np.arange(5.0)


@row(sw.ShapeError, r"np.select: conditions and choices must be as many, and some, got 1 and 2 \(at")
def select_with_a_condition_missing() -> None:
    on_mesh(lambda x: np.select([x > 0], [x, -x])).trace(X)


@row(sw.ShapeError, r"np.piecewise: there must be a function for each condition, got 1 and 3 \(at")
def piecewise_with_too_many_functions() -> None:
    on_mesh(lambda x: np.piecewise(x, [x > 0], [1, 2, 3])).trace(X)


KNOWN = (
    r"must be known during tracing, because they decide the result's shape, "
    r"got Tracer<{}>; use np.where, or make them static \(at"
)


@row(sw.UnsupportedError, r"np.delete: the places " + KNOWN.format(r"int32\[8,6\]"))
def delete_of_traced_places() -> None:
    on_mesh(lambda x, n: np.delete(x, n)).trace(X, N)


@row(sw.UnsupportedError, r"np.insert: the places " + KNOWN.format(r"int32\[\]"))
def insert_at_a_traced_place() -> None:
    on_mesh(lambda x, n: np.insert(x, n[0, 0], 1)).trace(X, N)


@row(sw.UnsupportedError, r"np.compress: the places " + KNOWN.format(r"bool\[8\]"))
def compress_by_a_traced_condition() -> None:
    on_mesh(lambda x: np.compress(x[:, 0] > 0, x, axis=0)).trace(X)


@row(sw.UnsupportedError, r"np.extract: the places " + KNOWN.format(r"bool\[8,6\]"))
def extract_by_a_traced_condition() -> None:
    on_mesh(lambda x: np.extract(x > 0, x)).trace(X)


@row(IndexError, r"index 9 is out of bounds for axis 0 with size 8", located=False)
def delete_outside() -> None:
    on_mesh(lambda x: np.delete(x, [9], axis=0)).trace(X)


@row(ValueError, r"np.meshgrid: indexing must be 'xy' or 'ij', got 'yx' \(at")
def meshgrid_of_another_order() -> None:
    on_mesh(lambda x: np.meshgrid(x, x, indexing="yx")).trace(V)  # type: ignore[call-overload]


@row(ValueError, r"np.searchsorted: side must be 'left' or 'right', got 'up' \(at")
def searchsorted_on_another_side() -> None:
    on_mesh(lambda x: np.searchsorted(V, x, side="up")).trace(X)  # type: ignore[call-overload]


@row(sw.ShapeError, r"np.searchsorted: the sorted array must have one dim, got shape \(8, 6\) \(at")
def searchsorted_in_a_matrix() -> None:
    on_mesh(lambda x: np.searchsorted(x, V)).trace(X)


@row(sw.ShapeError, r"np.interp: xp and fp must be vectors of one length that is not 0, got \(5,\) and \(4,\) \(at")
def interp_of_points_that_differ() -> None:
    on_mesh(lambda x: np.interp(x, V, V[:4])).trace(X)


@row(sw.UnsupportedError, r"np.interp: period=")
def interp_of_a_period() -> None:
    on_mesh(lambda x: np.interp(x, V, V, period=2)).trace(X)


@row(sw.ShapeError, r"np.gradient: 2 axes need as many spacings, or one, got 3 \(at")
def gradient_with_too_many_spacings() -> None:
    on_mesh(lambda x: np.gradient(x, 1, 2, 3)).trace(X)


@row(sw.ShapeError, r"np.gradient: edge_order must be 1 or 2, and each dim have 2 elements, got shape \(1, 6\) \(at")
def gradient_of_one_row() -> None:
    on_mesh(lambda x: np.gradient(x[:1])).trace(X)


@row(sw.UnsupportedError, r"np.gradient: edge_order=2 needs even spacing, got coordinates; use edge_order=1, or even")
def gradient_of_second_order_with_coordinates() -> None:
    on_mesh(lambda x: np.gradient(x, V, edge_order=2)).trace(V)


@row(sw.ShapeError, r"np.average: weights must have .*, or that of its dims in axis, got \(5,\) for \(8, 6\), axis=0")
def average_with_weights_of_another_shape() -> None:
    on_mesh(lambda x: np.average(x, axis=0, weights=V)).trace(X)


@row(sw.ShapeError, r"np.cross: vectors must have 3 elements, got 2 and 2; pad vectors of the plane with 0 \(at")
def cross_of_vectors_of_the_plane() -> None:
    on_mesh(lambda x: np.cross(x[:, :2], x[:, 2:4])).trace(X)


@row(sw.ShapeError, r"np.convolve: operands must be vectors of at least one element, got \(8, 6\) and \(5,\) \(at")
def convolve_of_a_matrix() -> None:
    on_mesh(lambda x: np.convolve(x, V)).trace(X)


@row(ValueError, r"np.convolve: mode must be 'full', 'same' or 'valid', got 'half' \(at")
def convolve_in_another_mode() -> None:
    on_mesh(lambda x: np.convolve(x, V, mode="half")).trace(V)  # type: ignore[call-overload]


@row(
    sw.UnsupportedError,
    r"np.bincount: minlength must be given, because the largest number would decide the result's shape, got 0; give",
)
def bincount_without_a_length() -> None:
    on_mesh(lambda n: np.bincount(n[0])).trace(N)


@row(sw.ShapeError, r"np.bincount: the numbers and weights must be vectors of one length, got \(8, 6\) \(at")
def bincount_of_a_matrix() -> None:
    on_mesh(lambda n: np.bincount(n, minlength=3)).trace(N)


@row(sw.DTypeError, r"np.bincount: the numbers must be integers, got float32; use astype\(int\) \(at")
def bincount_of_floats() -> None:
    on_mesh(lambda x: np.bincount(x[0], minlength=3)).trace(X)


IDS = sw.device_put(np.array([1, 5]), sw.NamedSharding(MESH, sw.P("model")))


@row(ValueError, r"np.bincount: the numbers must be below minlength, 4, got 5; raise minlength \(at")
def bincount_beyond_its_length() -> None:
    np.bincount(IDS, minlength=4)


@row(ValueError, r"np.bincount: the numbers must not be negative, got -1 \(at")
def bincount_of_a_negative_number() -> None:
    np.bincount(IDS - 2, minlength=4)


@row(sw.UnsupportedError, r"np.histogram: bins must be a number or edges; a rule looks at the data, got 'auto'; give a")
def histogram_by_a_rule() -> None:
    on_mesh(lambda x: np.histogram(x, "auto")).trace(X)


@row(ValueError, r"np.histogram: edges must increase, got \[2 1\] \(at")
def histogram_of_edges_that_decrease() -> None:
    on_mesh(lambda x: np.histogram(x, [2, 1])).trace(X)


@row(ValueError, r"^np.bincount: the numbers must be below minlength, 4, got 5; raise minlength \(at [^\n]*\)$")
def known_ids_beyond_minlength() -> None:
    on_mesh(lambda w: np.bincount(np.array([1, 5]), w, minlength=4)).trace(np.ones(2))


# ---- numbers of choices and of bins, and bools as numbers -----------------------------------------------------------

TWO = r"^np.choose: there are 2 choices, so that the numbers must be from 0 to 1, got "


@row(ValueError, TWO + r"5; use mode='clip' or mode='wrap' \(at [^\n]*\)$")
def choice_beyond_the_last() -> None:
    np.choose(IDS, [IDS, IDS])


@row(ValueError, TWO + r"-1; use mode='clip' or mode='wrap' \(at [^\n]*\)$")
def known_choice_below_the_first() -> None:
    on_mesh(lambda x: np.choose(np.array([0, -1]), [x, x])).trace(V[:2])


@row(
    sw.DTypeError,
    r"^np.choose: the numbers must be integers that fit int64, got float64; convert them with astype\(int",
)
def choice_of_floats() -> None:
    on_mesh(lambda x: np.choose(x, [x, x])).trace(V)


@row(ValueError, r"^np.choose: mode must be 'raise', 'wrap' or 'clip', got 'nearest' \(at [^\n]*\)$")
def choice_in_another_mode() -> None:
    on_mesh(lambda n: np.choose(n, [n, n], mode="nearest")).trace(N)  # type: ignore[call-overload]


@row(ValueError, r"^np.digitize: bins must increase or decrease, got \[2. 3. 0.\]; sort them \(at [^\n]*\)$")
def bins_in_no_order() -> None:
    np.digitize(IDS, np.array([2.0, 3.0, 0.0]))


@row(ValueError, r"^np.digitize: bins must increase or decrease, got \[2. 3. 0.\]; sort them \(at [^\n]*\)$")
def known_bins_in_no_order() -> None:
    on_mesh(lambda x: np.digitize(x, [2.0, 3.0, 0.0])).trace(X)


@row(sw.DTypeError, r"^np.gradient: the array must be of numbers, got bool; convert it with astype \(at [^\n]*\)$")
def gradient_of_a_mask() -> None:
    on_mesh(lambda x: np.gradient(x)).trace(X > 0)


SIZES = r"^ShapeDtypeStruct: sizes must be integers, got "


@row(TypeError, SIZES + r"\(2, True\) \(at [^\n]*\)$")
def bool_as_a_size() -> None:
    sw.ShapeDtypeStruct((2, True), np.float32)


@row(TypeError, SIZES + r"False \(at [^\n]*\)$")
def bool_as_the_only_size() -> None:
    sw.ShapeDtypeStruct(False, np.float32)


@row(sw.ShapeError, r"^random.normal: a shape must be of integers that are not negative, got \(2, True\); give a tuple")
def bool_as_a_size_of_random_numbers() -> None:
    sw.random.normal(sw.random.key(0), (2, True))


@row(sw.ShapeError, r"^spec: ndim must be an integer that is not negative, got 2.5; give x.ndim \(at [^\n]*\)$")
def placements_of_half_a_dim() -> None:
    sw.dtensor.spec(MESH, [sw.dtensor.Replicate()] * 2, 2.5)  # type: ignore[arg-type]


@row(sw.MeshError, r"^Mesh: device ids must be integers, got \[True, 0\] \(at [^\n]*\)$")
def bool_as_a_device_id() -> None:
    sw.Mesh({"x": 2}, device_ids=[True, 0])


@row(TypeError, r"^largest: count must be an integer that is not negative, got 'n' \(at [^\n]*\)$")
def text_as_a_count_of_collectives() -> None:
    on_mesh(lambda x: x).lower(X).compile().collectives().largest("n")  # type: ignore[arg-type]


# ---- arrays with fields ---------------------------------------------------------------------------------------------

FIELDS = np.zeros(2, [("a", int), ("b", float)])
GOT = r"got \[\('a', '<i8'\), \('b', '<f8'\)\]\[2\]"


@row(
    sw.DTypeError,
    rf"^jit: argument x must be an array of numbers, {GOT}; pass its fields as separate arrays \(at [^\n]*\)$",
)
def fields_as_an_argument() -> None:
    on_mesh(lambda x: x)(FIELDS)


@row(
    sw.DTypeError,
    rf"^device_put: every leaf must be an array of numbers, {GOT} for x\[0\]; pass its fields as separate arrays \(at ",
)
def fields_on_a_mesh() -> None:
    sw.device_put([FIELDS], MESH)


@row(sw.DTypeError, rf"{GOT} for a; pass its fields as separate arrays, or leave it out of argnums \(at ")
def fields_to_differentiate_by() -> None:
    on_mesh(lambda x: sw.grad(lambda x, a: x.sum(), argnums=1)(x, FIELDS)).trace(X)


# ---- names that are not there ---------------------------------------------------------------------------------------

OPTIONS = "the options are mode, indices_are_sorted and unique_indices, got foo=1; leave it out"


@row(TypeError, rf"^x\.at\[\.\.\.\]\.set: {OPTIONS} \(at [^\n]*\)$")
def unknown_option_of_an_update() -> None:
    sw.at(X, 1).set(1.0, foo=1)


@row(TypeError, rf"^x\.at\[\.\.\.\]\.add: {OPTIONS} \(at [^\n]*\)$")
def unknown_option_of_a_traced_update() -> None:
    on_mesh(lambda x: x.at[1].add(1.0, foo=1)).trace(X)


@row(AttributeError, r"^module 'shardwise.numpy' has no attribute 'linspce'; use snp.linspace \(at [^\n]*\)$")
def misspelled_function() -> None:
    sw.numpy.linspce  # noqa: B018


@row(
    AttributeError,
    r"^shardwise.numpy: np.partition is not supported; call numpy's on np.asarray\(x\) outside jit \(at [^\n]*\)$",
)
def function_that_only_numpy_has() -> None:
    sw.numpy.partition  # noqa: B018


@row(AttributeError, r"^array: has no attribute 'sort'; use np.sort\(x\) \(at [^\n]*\)$")
def sort_in_place() -> None:
    on_mesh(lambda x: x.sort()).trace(X)
