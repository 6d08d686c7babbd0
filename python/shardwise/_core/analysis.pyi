# Written by `make stubs`; do not edit.
"""
Times of ops, how often they run
"""
from __future__ import annotations
import shardwise._core.ir
import typing
__all__: list[str] = ['group_times', 'op_times']
def group_times(module: shardwise._core.ir.Module, hardware: str) -> list[dict[typing.Any, typing.Any]]:
    ...
def op_times(module: shardwise._core.ir.Module, hardware: str) -> list[dict[typing.Any, typing.Any]]:
    ...
