# SPDX-License-Identifier: Apache-2.0
"""Shardy in jaxlib as the oracle: sharding rules, propagation and its explanations, verification."""
