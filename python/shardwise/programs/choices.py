# SPDX-License-Identifier: Apache-2.0
"""The decisions of the partitioner, as data: read them, keep them, compare them, pin them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import ShardingError, message, shown
from ..hardware import list as hardware_names
from ..reports.decisions import ChosenOp
from ..reports.tables import aligned
from ..viz import choices_html
from .options import checked_options, options_among
from .partition_options import DEFAULT_OPTIONS, Objective, PartitionOptions

__all__ = ["Choices", "ChosenOp", "checked_choices", "choices_of", "rows_of"]

FORMAT: Final = "shardwise.choices"
VERSION: Final = 1
STATE_LAST: Final = "state last"  # of `propagation`
TEXTS: Final = ("sources", "carries", "exchanges")  # the fields that map keys to texts


@dataclass(frozen=True)
class Choices:
    """The decisions of one compilation: :attr:`Program.choices`.

    Keys name what a decision is about in the traced program: ``"12"`` is its op 12, and ``"12.1"`` the second op that
    the compiler made for it; values have numbers of their own. Shardings are strings without sizes. So choices can be
    pinned for a mesh with the same axes and other sizes. What has no entry is chosen freely: a few entries can be
    pinned alone.

    Attributes:
        ops: how each op is computed. An accumulation in a loop is chosen as a whole: see ``carries``.
        plans: the collectives of each reshard, by name, with ``"all_slice"`` for a slice; nothing for a reshard that
            moves nothing.
        sources: the sharding from which a value is resharded, where it could start from several:
            ``{'20 -> [{}]': '[{"x"}]'}``; ``"operand"`` if the elementwise op that made it is computed again, on a
            narrower dtype that moved.
        carries: the sharding of each carry into which a loop accumulates what is unreduced; ``""`` if the sum is
            reduced in each trip.
        exchanges: what became of each exchange that could be ``"merged"`` into its user or ``"sliced"`` from a value
            that all devices gather, and of those of one value that could be ``"joined"`` (key ``"of 20"``); ``"kept"``
            if they were not.
        program: the fingerprint of the program: its ops, ranks, dtypes and names of axes, not its sizes. With "", the
            choices are tried on any program.
        propagation: ``"state last"`` where what the program updates, such as weights, was propagated after all else,
            since loops take less time like that; or "".
        options: the options of the partitioner that it was given, as :func:`jit` takes them.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> x = np.ones((8, 4), np.float32)
    >>> shardings = {"in_shardings": sw.P("x"), "out_shardings": sw.P(None, "x")}
    >>> program = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2}), **shardings).lower(x).compile()
    >>> program.choices.ops
    {'2': ChosenOp(op='stablehlo.add', method='', operands=('[{"x"}, {}]', '[{"x"}, {}]'), results=('[{"x"}, {}]',))}
    >>> program.choices.plans
    {'2': ('all_to_all',)}
    >>> print(program.choices)
    ops  op             method  operands                  results      keys
      1  stablehlo.add          [{"x"}, {}], [{"x"}, {}]  [{"x"}, {}]  2
    reshards  by          keys
           1  all_to_all  2
    by time on default, program da6b11563c2e79c0
    >>> larger = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 4}), choices=program.choices, **shardings)
    >>> larger.lower(x).compile().choices == program.choices
    True
    """

    ops: Mapping[str, ChosenOp] = field(default_factory=dict)
    plans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    carries: Mapping[str, str] = field(default_factory=dict)
    exchanges: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    options: PartitionOptions = DEFAULT_OPTIONS
    propagation: str = ""

    def __str__(self) -> str:
        """Equal decisions together, in the order of the program; ``repr`` has all of them, by key."""
        groups: dict[tuple[str, str, str, str], list[str]] = {}
        for at, op in self.ops.items():
            row = (op.op, op.method, ", ".join(op.operands), ", ".join(op.results))
            groups.setdefault(row, []).append(at)
        header = ["ops", "op", "method", "operands", "results", "keys"]
        rows = [[str(len(keys)), *row, _first(keys)] for row, keys in groups.items()]
        parts = [aligned(header, rows, frozenset({0}))] if rows else []
        moves: dict[str, list[str]] = {}
        for at, plan in self.plans.items():
            moves.setdefault(" then ".join(plan) or "nothing", []).append(at)
        if moves:
            parts.append(
                aligned(
                    ["reshards", "by", "keys"],
                    [[str(len(k)), by, _first(k)] for by, k in moves.items()],
                    frozenset({0}),
                )
            )
        for name in TEXTS:
            found = getattr(self, name)
            parts += [f"{name}:", *(f"  {at}: {text}" for at, text in found.items())] if found else []
        named = self.options.hardware
        parts += [f"propagation: {self.propagation}"] if self.propagation else []
        parts.append(f"by {self.objective} on {getattr(named, 'name', named)}, program {self.program or 'any'}")
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return choices_html(self)

    @property
    def objective(self) -> Objective:
        """What the partitioner minimized."""
        return self.options.objective

    def to_dict(self) -> dict[str, Any]:
        """``{"format": "shardwise.choices", "version": 1, "program": …, "objective": …, "hardware": …, "ops": {key:
        {"op": …, "method": …, "operands": […], "results": […]}, …}, "plans": {key: […], …}, "sources": {key: …, …},
        "carries": …, "exchanges": …}``, and ``"propagation"`` where it is not "". Built-in hardware is its name, other
        hardware the whole file.
        """
        ops = {
            at: {**asdict(op), "operands": list(op.operands), "results": list(op.results)}
            for at, op in self.ops.items()
        }
        plans = {at: list(moves) for at, moves in self.plans.items()}
        texts = {name: dict(getattr(self, name)) for name in TEXTS}
        head = {"format": FORMAT, "version": VERSION, "program": self.program}
        if self.propagation:
            head["propagation"] = self.propagation
        return {**head, **self.options.to_dict(), "ops": ops, "plans": plans, **texts}

    def to_json(self) -> str:
        """The same as JSON; :meth:`from_json` reads it."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Choices:
        """The choices that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is not JSON of choices, or of choices of a newer version.
        """
        try:
            read = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise not_choices(text, str(error) or type(error).__name__) from error
        if not isinstance(read, dict) or read.get("format") != FORMAT:
            raise not_choices(text, f'no object with "format": "{FORMAT}"')
        version = read.get("version")
        if type(version) is not int or version != VERSION:
            rule, way_out = f"choices must be of version {VERSION}", "write them with this version of shardwise"
            raise ValueError(message("from_json", rule, f"version {shown(version)}", way_out))
        try:
            return cls._of_dict(read)
        except (AttributeError, KeyError, ShardingError, TypeError, ValueError) as error:
            raise not_choices(text, f"{type(error).__name__}: {error}") from error

    @classmethod
    def _of_dict(cls, read: Mapping[str, Any]) -> Choices:
        ops = {
            at: ChosenOp(str_of(op["op"]), str_of(op["method"]), texts_of(op["operands"]), texts_of(op["results"]))
            for at, op in read["ops"].items()
        }
        plans = {at: texts_of(moves) for at, moves in read["plans"].items()}
        texts = {name: {at: str_of(text) for at, text in read[name].items()} for name in TEXTS}
        given = options_among(PartitionOptions, read)
        # A name or a whole file: a path in a text would open any file.
        if isinstance(given["hardware"], str) and given["hardware"] not in hardware_names():
            raise ValueError(f"no built-in hardware is called {given['hardware']!r}")
        options = checked_options("from_json", PartitionOptions(), **given)
        order = str_of(read.get("propagation", ""))
        if order not in ("", STATE_LAST):
            raise ValueError(f"propagation must be {STATE_LAST!r}, got {shown(order)}")
        return cls(ops, plans, **texts, program=str_of(read["program"]), options=options, propagation=order)


def _first(keys: list[str]) -> str:
    """The keys of a group, at most four."""
    return ", ".join(keys[:4]) + (f", … {len(keys) - 4} more" if len(keys) > 4 else "")


def not_choices(text: Any, why: str) -> ValueError:
    """The error for a text that is not JSON of choices."""
    got = f"{shown(text[:60] if isinstance(text, str) else text)}: {why[:200]}"
    return ValueError(message("from_json", "takes the JSON of choices", got, "write it by choices.to_json()"))


def str_of(value: Any) -> str:
    """``value``, which must be a str."""
    if not isinstance(value, str):
        raise TypeError(f"must be a string, got {shown(value)}")
    return value


def texts_of(values: Any) -> tuple[str, ...]:
    """The strings of a list."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"must be a list of strings, got {shown(values)}")
    return tuple(map(str_of, values))


def choices_of(rows: tuple[Any, ...], options: PartitionOptions) -> Choices:
    """The choices of the extension's rows."""
    program, ops, plans, sources, carries, exchanges, order = rows
    chosen = {at: ChosenOp(op, method, tuple(operands), tuple(results)) for at, op, method, operands, results in ops}
    moves = {at: tuple(names) for at, names in plans}
    return Choices(chosen, moves, dict(sources), dict(carries), dict(exchanges), program, options, order)


_Texts = list[tuple[str, str]]
_Ops = list[tuple[str, str, str, list[str], list[str]]]


def rows_of(
    choices: Choices | None,
) -> tuple[str, _Ops, list[tuple[str, list[str]]], _Texts, _Texts, _Texts, str] | None:
    """The choices as the extension takes them."""
    if choices is None:
        return None
    ops = [(at, op.op, op.method, list(op.operands), list(op.results)) for at, op in choices.ops.items()]
    plans = [(at, list(moves)) for at, moves in choices.plans.items()]
    sources, carries, exchanges = (list(getattr(choices, name).items()) for name in TEXTS)
    return choices.program, ops, plans, sources, carries, exchanges, choices.propagation


_T = TypeVar("_T")


class Numbers(NamedTuple):
    """The numbers of the ops and of the values of a module, in the order of its text."""

    ops: tuple[int, ...]
    values: tuple[int, ...]

    @classmethod
    def of(cls, module: Any) -> Numbers:
        """Those of a module of the extension."""
        ops: list[int] = []
        values: list[int] = []

        def add(region: Any) -> None:
            values.extend(value.number for value in region.arguments)
            for op in region.ops:
                ops.append(op.number)
                values.extend(value.number for value in op.results)
                for inner in op.regions:
                    add(inner)

        for function in module.functions:
            add(function.body)
        return cls(tuple(ops), tuple(values))


def renumbered(choices: Choices, old: Numbers, new: Numbers) -> Choices:
    """The choices of a module with the numbers ``old``, for an equal module with the numbers ``new``."""
    ops, values = dict(zip(old.ops, new.ops)), dict(zip(old.values, new.values))

    def key(at: str, numbers: dict[int, int]) -> str:
        found = re.fullmatch(r"(of )?(\d+)(.*)", at, re.DOTALL)
        if found is None:
            return at
        number = int(found[2])
        return f"{found[1] or ''}{(values if found[1] else numbers).get(number, number)}{found[3]}"

    def of(mapping: Mapping[str, _T], numbers: dict[int, int]) -> dict[str, _T]:
        return {key(at, numbers): value for at, value in mapping.items()}

    return replace(
        choices,
        ops=of(choices.ops, ops),
        plans=of(choices.plans, ops),
        exchanges=of(choices.exchanges, ops),
        sources=of(choices.sources, values),
        carries=of(choices.carries, values),
    )


def checked_choices(what: str, choices: Any) -> Choices | None:
    """``choices``, or None. Raises TypeError for anything else, and for entries of other types."""
    if choices is None:
        return None
    if not isinstance(choices, Choices):
        hint = "read them by Choices.from_json()" if isinstance(choices, (str, Mapping)) else "pass program.choices"
        raise TypeError(message(what, "choices must be those of a program", shown(choices), hint))
    kinds: dict[str, Any] = {"ops": ChosenOp, "plans": (tuple, list), **dict.fromkeys(TEXTS, str)}
    for name, kind in kinds.items():
        entries = getattr(choices, name)
        if not isinstance(entries, Mapping):
            raise TypeError(message(what, f"choices.{name} must be a mapping", shown(entries)))
        for at, entry in entries.items():
            if not isinstance(at, str) or not isinstance(entry, kind):
                rule = f"choices.{name} must map strings to {'a ChosenOp' if name == 'ops' else 'texts'}"
                raise TypeError(message(what, rule, f"{shown(at)}: {shown(entry)}"))
    if not isinstance(choices.options, PartitionOptions):
        raise TypeError(message(what, "choices.options must be PartitionOptions", shown(choices.options)))
    return choices
