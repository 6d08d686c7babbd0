# SPDX-License-Identifier: Apache-2.0
"""Measurements beside a peer: ``python -m benchmarks.NAME`` prints a table and writes benchmarks/results/NAME.json."""
