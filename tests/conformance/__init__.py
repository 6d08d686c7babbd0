# SPDX-License-Identifier: Apache-2.0
"""Comparisons with other implementations, and texts that no reader may crash on."""
