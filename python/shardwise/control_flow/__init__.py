# SPDX-License-Identifier: Apache-2.0
"""Loops and branches whose bodies are recorded once: the control flow of `jax.lax`.

    sw.scan, sw.map, sw.fori_loop, sw.while_loop      stablehlo.while
    sw.cond, sw.switch                                stablehlo.case
    sw.associative_scan                               slices and concatenations, no loop
    sw.checkpoint                                     shardwise.checkpoint

Inside a traced function, a body becomes a region that may use any value from around it. Outside, the functions run as
Python loops over NumPy arrays and :class:`shardwise.Array`, with the same dtypes and the same errors.
"""

from . import checkpoint_policies
from .associative import associative_scan
from .branches import cond, switch
from .checkpoint import checkpoint
from .loops import fori_loop, while_loop
from .scans import map, scan

__all__ = [
    "associative_scan",
    "checkpoint",
    "checkpoint_policies",
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]
