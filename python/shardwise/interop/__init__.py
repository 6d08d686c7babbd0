# SPDX-License-Identifier: Apache-2.0
"""Converters for objects of other libraries. Importing this package registers each library."""

from . import jax_objects as jax_objects
