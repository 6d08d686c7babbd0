# SPDX-License-Identifier: Apache-2.0
"""Time of every op on a million elements, one thread, beside NumPy or SciPy.

    python -m benchmarks.ops                        all rows
    python -m benchmarks.ops --only tanh --rounds 50

A row is one program with one op (or the few ops that a NumPy function becomes), compiled for one device. Both sides run
interleaved on one thread; a ratio is the ratio of the fastest runs, because a shared machine only ever adds time. If
NumPy has several spellings, the fastest one counts. The tool fails if fewer than 95 % of the rows are at most 1.5x, or
if a row is above its ceiling: 3x, 2x for convolutions, or the one beside its reason in `benchmarks.ops.table.REASONS`.
"""
