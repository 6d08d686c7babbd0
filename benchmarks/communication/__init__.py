# SPDX-License-Identifier: Apache-2.0
"""Bytes that one device receives, beside XLA in the same run, and beside what the result cannot do without.

Each program has sharded arguments and results. Ours is the ledger of the compiled program. XLA's is counted in the HLO
text that it compiles for as many host devices (:mod:`benchmarks.communication.hlo`). JAX refuses uneven dims at
borders: those rows have "-".
"""
