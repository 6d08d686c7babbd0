# SPDX-License-Identifier: Apache-2.0
"""Compiled programs as functions and scripts of JAX. Both have the same text; `jax` is imported on use."""

from . import (  # they fill the table
    collectives as collectives,
    control as control,
    convolutions as convolutions,
    elementwise as elementwise,
    exchange as exchange,
    indexing as indexing,
    linear_algebra as linear_algebra,
    movement as movement,
    reductions as reductions,
    sorting as sorting,
)
from .target import JAX as JAX
