# SPDX-License-Identifier: Apache-2.0
"""Hardware: the rates and links of machines, from which times are computed.

Built-in files describe TPUs, GPUs and a CPU host. A file of your own states what differs from one of them. Each number
has its source and its license.

>>> h100 = load("h100_sxm")
>>> h100
Hardware('h100_sxm': bf16 989 TFLOP/s, memory 3.35 TB/s and 79.11 GiB, nvlink 8 x 450 GB/s, infiniband 50 GB/s)
>>> h100.peak("matrix", "float8_e4m3fn") / h100.peak("matrix", "bfloat16")
2.0
>>> from shardwise import Mesh
>>> mesh = Mesh({"data": 2, "model": 8})
>>> h100.collective_time("all_gather", 2**26, mesh, ["model"])
CollectiveTime(1.05 ms: nvlink 448 MiB in 1.04 ms, latency 1.8 us)
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from . import calibrating
from ._core import hardware as _hardware
from .dtypes import as_dtype, dtype_name
from .errors import described, headed, is_integer, is_one_of, message, shown
from .hardware_files import document_bytes, file_bytes, is_text, shortened
from .process.traceback_filtering import entry_point, entry_points
from .reports.calibration import Calibration, quantities_of
from .reports.estimate import Estimate
from .reports.tables import format_bytes
from .shardings.mesh import Mesh
from .shardings.partition_spec import Axis, SubAxis

__all__ = ["Calibration", "CollectiveTime", "Hardware", "Number", "Tier", "TierTime", "calibrate", "list", "load"]

_SATURATED = 2**62  # where the core's quantities stop
_UNITS = ("matrix", "vector", "transcendental")
_KINDS = (
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "all_to_all",
    "collective_permute",
    "exchange",
    "shift",
    "chain",
)


@dataclass(frozen=True)
class Number:
    """One number of a hardware file, and where it is from.

    Attributes:
        path: its place in the file, ``"memory.bandwidth"``.
        value: the number, in bytes, flops or seconds; for a torus also its shape and its rule of wraparound.
        source: the title of the source; "" if the file does not state it.
        license: the license of the source.
        note: how the number follows from the source, or "".
    """

    path: str
    value: Any
    source: str
    license: str
    note: str


@dataclass(frozen=True)
class Tier:
    """Links that join devices, or groups of the tier inside.

    Attributes:
        name: ``"nvlink"``.
        topology: ``"switch"``, ``"fat_tree"``, ``"ring"`` or ``"torus"``.
        size: units that it joins at most; None for any number.
        bandwidth: bytes per second, one way: of each device of a switch or a fat tree, of each link of a ring or torus.
        latency: seconds of one message between neighbors.
        shape: the dims of a torus; empty otherwise.
    """

    name: str
    topology: str
    size: int | None
    bandwidth: float
    latency: float
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class TierTime:
    """What a collective does to one tier: the bytes that a device receives over it, and the seconds that this takes."""

    name: str
    bytes: int
    seconds: float


@dataclass(frozen=True, repr=False)
class CollectiveTime:
    """The time of a collective on some hardware.

    ``float(time)`` is ``time.seconds``, and times compare by it, also with numbers of seconds. A sum is the time of
    collectives that follow each other, tier by tier.

    Attributes:
        latency: seconds that pass however few bytes there are.
        tiers: what happens in each tier of links, from the inside out.

    >>> from shardwise import Mesh
    >>> h100, mesh = load("h100_sxm"), Mesh({"data": 2, "model": 8})
    >>> inside, across = (h100.collective_time("all_gather", 2**26, mesh, axis) for axis in ("model", "data"))
    >>> inside < across < 2e-3
    True
    >>> sum([inside, across, across])
    CollectiveTime(3.74 ms: nvlink 448 MiB in 1.04 ms, infiniband 128 MiB in 2.68 ms, latency 7.2 us)
    """

    latency: float
    tiers: tuple[TierTime, ...]

    @property
    def seconds(self) -> float:
        """Latency, and the times of the tiers one after the other: an estimate."""
        return self.latency + sum(tier.seconds for tier in self.tiers)

    @property
    def overlapped(self) -> float:
        """Latency, and the time of the slowest tier: a lower bound, which messages in many pieces come close to."""
        return self.latency + max((tier.seconds for tier in self.tiers), default=0.0)

    def __float__(self) -> float:
        return self.seconds

    def __lt__(self, other: CollectiveTime | float) -> bool:
        return _compared(float.__lt__, self, other)

    def __le__(self, other: CollectiveTime | float) -> bool:
        return _compared(float.__le__, self, other)

    def __gt__(self, other: CollectiveTime | float) -> bool:
        return _compared(float.__gt__, self, other)

    def __ge__(self, other: CollectiveTime | float) -> bool:
        return _compared(float.__ge__, self, other)

    def __add__(self, other: Any) -> CollectiveTime:
        if not isinstance(other, CollectiveTime):
            return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts from 0
        sums: dict[tuple[str, int], TierTime] = {}
        for time in (self, other):
            names = [tier.name for tier in time.tiers]
            for i, tier in enumerate(time.tiers):
                key = (tier.name, names[:i].count(tier.name))  # a tier may come twice
                known = sums.get(key, TierTime(tier.name, 0, 0.0))
                sums[key] = TierTime(tier.name, known.bytes + tier.bytes, known.seconds + tier.seconds)
        return CollectiveTime(self.latency + other.latency, tuple(sums.values()))

    __radd__ = __add__

    def __repr__(self) -> str:
        parts = [f"{tier.name} {format_bytes(tier.bytes)} in {_duration(tier.seconds)}" for tier in self.tiers]
        parts += [f"latency {_duration(self.latency)}"] if self.latency else []
        return f"CollectiveTime({_duration(self.seconds)}{': ' if parts else ''}{', '.join(parts)})"


@entry_points
class Hardware:
    """The rates and links of one kind of machine; :func:`load` reads it.

    Two of them are equal if their files state the same.
    """

    __slots__ = ("_core",)
    _core: _hardware.Hardware

    def __init__(self) -> None:
        raise TypeError(message("Hardware", "is read from a file", None, 'sw.hardware.load("h100_sxm") reads one'))

    @classmethod
    def _wrap(cls, core: _hardware.Hardware) -> Hardware:
        hardware = cls.__new__(cls)
        hardware._core = core
        return hardware

    @property
    def name(self) -> str:
        """The name in the file."""
        return self._core.name

    @property
    def description(self) -> str:
        """What it is, in one line."""
        return self._core.description

    @property
    def memory_bandwidth(self) -> float:
        """Bytes per second of a device's memory."""
        return float(self._core.memory_bandwidth)

    @property
    def memory_bytes(self) -> int:
        """The capacity of a device's memory, in bytes."""
        return self._core.memory_bytes

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the memory that programs do not get."""
        return self._core.reserved_bytes

    @property
    def launch(self) -> float:
        """Seconds that it takes to start one kernel."""
        return self._core.launch_ps / 1e12

    @property
    def fused_attention(self) -> bool:
        """Whether a product, a softmax and a product run as one kernel, which does not store the scores."""
        return self._core.fused_attention

    @property
    def default_dot(self) -> str:
        """The format of a float32 product of precision DEFAULT: ``"tf32"``, ``"bf16"`` or ``"f32"``."""
        return self._core.default_dot

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers of links, from the inside out."""
        return tuple(_tier(tier) for tier in self.to_dict()["tiers"])

    @property
    def calibration(self) -> Calibration | None:
        """The constants that :func:`calibrate` fitted; None if the hardware is not calibrated."""
        section = self.to_dict().get("calibration")
        return None if section is None else Calibration.from_dict(section)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Every number of the file with its source and license."""
        document = self.to_dict()
        sources = document.pop("sources", {})
        fitted = document.pop("calibration", None)
        rows = [*_numbers("", document, sources)]
        if fitted:
            title = f"fitted on {fitted['fitted_on']}"
            rows += [replace(row, source=row.source or title) for row in _numbers("calibration", fitted, sources)]
        return tuple(rows)

    def peak(self, unit: str, dtype: Any) -> float:
        """Flops per second of a unit for one dtype.

        A dtype that the file does not list has the rate of the narrowest listed one of its kind, float or integer, that
        is not narrower; one wider than all of its kind has a rate that is lower by the ratio of their bits, and its
        products at most that of the vector unit. Where the file lists none of the kind, the other kind serves.

        The flops of complex numbers are those of their parts: one product that is added to a sum is 8 of them, and 2 of
        real numbers. So the rate of complex64 is that of float32.

        Args:
            unit: ``"matrix"`` for products, ``"vector"``, or ``"transcendental"`` for functions such as ``exp``.
            dtype: a NumPy dtype or its name; or a row of the file, such as ``"bf16"`` or ``"tf32"``. As in files,
                ``"i8"`` is an integer of 8 bits.

        Raises:
            ValueError: an unknown unit. DTypeError: an unknown dtype.

        >>> load("h100_sxm").peak("matrix", "tf32")
        494585145753600.0
        """
        if not is_one_of(unit, _UNITS):
            raise ValueError(message("Hardware.peak", f"unit must be {_words(_UNITS)}", shown(unit)))
        named = self._core.peak_named(unit, dtype) if isinstance(dtype, str) and is_text(dtype) else None
        if named is not None:
            return float(named[0])
        return float(self._core.peak(unit, dtype_name(as_dtype("Hardware.peak", dtype)))[0])

    def collective_time(self, kind: str, nbytes: int, mesh: Mesh, axes: Sequence[Axis] | str) -> CollectiveTime:
        """The time of one collective by groups of devices along some axes of a mesh.

        Args:
            kind: ``"all_gather"``, ``"reduce_scatter"``, ``"all_reduce"``, ``"all_to_all"``, ``"collective_permute"``,
                ``"exchange"``, ``"shift"`` (to the next device) or ``"chain"`` (from the first device to the last).
            nbytes: the size of the operand on one device, in bytes; of an exchange, what a device receives.
            mesh: the devices. Their ids fill the tiers from the inside out.
            axes: an axis, or several; the devices of a group differ along these.

        Raises:
            ValueError: an unknown kind, or a negative size. ShardingError: an unknown axis, or one that comes twice.
            OverflowError: the bytes that a device receives, or the picoseconds, do not fit 62 bits.
            MeshError: the hardware joins fewer devices than the mesh has.

        >>> from shardwise import Mesh
        >>> load("tpu_v5e").collective_time("all_gather", 2**23, Mesh({"x": 8, "y": 4}), "y")
        CollectiveTime(562 us: ici 24 MiB in 559 us, latency 3 us)
        """
        if not is_one_of(kind, _KINDS):
            raise ValueError(message("collective_time", f"kind must be {_words(_KINDS)}", shown(kind)))
        if not is_integer(nbytes, 0) or nbytes >= 2**63:
            rule = "nbytes must be an integer of at least 0 and below 2^63"
            raise ValueError(message("collective_time", rule, shown(nbytes)))
        if not isinstance(mesh, Mesh):
            raise TypeError(message("collective_time", "mesh must be a Mesh", described(mesh)))
        given: Any = axes
        if not isinstance(given, (str, SubAxis, Iterable)):
            rule = "axes must be a mesh axis, or several"
            raise TypeError(message("collective_time", rule, described(given), 'axes=["data", "model"] names two'))
        names = [axes] if isinstance(axes, (str, SubAxis)) else [*axes]
        rows = [(axis.name, (axis.pre, axis.size)) if isinstance(axis, SubAxis) else (axis, None) for axis in names]
        if not all(isinstance(name, str) for name, _ in rows):
            raise TypeError(message("collective_time", "axes must be names of mesh axes", shown(axes)))
        latency, tiers = self._core.collective_time(kind, int(nbytes), mesh._core, rows)
        if any(quantity >= _SATURATED for quantity in (latency, *(each for row in tiers for each in row[1:]))):
            rule = "what a device receives must be below 2^62 bytes, and take less than 2^62 ps (53 days)"
            raise OverflowError(message("collective_time", rule, f"{kind} of {nbytes} bytes"))
        return CollectiveTime(latency / 1e12, tuple(TierTime(name, size, ps / 1e12) for name, size, ps in tiers))

    def to_dict(self) -> dict[str, Any]:
        """The file as values that JSON supports, with everything that its base has; :func:`load` reads them back."""
        document: dict[str, Any] = json.loads(self._core.json)
        return document

    @property
    def is_built_in(self) -> bool:
        """Whether it is the built-in file of its name."""
        return bool(_hardware.builtin(self.name) == self._core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hardware) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self._core.json,)

    def __repr__(self) -> str:
        peak, row = self._core.peak("matrix", "bfloat16")
        memory = f"memory {_rate(self.memory_bandwidth, 'B/s')} and {format_bytes(self.memory_bytes)}"
        parts = [f"{row} {_rate(peak, 'FLOP/s')}", memory, *map(_tier_text, self.tiers)]
        parts += [f"calibrated on {self.calibration}"] if self.calibration else []
        return f"Hardware({self.name!r}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{escape(each.path)}</td><td style='text-align:right'>{escape(_value_text(each.value))}</td>"
            f"<td>{escape(', '.join(filter(None, (each.source, each.note))))}</td><td>{escape(each.license)}</td></tr>"
            for each in self.numbers
        ]
        head = "<tr><th>number</th><th>value</th><th>source</th><th>license</th></tr>"
        return f"<div><code>{escape(repr(self))}</code><table>{head}{''.join(rows)}</table></div>"


@entry_point
def load(source: Hardware | str | bytes | os.PathLike[str] | os.PathLike[bytes] | Mapping[str, Any]) -> Hardware:
    """Read hardware: a built-in file by its name, a file of your own by its path, or a dict of the same form.

    Hardware that is already loaded is returned as it is.

    Raises:
        ParseError: a file that is not of the form in :doc:`/hardware`; the message names the place in the file.
        FileNotFoundError: neither a built-in name nor a file. IsADirectoryError: a directory.
        ValueError: a dict with a value that JSON does not support, such as NaN; the message names its key.
        TypeError: another object; or a dict with one in it.

    >>> load("tpu_v5p").tiers[0]
    Tier(name='ici', topology='torus', size=8960, bandwidth=90000000000.0, latency=1e-06, shape=(16, 20, 28))
    >>> slow = load({**load("h100_sxm").to_dict(), "name": "slow", "launch": 5e-6})
    >>> slow.launch
    5e-06
    """
    if isinstance(source, Hardware):
        return source
    if isinstance(source, Mapping):
        return Hardware._wrap(_hardware.from_json(document_bytes(source), "hardware.load", has_places=False))
    try:
        path = os.fsdecode(source)
    except TypeError:
        raise TypeError(message("hardware.load", "takes a name, a path or a dict", described(source))) from None
    found = _hardware.builtin(path) if is_text(path) else None
    if found is not None:
        return Hardware._wrap(found)
    with headed("hardware.load"):
        return Hardware._wrap(_hardware.from_json(file_bytes(path, _hardware.builtin_names()), shortened(path)))


@entry_point
def calibrate(
    steps: Any,
    programs: Mapping[str, Any] | None = None,
    *,
    hardware: Hardware | str | os.PathLike[str],
    terms: Sequence[str | Sequence[str]] | None = None,
    name: str | None = None,
    fitted_on: str | None = None,
) -> Hardware:
    """Hardware whose estimates are fitted to the measured times of your own steps, with at most five constants.

    ``program.estimate(calibrated)`` is a sum: each constant times the seconds that its term takes at the rates of the
    file. The terms are ``"matrix"``, the products outside attention; ``"attention"``, those of attention kernels;
    ``"memory"``; and the transfers of each tier of links, such as ``"tiers.nvlink"``. The constants are those of at
    least 0 that minimise the squares of the relative errors. The partitioner's choices do not depend on them.

    Args:
        steps: pairs of a program, or its estimate on ``hardware``, and the seconds that its step took; or the path of a
            CSV file with the columns ``program`` and ``seconds``.
        programs: the programs of a CSV file, by the names in its column.
        hardware: what the steps ran on, as in :func:`load`; a calibration that it has is replaced.
        terms: those to fit. The ones in a tuple share a constant; those left out keep 1. Default: all that are in a
            step, where the tiers share a constant.
        name: of the calibrated hardware. Default: that of ``hardware``, and ``"_calibrated"``.
        fitted_on: the steps in words, for reports. Default: their number, and the name of the file.

    Returns:
        hardware with a :attr:`Hardware.calibration`, whose :meth:`~Hardware.to_dict` can be stored as a JSON file.

    Raises:
        ValueError: fewer steps than constants; a time that is not above 0; an unknown term, or one that no step has; an
            estimate on other hardware; a CSV file without the columns, or with an unknown program.
        TypeError: steps that are no pairs.

    >>> import numpy as np, shardwise as sw
    >>> def program(rows):
    ...     x, w = sw.ShapeDtypeStruct((rows, 8192), np.float16), sw.ShapeDtypeStruct((8192, 8192), np.float16)
    ...     step = sw.jit(lambda x, w: np.tanh(x @ w).sum(0), mesh=sw.Mesh({"d": 8}), in_shardings=(sw.P("d"), sw.P()))
    ...     return step.lower(x, w).compile()
    >>> steps = [(program(rows), seconds) for rows, seconds in ((2**15, 1.1e-3), (2**17, 4.1e-3), (2**19, 16.2e-3))]
    >>> calibrated = calibrate(steps, hardware="h100_sxm", terms=["matrix", "memory"], fitted_on="our node")
    >>> {term: round(constant, 2) for term, constant in calibrated.calibration.constants.items()}
    {'matrix': 1.55, 'memory': 2.37}
    >>> round(program(2**18).estimate(calibrated).estimate * 1e3, 2)  # ms
    8.13
    """
    base = load(hardware).to_dict()
    base.pop("calibration", None)
    uncalibrated = load(base)
    is_file = isinstance(steps, (str, os.PathLike))
    pairs = calibrating.read_steps(steps, programs) if is_file else calibrating.expect_steps(steps)
    quantities = [quantities_of(_estimated(program, uncalibrated).rows) for program, _ in pairs]
    groups = calibrating.terms_of(terms, quantities, [tier.name for tier in uncalibrated.tiers])
    words = fitted_on or f"{len(pairs)} steps{f' of {shortened(os.fspath(steps))}' if is_file else ''}"
    found = calibrating.fitted(quantities, [seconds for _, seconds in pairs], groups, words)
    return load({**base, "name": name or f"{uncalibrated.name}_calibrated", "calibration": found.to_dict()})


def _estimated(step: Any, hardware: Hardware) -> Any:
    if not isinstance(step, Estimate):
        return step.estimate(hardware)
    if step.hardware != hardware:
        rule = "each estimate must be on the hardware that is calibrated"
        raise ValueError(message("hardware.calibrate", rule, shown(step.hardware.name), "pass the program"))
    return step


@entry_point
def list() -> builtins.list[str]:
    """The names of the built-in files; ``"default"`` comes first.

    >>> list()[:3]
    ['default', 'a100_40', 'a100_80']
    """
    return _hardware.builtin_names()


def _read_again(document: str) -> Hardware:
    return Hardware._wrap(_hardware.from_json(document.encode(), "hardware", has_places=False))


def _compared(compare: Callable[[float, float], bool], time: CollectiveTime, other: CollectiveTime | float) -> bool:
    if not isinstance(other, (CollectiveTime, int, float)):
        return NotImplemented
    return compare(time.seconds, float(other))


def _plain(number: Any) -> Any:
    return number["value"] if isinstance(number, dict) and "value" in number else number


def _tier(tier: Mapping[str, Any]) -> Tier:
    shape = tuple(_plain(tier.get("shape", ())))
    size = int(np.prod(shape)) if shape else _plain(tier.get("size"))
    bandwidth, latency = float(_plain(tier["bandwidth"])), float(_plain(tier.get("latency", 0)))
    return Tier(tier["name"], tier["topology"], size, bandwidth, latency, shape)


def _tier_text(tier: Tier) -> str:
    size = "x".join(map(str, tier.shape)) or (str(tier.size) if tier.size else "")
    return f"{tier.name} {size}{' x ' if size else ''}{_rate(tier.bandwidth, 'B/s')}"


def _numbers(path: str, node: Any, sources: Mapping[str, Any]) -> Iterator[Number]:
    """The numbers below a node of a file, in its order; a number is alone, or has its source beside it."""
    is_stated = isinstance(node, dict) and ("value" in node or "points" in node)
    if is_stated or (isinstance(node, (int, float)) and not isinstance(node, bool)):
        row = node if isinstance(node, dict) else {"value": node}
        source = sources.get(str(row.get("source")), {})
        value = row["value"] if "value" in row else row["points"]
        yield Number(path, value, source.get("title", ""), source.get("license", ""), row.get("note", ""))
    elif isinstance(node, dict):
        for key, child in node.items():
            if path or key != "version":
                yield from _numbers(f"{path}.{key}" if path else key, child, sources)
    elif isinstance(node, builtins.list):
        for child in node:
            name = child.get("name") if isinstance(child, dict) else None
            yield from _numbers(f"{path}.{name}", child, sources)


def _words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _three_digits(value: float, units: Sequence[str]) -> str:
    """``value`` with three digits, in the largest of ``units`` that leaves at least 1; each is 1000 of the last."""
    unit = 0
    while unit + 1 < len(units) and value >= 999.5:
        value, unit = value / 1000, unit + 1
    text = f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"
    return f"{text} {units[unit]}"


def _rate(value: float, unit: str) -> str:
    return _three_digits(value, [f"{prefix}{unit}" for prefix in ("", "k", "M", "G", "T", "P")])


def _duration(seconds: float) -> str:
    return _three_digits(seconds * 1e12, ["ps", "ns", "us", "ms", "s"])


def _value_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def __dir__() -> builtins.list[str]:
    return sorted(__all__)
