# Written by `make stubs`; do not edit.
"""
The compiler pipeline
"""
from __future__ import annotations
import shardwise._core.ir
import shardwise._core.mesh
import typing
__all__: list[str] = ['Compiled', 'compile', 'pass_names', 'run_pass']
class Compiled:
    def collectives(self) -> list[typing.Any]:
        ...
    def explain(self, arg0: str) -> list[typing.Any]:
        ...
    def names(self) -> list[typing.Any]:
        ...
    @property
    def argument_shardings(self) -> list[typing.Any]:
        ...
    @property
    def counters(self) -> dict[typing.Any, typing.Any]:
        ...
    @property
    def result_shardings(self) -> list[typing.Any]:
        ...
    @property
    def seconds(self) -> dict[typing.Any, typing.Any]:
        ...
    @property
    def stages(self) -> dict[typing.Any, typing.Any]:
        ...
def compile(module: shardwise._core.ir.Module, mesh: shardwise._core.mesh.Mesh, strategy: str = 'aggressive') -> Compiled:
    ...
def pass_names() -> list[str]:
    ...
def run_pass(name: str, module: shardwise._core.ir.Module, strategy: str = 'aggressive') -> shardwise._core.ir.Module:
    ...
