# SPDX-License-Identifier: Apache-2.0
"""The decisions of the partitioner, as data: read them, keep them, compare them, pin them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..errors import ShardingError, message, shown
from .options import checked_options, options_among
from .partition_options import Objective, PartitionOptions

__all__ = ["Choices", "ChosenOp", "checked_choices", "choices_of", "rows_of"]

TEXTS: Final = ("sources", "carries", "exchanges")  # the fields that are lists of texts


@dataclass(frozen=True)
class ChosenOp:
    """How one op is computed.

    Attributes:
        op: its name in the program text, ``"stablehlo.dot_general"``.
        method: the method that computes it instead of its sharding rule, such as ``"exchange"``; "" by the rule.
        operands: the sharding that it takes of each operand.
        results: the sharding of each result, with the axes over which it is left unreduced.
    """

    op: str
    method: str
    operands: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """The decisions of one compilation, in program order: :attr:`Program.choices`.

    Shardings are strings without sizes. So choices can be pinned for a mesh with the same axes and other sizes.

    Attributes:
        ops: how each op is computed. An accumulation in a loop is chosen as a whole: see ``carries``.
        plans: the collectives of each reshard, by name, with ``"all_slice"`` for a slice; nothing for a reshard that
            moves nothing.
        options: the options of the partitioner that it was given, as :func:`jit` takes them.
        sources: the sharding from which a value is resharded, for each reshard that could start from several;
            ``"operand"`` if the elementwise op that made it is computed again, on a narrower dtype that moved.
        carries: the sharding of each carry into which a loop accumulates what is unreduced; ``""`` if the sum is
            reduced in each trip.
        exchanges: what became of each exchange that could be ``"merged"`` into its user, ``"joined"`` with others of
            the same value, or ``"sliced"`` from a value that all devices gather; ``"kept"`` if it was not.

    >>> import numpy as np
    >>> import shardwise as sw
    >>> x = np.ones((8, 4), np.float32)
    >>> shardings = {"in_shardings": sw.P("x"), "out_shardings": sw.P(None, "x")}
    >>> program = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2}), **shardings).lower(x).compile()
    >>> program.choices.ops[0]
    ChosenOp(op='stablehlo.add', method='', operands=('[{"x"}, {}]', '[{"x"}, {}]'), results=('[{"x"}, {}]',))
    >>> program.choices.plans
    (('all_to_all',),)
    >>> larger = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 4}), choices=program.choices, **shardings)
    >>> larger.lower(x).compile().choices == program.choices
    True
    """

    ops: tuple[ChosenOp, ...]
    plans: tuple[tuple[str, ...], ...]
    options: PartitionOptions = PartitionOptions()
    sources: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()

    @property
    def objective(self) -> Objective:
        """What the partitioner minimized."""
        return self.options.objective

    def to_dict(self) -> dict[str, Any]:
        """``{"ops": [{"op": …, "method": …, "operands": […], "results": […]}, …], "plans": [[…], …],
        "objective": …, "sources": […], "carries": […], "exchanges": […]}``.
        """
        ops = [{**asdict(op), "operands": list(op.operands), "results": list(op.results)} for op in self.ops]
        plans = [list(plan) for plan in self.plans]
        texts = {name: list(getattr(self, name)) for name in TEXTS}
        return {"ops": ops, "plans": plans, **vars(self.options), **texts}

    def to_json(self) -> str:
        """The same as JSON; :meth:`from_json` reads it."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Choices:
        """The choices that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is not JSON of choices.
        """
        try:
            read = json.loads(text)
            ops = [
                ChosenOp(op["op"], op["method"], tuple(map(str, op["operands"])), tuple(map(str, op["results"])))
                for op in read["ops"]
            ]
            plans = tuple(tuple(map(str, plan)) for plan in read["plans"])
            texts = {name: tuple(map(str, read.get(name, ()))) for name in TEXTS}
            options = checked_options("from_json", PartitionOptions(), **options_among(PartitionOptions, read))
            return cls(tuple(ops), plans, options, **texts)
        except (AttributeError, KeyError, ShardingError, TypeError, ValueError) as error:
            raise ValueError(
                message("from_json", "takes the JSON of choices", shown(text), "write it by choices.to_json()")
            ) from error


def choices_of(rows: tuple[Any, ...], options: PartitionOptions) -> Choices:
    """The choices of the extension's rows."""
    ops, plans, *texts = rows
    chosen = (ChosenOp(op, method, tuple(operands), tuple(results)) for op, method, operands, results in ops)
    return Choices(tuple(chosen), tuple(map(tuple, plans)), options, *map(tuple, texts))


def rows_of(
    choices: Choices | None,
) -> tuple[list[tuple[str, str, list[str], list[str]]], list[list[str]], list[str], list[str], list[str]] | None:
    """The choices as the extension takes them."""
    if choices is None:
        return None
    ops = [(op.op, op.method, list(op.operands), list(op.results)) for op in choices.ops]
    plans = [list(plan) for plan in choices.plans]
    return ops, plans, list(choices.sources), list(choices.carries), list(choices.exchanges)


def checked_choices(what: str, choices: Any) -> Choices | None:
    """``choices``, or None. Raises TypeError for anything else."""
    if choices is not None and not isinstance(choices, Choices):
        hint = "read them by Choices.from_json()" if isinstance(choices, (str, Mapping)) else "pass program.choices"
        raise TypeError(message(what, "choices must be those of a program", shown(choices), hint))
    return choices
