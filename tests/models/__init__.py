# SPDX-License-Identifier: Apache-2.0
"""The layers and models of shardwise.models."""
