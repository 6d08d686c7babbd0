# SPDX-License-Identifier: Apache-2.0
"""Texts of programs: jaxlib reads what is printed here, and what JAX prints is read here."""
