# SPDX-License-Identifier: Apache-2.0
"""JAX as the oracle: random numbers, gradients at special points, objects of JAX as arguments."""
