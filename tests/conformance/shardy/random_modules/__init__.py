# SPDX-License-Identifier: Apache-2.0
"""Random StableHLO modules: how they are represented, and the steps that they are drawn from."""
