# SPDX-License-Identifier: Apache-2.0
"""Programs with manual regions: JAX as the oracle for shard_map."""
