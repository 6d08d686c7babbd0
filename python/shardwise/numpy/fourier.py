# SPDX-License-Identifier: Apache-2.0
"""``numpy.fft``: each transform is one ``stablehlo.fft`` over the last dims, between transposes.

np.fft.rfft(x, axis=0)      %1 = stablehlo.transpose %x, dims = [1, 0]
                            %2 = stablehlo.fft %1, type = RFFT, length = [8]
                            %3 = stablehlo.transpose %2, dims = [1, 0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import ShapeError, message
from ..recording.tracing import Tracer
from ._primitives import convert, expect_real, normalize_axes, normalize_axis, refuse, slice_, transpose
from ._promote import is_complex, result_dtype
from ._registry import implements

__all__ = ["transform"]

_MOST_DIMS = 3  # that stablehlo.fft transforms at once
_TYPES = {name: _core.ir.EnumValue("stablehlo", "fft_type", name) for name in ("FFT", "IFFT", "RFFT", "IRFFT")}


def transform(x: Tracer, kind: str, lengths: Sequence[int]) -> Tracer:
    """The transform ``kind`` over the last dims: ``"FFT"``, ``"IFFT"``, ``"RFFT"`` or ``"IRFFT"``."""
    attrs = {"fft_type": _TYPES[kind], "fft_length": tuple(lengths)}
    return x._trace.emit("stablehlo.fft", (x,), attrs)


def _resized(x: Any, dim: int, size: int) -> Any:
    """``x`` with its end along ``dim`` cut off, or followed by zeros."""
    have = x.shape[dim]
    if size < have:
        limit = [size if d == dim else n for d, n in enumerate(x.shape)]
        return slice_(x, (0,) * x.ndim, limit)
    return np.pad(x, [(0, size - have if d == dim else 0) for d in range(x.ndim)]) if size > have else x


def _scale(function: str, norm: Any, count: int, is_inverse: bool) -> float:
    """What a result is multiplied with; StableHLO's inverse transforms divide by ``count``."""
    if norm not in (None, "backward", "ortho", "forward"):
        rule = 'norm must be "backward", "ortho" or "forward"'
        raise ValueError(message(function, rule, repr(norm)))
    if norm == "ortho":
        return math.sqrt(count) if is_inverse else 1 / math.sqrt(count)
    if norm == "forward":
        return float(count) if is_inverse else 1 / count
    return 1.0


def _over(function: str, x: Any, kind: str, sizes: Any, axes: Any, norm: Any) -> Any:
    """The transform ``kind`` over ``axes``, the last of which is the halved one; a size is None where it stays."""
    name, is_inverse = f"np.fft.{function}", kind in ("IFFT", "IRFFT")
    dims = [normalize_axis(name, axis, x.ndim) for axis in axes]
    real = x.dtype if not is_complex(x.dtype) else np.finfo(x.dtype).dtype
    wide = np.dtype(np.float32 if result_dtype(real, 1j) == np.complex64 else np.float64)
    if kind == "RFFT":
        expect_real(name, x)
        x = convert(x, wide)
    else:
        x = convert(x, np.dtype(np.complex64 if wide == np.float32 else np.complex128))
    lengths = []
    for k, (dim, size) in enumerate(zip(dims, sizes)):
        halved = kind == "IRFFT" and k == len(dims) - 1
        length = (2 * (x.shape[dim] - 1) if halved else x.shape[dim]) if size is None else int(size)
        if length < 1:
            raise ShapeError(message(name, "a transform must have at least 1 element", length, "give another n="))
        x = _resized(x, dim, length // 2 + 1 if halved else length)
        lengths.append(length)
    if kind == "RFFT":  # the halved dim first, as real numbers
        parts = [(dims[-1:], "RFFT", lengths[-1:]), *_groups(dims[:-1], "FFT", lengths[:-1])]
    elif kind == "IRFFT":
        parts = [*_groups(dims[:-1], "IFFT", lengths[:-1]), (dims[-1:], "IRFFT", lengths[-1:])]
    else:
        parts = _groups(dims, kind, lengths)
    for group, each, counts in parts:
        x = _along(x, group, each, counts)
    factor = _scale(name, norm, math.prod(lengths), is_inverse)
    return x if factor == 1 else x * factor


def _groups(dims: list[int], kind: str, lengths: list[int]) -> list[tuple[list[int], str, list[int]]]:
    """Up to three dims at once; a dim that is listed twice is transformed twice."""
    groups: list[tuple[list[int], str, list[int]]] = []
    for dim, length in zip(dims, lengths):
        if not groups or len(groups[-1][0]) == _MOST_DIMS or dim in groups[-1][0]:
            groups.append(([], kind, []))
        groups[-1][0].append(dim)
        groups[-1][2].append(length)
    return groups


def _along(x: Tracer, dims: list[int], kind: str, lengths: list[int]) -> Tracer:
    """The transform over ``dims``, which become the last ones meanwhile."""
    order = [d for d in range(x.ndim) if d not in dims] + dims
    return transpose(transform(transpose(x, order), kind, lengths), np.argsort(order).tolist())


def _line(function: str, a: Any, kind: str, n: Any, axis: Any, norm: Any, out: Any) -> Any:
    refuse(f"fft.{function}", out=(out, None))
    return _over(function, a, kind, (n,), (axis,), norm)


def _several(function: str, a: Any, kind: str, s: Any, axes: Any, norm: Any, out: Any) -> Any:
    refuse(f"fft.{function}", out=(out, None))
    if axes is None:
        axes = range(a.ndim) if s is None else range(-len(s), 0)
    axes = tuple(axes)
    sizes = (None,) * len(axes) if s is None else tuple(None if n == -1 else n for n in s)
    if len(sizes) != len(axes):
        raise ValueError(message(f"np.fft.{function}", "s and axes must have the same length", f"{s} and {axes}"))
    return _over(function, a, kind, sizes, axes, norm) if axes else a


@implements("fft.fft")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.fft``."""
    return _line("fft", a, "FFT", n, axis, norm, out)


@implements("fft.ifft")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.ifft``."""
    return _line("ifft", a, "IFFT", n, axis, norm, out)


@implements("fft.rfft")
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.rfft``."""
    return _line("rfft", a, "RFFT", n, axis, norm, out)


@implements("fft.irfft")
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.irfft``."""
    return _line("irfft", a, "IRFFT", n, axis, norm, out)


_OTHER_WAY = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@implements("fft.hfft")
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.hfft``: of a signal with Hermitian symmetry, of which one half is given."""
    return _line("hfft", np.conjugate(a), "IRFFT", n, axis, _OTHER_WAY.get(norm, norm), out)


@implements("fft.ihfft")
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.ihfft``."""
    return np.conjugate(_line("ihfft", a, "RFFT", n, axis, _OTHER_WAY.get(norm, norm), out))


@implements("fft.fftn")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.fftn``."""
    return _several("fftn", a, "FFT", s, axes, norm, out)


@implements("fft.ifftn")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.ifftn``."""
    return _several("ifftn", a, "IFFT", s, axes, norm, out)


@implements("fft.rfftn")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.rfftn``."""
    return _several("rfftn", a, "RFFT", s, axes, norm, out)


@implements("fft.irfftn")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.irfftn``."""
    return _several("irfftn", a, "IRFFT", s, axes, norm, out)


@implements("fft.fft2")
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.fft2``."""
    return _several("fft2", a, "FFT", s, axes, norm, out)


@implements("fft.ifft2")
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.ifft2``."""
    return _several("ifft2", a, "IFFT", s, axes, norm, out)


@implements("fft.rfft2")
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.rfft2``."""
    return _several("rfft2", a, "RFFT", s, axes, norm, out)


@implements("fft.irfft2")
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """``numpy.fft.irfft2``."""
    return _several("irfft2", a, "IRFFT", s, axes, norm, out)


@implements("fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    """``numpy.fft.fftshift``: the zero frequency in the middle."""
    dims = normalize_axes("np.fft.fftshift", axes, x.ndim)
    return np.roll(x, tuple(x.shape[d] // 2 for d in dims), dims)


@implements("fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    """``numpy.fft.ifftshift``."""
    dims = normalize_axes("np.fft.ifftshift", axes, x.ndim)
    return np.roll(x, tuple(-(x.shape[d] // 2) for d in dims), dims)
