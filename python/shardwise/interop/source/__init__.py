# SPDX-License-Identifier: Apache-2.0
"""Writes the local program as Python, for several targets: a walk over its ops and a table per target."""
