# SPDX-License-Identifier: Apache-2.0
"""Annotated programs under transforms, in NumPy and in JAX, against the plain program in JAX; see __main__."""
