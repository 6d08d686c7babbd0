# SPDX-License-Identifier: Apache-2.0
"""Compiled programs as functions and scripts of JAX. The text is the same for both; `jax` itself is imported on use."""

from . import (  # they fill the table
    collectives as collectives,
    control as control,
    elementwise as elementwise,
    exchange as exchange,
    indexing as indexing,
    linear_algebra as linear_algebra,
    movement as movement,
    reductions as reductions,
    sorting as sorting,
)
from .script import Script as Script, script_of as script_of
from .table import EMISSIONS as EMISSIONS, REFUSED as REFUSED
