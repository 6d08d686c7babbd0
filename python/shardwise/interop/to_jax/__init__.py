# SPDX-License-Identifier: Apache-2.0
"""Compiled programs as functions and scripts of JAX. The text is the same for both; `jax` itself is imported on use."""

from . import collectives, control, elementwise, indexing, movement, reductions  # they fill the table
from .script import Script as Script, script_of as script_of
from .table import EMISSIONS as EMISSIONS, REFUSED as REFUSED
