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

from .._core.ir import Op, Value
from ..dtypes import is_complex, is_float, numpy_dtype
from .tables import LocatedRow, Report, place, short_location, type_text

__all__ = ["Promotion", "Promotions", "promotions_of"]

_COLUMNS = ("where", "op", "operands", "result", "count", "cause")
# These ops are skipped between an operand and the op that the user wrote.
_LAYOUT = frozenset({"stablehlo.convert", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"})
_EXPLICIT = "explicit conversion"


@dataclass(frozen=True)
class Promotion(LocatedRow):
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

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        return {**asdict(self), "operands": list(self.operands)}


class Promotions(Report[Promotion]):
    """Every promotion to a wider float, in program order: the first row is the first cause."""

    def summary(self) -> str:
        """One line: how many promotions, and how many of them are explicit."""
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


def _is_wider(dtype: str, than: str) -> bool:
    wide, narrow = numpy_dtype(dtype), numpy_dtype(than)
    both = (is_float(wide) and is_float(narrow)) or (is_complex(wide) and is_complex(narrow))
    return both and wide.itemsize > narrow.itemsize


def _widens(op: Op) -> bool:
    """Whether an op converts a float to a wider one."""
    return op.name == "stablehlo.convert" and _is_wider(op.results[0].type.dtype, op.operands[0].type.dtype)


def _narrows(op: Op) -> bool:
    """Whether an op converts a float to a narrower one."""
    return op.name == "stablehlo.convert" and _is_wider(op.operands[0].type.dtype, op.results[0].type.dtype)


def _short(name: str) -> str:
    return name.partition(".")[2]


class _Program:
    """The ops of a program, with the NumPy call that recorded each op and the users of each value."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        # In text without locations, each op counts as one call.
        self._calls = {op: op.call or -number for number, op in enumerate(ops, 1)}
        self._users: dict[Value, list[Op]] = {}
        for op in ops:
            for value in op.operands:
                self._users.setdefault(value, []).append(op)

    def call(self, op: Op) -> int:
        """The number of the NumPy call that recorded an op."""
        return self._calls[op]

    def consumer(self, convert: Op) -> Op | None:
        """The op of the same call that uses a converted value, skipping broadcasts and reshapes; None without one."""
        open_ops = [convert]
        while open_ops:
            op = open_ops.pop(0)
            users = [user for value in op.results for user in self._users.get(value, ())]
            users = [user for user in users if self.call(user) == self.call(convert)]
            for user in users:
                if user.name not in _LAYOUT:
                    return user
            open_ops += users
        return None

    def source(self, value: Value, call: int) -> Value:
        """The input of a call behind an operand of one of its ops, before the call's broadcasts and conversions."""
        op = value.defining_op
        while op is not None and self.call(op) == call and op.name in _LAYOUT:
            value = op.operands[0]
            op = value.defining_op
        return value

    def origin(self, value: Value) -> tuple[str, str]:
        """A description of a value, and the source line of the op that computes it."""
        op = value.defining_op
        if op is None:
            return f"argument {value.name}".rstrip(), ""
        if op.name == "stablehlo.constant":
            return "constant", ""
        return value.name or _short(op.name), place(op.location.file, op.location.line)

    def returns_narrow(self, convert: Op) -> bool:
        """Whether the call of a conversion computes in a wider dtype than it returns, as a mean of bfloat16 does."""
        narrow = convert.operands[0].type.dtype
        open_ops, seen = [convert], {convert}
        is_narrowed = False
        while open_ops:
            op = open_ops.pop()
            for value in op.results:
                users = self._users.get(value, [])
                if _narrows(op):
                    is_narrowed = True
                    continue
                if _is_wider(value.type.dtype, narrow) and not self._stays_in(self.call(convert), users):
                    return False
                new = [user for user in users if user not in seen]
                seen |= set(new)
                open_ops += new
        return is_narrowed

    def _stays_in(self, call: int, users: list[Op]) -> bool:
        """Whether a value with these users is used by only one call; a result of the program is not."""
        return bool(users) and all(self.call(user) == call for user in users)


def promotions_of(ops: Sequence[Op]) -> Promotions:
    """The promotions of a program with these ops.

    Derivatives of conversions to narrower floats, and wider dtypes that a call uses internally, are not promotions.
    """
    program = _Program(ops)
    narrowed: set[int] = set()
    found: dict[Value, Promotion] = {}
    for op in ops:
        if _narrows(op):
            narrowed.add(program.call(op))
        if not _widens(op) or program.call(op) in narrowed or program.returns_narrow(op):
            continue
        user = program.consumer(op)
        target = op if user is None else user
        found.setdefault(target.results[0], _promotion(program, op, user))
    counts = Counter(found.values())
    return Promotions([replace(row, count=count) for row, count in counts.items()])


def _promotion(program: _Program, convert: Op, user: Op | None) -> Promotion:
    wide = convert.results[0].type.dtype
    if user is None:
        operands, result = [convert.operands[0]], convert.results[0]
        name, cause = "astype", (_EXPLICIT, "")
    else:
        call = program.call(convert)
        operands, result = [program.source(value, call) for value in user.operands], user.results[0]
        causes = [program.origin(value) for value in operands if value.type.dtype == wide]
        name, cause = _short(user.name), causes[0] if causes else ("", "")
    types = tuple(type_text(value.type.dtype, value.type.shape) for value in operands)
    where = convert.location
    return Promotion(
        name, types, type_text(result.type.dtype, result.type.shape), *cause, user is None, where.file, where.line
    )
