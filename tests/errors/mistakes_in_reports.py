# SPDX-License-Identifier: Apache-2.0
"""Mistakes in what a program is asked: groups and differences of ledgers, printing, tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardwise as sw
from tests.errors.mistakes import MESH, X, on_mesh, row

COLUMNS = "kind, axes, devices, type, where, cause, file, dtype, name"


def ledger() -> Any:
    return on_mesh(np.tanh).lower(X).compile().collectives()


# ---- ledgers --------------------------------------------------------------------------------------------------------


@row(ValueError, rf"^group_by: keys must be of {COLUMNS}, got 'lines' \(at ")
def group_by_no_column() -> None:
    ledger().group_by("where", "lines")


@row(ValueError, rf"^group_by: keys must be of {COLUMNS}, got \['kind'\] \(at ")
def group_by_a_list() -> None:
    ledger().group_by(["kind"])


@row(TypeError, r"^diff: keys must be a sequence of names of columns, got None \(at ")
def diff_by_none() -> None:
    ledger().diff(ledger(), by=None)


@row(TypeError, r"^assert_collectives: bytes_max must be a number of at least 0, or None, got nan \(at ")
def a_bound_of_bytes_that_is_nan() -> None:
    sw.testing.assert_collectives(on_mesh(np.tanh).lower(X).compile(), bytes_max=np.nan)


@row(TypeError, r"^assert_collectives: all_reduce must be an integer of at least 0, got '1' \(at ")
def a_count_that_is_a_text() -> None:
    sw.testing.assert_collectives(on_mesh(np.tanh).lower(X).compile(), all_reduce="1")


@row(TypeError, r"^assert_matches_unpartitioned: rtol must be a number of at least 0, or None, got 1j \(at ")
def a_complex_tolerance() -> None:
    sw.testing.assert_matches_unpartitioned(np.tanh, X, mesh=MESH, rtol=1j)


@row(TypeError, r"^to_source: path must be a str, a Path or None, got -1 \(at ")
def a_script_at_a_number() -> None:
    on_mesh(np.tanh).lower(X).compile().to_source("mpi4py", -1)


@row(ValueError, r"^group_by: each key must be given once, got \('kind', 'kind'\) \(at ")
def group_by_one_column_twice() -> None:
    ledger().group_by("kind", "kind")


@row(ValueError, rf"^diff: keys must be of {COLUMNS}, got 'sharding' \(at ")
def diff_by_no_column() -> None:
    ledger().diff(ledger(), by=("sharding",))


@row(ValueError, rf"^diff: needs at least one key, got \(\); use some of {COLUMNS} \(at ")
def diff_by_nothing() -> None:
    ledger().diff(ledger(), by=())


@row(TypeError, r"^diff: takes the ledger of another program, got Program; pass program.collectives\(\) \(at ")
def diff_with_a_program() -> None:
    ledger().diff(on_mesh(np.tanh).lower(X).compile())


# ---- debug ----------------------------------------------------------------------------------------------------------


@row(TypeError, r"^debug\.print: fmt must be a format string, got Tracer<float32\[8,6\]>; "
     r"write debug\.print\('\{\}', x\) \(at ")  # fmt: skip
def print_without_a_format() -> None:
    on_mesh(lambda x: (sw.debug.print(x), x)[1]).trace(X)


@row(
    TypeError,
    r"^debug\.print: a format spec needs a scalar, got '\.2f' for float32\[8, 6\]; leave it out, and set digits by "
    r"np\.set_printoptions\(precision=…\) \(at ",
)
def print_an_array_with_a_spec() -> None:
    on_mesh(lambda x: (sw.debug.print("{:.2f}", x), x)[1]).trace(X)


@row(
    ValueError,
    r"^debug\.print: each argument must have a field in fmt, got 0, 1, y without one; add \{0\} to the format string "
    r"\(at ",
)
def print_what_no_field_refers_to() -> None:
    on_mesh(lambda x: (sw.debug.print("x", x, 1, y=x), x)[1]).trace(X)


@row(
    IndexError,
    r"^debug\.print: each field of fmt must have an argument, got \{1\} for 1 positional; pass one more \(at ",
)
def print_a_field_too_many() -> None:
    on_mesh(lambda x: (sw.debug.print("{} {}", x), x)[1]).trace(X)


@row(KeyError, r"debug\.print: each field of fmt must have an argument, got \{y\} without one; pass y=… \(at ")
def print_an_unknown_name() -> None:
    on_mesh(lambda x: (sw.debug.print("{y}", x=x), x)[1]).trace(X)


@row(sw.UnsupportedError, r"^trace: a traced value must not leave the function that recorded it, got Tracer<")
def print_a_traced_value_outside_its_function() -> None:
    kept: list[Any] = []
    on_mesh(lambda x: kept.append(x) or x).trace(X)
    sw.debug.print("{}", kept[0])


@row(
    TypeError,
    r"^visualize_array_sharding: takes an Array or a traced value, got ndarray; put it on a mesh with device_put \(at ",
)
def visualize_what_is_on_no_mesh() -> None:
    sw.debug.visualize_array_sharding(X)
