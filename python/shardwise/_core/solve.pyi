# Written by `make stubs`; do not edit.
"""
Cheapest options of a cost graph
"""
from __future__ import annotations
import collections.abc
import typing
__all__: list[str] = ['CostGraph', 'FORBIDDEN', 'save_within', 'solve']
class CostGraph:
    def __init__(self) -> None:
        ...
    def add_edge(self, a: typing.SupportsInt | typing.SupportsIndex, b: typing.SupportsInt | typing.SupportsIndex, costs: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> None:
        ...
    def add_node(self, costs: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> int:
        """
        The number of the new node
        """
    def add_use(self, node: typing.SupportsInt | typing.SupportsIndex, begin: typing.SupportsInt | typing.SupportsIndex, end: typing.SupportsInt | typing.SupportsIndex, bytes: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> None:
        ...
    def cost_of(self, picks: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> int:
        ...
    def peak_of(self, picks: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> int:
        ...
    def set_limit(self, bytes: typing.SupportsInt | typing.SupportsIndex) -> None:
        ...
    @property
    def edges(self) -> list[tuple[int, int, list[int]]]:
        ...
    @property
    def nodes(self) -> list[list[int]]:
        ...
def save_within(values: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, bool, bool, bool, collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]]], bytes: typing.SupportsInt | typing.SupportsIndex, *, branches: typing.SupportsInt | typing.SupportsIndex = 2000) -> tuple[list[bool], list[bool], int, int, bool, int]:
    ...
def solve(graph: CostGraph, *, bound_cells: typing.SupportsInt | typing.SupportsIndex = 2000000000, search_cells: typing.SupportsInt | typing.SupportsIndex = 2000000000, rounds_without_gain: typing.SupportsInt | typing.SupportsIndex = 400, start: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = []) -> tuple[list[int], int, int]:
    ...
FORBIDDEN: int = 1000000000000000000
