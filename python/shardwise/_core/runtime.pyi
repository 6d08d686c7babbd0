# Written by `make stubs`; do not edit.
"""
Arrays and execution on a virtual mesh
"""
from __future__ import annotations
import collections.abc
import numpy
import shardwise._core.ir
import shardwise._core.mesh
import shardwise._core.passes
import typing
__all__: list[str] = ['Executable', 'ShardedArray', 'run_unpartitioned', 'set_threads']
class ShardedArray:
    @staticmethod
    def scatter(array: numpy.ndarray, sharding: shardwise._core.mesh.Sharding, poison: bool = False, borrow: bool = False) -> ShardedArray:
        ...
    def gather(self) -> numpy.ndarray:
        ...
    def reshard(self, sharding: shardwise._core.mesh.Sharding, for_call: bool = False) -> ShardedArray:
        ...
    def shard(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> numpy.ndarray:
        ...
    @property
    def dtype(self) -> str:
        ...
    @property
    def nbytes_local(self) -> int:
        ...
    @property
    def shape(self) -> tuple[typing.Any, ...]:
        ...
    @property
    def sharding(self) -> shardwise._core.mesh.Sharding:
        ...
class Executable:
    def __init__(self, arg0: shardwise._core.passes.Compiled) -> None:
        ...
    def run(self, arguments: collections.abc.Sequence[ShardedArray], faithful: bool = False, poison: bool = False, trace: bool = False, borrowed: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> list[ShardedArray]:
        ...
    def trace(self) -> list[typing.Any]:
        ...
def run_unpartitioned(module: shardwise._core.ir.Module, arguments: collections.abc.Sequence[numpy.ndarray]) -> list[numpy.ndarray]:
    ...
def set_threads(arg0: typing.SupportsInt | typing.SupportsIndex) -> None:
    ...
