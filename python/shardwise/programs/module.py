# SPDX-License-Identifier: Apache-2.0
"""Programs as text: StableHLO with Shardy's attributes, read, written, compiled and run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Self, Unpack

from .. import _core
from ..errors import ShardingError, expect_text, message
from ..process.implementations import IMPLEMENTATIONS
from ..process.traceback_filtering import entry_point, entry_points
from ..reports.explanations import Explanation, explanation_of
from ..reports.promotions import Promotions, promotions_of
from ..viz import module_html
from .op_rules import ShardingRule, checked_rule
from .options import check_keywords, checked_options, switch, takes_options
from .propagation_options import (
    DEFAULTS,
    PropagationKeywords,
    PropagationOptions,
    PropagationSwitches,
    Strategy,
    options_of_passes,
)

if TYPE_CHECKING:
    from ..shardings.mesh import Mesh
    from .stages import Program

__all__ = ["Module", "parse"]

_PROPAGATING = frozenset(_core.passes.propagating_passes())
_PASSES = _core.passes.pass_names()
_PASSES_OF_COMPILE = tuple(_PASSES[: _PASSES.index("propagate") + 1])
_PASSES_WITH_CALLS = tuple(name for name in _PASSES_OF_COMPILE if name != "inline_calls")
Step = Callable[[Any], Any]  # from a module of the extension to another one


@dataclass(frozen=True)
class Propagation:
    """Passes and their options. ``why`` explains passes whose last one propagates."""

    passes: tuple[str, ...] = ("propagate",)
    how: PropagationOptions = DEFAULTS

    def __call__(self, core: Any) -> Any:
        return _core.passes.run_passes(core, self.passes, **self.how.as_arguments())


@dataclass(frozen=True)
class _Text:
    """The first program of an origin, read from a text."""

    text: str
    filename: str

    def __call__(self, name: str) -> Any:
        return _core.ir.parse(self.text, self.filename, name_values=True)


@dataclass(frozen=True)
class Origin:
    """How a module was made: a first program, and the steps up to and after its last propagation.

    ``first`` makes that program again, with the value names that ``why`` looks up. Modules do not keep these names.
    """

    first: Callable[[str], Any]
    steps: tuple[Step, ...] = ()
    propagation: Propagation | None = None
    after: tuple[Step, ...] = ()  # steps on the propagated program

    @property
    def is_data(self) -> bool:
        """Whether a text and known passes make the program, so that the origin can be pickled."""
        steps = (*self.steps, *self.after)
        return isinstance(self.first, _Text) and all(isinstance(x, (Propagation, methodcaller)) for x in steps)

    def then(self, step: Step) -> Origin:
        if self.propagation is None:
            return replace(self, steps=(*self.steps, step))
        return replace(self, after=(*self.after, step))

    def propagated(self, propagation: Propagation) -> Origin:
        before = () if self.propagation is None else (self.propagation,)
        return Origin(self.first, (*self.steps, *before, *self.after), propagation)

    def module(self, name: str) -> Any:
        """The input of the last propagation, or of the next one, with value names."""
        module = self.first(name)
        for step in self.steps:
            module = step(module)
        return module


def origin_of_text(text: str, filename: str = "") -> Origin:
    """The origin of a parsed program, with the names and lines of its text."""
    return Origin(_Text(text, filename or _core.ir.PROGRAM_TEXT))


def _to_explain(origin: Origin, run: Propagation, name: str) -> Any:
    """The program that the last of these passes propagates, with the names that ``why`` looks up."""
    return _core.passes.propagate_program(origin.module(name), names=run.passes, **run.how.as_arguments())


def _explained(program: Any, name: str, counterfactual: bool) -> Explanation | None:
    try:
        return explanation_of(program, name, counterfactual)
    except KeyError:
        return None


def _border(program: Any) -> list[str]:
    """The shardings of the arguments and results of a propagated program."""
    body = program.module.main.body
    shardings = [value.sharding for value in (*body.arguments, *body.results)]
    return ["" if sharding is None else sharding.dims_text() for sharding in shardings]


def text_options(locations: Any, generic: Any) -> dict[str, bool]:
    """The options of ``as_text`` for the extension. Raises ShardingError for a value that is not a bool."""
    given = {"locations": locations, "generic": generic}
    return {name: switch("as_text", name, value, False) for name, value in given.items()}


def text_of_core(core: _core.ir.Module) -> str:
    """All of a module as text, for pickles; :func:`core_of_text` reads it."""
    text: str = core.text(locations=True, generic=True)  # pretty forms have no names for arguments of loops
    return text


def core_of_text(text: str) -> _core.ir.Module:
    """The module of a pickle."""
    module: _core.ir.Module = _core.ir.parse(text, _core.ir.PROGRAM_TEXT)
    return module


def _unpickled(text: str, options: PropagationOptions, origin: Origin | None) -> Module:
    return Module(core_of_text(text), options, origin or origin_of_text(text))


@entry_points
class Module:
    """A program at some stage, made by :func:`parse` or by tracing a function. ``str(module)`` is its text.

    Two modules are equal if they have the same ops, operands, attributes, types and shardings.
    """

    __slots__ = ("_core", "_options", "_origin")

    def __init__(
        self, core: _core.ir.Module, options: PropagationOptions = DEFAULTS, origin: Origin | None = None
    ) -> None:
        self._core = core
        self._options = options  # of propagation, unless a call specifies others
        self._origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        """Modules are pickled as text, with locations."""
        origin = self._origin
        return _unpickled, (text_of_core(self._core), self._options, origin if origin and origin.is_data else None)

    def _changed(self, step: Step) -> Self:
        """Apply a step that keeps the stage."""
        return type(self)(step(self._core), self._options, self._origin and self._origin.then(step))

    def as_text(self, *, locations: bool = False, generic: bool = False) -> str:
        """The text of the program. ``locations`` appends ``loc(...)``; ``generic`` uses MLIR's generic form."""
        return self._core.text(**text_options(locations, generic))

    def to_json(self) -> str:
        """JSON text ``{"format": "shardwise", "version": 1, "stablehlo": …}``, for :meth:`from_json`."""
        return self._core.to_json()

    @classmethod
    def from_json(cls, text: str) -> Module:
        """Read the module that :meth:`to_json` wrote. Raises ParseError for other text and for newer versions."""
        expect_text("Module.from_json", "text", text)
        return Module(_core.ir.module_from_json(text))

    def sharding_rules(self) -> list[tuple[str, str]]:
        """The name and the sharding rule of every op of main; "" for an op without a rule.

        >>> text = "func.func @main(%x: tensor<4x2xf32>) -> tensor<8xf32> {" \\
        ...        "%0 = stablehlo.reshape %x : (tensor<4x2xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }"
        >>> parse(text).sharding_rules()
        [('stablehlo.reshape', '([i, j])->([ij]) {i=4, j=2}')]
        """
        return self._core.sharding_rules()

    def promotions(self) -> Promotions:
        """Every op with a floating operand that is converted to a wider dtype, the first cause first.

        A float64 scalar promotes a float32 program. The first row names its line:

        >>> import numpy as np, shardwise as sw
        >>> f = sw.jit(lambda x, rate: x * rate, mesh=sw.Mesh({"x": 2}))
        >>> (row,) = f.trace(np.ones(4, np.float32), np.float64(0.1)).promotions()
        >>> row.op, row.operands, row.result, row.cause
        ('multiply', ('float32[4]', 'float64[]'), 'float64[4]', 'argument rate')
        """
        return promotions_of(self._core.ops)

    @takes_options(PropagationOptions)
    def propagate(
        self,
        strategy: Strategy | None = None,
        **options: Unpack[PropagationSwitches],
    ) -> Module:
        """Propagate shardings to every value, as the compiler does. All dims of the result are closed.

        Options that are None have the values that :func:`jit` got for this program; for parsed text, the defaults.

        Args:
            strategy: how conflicts are resolved: ``"aggressive"``, each tensor takes the axes that it can; ``"basic"``,
                only axes on which all tensors of an op agree propagate.
            options: ...

        Raises:
            ShardingError: an unknown strategy, or shardings that do not fit.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> print(parse(text).propagate().as_text().splitlines()[3].strip())
        %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
        """
        check_keywords("propagate", options, PropagationOptions)
        how = checked_options("propagate", self._options, strategy=strategy, **options)
        return self._apply(("propagate",), how)

    @takes_options(PropagationOptions)
    def why(
        self,
        name: str,
        *,
        counterfactual: bool = False,
        **options: Unpack[PropagationKeywords],
    ) -> Explanation:
        """Explain where shardings come from, like :meth:`Program.why`.

        For a module that :meth:`propagate` or :meth:`apply` propagated, this explains the last propagation. Any other
        module is propagated first, as it is written. :meth:`compile` first inlines calls and simplifies the program,
        which can change shardings; ``compile().why(name)`` explains these.

        Args:
            name: one of: a value in the parsed text, ``"%0"`` or ``"%r#1"``; if several functions use the name,
                ``"@f %0"``, which matches a value per call of ``@f``; a name given by :func:`shardwise.name`; an op,
                ``"dot_general[0]"``; or a line, ``"train.py:12"``, of the source in ``loc(...)``, or of the text if it
                has none.
            counterfactual: also propagate without each annotation, and report the difference.
            options: as in :meth:`propagate`. For a propagated module, they must be those of its propagation.

        Raises:
            KeyError: nothing has this name, or values of several functions have it.
            ShardingError: an unknown strategy, or another one than that of the module's propagation.

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
        check_question(name, counterfactual)
        check_keywords("why", options, PropagationOptions)
        origin = self._origin or origin_of_text(self._core.text(locations=True))
        run = origin.propagation
        how = checked_options("why", self._options if run is None else run.how, **options)
        run = Propagation(how=how) if run is None else run
        for option in fields(how):
            known, asked = getattr(run.how, option.name), getattr(how, option.name)
            if asked != known:
                way_out = "ask the module before it was propagated"
                rule = f"{option.name} must be that of the propagation, {known!r}"
                raise ShardingError(message("why", rule, repr(asked), way_out))
        return explanation_of(_to_explain(origin, run, name), name, bool(counterfactual))

    def _why_compiled(self, name: str, counterfactual: bool, how: PropagationOptions) -> Explanation:
        """Explain the shardings that :meth:`compile` propagates, which inlines calls and simplifies first."""
        origin = self._origin or origin_of_text(self._core.text(locations=True))
        if origin.propagation is not None:
            return explanation_of(_to_explain(origin, origin.propagation, name), name, counterfactual)
        program = _to_explain(origin, Propagation(_PASSES_OF_COMPILE, how), name)
        try:
            return explanation_of(program, name, counterfactual)
        except KeyError:
            # Inlining drops the names of what calls take and return. With the calls in place, these have the same
            # shardings, unless ops of several calls were merged.
            with_calls = _to_explain(origin, Propagation(_PASSES_WITH_CALLS, how), name)
            if _border(with_calls) == _border(program) and (found := _explained(with_calls, name, counterfactual)):
                return found
            raise

    @takes_options(PropagationOptions)
    def apply(
        self,
        *passes: str,
        **options: Unpack[PropagationKeywords],
    ) -> Module:
        """Apply passes one after another, and return the resulting program. ``shardwise opt --help`` lists the passes.

        Args:
            passes: names of passes; ``-`` and ``_`` are equivalent in names.
            options: as in :meth:`propagate`. An option that none of the passes reads is an error. Passes for one level
                of propagation have the strategy in their name: ``"propagate_basic"``.

        Raises:
            ShardingError: an unknown pass, or shardings that a pass does not support.
            ShapeError, DTypeError, UnsupportedError: an op that a pass does not support.

        >>> parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }").apply("simplify")
        <module of 0 ops>
        """
        check_keywords("apply", options, PropagationOptions)
        for name in passes:
            if not isinstance(name, str):
                raise ShardingError(message("apply", "takes names of passes", repr(name), "see shardwise opt --help"))
        how = options_of_passes("apply", passes, self._options, **options)
        return self._apply(passes, how)

    @takes_options(PropagationOptions)
    def compile(
        self,
        mesh: Mesh | None = None,
        *,
        func: str = "main",
        **options: Unpack[PropagationKeywords],
    ) -> Program:
        """Compile a function of the program for the devices of a mesh.

        Args:
            mesh: the devices. Default: the mesh of the program's shardings, or the first mesh that it declares. For a
                program without a mesh, that of :func:`set_mesh`, or one device.
            func: the name of the function.
            options: as in :meth:`propagate`.

        Returns:
            The program, as from :func:`jit`. It takes its arguments by position, or by the names in ``loc("x")`` or in
            the text. It returns an :class:`Array`, or a tuple of them unless there is exactly one.

        Raises:
            MeshError: another mesh than that of the program's shardings.
            UnsupportedError: no such function, or an op that does not run.
            ShapeError, DTypeError, ShardingError: a program that does not compile.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%rows: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        ...                 %zero: tensor<f32>) -> tensor<2xf32> {
        ...   %sum = stablehlo.reduce(%rows init: %zero) applies stablehlo.add across dimensions = [0]
        ...       : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
        ...   return %sum : tensor<2xf32>
        ... }'''
        >>> program = parse(text).compile()
        >>> program
        <program of 7 ops on Mesh('x': 2): 1 all_reduce>
        >>> import numpy as np
        >>> np.asarray(program(np.ones((4, 2), np.float32), zero=0.0))
        array([4., 4.], dtype=float32)
        """
        check_keywords("compile", options, PropagationOptions)
        how = checked_options("compile", self._options, **options)
        program: Program = IMPLEMENTATIONS.compile_module(self, mesh, func, how)
        return program

    def run(self, *args: Any, func: str = "main", mesh: Mesh | None = None, **kwargs: Any) -> Any:
        """Compile the program and run it once. To run it again, keep what :meth:`compile` returns.

        Args:
            args: an array for each argument of the function.
            func, mesh: as in :meth:`compile`. Arguments of the function that have these names are passed by position,
                or by name to the program that :meth:`compile` returns.
            kwargs: arguments by name.

        Returns:
            The result of the function: an :class:`Array`, or a tuple of them unless there is exactly one.

        Raises:
            TypeError: a missing or unknown argument. ShapeError, DTypeError: an argument of another type. The
                errors of :meth:`compile`.

        >>> text = "func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {" \\
        ...        "%0 = stablehlo.multiply %x, %x : tensor<3xi32> return %0 : tensor<3xi32> }"
        >>> import numpy as np
        >>> np.asarray(parse(text).run(np.arange(3, dtype=np.int32)))
        array([0, 1, 4], dtype=int32)
        """
        return self.compile(mesh, func=func)(*args, **kwargs)

    def _apply(self, passes: tuple[str, ...], how: PropagationOptions) -> Module:
        origin = self._origin
        if origin is not None and passes:
            count = max((i + 1 for i, name in enumerate(passes) if name.replace("-", "_") in _PROPAGATING), default=0)
            if count:
                origin = origin.propagated(Propagation(passes[:count], how))
            if count < len(passes):
                origin = origin.then(Propagation(passes[count:], how))
        return Module(Propagation(passes, how)(self._core), self._options, origin)

    def with_sharding_rule(self, op: str, rule: ShardingRule | str, *, index: int | None = None) -> Self:
        """Replace the sharding rule of ops by your own, for propagation.

        The rule changes shardings, never numbers: the ops compute the same.

        Args:
            op: the name of ops, ``"stablehlo.dot_general"`` or ``"dot_general"``, or the target of custom calls.
                ``"dot_general[0]"`` is the first of them, as in :meth:`why`.
            rule: the result of :func:`sharding_rule`, or its text.
            index: the number of one of these ops, from 0 in the order of the text. Default: all of them.

        Returns:
            The program with the rule.

        Raises:
            ShardingError: no op has this name, or the rule does not fit its shapes.

        >>> text = '''sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }'''
        >>> parse(text).with_sharding_rule("stablehlo.tanh", "i -> j").propagate().as_text().count("@mesh, [{}]")
        2
        """
        rule = checked_rule("with_sharding_rule", rule)
        ops = self._core.ops
        found = _ops_called(op, index, ops)
        if not found:
            names = ", ".join(sorted({_call_target(each) or each.name for each in ops}))
            got = repr(op) if index is None else f"{op!r}, index {index}"
            raise ShardingError(
                message("with_sharding_rule", "an op must be one of the program", got, f"it has {names}")
            )
        rules = {n: rule.text(_shapes(ops[n].operands), _shapes(ops[n].results)) for n in found}
        return self._changed(lambda core: core.with_sharding_rules(rules))

    def verify(self) -> None:
        """Check every op, type and sharding. Raises the first error."""
        self._core.verify()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self._core.structurally_equal(other._core)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f"<module of {self._core.op_count} ops>"

    def _repr_html_(self) -> str:
        return module_html(self)


def check_question(name: Any, counterfactual: Any) -> None:
    """Check the arguments of ``why``. Raises TypeError for ``name``, ShardingError for ``counterfactual``."""
    if not isinstance(name, str):
        raise TypeError(message("why", "takes the name of a value, an op or FILE:LINE", repr(name)))
    switch("why", "counterfactual", counterfactual, False)


def _call_target(op: _core.ir.Op) -> str:
    """The target of a custom call, or ""."""
    target = op.attributes.get("call_target_name", "")
    return target.name if isinstance(target, _core.ir.Symbol) else str(target)


def _shapes(values: list[_core.ir.Value]) -> list[tuple[int, ...]]:
    return [value.type.shape for value in values]


def _ops_called(op: Any, index: int | None, ops: list[_core.ir.Op]) -> list[int]:
    """The places in ``ops`` of the ops of this name, or of one of them."""
    wanted = re.fullmatch(r"(.*)\[(\d+)\]", op) if isinstance(op, str) and index is None else None
    name, index = (op, index) if wanted is None else (wanted[1], int(wanted[2]))
    if name == "":  # ops that are no custom call have this target
        return []
    found = [
        number
        for number, each in enumerate(ops)
        if name in (each.name, each.name.partition(".")[2], _call_target(each))
    ]
    if index is not None:
        found = found[index : index + 1] if index >= 0 else []
    return found


@entry_point
def parse(text: str, filename: str = "") -> Module:
    """Parse a program: MLIR's generic form, or StableHLO's pretty form as JAX prints it, with ``sdy`` attributes.

    Args:
        text: the program.
        filename: the file name for locations. In errors and in :meth:`Module.why`, ops without ``loc(...)`` are at
            ``filename:line``, or at ``program text:line`` without a file name.

    Raises:
        ParseError: malformed text, an unknown op, or an op that fails verification; with ``.line`` and ``.column``.

    Source: the StableHLO specification; Shardy's attributes.
    """
    expect_text("parse", "text", text)
    expect_text("parse", "filename", filename)
    return Module(_core.ir.parse(text, filename or _core.ir.PROGRAM_TEXT), origin=origin_of_text(text, filename))
