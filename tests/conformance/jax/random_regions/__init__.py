# SPDX-License-Identifier: Apache-2.0
"""Random manual regions beside `jax.shard_map`: values, gradients, and collectives as written."""
