# SPDX-License-Identifier: Apache-2.0
"""The mesh of JAX for a program: each axis is cut wherever a sub-axis of the program begins or ends.

    x=8, and the program uses x:(1)2 and x:(2)4        x_0=2, x_1=4       x:(1)2 → ("x_0",)

An axis whose cuts do not nest (6 as 2·3 and as 3·2), and the axes of another mesh over the same devices, have no names
there: their collectives take groups of devices. Other characters than printable ASCII become "_".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core.ir import Axes
from ...errors import UnsupportedError, message

__all__ = ["AxisRef", "MeshAxes", "axes_in", "refs_of_attribute"]

AxisRef = tuple[str, int, int]  # name, product of the sizes before it, size


@dataclass(frozen=True)
class MeshAxes:
    """The axes of JAX's mesh.

    Attributes:
        mesh: the program's mesh.
        sizes: the refined axes, major to minor.
        parts: for each axis of the program's mesh, its refined axes with their places in it.
    """

    mesh: Any
    sizes: dict[str, int]
    parts: dict[str, list[tuple[AxisRef, str]]]

    @classmethod
    def of(cls, mesh: Any, *used: Iterable[AxisRef]) -> MeshAxes:
        """The mesh cut at these sub-axes as far as the cuts nest, those of the first list first."""
        cuts: dict[str, list[int]] = {name: [] for name in mesh.axis_names}
        for refs in used:
            more: dict[str, set[int]] = {name: set() for name in mesh.axis_names}
            for name, pre, size in refs:
                more[name] |= {pre, pre * size}
            for name, places in more.items():
                for cut in sorted(places):
                    if all(cut % other == 0 or other % cut == 0 for other in cuts[name]):
                        cuts[name].append(cut)
        sizes: dict[str, int] = {}
        parts: dict[str, list[tuple[AxisRef, str]]] = {}
        for name, size in zip(mesh.axis_names, mesh.axis_sizes):
            borders = sorted({1, size, *cuts[name]})
            pieces = list(pairwise(borders))
            parts[name] = []
            for i, (begin, end) in enumerate(pieces):
                own = _safe(name) if len(pieces) == 1 else f"{_safe(name)}_{i}"
                while own in sizes or (own != name and own in cuts):
                    own += "_"
                sizes[own] = end // begin
                parts[name].append(((name, begin, end // begin), own))
        return cls(mesh, sizes, parts)

    def is_main(self, mesh: Any) -> bool:
        """Whether a mesh has the devices of the program's mesh in the same order, and the same axes."""
        same = (mesh.axis_names, mesh.axis_sizes) == (self.mesh.axis_names, self.mesh.axis_sizes)
        ids = (list(x.device_ids or range(x.size)) for x in (mesh, self.mesh))
        return same and (mesh == self.mesh or next(ids) == next(ids))

    @property
    def all(self) -> tuple[str, ...]:
        """Every axis, in mesh order."""
        return tuple(self.sizes)

    def names(self, refs: Sequence[AxisRef]) -> tuple[str, ...] | None:
        """The refined axes of some axes, in their order; None if a cut does not nest."""
        names: list[str] = []
        for name, pre, size in refs:
            inside = [own for (_, begin, n), own in self.parts[name] if begin >= pre and begin * n <= pre * size]
            if math.prod(self.sizes[own] for own in inside) != size:
                return None
            names += inside
        return tuple(names)

    def spec(self, dims: Sequence[Sequence[AxisRef]], what: str, caller: str) -> list[tuple[str, ...]]:
        """The axes of each dim of a value at the border of the program. UnsupportedError if a cut does not nest.

        ``what`` names the value, and ``caller`` the function that the user called.
        """
        found = [self.names(refs) for refs in dims]
        if any(names is None for names in found):
            rule = f"the sub-axes of {what} must nest with those of the others, since axes of JAX's meshes are whole"
            got = ", ".join(f'"{name}":({pre}){size}' for refs in dims for name, pre, size in refs)
            way_out = "use sub-axes with the same cuts, or a mesh with more axes"
            raise UnsupportedError(message(caller, rule, got, way_out))
        return [names for names in found if names is not None]

    def places(self, mesh: Any) -> np.ndarray:
        """The place of each device of JAX's mesh in another one, which has the same devices."""
        ids = np.array(self.mesh.device_ids or range(self.mesh.size))
        own_ids = np.array(mesh.device_ids or range(mesh.size))
        place = np.empty(len(ids), int)
        place[own_ids] = np.arange(len(ids))
        return np.asarray(place[ids])

    def positions(self, mesh: Any, refs: Sequence[AxisRef]) -> tuple[np.ndarray, np.ndarray]:
        """For each device of JAX's mesh, in order: its group along other axes, and its position along ``refs``.

        ``mesh`` has the same devices, maybe in another order.
        """
        place = self.places(mesh)
        strides: dict[str, tuple[int, int]] = {}
        stride = mesh.size
        for name, size in zip(mesh.axis_names, mesh.axis_sizes):
            stride //= size
            strides[name] = (stride, size)
        index, rest = np.zeros(len(place), int), place.copy()
        for name, pre, size in refs:
            axis_stride, whole = strides[name]
            unit = axis_stride * (whole // (pre * size))
            digit = place // unit % size
            index = index * size + digit
            rest -= digit * unit
        return rest, index

    def groups(self, mesh: Any, refs: Sequence[AxisRef]) -> list[list[int]]:
        """The devices that differ along some axes only, each group in the order of these axes."""
        rest, index = self.positions(mesh, refs)
        groups: dict[int, list[tuple[int, int]]] = {}
        for device, (group, position) in enumerate(zip(rest, index)):
            groups.setdefault(int(group), []).append((int(position), device))
        return [[device for _, device in sorted(members)] for members in groups.values()]

    def pairs(self, mesh: Any, sources: Sequence[AxisRef], targets: Sequence[AxisRef]) -> list[tuple[int, int]]:
        """(from, to): the device at a position along the targets receives from the one there along the sources."""
        senders, receivers = self.groups(mesh, sources), self.groups(mesh, targets)
        return [pair for sending, receiving in zip(senders, receivers) for pair in zip(sending, receiving)]

    def shifted(self, mesh: Any, refs: Sequence[AxisRef], by: int, wrap: bool) -> list[tuple[int, int]]:
        """(from, to): device i along the axes receives from i - by."""
        return [
            (group[i], group[(i + by) % len(group)])
            for group in self.groups(mesh, refs)
            for i in range(len(group))
            if wrap or 0 <= i + by < len(group)
        ]


def _safe(name: str) -> str:
    """An axis name that XLA takes: it crashes where one has a backslash or is not ASCII, and ignores an empty one."""
    return re.sub(r'[^ -~]|["\\]', "_", name) or "_"


def refs_of_attribute(axes: Axes, mesh: Any) -> list[AxisRef]:
    """The axes of an attribute with their places."""
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes))
    return [(name, 1, sizes[name]) if part is None else (name, *part) for name, part in axes.axes]


def axes_in(attribute: Any) -> Iterator[Axes]:
    """Every list of axes in an attribute."""
    if isinstance(attribute, Axes):
        yield attribute
    elif isinstance(attribute, dict):
        for value in attribute.values():
            yield from axes_in(value)
    elif isinstance(attribute, tuple):
        for value in attribute:
            yield from axes_in(value)
