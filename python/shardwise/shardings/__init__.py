# SPDX-License-Identifier: Apache-2.0
"""Meshes, partition specs and shardings."""
