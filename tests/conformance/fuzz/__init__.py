# SPDX-License-Identifier: Apache-2.0
"""Mutated texts: they are read or refused with a place; no reader crashes, hangs or takes all memory."""
