# Written by `make stubs`; do not edit.
"""
The compiled core of shardwise: one submodule per layer. Private: use the shardwise package.
"""
from __future__ import annotations
from . import error
from . import mesh
from . import hardware
from . import ir
from . import passes
from . import solve
from . import analysis
from . import processes
from . import runtime
__all__: list[str] = ['analysis', 'error', 'hardware', 'ir', 'mesh', 'passes', 'processes', 'runtime', 'solve']
