# SPDX-License-Identifier: Apache-2.0
"""Transforms inside transforms, against JAX."""
