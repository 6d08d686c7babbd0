# SPDX-License-Identifier: Apache-2.0
"""Programs as text: StableHLO with Shardy's attributes, read and written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import ShardingError, message
from .explanations import Explanation, explanation_of
from .op_rules import ShardingRule, sharding_rule
from .propagation_options import DEFAULTS, PropagationOptions, Strategy, options

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Module", "parse"]


class Module:
    """A program at some stage; ``str(module)`` is its text. Made by :func:`parse`, or by recording a function.

    Two modules are equal when their structure is: the same ops, operands, attributes, types and shardings.
    """

    __slots__ = ("_core", "_options")

    def __init__(self, core: _core.ir.Module, options: PropagationOptions = DEFAULTS) -> None:
        self._core = core
        self._options = options  # of propagation, where a call says nothing

    def _with(self, core: _core.ir.Module) -> Self:
        """The same stage of another program."""
        return type(self)(core, self._options)

    def as_text(self, *, locations: bool = False, generic: bool = False) -> str:
        """The text; ``locations`` appends ``loc(...)``, ``generic`` uses MLIR's generic form."""
        return self._core.text(locations=locations, generic=generic)

    def to_json(self) -> str:
        """``{"format": "shardwise", "version": 1, "stablehlo": …}``; :meth:`from_json` reads it back."""
        return self._core.to_json()

    @classmethod
    def from_json(cls, text: str) -> Module:
        """The module that :meth:`to_json` wrote. Raises ParseError for anything else, and for newer versions."""
        return Module(_core.ir.module_from_json(text))

    def sharding_rules(self) -> list[tuple[str, str]]:
        """The name of every op of main and its sharding rule, "" where it has none.

        >>> text = "func.func @main(%x: tensor<4x2xf32>) -> tensor<8xf32> {" \\
        ...        "%0 = stablehlo.reshape %x : (tensor<4x2xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }"
        >>> parse(text).sharding_rules()
        [('stablehlo.reshape', '([i, j])->([ij]) {i=4, j=2}')]
        """
        return [(name, rule) for name, rule in self._core.sharding_rules()]

    def propagate(
        self,
        strategy: Strategy | None = None,
        *,
        strict_divisible: bool | None = None,
        conservative: bool | None = None,
    ) -> Module:
        """The program with a sharding for every value, as the compiler gives it: all dims are closed.

        What is not given is as :func:`jit` was told for this program; for a text, its default.

        Args:
            strategy: how conflicts are settled: ``"aggressive"``, each tensor takes what it can; ``"basic"``, only what
                all tensors of an op agree on.
            strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
            conservative: propagate only what asks for no exchange and no part of an axis.

        Raises:
            ShardingError: no such strategy, or shardings that do not fit.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> print(parse(text).propagate().as_text().splitlines()[3].strip())
        %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        """
        how = options("propagate", strategy, conservative, strict_divisible, self._options)
        return self._run(("propagate",), how)

    def why(
        self,
        name: str,
        *,
        strategy: Strategy | None = None,
        conservative: bool | None = None,
        strict_divisible: bool | None = None,
        counterfactual: bool = False,
    ) -> Explanation:
        """Where shardings of the propagated program come from, as :meth:`Program.why` says it.

        Args:
            name: a value's in the text of this module, ``"%0"``, or a given one; an op, ``"dot_general[0]"``; or a
                line, ``"train.py:12"``, where the text has locations.
            strategy, conservative, strict_divisible: as of :meth:`propagate`.
            counterfactual: say what would happen without each annotation, too.

        Raises:
            KeyError: nothing of the program is called so. ShardingError: no such strategy.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> parse(text).why("tanh", counterfactual=True).values[0].counterfactuals[0].sharding
        '[{}]'
        """
        how = options("why", strategy, conservative, strict_divisible, self._options)
        named = self._named_for(asked_for(name))
        return explanation_of(_core.passes.propagate_program(named, **how.as_arguments()), name, counterfactual)

    def _named_for(self, name: str) -> _core.ir.Module:
        """The program with the names that ``name`` can be one of: here those of its text, ``"%0"``."""
        return _core.ir.parse(self._core.text(locations=True), "", name_values=True)

    def run(
        self,
        *passes: str,
        strategy: Strategy | None = None,
        strict_divisible: bool | None = None,
        conservative: bool | None = None,
    ) -> Module:
        """The program after these passes, one after another; ``shardwise opt --help`` lists them.

        Args:
            passes: names; ``-`` and ``_`` mean the same in them.
            strategy, strict_divisible, conservative: as of :meth:`propagate`. The passes that are one level of
                propagation, such as ``"propagate_basic"``, have a strategy in their name.

        Raises:
            ShardingError: a name that no pass has, or shardings that a pass cannot work with. ShapeError, DTypeError,
                UnsupportedError: an op that the pass cannot work with.

        >>> parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }").run("simplify")
        <module of 0 ops>
        """
        for name in passes:
            if not isinstance(name, str):
                raise ShardingError(message("run", "takes names of passes", repr(name), "see shardwise opt --help"))
        return self._run(passes, options("run", strategy, conservative, strict_divisible, self._options))

    def _run(self, passes: tuple[str, ...], how: PropagationOptions) -> Module:
        return Module(_core.passes.run_passes(self._core, passes, **how.as_arguments()))

    def with_sharding_rule(self, op: str, rule: ShardingRule | str, *, index: int | None = None) -> Self:
        """The program with a rule of yours on ops: propagation follows it in place of the ops' own.

        What the ops compute does not change, so a rule can lead to other shardings, never to other numbers.

        Args:
            op: the name of ops, such as ``"stablehlo.dot_general"`` or ``"dot_general"``, or the target of custom
                calls; ``"dot_general[0]"`` is the first of them, as :meth:`why` has it.
            rule: made by :func:`sharding_rule`, or its text.
            index: which of these ops, counted from 0 in the order of the text; all of them unless given.

        Raises:
            ShardingError: no such op, or shapes that the rule does not fit.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> parse(text).with_sharding_rule("stablehlo.tanh", "i -> j").propagate().as_text().count("@mesh, [{}]")
        2
        """
        rule = checked_rule("with_sharding_rule", rule)
        rows = self._core.op_list()
        found = _ops_called(op, index, rows)
        if not found:
            names = ", ".join(sorted({target or name for name, target, *_ in rows}))
            got = repr(op) if index is None else f"{op!r}, index {index}"
            raise ShardingError(
                message("with_sharding_rule", "an op must be one of the program", got, f"it has {names}")
            )
        return self._with(self._core.with_sharding_rules({n: rule.text(rows[n][2], rows[n][3]) for n in found}))

    def verify(self) -> None:
        """Check every op, type and sharding; raises the error of the first thing wrong."""
        self._core.verify()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self._core.structurally_equal(other._core)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f"<module of {self._core.op_count} ops>"


def asked_for(name: Any) -> str:
    """What ``why`` was asked about; TypeError for what is no text."""
    if not isinstance(name, str):
        raise TypeError(message("why", "takes the name of a value, an op or FILE:LINE", repr(name)))
    return name


def checked_rule(what: str, rule: Any) -> ShardingRule:
    """A rule that was given as such, or as its text; ShardingError for anything else."""
    if isinstance(rule, str):
        return sharding_rule(rule)
    if not isinstance(rule, ShardingRule):
        raise ShardingError(message(what, "a rule must be made by sharding_rule, or be its text", repr(rule)))
    return rule


def _ops_called(op: Any, index: int | None, rows: list[Any]) -> list[int]:
    """The places in ``rows`` of the ops of this name, or of one of them."""
    wanted = re.fullmatch(r"(.*)\[(\d+)\]", op) if isinstance(op, str) and index is None else None
    name, index = (op, index) if wanted is None else (wanted[1], int(wanted[2]))
    found = [number for number, (full, target, *_) in enumerate(rows) if name in (full, full.partition(".")[2], target)]
    if index is not None:
        found = found[index : index + 1] if index >= 0 else []
    return found


def parse(text: str) -> Module:
    """Read a program: MLIR's generic form, or StableHLO's pretty forms as JAX prints them, with ``sdy`` attributes.

    Raises:
        ParseError: malformed text, an unknown op, or an op that does not check; with ``.line`` and ``.column``.

    Source: the StableHLO specification; Shardy's attributes.
    """
    return Module(_core.ir.parse(text))
