# SPDX-License-Identifier: Apache-2.0
"""How long a step takes on some hardware, and what takes it: :meth:`Program.estimate`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from operator import attrgetter
from typing import Any

from ..errors import is_integer, message, shown
from .calibration import Calibration, calibrated_rows
from .collective_rows import CombinedOperand, combined_operands, with_more
from .estimate_groups import EstimateDiff, EstimateGroups
from .groups import Getters, checked_keys
from .price import SATURATED, duration
from .tables import LocatedRow, Report, format_bytes, short_location
from .trace_events import LiveBytes, StepSpan, save_trace, span_of, trace_events
from .trace_memory import TimedOps

__all__ = ["Estimate", "EstimateRow", "checked_columns", "estimate_of"]

_SHOWN = ("kind", "name", "stream", "seconds", "executions", "total", "exposed", "bound", "bytes", "where", "cause")
_RIGHT = ("seconds", "executions", "total", "exposed", "bytes")
_COLUMNS: Getters = {
    name: attrgetter(name) for name in ("where", "name", "kind", "stream", "bound", "axis", "cause", "file", "variable")
}
_BRACES = re.compile(r"\{([^{}]+)\}")
_PS = 1e12  # picoseconds in a second


@dataclass(frozen=True)
class EstimateRow(LocatedRow):
    """A kernel or a transfer of one device: ops that run together, or a collective.

    Attributes:
        kind: ``"kernel"`` or ``"transfer"``.
        name: the op; of a kernel, the one with the most operations: ``"dot_general"``.
        ops: the names of all ops of the kernel, in the order of the program.
        stream: ``"compute"``, or the tier of links that the transfer spends most time on.
        start: seconds from the start of the step to its first execution; of calibrated hardware, the costs of the rows
            before it.
        seconds: the time of one execution.
        stages: where its first execution is when: ``(stream, start, seconds)`` for the compute stream, or for each tier
            of links that the transfer takes, one after the other. In a branch, they are as long as its share. Of
            calibrated hardware, all executions together.
        executions: how often it runs; a branch counts with its share.
        exposed: seconds of the step in which the device waits for this transfer and computes nothing.
        bound: what takes its time: ``"matrix"``, ``"vector"``, ``"transcendental"``, ``"memory"`` or ``"launch"``; of a
            transfer, ``"latency"`` or the tier.
        bytes: of memory that one execution reads and writes; of a transfer, received.
        flops: operations of one execution.
        products: seconds that its products take at the peak of the matrix unit, in one execution.
        parts: seconds of one execution by what could take them: the units, ``"memory"`` and ``"launch"``, which work at
            the same time; or the tiers and ``"latency"``, one after the other. Of calibrated hardware, its terms, which
            are one after the other: ``"matrix"`` and ``"memory"``, or the tiers.
        is_attention: whether it is one kernel of products and a softmax.
        axes: the mesh axes of a transfer.
        cause: why a transfer is needed.
        file, line: the user's source line.
        variable: the variable that holds its result.
        combined: of a transfer that moves several operands together: each of them with its bytes, line and cause. The
            row has those of the first, and :meth:`Estimate.by` divides its time by their bytes.
    """

    kind: str
    name: str
    ops: tuple[str, ...]
    stream: str
    start: float
    seconds: float
    stages: tuple[tuple[str, float, float], ...]
    executions: float
    exposed: float
    bound: str
    bytes: int
    flops: int
    products: float
    parts: Mapping[str, float]
    is_attention: bool
    axes: str
    cause: str
    file: str
    line: int
    variable: str
    combined: tuple[CombinedOperand, ...] = ()

    @property
    def axis(self) -> str:
        """The mesh axes of a transfer alone: ``data``, or ``data, model``; "" for a kernel."""
        axes = (axis.strip() for part in _BRACES.findall(self.axes) for axis in part.split(","))
        return ", ".join(dict.fromkeys(axis.replace('"', "") for axis in axes))

    @property
    def total(self) -> float:
        """Seconds of all executions."""
        return self.seconds * self.executions

    @property
    def cost(self) -> float:
        """Seconds of the step that it takes: all of a kernel, and what is exposed of a transfer."""
        return self.total if self.kind == "kernel" else self.exposed

    def separate(self) -> tuple[EstimateRow, ...]:
        """A row for each operand of a combined transfer, with its share of the times by its bytes."""
        whole = sum(part.bytes for part in self.combined)
        if not whole:
            return (self,)
        return tuple(
            replace(
                self, seconds=self.seconds * part.bytes / whole, exposed=self.exposed * part.bytes / whole,
                bytes=int(part.bytes), cause=part.cause, file=part.file, line=part.line, variable=part.name,
                combined=(),
            )
            for part in self.combined
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, with values that JSON supports."""
        derived = {"total": self.total, "cost": self.cost}
        lists = {"ops": list(self.ops), "stages": [list(stage) for stage in self.stages]}
        lists["combined"] = [part.to_dict() for part in self.combined]
        return {**asdict(self), **lists, "parts": dict(self.parts), **derived}


class Estimate(Report[EstimateRow]):
    """How long one run of a program takes on one device of some hardware.

    The rows are the kernels and transfers of the device. Each has a stream: kernels compute one after the other, and
    each tier of links does one transfer after the other, beside them. What the device waits for is exposed. The costs
    of all rows sum up to :attr:`estimate`.

    Attributes:
        lower: seconds that no schedule goes below: the longest chain of ops and transfers that wait for each other, or
            the busiest stream, without launches; at most the estimate.
        estimate: seconds of the schedule; of calibrated hardware, the sum of its fitted terms.
        upper: seconds with nothing at the same time, and with attention in several kernels; at least the estimate.
        rows: :class:`EstimateRow`, in the order of their starts.
        hardware: the :class:`~shardwise.hardware.Hardware`.
        devices: of the mesh.
        assumptions: what the numbers take for granted, in words.
    """

    _noun = "row"
    _grouping = "by"

    def __init__(
        self,
        rows: Sequence[EstimateRow],
        bounds: tuple[float, float, float],
        hardware: Any,
        devices: int,
        model_products: float,
        spans: Sequence[StepSpan] = (),
        live: Callable[[], LiveBytes] = list,
        assumptions: tuple[str, ...] = (),
        step: Sequence[EstimateRow] | None = None,
    ) -> None:
        super().__init__(rows)
        self._step = self.rows if step is None else tuple(step)  # all rows, of which these may be some
        self.lower, self.estimate, self.upper = bounds
        self.hardware = hardware
        self.devices = devices
        self.assumptions = assumptions
        self._model_products = model_products
        self._spans = tuple(spans)
        self._live = live  # computed for a trace alone: it takes longer than the estimate

    @property
    def seconds(self) -> float:
        """Seconds of the step: :attr:`estimate`. ``float(program.estimate())`` is the same number."""
        return float(self.estimate)

    def __float__(self) -> float:
        return self.seconds

    @property
    def exposed(self) -> float:
        """Seconds of the step in which the device waits for transfers."""
        return sum(row.exposed for row in self._step)

    @property
    def compute(self) -> float:
        """Seconds of all kernels."""
        return sum(row.total for row in self._step if row.kind == "kernel")

    @property
    def mfu(self) -> float:
        """Model flops utilisation: the time of the model's products at the peak of all devices, by the estimate.

        The products are those of the program before it is partitioned, without those that ``checkpoint`` computes
        again. Each counts with the peak of its dtype, also where a pipeline computes a bubble. In a program that
        another tool wrote, what is computed again is found if it is one step.
        """
        return self._model_products / self.devices / self.estimate if self.estimate else 0.0

    @property
    def hfu(self) -> float:
        """Hardware flops utilisation: the time of this device's products at the peak, by the estimate.

        Products that are computed again, padded, or repeated on several devices count.
        """
        products = sum(row.products * row.executions for row in self._step)
        return products / self.estimate if self.estimate else 0.0

    def tokens_per_second(self, tokens: Any) -> float:
        """The rate of all devices together, if one step takes in so many tokens.

        Raises:
            TypeError: ``tokens`` is no number. ValueError: it is negative or NaN.
        """
        if isinstance(tokens, bool) or not isinstance(tokens, Real):
            raise TypeError(message("tokens_per_second", "tokens must be a number", shown(tokens)))
        count = float(tokens)
        if not count >= 0:
            raise ValueError(message("tokens_per_second", "tokens must be at least 0", shown(tokens)))
        return count / self.estimate if self.estimate else float("inf")

    def by(self, *keys: str) -> EstimateGroups:
        """The seconds of the step by columns, the group of most seconds first.

        Args:
            keys: any of ``"line"``, ``"op"``, ``"axis"``, ``"kind"``, ``"stream"``, ``"bound"``, ``"cause"``,
                ``"file"`` and ``"variable"``. Default: ``"line"``.

        Raises:
            ValueError: a key is not a column.
        """
        by = checked_columns("by", keys or ("line",))
        return EstimateGroups.of(self.rows, by, [_COLUMNS[key] for key in by], self.summary(), self.estimate)

    def diff(self, other: Any, by: Sequence[str] = ("line", "op")) -> EstimateDiff:
        """Compare with the estimate of another program, or of the same one on other hardware.

        Args:
            other: the second estimate.
            by: the columns by which rows are matched, as in :meth:`by`.

        Returns:
            ``-`` only here, ``+`` only in ``other``, ``~`` other seconds; false when nothing differs.
        """
        if not isinstance(other, Estimate):
            raise TypeError(message("diff", "takes another estimate", shown(other), "pass program.estimate()"))
        names = [by] if isinstance(by, str) else by
        if not isinstance(names, Iterable):
            raise TypeError(message("diff", "by must be a sequence of names of columns", shown(by)))
        keys = checked_columns("diff", names)
        getters = [_COLUMNS[key] for key in keys]
        return EstimateDiff.of(self.rows, other.rows, keys, getters, (self.estimate, other.estimate))

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the schedule as a Chrome trace (JSON), which https://ui.perfetto.dev shows.

        A track for each stream, and one for loops and branches. A transfer has an event for each tier of links that it
        takes. Loops show their first trip, and one event for all others; what is in a branch is as long as its share;
        calibrated hardware has one event for all executions of a row. The events of the compute track, its waits
        included, sum up to the estimate. A counter has the bytes that are alive on the device: the moments of
        :meth:`Program.memory`, and its peak, at the times of the ops that make the values.
        """
        step = self._step, self._spans, self.estimate, self.hardware.name
        save_trace(path, trace_events(*step, self._live()))

    def largest(self, count: int = 10) -> Estimate:
        """The ``count`` rows that take most of the step, largest first.

        Raises:
            TypeError: ``count`` is not an integer of at least 0.
        """
        if not is_integer(count, 0):
            raise TypeError(message("largest", "count must be an integer of at least 0", shown(count)))
        return self._with(sorted(self.rows, key=lambda row: -row.cost)[:count])

    def summary(self) -> str:
        """One line: the time and its bounds, utilisation, what is exposed, and the hardware."""
        bounds = f"{duration(self.estimate)} (lower {duration(self.lower)}, upper {duration(self.upper)})"
        exposed = f", exposed transfers {duration(self.exposed)}" if self.exposed else ""
        calibration = self.hardware.calibration
        fitted = f", calibrated on {calibration}" if calibration else ""
        return f"{bounds} on {self.hardware.name}, MFU {self.mfu:.1%}{exposed}{fitted}"

    def to_dict(self) -> dict[str, Any]:
        """``{"lower": …, "estimate": …, "upper": …, "mfu": …, "hfu": …, …, "rows": [{…}, …]}``; times in seconds."""
        numbers = ("lower", "estimate", "upper", "compute", "exposed", "mfu", "hfu", "devices")
        calibration = self.hardware.calibration
        return {
            **{name: getattr(self, name) for name in numbers}, "hardware": self.hardware.name,
            "calibration": None if calibration is None else calibration.to_dict(),
            "assumptions": list(self.assumptions), "rows": self._records(),
        }  # fmt: skip

    def _with(self, rows: Sequence[Any]) -> Estimate:
        bounds, model = (self.lower, self.estimate, self.upper), self._model_products
        drawn = self._spans, self._live
        return Estimate(rows, bounds, self.hardware, self.devices, model, *drawn, self.assumptions, self._step)

    def _grouped(self) -> EstimateGroups:
        return self.by()

    def _header(self) -> Sequence[str]:
        return _SHOWN

    def _fields(self) -> Sequence[str]:
        return [*EstimateRow.__dataclass_fields__, "total", "cost"]

    def _right(self) -> frozenset[int]:
        return frozenset(
            i for i, name in enumerate(_SHOWN) if name in ("seconds", "executions", "total", "exposed", "bytes")
        )

    def _cells(self, row: EstimateRow) -> Sequence[str]:
        exposed = duration(row.exposed) if row.exposed else ""
        return (
            row.kind, row.name, row.stream, duration(row.seconds), f"{row.executions:g}", duration(row.total), exposed,
            row.bound, format_bytes(row.bytes), *_where_and_why(row),
        )  # fmt: skip


def checked_columns(what: str, keys: Iterable[Any]) -> tuple[str, ...]:
    """The columns to group by, in the table's words. Raises ValueError for an unknown one."""
    return checked_keys(what, ["name" if isinstance(key, str) and key == "op" else key for key in keys], _COLUMNS)


def estimate_of(
    found: tuple[Any, ...],
    collectives: Mapping[int, Mapping[str, Any]],
    hardware: Any,
    devices: int,
    model_products_ps: int,
    live: Callable[[Sequence[TimedOps], Sequence[StepSpan], float], LiveBytes],
) -> Estimate:
    """The report of the extension's numbers.

    Args:
        collectives: the ledger's row of each op.
        live: the bytes over time, of when ops run, loops, branches and calls, and the estimate.
    """
    bounds, rows, spans = found
    made = [_row(row, collectives.get(row["op"], {})) for row in rows]
    lower, estimate, upper = (ps / _PS for ps in bounds)
    calibration: Calibration | None = hardware.calibration
    if calibration:
        made, spans = calibrated_rows(made, calibration), ()
        estimate = sum(row.cost for row in made)
    assumptions = (*(_SCHEDULED if calibration is None else _terms(calibration)), *_assumptions(bounds, rows))
    parts = [span_of(span) for span in spans]
    timed = [_timed(report, row) for report, row in zip(made, rows) if report.stages]
    return Estimate(
        made,
        (min(lower, estimate), estimate, max(estimate, upper)),
        hardware,
        devices,
        model_products_ps / _PS,
        parts,
        lambda: live(timed, parts, estimate),
        assumptions,
    )


def _timed(report: EstimateRow, row: Mapping[str, Any]) -> TimedOps:
    (_, start, _), (_, last, seconds) = report.stages[0], report.stages[-1]
    return TimedOps(row["op_numbers"], start, last + seconds, row["is_transfer"])


def _row(row: Mapping[str, Any], collective: Mapping[str, Any]) -> EstimateRow:
    is_transfer = row["is_transfer"]
    parts = _transfer_parts(row) if is_transfer else _kernel_parts(row)
    links = {name: seconds for name, seconds in parts.items() if name != "latency"}
    stream = max(links, key=links.__getitem__, default="links") if is_transfer else "compute"
    return EstimateRow(
        kind="transfer" if is_transfer else "kernel",
        name=collective.get("kind") or row["name"].partition(".")[2],
        ops=tuple(name.partition(".")[2] for name in row["ops"]),
        stream=stream,
        start=row["start_ps"] / _PS,
        seconds=row["ps"] / _PS,
        stages=tuple((stream, start / _PS, ps / _PS) for stream, start, ps in row["stages"]),
        executions=row["executions"],
        exposed=row["exposed_ps"] / _PS,
        bound=max(parts, key=parts.__getitem__, default="latency") if is_transfer else row["bound"],
        bytes=row["bytes"],
        flops=row.get("flops", 0),
        products=row.get("products_ps", 0) / _PS,
        parts=parts,
        is_attention=row["is_attention"],
        axes=collective.get("axes", ""),
        cause=collective.get("cause", ""),
        file=row["file"],
        line=row["line"],
        variable=row["variable"],
        combined=combined_operands(collective),
    )


def _where_and_why(row: EstimateRow) -> tuple[str, str]:
    others = row.combined[1:]
    where = with_more(short_location(row.where), [short_location(part.where) for part in others])
    return where, with_more(row.cause, [part.cause for part in others])


def _transfer_parts(row: Mapping[str, Any]) -> dict[str, float]:
    parts: dict[str, float] = {}
    for name, ps in row["tiers"]:
        parts[name] = parts.get(name, 0.0) + ps / _PS
    return {**parts, "latency": row["latency_ps"] / _PS} if row["latency_ps"] else parts


def _kernel_parts(row: Mapping[str, Any]) -> dict[str, float]:
    named = zip(("matrix", "vector", "transcendental"), row["unit_ps"])
    parts = {**dict(named), "memory": row["memory_ps"], "launch": row["launch_ps"]}
    return {name: ps / _PS for name, ps in parts.items() if ps}


_SCHEDULED = (
    "kernels run one after the other, each as fast as its slowest of units and memory",
    "elementwise ops and row reductions run with the op that makes their operand",
    "transfers run beside kernels, and one after the other on each tier of links; nothing runs beside a loop",
)


def _terms(calibration: Calibration) -> Iterator[str]:
    yield "each row takes its terms, one after the other: products, memory, and transfers by tier"
    yield "elementwise ops and row reductions run with the op that makes their operand"
    constants = ", ".join(f"{term} {value:.3g}" for term, value in calibration.constants.items())
    yield f"constants {constants}; of all other terms 1, without launches and latency"
    yield f"fitted on {calibration}"


def _sends_behind_loops(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the device waits for a reduction outside of loops, and has loops."""
    has_loop = any(row["executions"] > 1 for row in rows)
    sums = ("shardwise.all_reduce", "shardwise.reduce_scatter")
    return has_loop and any(row["name"] in sums and row["executions"] == 1 and row["exposed_ps"] > 0 for row in rows)


def _assumptions(bounds: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What is not modelled, and what is assumed of this program."""
    found = ["not modelled: contention with other jobs, stragglers, the host, allocation"]
    kinds = {row["kind"] for row in rows}
    if "assumed" in kinds:
        found.append("a loop of unknown length has 16 trips, or the declared ones")
    if _sends_behind_loops(rows):
        found.append("what a loop stacks or adds up, such as gradients of scanned layers, is sent after the loop")
    if "branch" in kinds:
        found.append("each branch counts with its declared share, or an equal one")
    if max(bounds, default=0) >= SATURATED:
        found.append("some quantity does not fit 62 bits: the times are at least so long")
    return tuple(found)
