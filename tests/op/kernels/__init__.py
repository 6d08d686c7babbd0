# SPDX-License-Identifier: Apache-2.0
"""Every op: its numbers, its bits on every sharding, its sharding rule and its gradient, against NumPy."""
