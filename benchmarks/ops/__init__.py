# SPDX-License-Identifier: Apache-2.0
"""Time of every op on a million elements, one thread, beside NumPy or SciPy.

    python -m benchmarks.ops                        all rows
    python -m benchmarks.ops --only tanh --rounds 50

A row is one program with one op (or the few ops that a NumPy function becomes), compiled for one device. Both sides run
interleaved on one thread; a ratio is the ratio of the fastest runs, because a shared machine only ever adds time. A row
above 3x has its reason in `benchmarks.ops.table.REASONS`.
"""
