# SPDX-License-Identifier: Apache-2.0
"""Explanations of shardings: the result of ``program.why("h")``.

For each axis of a value: the annotation that it comes from, and the ops in between. For each axis that a neighbor has
and the value does not: what it lost to, and the rule that decided. On request: the sharding without each annotation.
The explanations are dataclasses with ``to_dict()`` and ``to_json()``; text, ``rich`` and HTML are views of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from html import escape
from itertools import chain
from typing import Any

from .axis_paths import ENDS, Path, PathStep, named
from .collective_rows import COLLECTIVE_KINDS
from .decisions import Decision, Instead
from .nearby_lines import lines_near
from .tables import place, short_location

__all__ = [
    "Annotation",
    "AxisExplanation",
    "Counterfactual",
    "Explanation",
    "LostAxis",
    "Path",
    "PathStep",
    "ValueExplanation",
]

Lines = Iterator[tuple[int, str]]  # depth and text
# Only the two ends of a longer path are printed; the data is complete.
_LONGEST = 16
_MEANINGS = 8  # of a name that are listed
_NAMES = 5  # that an error lists
_MOST_TOLD = 4  # values and decisions of a source line that are printed
_LINE = re.compile(r".+(:|, line )\d+")
_DIALECTS = ("stablehlo.", "sdy.", "chlo.")  # names of ops begin so


def _at(location: str) -> str:
    return f" at {short_location(location)}" if location else ""


@dataclass(frozen=True)
class Annotation:
    """An annotation: on an argument, on a result, or by an op such as ``sdy.sharding_constraint``.

    ``name`` is the name of the annotated value, or "".
    """

    origin: str
    location: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{named(self.name, self.origin)}{_at(self.location)}"

    @property
    def origin_text(self) -> str:
        """``annotated on argument x at train.py:8``; ``annotated by sdy.sharding_constraint at train.py:9``."""
        return f"annotated {self._place_text}"

    @property
    def _place_text(self) -> str:
        is_op = "." in self.origin.partition(" ")[0]
        return f"{'by' if is_op else 'on'} {self}"


@dataclass(frozen=True)
class AxisExplanation:
    """Where one axis of a sharding comes from: the annotation, and the path of ops from it to the value."""

    axis: str
    dim: int
    origin: str
    location: str
    path: Sequence[PathStep] = Path()
    name: str = ""

    def _lines(self) -> Lines:
        annotation = Annotation(self.origin, self.location, self.name)
        if not self.path:
            yield 0, f"dim {self.dim} is split over {self.axis}: {annotation.origin_text}"
            return
        yield 0, f"dim {self.dim} is split over {self.axis}: it comes from {annotation}"
        for step in self.path if len(self.path) <= _LONGEST else self.path[:ENDS]:
            yield 1, f"through {step}"
        if len(self.path) > _LONGEST:
            yield 1, f"… {len(self.path) - 2 * ENDS} more …"
            for step in self.path[-ENDS:]:
                yield 1, f"through {step}"

    def __str__(self) -> str:
        return _indented(self._lines())


@dataclass(frozen=True)
class LostAxis:
    """An axis that a neighbor has on the same factor, and that this value did not get.

    Attributes:
        rule: the rule that decided.
        winner: the axes that the value has instead, with their origins.
        closed_by: the annotation that closed the dim, or that lists the axis as replicated.
        value: the name of the results of ``op`` in the text.
    """

    axis: str
    dim: int
    op: str
    location: str
    reason: str
    rule: str = ""
    winner: tuple[AxisExplanation, ...] = ()
    closed_by: Annotation | None = None
    value: str = ""

    def _lines(self) -> Lines:
        carrier = f"{named(self.value, self.op)}{_at(self.location)}"
        yield 0, f"dim {self.dim} did not get {self.axis} from {carrier}: {self.reason}"
        for axis in self.winner:
            annotation = Annotation(axis.origin, axis.location, axis.name)
            yield 1, f"it lost to {axis.axis} on dim {axis.dim}, from {annotation}"
        if self.closed_by is not None:
            yield 1, self.closed_by.origin_text
        if self.rule:
            yield 1, f"rule: {self.rule}"

    def __str__(self) -> str:
        return _indented(self._lines())


@dataclass(frozen=True)
class Counterfactual:
    """The result of propagation without one annotation.

    Attributes:
        without: the annotation.
        sharding: the sharding of the value; "" if a single level of propagation leaves it without one.
        others: the number of other values whose shardings change.
    """

    without: Annotation
    sharding: str
    others: int = 0

    def __str__(self) -> str:
        then = f"be sharded {self.sharding}" if self.sharding else "have no sharding"
        return f"without {self.without} it would {then}{self._others_text}"

    @property
    def _others_text(self) -> str:
        noun = "value" if self.others == 1 else "values"
        return f"; {self.others} other {noun} would change" if self.others else ""

    def compared_to(self, sharding: str) -> str:
        """The text for a value that is sharded ``sharding`` now."""
        if self.sharding != sharding:
            return str(self)
        if not self.others:
            return f"without {self.without} nothing would change"
        return f"without {self.without} it would be sharded the same{self._others_text}"


@dataclass(frozen=True)
class ValueExplanation:
    """One value of a program: its type, its sharding, and the reasons.

    Attributes:
        op: the op that defines the value, as its result number ``index``; "" for an argument.
        suggestion: for an unsharded value, an annotation that would split it.
        to_change: the existing annotation that ``suggestion`` would replace.
        called_at: the locations of the calls around the value, outermost first.
        counterfactuals: on request, the sharding without each annotation that is involved.
        kept: the annotations that are involved and that no program can omit, each with the reason.
        manual_axes: for a value of a manual region, such as of ``shard_map``, the axes of the regions around it.
        device_type: its type on each device of the region. ``type`` has a leading dim for the devices if it differs.
        region_at: the location of the region.
        differs: whether the devices of the region may have different values.
    """

    name: str
    file: str
    line: int
    type: str
    sharding: str
    axes: tuple[AxisExplanation, ...] = ()
    lost: tuple[LostAxis, ...] = ()
    suggestion: str = ""
    to_change: Annotation | None = None
    op: str = ""
    index: int = 0
    strategy: str = "aggressive"
    conservative: bool = False
    called_at: tuple[str, ...] = ()
    counterfactuals: tuple[Counterfactual, ...] | None = None
    kept: tuple[tuple[Annotation, str], ...] = ()
    manual_axes: tuple[str, ...] = ()
    device_type: str = ""
    region_at: str = ""
    differs: bool = False

    @property
    def location(self) -> str:
        """``file:line``, or "" if the source line is unknown."""
        return place(self.file, self.line)

    @property
    def title(self) -> str:
        """The name of the value, or its position among the results of its op."""
        return self.name or f"result {self.index} of {self.op}"

    def _lines(self) -> Lines:
        places = [short_location(self.location)] * bool(self.location) + [
            "called at " + ", ".join(map(short_location, self.called_at))
        ] * bool(self.called_at)
        where = f" ({', '.join(places)})" if places else ""
        how = ("conservative " if self.conservative else "") + f"{self.strategy} propagation"
        sharded = f"sharded {self.sharding} by {how}" if self.sharding else "without a sharding"
        if not self.manual_axes:
            yield 0, f"{self.title}{where} is {self.type}, {sharded}."
        else:
            yield from self._lines_of_region(where)
            if self.differs:
                return
        for axis in self.axes:
            yield from _deeper(axis._lines())
        if not self.axes and not self.manual_axes:
            yield 1, "Nothing splits it: every device holds all of it."
        for lost in self.lost:
            yield from _deeper(lost._lines())
        if self.suggestion and self.to_change is not None:
            yield 1, f"Its annotation keeps it unsharded: {self.to_change}; '{self.suggestion}' instead would split it."
        elif self.suggestion:
            yield 1, f"shard({self.title}, '{self.suggestion}') would split it."
        for one in self.counterfactuals or ():
            yield 1, one.compared_to(self.sharding)
        for annotation, reason in self.kept:
            yield 1, f"The annotation {annotation._place_text} cannot be removed: {reason}."
        if self.counterfactuals == () and not self.kept:
            yield 1, "No annotation decides it."

    def _lines_of_region(self, where: str) -> Lines:
        axes = ", ".join(f'"{axis}"' for axis in self.manual_axes)
        region = f"the manual region over {axes}{_at(self.region_at)}"
        yield 0, f"{self.title}{where} is {self.device_type} on each device of {region}."
        if not self.differs:
            yield 1, f"It is the same on all devices along {axes}."
            return
        for axis in self.axes:
            if axis.dim == 0:
                yield 1, f"It differs along {axis.axis}."
            else:  # dim 0 has the rows of the devices
                yield from _deeper(replace(axis, dim=axis.dim - 1, path=Path())._lines())

    def __str__(self) -> str:
        return _indented(self._lines())


def _deeper(lines: Lines) -> Lines:
    return ((depth + 1, text) for depth, text in lines)


def _indented(lines: Lines) -> str:
    return "\n".join("  " * depth + text for depth, text in lines)


def _known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The entries of a dict that are fields of the class."""
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def rows_of(answer: str) -> list[dict[str, Any]]:
    """The values of the compiled core's JSON; each path, a number there, is a :class:`Path`.


    Equal path numbers share one ``Path``.
    """
    import json  # loaded only for questions: it would slow down the import of shardwise

    data = json.loads(answer)
    paths = {-1: Path()}
    for number, step in enumerate(data["paths"]):
        paths[number] = Path(paths[step["before"]], _step_of(step))
    rows: list[dict[str, Any]] = data["values"]
    for row in rows:
        for axis in chain(row["axes"], *(lost["winner"] for lost in row["lost"])):
            axis["path"] = paths[axis["path"]]
    return rows


def _step_of(row: dict[str, Any]) -> PathStep:
    return PathStep(**_known(PathStep, {**row, "from_": row["from"]}))


def _axis_of(row: dict[str, Any]) -> AxisExplanation:
    path = row["path"]
    if not isinstance(path, Path):
        path = Path.of(map(_step_of, path))
    return AxisExplanation(**{**_known(AxisExplanation, row), "path": path})


def _lost_of(row: dict[str, Any]) -> LostAxis:
    closed_by = row.get("closed_by")
    return LostAxis(**{
        **_known(LostAxis, row),
        "winner": tuple(map(_axis_of, row.get("winner", ()))),
        "closed_by": Annotation(**closed_by) if closed_by else None,
    })  # fmt: skip


def _counterfactual_of(row: dict[str, Any]) -> Counterfactual:
    return Counterfactual(Annotation(**_known(Annotation, row)), row["sharding"], row["others"])


def _value_of(row: dict[str, Any]) -> ValueExplanation:
    rows, to_change = row.get("counterfactuals"), row.get("to_change")
    return ValueExplanation(**{
        **_known(ValueExplanation, row),
        "called_at": tuple(row.get("called_at", ())),
        "manual_axes": tuple(row.get("manual_axes", ())),
        "axes": tuple(map(_axis_of, row["axes"])),
        "lost": tuple(map(_lost_of, row["lost"])),
        "to_change": Annotation(**to_change) if to_change else None,
        "counterfactuals": None if rows is None else tuple(_counterfactual_of(r) for r in rows if not r["why_not"]),
        "kept": tuple((_counterfactual_of(one).without, one["why_not"]) for one in rows or () if one["why_not"]),
    })  # fmt: skip


def _plain(data: Any, short: bool = False) -> Any:
    """As JSON has it: ``from_`` is called ``from``, as Python does not allow; lists for tuples.

    Long paths of winners, or of several values, keep only both ends and the number of omitted steps: many candidates
    lose to one axis, and many values get it.
    """
    if isinstance(data, Explanation):
        short = len(data.values) > 1
    if isinstance(data, LostAxis):
        short = True
    if short and isinstance(data, AxisExplanation) and len(data.path) > _LONGEST:
        ends = replace(data, path=(*data.path[:ENDS], *data.path[-ENDS:]))
        return {**_plain_fields(ends, short), "left_out": len(data.path) - 2 * ENDS}
    if is_dataclass(data):
        return _plain_fields(data, short)
    return [_plain(entry, short) for entry in data] if isinstance(data, (list, tuple, Path)) else data


def _plain_fields(data: Any, short: bool) -> dict[str, Any]:
    return {f.name.rstrip("_"): _plain(getattr(data, f.name), short) for f in fields(data)}


@dataclass(frozen=True, repr=False)
class Explanation:
    """The explanations of one or more values: the result of ``program.why(...)``.

    >>> step = {"name": "stablehlo.tanh", "location": "train.py:10", "from": "operand 0", "to": "result 0"}
    >>> axis = dict(axis='"data"', dim=0, origin="argument x", location="train.py:8", path=[step])
    >>> Explanation.of("h", [dict(name="h", file="train.py", line=10, type="tensor<16x64xf32>",
    ...                           sharding='[{"data"}, {}]', axes=[axis], lost=[])])
    h (train.py:10) is tensor<16x64xf32>, sharded [{"data"}, {}] by aggressive propagation.
      dim 0 is split over "data": it comes from argument x at train.py:8
        through stablehlo.tanh (train.py:10): operand 0 → result 0, round 0
    """

    name: str
    values: tuple[ValueExplanation, ...] = field(default=())
    decisions: tuple[Decision, ...] = field(default=())
    instead: Instead | None = None

    @classmethod
    def of(cls, name: str, rows: Sequence[dict[str, Any]]) -> Explanation:
        """Make an explanation from rows like those of the compiled core, one per value; ``name`` is the question."""
        return cls(name, tuple(map(_value_of, rows)))

    def to_dict(self) -> dict[str, Any]:
        """``{"name": …, "values": [{…}, …]}``.

        Long paths are shortened to their ends, with the number of omitted steps in ``"left_out"``. The paths of a
        single value are complete, except those of axes that it lost to.
        """
        data: dict[str, Any] = _plain(self)
        return data

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON text."""
        import json  # loaded only for this: it would slow down the import of shardwise

        return json.dumps(self.to_dict())

    def _heading(self) -> str:
        """What several values have in common, or ""."""
        if len(self.values) < 2:
            return ""
        places = ", ".join(dict.fromkeys(short_location(value.location) or "an unknown line" for value in self.values))
        if all(value.name == self.name for value in self.values):
            return f"{len(self.values)} values are called {self.name}, at {places}:"
        return f"{len(self.values)} values of {self.name}, at {places}:"

    def __repr__(self) -> str:
        heading = self._heading()
        rest = [_indented(iter(lines)) for lines in self._explained()] + [str(part) for part in self._instead()]
        return "\n".join([heading] * bool(heading) + rest)

    def _explained(self) -> list[list[tuple[int, str]]]:
        """The lines of each value and decision; of a source line with many of them, those that tell most."""
        if not _LINE.fullmatch(self.name):
            parts: tuple[ValueExplanation | Decision, ...] = (*self.values, *self.decisions)
            return [list(part._lines()) for part in parts]
        return [*_summarized(self.values, "values"), *_summarized(self.decisions, "decisions")]

    def _instead(self) -> tuple[Instead, ...]:
        return () if self.instead is None else (self.instead,)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text
        from rich.tree import Tree

        heading = self._heading()
        parts: list[Any] = [Text(heading)] if heading else []
        for lines in self._explained():
            trees: list[Tree] = []
            for depth, text in lines:
                del trees[depth:]
                label = Text(text, style="bold" if depth == 0 else "")
                trees.append(trees[-1].add(label) if trees else Tree(label))
            parts.append(trees[0])
        parts += [Text(str(part)) for part in self._instead()]
        return Group(*parts)

    def _repr_html_(self) -> str:
        heading = self._heading()
        body = "".join(map(_html, self._explained()))
        body += "".join(f"<p>{escape(str(part))}</p>" for part in self._instead())
        return (f"<p>{escape(heading)}</p>" if heading else "") + body


def _summarized(parts: Sequence[ValueExplanation | Decision], field_name: str) -> list[list[tuple[int, str]]]:
    """The first ones of a source line, without those that are explained like one before: in other layers, say."""
    told: dict[Any, list[list[tuple[int, str]]]] = {}
    for part in parts:
        told.setdefault(_reasons(part), []).append(list(part._lines()))
    found = []
    for alike in list(told.values())[:_MOST_TOLD]:
        more = [(1, f"… and {len(alike) - 1} more for the same reasons")] * (len(alike) > 1)
        found.append([*alike[0], *more])
    left_out = sum(len(alike) for alike in list(told.values())[_MOST_TOLD:])
    if left_out:
        found.append([(0, f"… {left_out} more {field_name}: .{field_name} has all of them")])
    return found


def _reasons(part: ValueExplanation | Decision) -> Any:
    """What an explanation has in common with those of equal values, on whatever paths their axes came."""
    if not isinstance(part, ValueExplanation):
        return part.op, tuple(part._lines())
    axes = tuple((axis.axis, axis.dim, axis.origin, axis.location) for axis in part.axes)
    lost = tuple((axis.axis, axis.dim, axis.reason, axis.rule) for axis in part.lost)
    return part.op, part.type, part.sharding, axes, lost, part.counterfactuals


def explanation_of(
    program: Any, name: str, counterfactual: bool, was_traced: Callable[[str], bool] | None = None
) -> Explanation:
    """The explanations of a name. Raises KeyError if no value has it, or if several functions use it.

    ``was_traced(name)``: whether the program had such a value when it was traced.
    """
    meanings = program.meanings(name)
    if meanings:
        ways = meanings[:_MEANINGS] + [f"{len(meanings) - _MEANINGS} more"] * (len(meanings) > _MEANINGS)
        raise KeyError(f"why: {name} is a name in several functions; ask for {' or '.join(ways)}")
    found = rows_of(program.explain(name, counterfactual))
    if found:
        return Explanation.of(name, found)
    below = _leaves_below(program, name, counterfactual)
    if below:
        return Explanation.of(name, below)
    if program.was_given(name):
        gone, instead = "nothing uses it", "ask for what is used"
        if program.is_simplified:
            gone, instead = "inlining or simplification replaced it", "ask about the text as written, before compile()"
        raise KeyError(f"why: {name!r} is not in the propagated program, since {gone}; {instead}")
    if was_traced is not None and was_traced(name):
        gone, instead = "nothing uses it or simplification replaced it", "ask the program before compile()"
        raise KeyError(f"why: {name!r} is not in the propagated program, since {gone}; {instead}")
    if re.fullmatch(rf"({'|'.join(COLLECTIVE_KINDS)})(\[\d+\])?", name):
        instead = "ask for the line of its row in program.collectives(), as FILE:LINE"
        raise KeyError(f"why: values have reasons, and {name} is a collective; {instead}")
    near_line = lines_near(program.stages.get("propagated", program.module), name)
    if near_line:
        raise KeyError(f"why: {near_line}")
    names = sorted(program.names(), key=_in_order)
    near = sorted(
        difflib.get_close_matches(name, names, n=5), key=lambda known: (-_likeness(name, known), _in_order(known))
    )
    values = [known for known in names if "@" not in known and not known.startswith(_DIALECTS)]
    values.sort(key=_in_order)
    some = f", such as {', '.join(values[:_NAMES])}" if values else ""
    hint = f"; did you mean {', '.join(near)}?" if near else f"; ask by a name{some}, an op or FILE:LINE"
    quoted = name if "'" in name else repr(name)  # KeyError prints the repr of its text, with one kind of quotes
    raise KeyError(f"why: no value of the program is called {quoted}{hint}")


def _in_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """A sort key: the author's names before numbers, and %2 before %10."""
    parts = re.findall(r"\d+|\D+", name)
    return bool(re.fullmatch(r"%\d+", name)), [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _likeness(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, known, name).ratio()


def _leaves_below(program: Any, name: str, counterfactual: bool) -> list[dict[str, Any]]:
    """The explanations of the argument leaves of a tree: of ``params['w']`` and ``params['b']`` for ``params``."""
    leaves = [known for known in program.names() if known.startswith((f"{name}[", f"{name}."))]
    rows = [row for leaf in leaves for row in rows_of(program.explain(leaf, counterfactual))]
    return [row for row in rows if not row.get("op")]


def _html(lines: list[tuple[int, str]]) -> str:
    """Nested lists; the first line is the paragraph above them."""
    out, depth = [f"<p><b>{escape(lines[0][1])}</b></p>"], 0
    for level, text in lines[1:]:
        if level > depth:
            out += ["<ul>"] * (level - depth)
        else:
            out.append("</li>" + "</ul></li>" * (depth - level))
        depth = level
        out.append(f"<li>{escape(text)}")
    return "".join(out) + "</li></ul>" * depth
