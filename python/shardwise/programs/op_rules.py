# SPDX-License-Identifier: Apache-2.0
"""Sharding rules that users write for ops: how the dims of operands and results are related.

>>> rule = sharding_rule("... i j, ... j k -> ... i k", reduction="j")
>>> rule.text([(2, 8, 4), (2, 4, 16)], [(2, 8, 16)])
'#sdy.op_sharding_rule<([i, j, k], [i, k, l])->([i, j, l]) {i=2, j=8, k=4, l=16} reduction={k}, custom>'
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeAlias

from ..errors import ShardingError, expect_text, message, shown
from ..process.traceback_filtering import entry_point

__all__ = ["ShardingRule", "sharding_rule"]

Factors: TypeAlias = "str | Iterable[str]"
Dim = tuple[str, ...]  # the factors of a dim, major to minor
_KINDS = ("reduction", "need_replication", "permutation")
_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"\s*(?:(\.\.\.\d*)|({_NAME})|\(([^()]*)\)|(\S))")


def _refuse(must_hold: str, got: object = None, way_out: str = "") -> NoReturn:
    raise ShardingError(message("sharding_rule", must_hold, got, way_out))


class _Tensor:
    """One operand or result of a rule: a batch group such as ``"0"`` for leading ``...``, or None, and its dims."""

    __slots__ = ("batch", "dims", "written")

    def __init__(self, written: str) -> None:
        self.written = written.strip()
        self.batch: str | None = None
        self.dims: list[Dim] = []
        position = 0
        while (found := _TOKEN.match(written, position)) is not None:
            position = found.end()
            batch, name, compound, other = found.groups()
            if other is not None:
                _refuse("a dim must be a factor such as i, several in brackets such as (i j), or ...", repr(other))
            if batch is not None:
                if self.dims or self.batch is not None:
                    _refuse("... must be the first of a tensor", repr(self.written))
                self.batch = str(int(batch[3:] or "0"))
            elif name is not None:
                self.dims.append((name,))
            else:
                self.dims.append(self._compound(compound))
        factors = [factor for dim in self.dims for factor in dim]
        repeated = [factor for factor in factors if factors.count(factor) > 1]
        if repeated:
            _refuse("a factor must be used once in a tensor", f"{repeated[0]!r} in {self.written!r}")

    def _compound(self, text: str) -> Dim:
        factors = tuple(text.split())
        for factor in factors:
            if not re.fullmatch(_NAME, factor):
                _refuse("brackets must hold names of factors", repr(factor))
        if len(factors) < 2:
            _refuse("brackets must hold two factors or more", f"({text})", "write the factor alone")
        return factors


def _check_shapes(name: str, shapes: Any) -> None:
    if isinstance(shapes, str) or not isinstance(shapes, Sequence):
        _refuse(f"{name} must be a sequence of shapes", shown(shapes), "write [(8, 4)] for one tensor")


class ShardingRule:
    """A sharding rule with named factors, made by :func:`sharding_rule`. :meth:`text` is its form for given shapes."""

    __slots__ = ("_lists", "_operands", "_results", "_sizes", "_written")

    def __init__(self, rule: str, lists: dict[str, tuple[str, ...]], sizes: dict[str, int]) -> None:
        expect_text("sharding_rule", "rule", rule)
        sides = rule.split("->")
        if len(sides) != 2:
            _refuse("a rule must be operands -> results", repr(rule), "write it like 'i j, j k -> i k'")
        self._written, self._lists, self._sizes = rule, lists, sizes
        self._operands, self._results = ([_Tensor(text) for text in side.split(",")] for side in sides)
        self._check_names()

    def _check_names(self) -> None:
        known = {factor for tensor in self._operands + self._results for dim in tensor.dims for factor in dim}
        for what, factors in [*self._lists.items(), ("sizes", tuple(self._sizes))]:
            for factor in factors:
                if factor not in known:
                    _refuse(f"{what} must name factors of {self._written!r}", repr(factor))
        for factor, size in self._sizes.items():
            if type(size) is not int or size < 1:
                _refuse("the size of a factor must be an integer of at least 1", f"{factor}={size!r}")
        kinds: dict[str, str] = {}
        for kind in _KINDS:
            for factor in self._lists[kind]:
                if factor in kinds:
                    _refuse(f"a factor must be of one kind of {', '.join(_KINDS)}", f"{factor!r} in two")
                kinds[factor] = kind
        for factor in self._lists["reduction"]:
            if any(factor in dim for tensor in self._results for dim in tensor.dims):
                _refuse("a factor that is reduced must not be in a result", repr(factor))

    def text(self, operand_shapes: Sequence[Sequence[int]], result_shapes: Sequence[Sequence[int]]) -> str:
        """Shardy's attribute for an op of these shapes.

        Raises:
            ShardingError: the number of tensors or dims does not fit, or sizes do not multiply.
        """
        _check_shapes("operand_shapes", operand_shapes)
        _check_shapes("result_shapes", result_shapes)
        shapes = [*self._pair(self._operands, operand_shapes, "operands")]
        shapes += self._pair(self._results, result_shapes, "results")
        mappings, sizes = self._resolve(shapes)
        numbers: dict[str, int] = {}
        for mapping in mappings:
            for dim in mapping:
                for factor in dim:
                    numbers.setdefault(factor, len(numbers))
        tensors = [
            "[" + ", ".join("".join(_symbol(numbers[f]) for f in dim) for dim in mapping) + "]" for mapping in mappings
        ]
        count = len(self._operands)
        text = f"({', '.join(tensors[:count])})->({', '.join(tensors[count:])})"
        if numbers:
            text += " {" + ", ".join(f"{_symbol(n)}={sizes[f]}" for f, n in numbers.items()) + "}"
        for kind, factors in self._lists.items():
            listed = sorted(numbers[f] for f in factors if f in numbers)
            if listed:
                text += f" {kind}={{{', '.join(map(_symbol, listed))}}}"
        return f"#sdy.op_sharding_rule<{text}, custom>"

    def _pair(
        self, tensors: list[_Tensor], shapes: Sequence[Sequence[int]], what: str
    ) -> Iterable[tuple[_Tensor, tuple[int, ...]]]:
        if len(tensors) != len(shapes):
            _refuse(f"{self._written!r} must have as many {what} as the op", f"{len(tensors)} for {len(shapes)}")
        return [(tensor, tuple(shape)) for tensor, shape in zip(tensors, shapes)]

    def _resolve(self, shapes: list[tuple[_Tensor, tuple[int, ...]]]) -> tuple[list[list[Dim]], dict[str, int]]:
        """The factors of each dim, with ``...`` expanded and without redundant factors of size 1, and all sizes."""
        whole: list[list[Dim]] = []
        batches: dict[str, int] = {}
        for tensor, shape in shapes:
            leading = len(shape) - len(tensor.dims)
            if leading < 0 or (leading > 0 and tensor.batch is None):
                _refuse(
                    f"{tensor.written!r} must have an entry for each dim",
                    f"shape {shape}",
                    "... matches any number of dims",
                )
            if tensor.batch is not None and batches.setdefault(tensor.batch, leading) != leading:
                _refuse("... must match as many dims in each tensor", f"{batches[tensor.batch]} and {leading}")
            whole.append([(f"{tensor.batch}.{d}",) for d in range(leading)] + tensor.dims)
        sizes = dict(self._sizes)
        for mapping, (_, shape) in zip(whole, shapes):
            for dim, size in zip(mapping, shape):
                if len(dim) == 1:
                    self._set_size(sizes, dim[0], size)
        for mapping, (_, shape) in zip(whole, shapes):
            for dim, size in zip(mapping, shape):
                if len(dim) > 1:
                    self._split(sizes, dim, size)
        return [[self._without_ones(dim, sizes) for dim in mapping] for mapping in whole], sizes

    def _set_size(self, sizes: dict[str, int], factor: str, size: int) -> None:
        known = sizes.setdefault(factor, size)
        if known != size and "." in factor:
            _refuse("... must match dims of the same sizes", f"{known} and {size}")
        if known != size and factor in self._sizes:
            _refuse(f"a dim must have the size of its factor {factor!r}", f"{size}, and {factor}={known}")
        sizes[factor] = min(known, size)

    def _split(self, sizes: dict[str, int], dim: Dim, size: int) -> None:
        unknown = [factor for factor in dim if factor not in sizes]
        known = math.prod(sizes[factor] for factor in dim if factor in sizes)
        if len(unknown) > 1:
            _refuse(
                f"all factors of ({' '.join(dim)}) but one must have a known size",
                f"none for {', '.join(unknown)}",
                f"write {unknown[0]}=SIZE",
            )
        if unknown and size % known == 0:
            sizes[unknown[0]] = size // known
        elif unknown or known != size:
            _refuse(f"the factors of ({' '.join(dim)}) must multiply to the size of the dim", f"{known} for {size}")

    @staticmethod
    def _without_ones(dim: Dim, sizes: dict[str, int]) -> Dim:
        return tuple(factor for factor in dim if sizes[factor] != 1) or dim[:1]

    def _key(self) -> tuple[object, ...]:
        return (self._written, tuple(self._lists.items()), tuple(sorted(self._sizes.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShardingRule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        words = [f"{kind}={' '.join(factors)!r}" for kind, factors in self._lists.items() if factors]
        words += [f"{factor}={size}" for factor, size in self._sizes.items()]
        return f"sharding_rule({', '.join([repr(self._written), *words])})"


def _symbol(number: int) -> str:
    """Shardy's symbol of a factor: i to z, then z_1, z_2, …"""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def _names(what: str, factors: Factors) -> tuple[str, ...]:
    if not isinstance(factors, Iterable):
        _refuse(f"{what} must be names of factors", repr(factors))
    names = tuple(factors.replace(",", " ").split() if isinstance(factors, str) else factors)
    if not all(isinstance(name, str) for name in names):
        _refuse(f"{what} must be names of factors", repr(factors))
    if len(set(names)) != len(names):
        _refuse(f"{what} must name a factor once", repr(factors))
    return names


@entry_point
def sharding_rule(
    rule: str,
    *,
    reduction: Factors = (),
    need_replication: Factors = (),
    permutation: Factors = (),
    blocked: Factors = (),
    **sizes: int,
) -> ShardingRule:
    """Make a sharding rule from einsum notation, as for JAX's ``custom_partitioning``.

    Each name is a factor, and dims with the same factor are sharded alike. If their sizes differ, as in slicing ops,
    the smaller size is used. Leading ``...`` (or ``...1``, ``...2``, for different groups) matches any number of dims;
    ``(h d)`` is a dim of several factors, major to minor.

    Args:
        rule: the rule, such as ``"... i j, ... j k -> ... i k"``.
        reduction: factors that the op sums over: a split one leaves a pending sum. A string of names, or a sequence.
        need_replication: factors that must be replicated when the op runs.
        permutation: factors that may be split, but then need communication between neighbors.
        blocked: factors along which shardings do not propagate.
        sizes: the sizes of factors that occur only in brackets; all but one in each bracket.

    Raises:
        ShardingError: malformed text, or names that are not in the rule.

    Source: Shardy's ``op_sharding_rule``; JAX's ``SdyShardingRule``.

    >>> sharding_rule("b (h d), d e -> b h e", reduction="d", h=4)
    sharding_rule('b (h d), d e -> b h e', reduction='d', h=4)
    """
    if not isinstance(rule, str):
        _refuse("a rule must be a string such as 'i j, j k -> i k'", repr(rule))
    lists = {
        "reduction": _names("reduction", reduction),
        "need_replication": _names("need_replication", need_replication),
        "permutation": _names("permutation", permutation),
        "blocked_propagation": _names("blocked", blocked),
    }
    return ShardingRule(rule, lists, sizes)


def checked_rule(what: str, rule: Any) -> ShardingRule:
    """Convert a rule or its text to a rule. Raises ShardingError for anything else."""
    if isinstance(rule, str):
        return sharding_rule(rule)
    if not isinstance(rule, ShardingRule):
        raise ShardingError(message(what, "a rule must be made by sharding_rule, or be its text", repr(rule)))
    return rule
