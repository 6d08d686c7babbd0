# Written by `make stubs`; do not edit.
"""
Times of ops, how often they run
"""
from __future__ import annotations
import collections.abc
import shardwise._core.hardware
import shardwise._core.ir
import typing
__all__: list[str] = ['estimate', 'group_times', 'live_bytes', 'model_products', 'op_times']
def estimate(local: shardwise._core.ir.Module, hardware: shardwise._core.hardware.Hardware) -> tuple[typing.Any, ...]:
    ...
def group_times(module: shardwise._core.ir.Module, hardware: str) -> list[dict[typing.Any, typing.Any]]:
    ...
def live_bytes(local: shardwise._core.ir.Module, donated: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> tuple[typing.Any, ...]:
    ...
def model_products(module: shardwise._core.ir.Module, hardware: shardwise._core.hardware.Hardware) -> tuple[int, int]:
    ...
def op_times(module: shardwise._core.ir.Module, hardware: str) -> list[dict[typing.Any, typing.Any]]:
    ...
