# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms over the last dims.

fft(x, "RFFT", (8,))     %1 = stablehlo.fft %x, type = RFFT, length = [8]
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ..errors import DTypeError, ShapeError, message, shown
from ..numpy._primitives import convert
from ..numpy._promote import is_complex, result_dtype
from ..numpy.fourier import transform
from .calls import lifted, on_arrays
from .paddings import integers

__all__ = ["FftType", "fft"]

_DTYPES = ("float32", "float64", "complex64", "complex128")


class FftType(enum.IntEnum):
    """Which transform :func:`fft` computes.

    Source: `jax.lax.FftType`; StableHLO fft.
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@on_arrays("x")
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """A Fourier transform over the last dims. The inverse ones divide by the number of elements.

    Args:
        x: numbers; they become complex, but for an ``"RFFT"``, which takes real ones alone. For an ``"IRFFT"``, the
            last dim has half of the result's elements and one more.
        fft_type: ``"FFT"``, ``"IFFT"``, ``"RFFT"``, ``"IRFFT"``, or one of :class:`FftType`.
        fft_lengths: the sizes of the last dims, which are transformed, one to three; of an ``"IRFFT"``, those of the
            result.

    Raises:
        ShapeError: there is no such transform, or the lengths do not fit.
        DTypeError: an ``"RFFT"`` of complex numbers, or narrow floats.

    Source: `jax.lax.fft`; StableHLO fft. `numpy.fft` has transforms of other dims, with paddings and norms.
    """
    (value,) = lifted(x)
    kind = fft_type.name if isinstance(fft_type, FftType) else str(getattr(fft_type, "name", fft_type)).upper()
    if kind not in FftType.__members__:
        raise ShapeError(
            message("lax.fft", f"fft_type must be one of {shown(list(FftType.__members__))}", shown(fft_type))
        )
    try:
        count = len(fft_lengths)
    except TypeError:
        count = -1
    if not 1 <= count <= min(3, value.ndim):
        rule = f"fft_lengths must have 1 to {min(3, value.ndim)} integers for an array of {value.ndim} dims"
        raise ShapeError(message("lax.fft", rule, shown(fft_lengths)))
    lengths = integers("lax.fft", "fft_lengths", fft_lengths, count, 1)
    if kind == "RFFT" and is_complex(value.dtype):
        raise DTypeError(message("lax.fft", "RFFT must have real numbers", value.dtype.name, "take np.real"))
    dtype = result_dtype(value.dtype, 1.0 if kind == "RFFT" else 1j)
    if dtype.name not in _DTYPES:
        raise DTypeError(message("lax.fft", "numbers must have 32 or 64 bits a part", dtype.name, "convert them"))
    value = convert(value, dtype)
    wanted = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
    if value.shape[value.ndim - count :] != wanted:
        rule = f"{kind} of lengths {shown(list(lengths))} must have last dims {shown(list(wanted))}"
        raise ShapeError(message("lax.fft", rule, shown(value.shape)))
    return transform(value, kind, lengths)
