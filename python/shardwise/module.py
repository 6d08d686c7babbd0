# SPDX-License-Identifier: Apache-2.0
"""Programs as text: StableHLO with Shardy's attributes, read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from . import _core
from .errors import ShardingError, message
from .explanations import Explanation, explanation_of
from .op_rules import ShardingRule, sharding_rule

__all__ = ["Module", "parse"]

Strategy = Literal["aggressive", "basic"]
_PROGRAM_TEXT = "program text"  # what a text without a file is called


@dataclass(frozen=True)
class _Propagation:
    """Passes of which the last one propagates, and their options."""

    passes: tuple[str, ...] = ("propagate",)
    strategy: Strategy = "aggressive"
    conservative: bool = False
    strict_divisible: bool = False


@dataclass(frozen=True)
class _Origin:
    """How a module came to be: a text, and what was done to it up to its last propagation.

    ``why`` reads the text again for the names and lines of its values, which are not kept beside a program.
    """

    text: str
    file: str
    steps: tuple[Callable[[Any], Any], ...] = ()
    propagation: _Propagation | None = None

    def then(self, step: Callable[[Any], Any]) -> _Origin:
        return _Origin(self.text, self.file, (*self._all_steps(), step))

    def propagated(self, propagation: _Propagation) -> _Origin:
        return _Origin(self.text, self.file, self._all_steps(), propagation)

    def _all_steps(self) -> tuple[Callable[[Any], Any], ...]:
        if self.propagation is None:
            return self.steps
        return (*self.steps, _runner(self.propagation))

    def module(self) -> Any:
        """What was propagated, or will be, with its names."""
        module = _core.ir.parse(self.text, self.file, name_values=True)
        for step in self.steps:
            module = step(module)
        return module


def _runner(run: _Propagation) -> Callable[[Any], Any]:
    return lambda core: _core.passes.run_passes(core, run.passes, run.strategy, run.strict_divisible, run.conservative)


class Module:
    """A program at some stage; ``str(module)`` is its text. Made by :func:`parse`.

    Two modules are equal when their structure is: the same ops, operands, attributes, types and shardings.
    """

    __slots__ = ("_core", "_origin")

    def __init__(self, core: _core.ir.Module, origin: _Origin | None = None) -> None:
        self._core = core
        self._origin = origin

    def as_text(self, *, locations: bool = False, generic: bool = False) -> str:
        """The text; ``locations`` appends ``loc(...)``, ``generic`` uses MLIR's generic form."""
        return self._core.text(locations=locations, generic=generic)

    def to_json(self) -> str:
        """``{"format": "shardwise", "version": 1, "stablehlo": …}``; :meth:`from_json` reads it back."""
        return self._core.to_json()

    @classmethod
    def from_json(cls, text: str) -> Module:
        """The module that :meth:`to_json` wrote. Raises ParseError for anything else, and for newer versions."""
        return cls(_core.ir.module_from_json(text))

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
        strategy: Strategy = "aggressive",
        *,
        strict_divisible: bool = False,
        conservative: bool = False,
    ) -> Module:
        """The program with a sharding for every value, as the compiler gives it: all dims are closed.

        Args:
            strategy: how conflicts are settled, as in :func:`jit`.
            strict_divisible: shrink shardings of arguments and results until they divide the shapes, as Shardy does.
            conservative: propagate only what asks for no exchange and no part of an axis.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> print(parse(text).propagate().as_text().splitlines()[3].strip())
        %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        """
        return self.run("propagate", strategy=strategy, strict_divisible=strict_divisible, conservative=conservative)

    def why(
        self,
        name: str,
        *,
        strategy: Strategy | None = None,
        conservative: bool | None = None,
        strict_divisible: bool | None = None,
        counterfactual: bool = False,
    ) -> Explanation:
        """Where shardings come from, as :meth:`Program.why` says it.

        Of a module that was propagated, by :meth:`propagate` or :meth:`run`, the last propagation is explained; any
        other is propagated for it.

        Args:
            name: a value's in the text that was parsed, ``"%0"`` or ``"%r#1"``, or a given one; where functions of the
                text share a name, ``"@f %0"``, which has a value for every call of ``@f``; an op,
                ``"dot_general[0]"``; or a line, ``"train.py:12"``: of the source that ``loc(...)`` tells, of the text
                itself where it tells none.
            strategy, conservative, strict_divisible: as of :meth:`propagate`; of a module that was propagated they are
                known.
            counterfactual: say what would happen without each annotation, too.

        Raises:
            KeyError: nothing of the program is called so, or values of several functions are.
            ShardingError: another strategy than the one that the module was propagated with.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %h = stablehlo.tanh %a : tensor<8xf32>
        ...   return %h : tensor<8xf32>
        ... }'''
        >>> parse(text, "tanh.mlir").why("%h")
        %h (tanh.mlir:3) is tensor<8xf32>, sharded [{"x"}] by aggressive propagation.
          dim 0 is split over "x": it comes from argument %a at tanh.mlir:2
            through %h = stablehlo.tanh (tanh.mlir:3): operand 0 dim 0 → result 0 dim 0, factor i, round 0
        >>> parse(text).why("tanh", counterfactual=True).values[0].counterfactuals[0].sharding
        '[{}]'
        """
        asked = {"strategy": strategy, "conservative": conservative, "strict_divisible": strict_divisible}
        asked = {option: value for option, value in asked.items() if value is not None}
        origin = self._origin or _Origin(self._core.text(locations=True), _PROGRAM_TEXT)
        run = origin.propagation
        if run is None:
            run = _Propagation(**asked)  # type: ignore[arg-type]
        for option, value in asked.items():
            known = getattr(run, option)
            if value != known:
                way_out = "ask the module before it was propagated"
                raise ShardingError(
                    message("why", f"{option} must be that of the propagation, {known!r}", repr(value), way_out)
                )
        module = origin.module()
        propagated = _core.passes.propagate_program(
            module, run.strategy, run.passes, run.conservative, run.strict_divisible
        )
        return explanation_of(propagated, name, counterfactual)

    def run(
        self,
        *passes: str,
        strategy: Strategy = "aggressive",
        strict_divisible: bool = False,
        conservative: bool = False,
    ) -> Module:
        """The program after these passes, one after another; ``shardwise opt --help`` lists them.

        Raises:
            ShardingError: a name that no pass has, or shardings that a pass cannot work with. ShapeError, DTypeError,
                UnsupportedError: an op that the pass cannot work with.

        >>> parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }").run("simplify")
        <module of 0 ops>
        """
        origin = self._origin
        if origin is not None and passes:
            last = max((i for i, name in enumerate(passes) if name.startswith("propagate")), default=None)
            run = _Propagation(passes[: None if last is None else last + 1], strategy, conservative, strict_divisible)
            origin = origin.then(_runner(run)) if last is None else origin.propagated(run)
        return Module(_core.passes.run_passes(self._core, passes, strategy, strict_divisible, conservative), origin)

    def with_sharding_rule(self, op: str, rule: ShardingRule | str, *, index: int | None = None) -> Module:
        """The program with a rule of yours on ops: propagation follows it in place of the ops' own.

        What the ops compute does not change, so a rule can lead to other shardings, never to other numbers.

        Args:
            op: the name of ops, such as ``"stablehlo.dot_general"``, or the target of custom calls.
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
        rule = sharding_rule(rule) if isinstance(rule, str) else rule
        rows = self._core.op_list()
        found = [number for number, row in enumerate(rows) if op in row[:2]]
        if index is not None:
            found = found[index : index + 1] if index >= 0 else []
        if not found:
            names = ", ".join(sorted({target or name for name, target, *_ in rows}))
            got = repr(op) if index is None else f"{op!r}, index {index}"
            raise ShardingError(
                message("with_sharding_rule", "an op must be one of the program", got, f"it has {names}")
            )
        rules = {n: rule.text(rows[n][2], rows[n][3]) for n in found}

        def ruled(core: Any) -> Any:
            return core.with_sharding_rules(rules)

        return Module(ruled(self._core), self._origin and self._origin.then(ruled))

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


def parse(text: str, filename: str = "") -> Module:
    """Read a program: MLIR's generic form, or StableHLO's pretty forms as JAX prints them, with ``sdy`` attributes.

    Args:
        text: the program.
        filename: where it was read: ops without ``loc(...)`` are said to be at ``filename:line``, in errors of passes
            as in :meth:`Module.why`, which says ``program text:line`` without it.

    Raises:
        ParseError: malformed text, an unknown op, or an op that does not check; with ``.line`` and ``.column``.

    Source: the StableHLO specification; Shardy's attributes.
    """
    return Module(_core.ir.parse(text, filename), _Origin(text, filename or _PROGRAM_TEXT))
