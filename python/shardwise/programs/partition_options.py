# SPDX-License-Identifier: Apache-2.0
"""The options of the partitioner, for :func:`jit`.

A new option is a field of :class:`PartitionOptions`, a key of :class:`PartitionKeywords`, a field of ``CompileOptions``
and its row in ``kCompileOptions`` (cpp/shardwise/ir/compile_options.h). Signatures, docstrings, caches and
:class:`Choices` have it from there.

>>> PartitionOptions(objective="bytes").as_arguments()
{'objective': 'bytes', 'hardware': 'default'}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, get_args

from ..dtypes import as_dtype, dtype_name, is_float
from ..errors import ShardingError, described, message, shown
from ..hardware import Hardware, load
from ..shardings.partition_spec import Axis, SubAxis
from .hardware_options import checked_hardware, checked_limit, checked_size

__all__ = ["DEFAULT_OPTIONS", "MOST_BYTES", "OBJECTIVES", "Objective", "PartitionKeywords", "PartitionOptions"]

Objective = Literal["time", "bytes"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
WindowedEinsum = Literal["time", "always", "never"]
WINDOWED_EINSUMS: Final[tuple[WindowedEinsum, ...]] = get_args(WindowedEinsum)
DEFAULT_HARDWARE: Final = load("default")
MOST_BYTES: Final = 1 << 62  # of a limit, in the extension


def checked_axes(what: str, given: Any) -> str:
    """Axes as the extension's text, ``{"data", "model":(1)2}``; such a text stays as it is.

    Raises:
        ShardingError: neither an axis nor several, or none.
    """
    if isinstance(given, str) and given.startswith("{"):
        return given
    axes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not axes or not all(isinstance(axis, (str, SubAxis)) for axis in axes):
        rule = "shard_update must be the name of an axis, a sub-axis, or a tuple of them"
        raise ShardingError(message(what, rule, described(given), "write shard_update='data'"))
    return f"{{{', '.join(map(_axis_text, axes))}}}"


def _axis_text(axis: Axis) -> str:
    name = axis.name if isinstance(axis, SubAxis) else axis
    quoted = "".join(f"\\{ord(c):02X}" if c in '"\\' or ord(c) < 32 else c for c in name)
    return f'"{quoted}":({axis.pre}){axis.size}' if isinstance(axis, SubAxis) else f'"{quoted}"'


def checked_float(what: str, given: Any) -> str:
    """The name of a float dtype.

    Raises:
        DTypeError: no dtype. ShardingError: another dtype than one of floats.
    """
    dtype = as_dtype(what, given)
    if not is_float(dtype):
        raise ShardingError(message(what, "gather_dtype must be a dtype of floats", dtype.name))
    dtype_name(dtype)
    return dtype.name


def positive_limit(what: str, given: Any) -> int:
    """The bytes of a limit of memory, as :func:`checked_limit`. Also ValueError if a device would have none."""
    limit = checked_limit(what, given)
    if limit < 1:
        raise ValueError(message(what, "memory_limit must be positive", shown(given), "pass None for no limit"))
    return limit


@dataclass(frozen=True)
class PartitionOptions:
    """How a propagated program is partitioned.

    Attributes:
        objective: what the partitioner minimizes. ``"time"``, the default: operations, memory and transfers of a device
            on the hardware, one after the other (:meth:`Program.choice_price`). ``"bytes"``: the bytes that a device
            receives, even if devices then repeat work.
        hardware: the hardware that times are computed for: a :class:`shardwise.hardware.Hardware`, its name, or a path;
            by default the file ``default``: an H100 without launches and latencies, 8 in a node.
        memory_limit: the bytes that a device has for the program: a number, ``"80GB"``, ``"16GiB"``, or hardware, less
            what it reserves. Values that would not fit are gathered or computed again where they are needed, those
            first that take the least time for their memory (:meth:`Program.memory`); OutOfMemoryError where that is not
            enough. Default: no limit.
        shard_update: an axis, a sub-axis or a tuple of them: the update of each weight is split over these devices, and
            the weight and its optimizer state stay split between steps. See :meth:`Program.shard_update`.
        gather_dtype: with ``shard_update``: the dtype in which the forward pass receives weights that nothing but
            products reads, such as ``"bfloat16"``; by default that of the weight, or that to which the forward pass
            converts it.
        combine_bytes: the bytes that collectives which become one have at most: a number, or ``"30MiB"``; 0 leaves each
            alone. Default: 30 MiB, as XLA's for GPUs. Collectives are combined only if nothing waits longer for it, and
            no device needs more memory.
        windowed_einsum: where a product runs as a loop that multiplies each block of a gathered operand while the next
            one travels, or sends each sum on as soon as it is made (``docs/step_time.md``). ``"time"``: where
            :meth:`Program.estimate` takes less time. ``"always"``: wherever that is possible. ``"never"``: nowhere. By
            default, where the program would not fit in its memory_limit otherwise; ``"time"`` includes that.
    """

    objective: Objective = field(default="time", metadata={"choices": OBJECTIVES})
    hardware: Hardware = field(default=DEFAULT_HARDWARE, metadata={"check": checked_hardware})
    memory_limit: int | None = field(default=None, metadata={"check": positive_limit})
    shard_update: str | None = field(default=None, metadata={"check": checked_axes})
    gather_dtype: str | None = field(default=None, metadata={"check": checked_float})
    combine_bytes: int | None = field(default=None, metadata={"check": checked_size})
    windowed_einsum: WindowedEinsum | None = field(default=None, metadata={"choices": WINDOWED_EINSUMS})

    @property
    def is_by_bytes(self) -> bool:
        """Whether bytes are minimised, not time."""
        return self.objective == "bytes"

    def as_arguments(self) -> Mapping[str, Any]:
        """The options by name, as the extension takes them."""
        arguments = {**self._given(), "hardware": self._hardware_text()}
        if self.memory_limit is not None:
            arguments["memory_limit"] = str(min(self.memory_limit, MOST_BYTES))
        if self.combine_bytes is not None:
            arguments["combine_bytes"] = str(min(self.combine_bytes, MOST_BYTES))
        return arguments

    def to_dict(self) -> dict[str, Any]:
        """The options by name, as JSON has them: hardware that is built in by its name, other as a dict."""
        is_built_in = self.hardware.is_built_in
        return {**self._given(), "hardware": self.hardware.name if is_built_in else self.hardware.to_dict()}

    def _given(self) -> dict[str, Any]:
        """The options by name, without those that are None."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def _hardware_text(self) -> str:
        return self.hardware.name if self.hardware.is_built_in else self.hardware._core.json


DEFAULT_OPTIONS: Final = PartitionOptions()


class PartitionKeywords(TypedDict, total=False):
    """All options as keyword arguments; None leaves one unspecified."""

    objective: Objective | None
    hardware: Hardware | str | os.PathLike[str] | None
    memory_limit: int | str | Hardware | os.PathLike[str] | None
    shard_update: Axis | Sequence[Axis] | None
    gather_dtype: Any
    combine_bytes: int | str | None
    windowed_einsum: WindowedEinsum | None
