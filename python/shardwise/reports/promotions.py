# SPDX-License-Identifier: Apache-2.0
"""``program.promotions()``: where a program converts floats to a wider dtype.

One float64 scalar promotes every value that depends on it. A NumPy call that converts an operand and uses it
promoted it; a call that only converts, such as ``astype``, is explicit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .tables import Report, place, short_location

__all__ = ["Promotion", "Promotions", "promotions_of"]

_COLUMNS = ("where", "op", "operands", "result", "count", "cause")
_WIDTHS = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}
# These ops are skipped between an operand and the op that the user wrote.
_LAYOUT = frozenset({"stablehlo.convert", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"})
_EXPLICIT = "explicit conversion"


@dataclass(frozen=True)
class Promotion:
    """An op with a floating operand that is converted to a wider dtype.

    Attributes:
        op: its name; ``"astype"`` for an explicit conversion.
        operands: their types before the conversion: ``("float32[8]", "float64[]")``.
        result: the type of the result.
        cause: the wide operand: ``"constant"``, ``"argument scale"``, or the op that computes it; "" if no operand is
            wide, as in ``bfloat16 + float16``.
        cause_at: the source line of that op, or "".
        explicit: whether the conversion is explicit, as by ``astype``.
        file, line: the user's source line.
        count: the number of ops with equal values of these fields, as in a Python loop over layers.
    """

    op: str
    operands: tuple[str, ...]
    result: str
    cause: str
    cause_at: str = ""
    explicit: bool = False
    file: str = ""
    line: int = 0
    count: int = 1

    @property
    def location(self) -> str:
        """``file:line``, ``Cell In[2], line 6`` in a notebook, or "" where no source line is known."""
        return place(self.file, self.line)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON can hold them."""
        return {**asdict(self), "operands": list(self.operands)}


class Promotions(Report[Promotion]):
    """Every promotion to a wider float, in program order: the first row is the first cause."""

    def summary(self) -> str:
        """One line: how many promotions, and how many of them were asked for."""
        if not self.rows:
            return "no promotions to a wider float"
        total = sum(row.count for row in self.rows)
        noun = "promotion" if total == 1 else "promotions"
        explicit = sum(row.count for row in self.rows if row.explicit)
        return f"{total} {noun} to a wider float" + (f", {explicit} of them explicit" if explicit else "")

    def to_dict(self) -> dict[str, Any]:
        """``{"promotions": [{…}, …]}``."""
        return {"promotions": self._records()}

    def _header(self) -> Sequence[str]:
        return _COLUMNS

    def _fields(self) -> Sequence[str]:
        return list(Promotion.__dataclass_fields__)

    def _cells(self, row: Promotion) -> Sequence[str]:
        cause = f"{row.cause} at {short_location(row.cause_at)}" if row.cause_at else row.cause
        return (short_location(row.location), row.op, ", ".join(row.operands), row.result, str(row.count), cause)


Place = tuple[int, str, int]  # number of the recorded call, file, line


@dataclass(frozen=True)
class _Value:
    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class _Op:
    name: str
    operands: tuple[_Value, ...]
    results: tuple[_Value, ...]
    place: Place

    @property
    def widens(self) -> bool:
        """Whether it converts a float to a wider one."""
        return self.name == "stablehlo.convert" and _is_wider(self.results[0].dtype, self.operands[0].dtype)

    @property
    def narrows(self) -> bool:
        """Whether it converts a float to a narrower one."""
        return self.name == "stablehlo.convert" and _is_wider(self.operands[0].dtype, self.results[0].dtype)


_RETURN = _Op("return", (), (), (-1, "", 0))


def _is_wider(dtype: str, than: str) -> bool:
    return _WIDTHS.get(dtype, 0) > _WIDTHS.get(than, 9)


def _values(rows: Sequence[Any]) -> tuple[_Value, ...]:
    return tuple(_Value(number, name, tuple(shape), dtype) for number, name, shape, dtype in rows)


class _Program:
    """The ops of a program, with the producers and users of each value."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.ops = [
            # In text without locations, each op counts as one call.
            _Op(name, _values(operands), _values(results), (call or -number, file, line))
            for number, (name, operands, results, (call, file, line)) in enumerate(rows, 2)
        ]
        self.defining_ops = {value.number: op for op in self.ops for value in op.results}
        self._users: dict[int, list[_Op]] = {}
        for op in self.ops:
            for value in op.operands:
                self._users.setdefault(value.number, []).append(op)

    def consumer(self, convert: _Op) -> _Op | None:
        """The op of the same call that uses a converted value, skipping broadcasts and reshapes; None without one."""
        open_ops = [convert]
        while open_ops:
            op = open_ops.pop(0)
            users = [user for value in op.results for user in self._users.get(value.number, ())]
            users = [user for user in users if user.place == convert.place]
            for user in users:
                if user.name not in _LAYOUT:
                    return user
            open_ops += users
        return None

    def source(self, value: _Value, place: Place) -> _Value:
        """The input of a call behind an operand of one of its ops, before the call's broadcasts and conversions."""
        op = self.defining_ops.get(value.number)
        while op is not None and op.place == place and op.name in _LAYOUT:
            value = op.operands[0]
            op = self.defining_ops.get(value.number)
        return value

    def origin(self, value: _Value) -> tuple[str, str]:
        """A description of a value, and the source line of the op that computes it."""
        op = self.defining_ops.get(value.number)
        if op is None:
            return f"argument {value.name}".rstrip(), ""
        if op.name == "stablehlo.constant":
            return "constant", ""
        return value.name or _short(op.name), place(*op.place[1:])

    def returns_narrow(self, convert: _Op) -> bool:
        """Whether the call of a conversion computes in a wider dtype than it returns, as a mean of bfloat16 does."""
        open_ops, seen = [convert], {id(convert)}
        is_narrowed = False
        while open_ops:
            op = open_ops.pop()
            for value in op.results:
                users = self._users.get(value.number, [])
                if op.narrows:
                    is_narrowed = True
                    continue
                if _is_wider(value.dtype, convert.operands[0].dtype) and not all(
                    user.place == convert.place for user in users or [_RETURN]
                ):
                    return False
                new = [user for user in users if id(user) not in seen]
                seen |= {id(user) for user in new}
                open_ops += new
        return is_narrowed


def _short(name: str) -> str:
    return name.partition(".")[2]


def promotions_of(rows: Sequence[Any]) -> Promotions:
    """The promotions of a program, from the rows that the extension returns for its ops.

    Derivatives of conversions to narrower floats, and wider dtypes that a call uses internally, are not promotions.
    """
    program = _Program(rows)
    narrowed: set[Place] = set()
    found: dict[int, Promotion] = {}
    for op in program.ops:
        if op.narrows:
            narrowed.add(op.place)
        if not op.widens or op.place in narrowed or program.returns_narrow(op):
            continue
        user = program.consumer(op)
        target = op if user is None else user
        found.setdefault(target.results[0].number, _promotion(program, op, user))
    counts = Counter(found.values())
    return Promotions([replace(row, count=count) for row, count in counts.items()])


def _promotion(program: _Program, convert: _Op, user: _Op | None) -> Promotion:
    _, file, line = convert.place
    wide = convert.results[0].dtype
    if user is None:
        operands, result = [convert.operands[0]], convert.results[0]
        name, cause = "astype", (_EXPLICIT, "")
    else:
        operands, result = [program.source(value, convert.place) for value in user.operands], user.results[0]
        causes = [program.origin(value) for value in operands if value.dtype == wide]
        name, cause = _short(user.name), causes[0] if causes else ("", "")
    return Promotion(name, tuple(map(str, operands)), str(result), *cause, user is None, file, line)
