# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: their numbers on every sharding, gradients and vmap, against NumPy."""
