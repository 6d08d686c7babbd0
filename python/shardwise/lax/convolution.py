# SPDX-License-Identifier: Apache-2.0
"""Convolutions.

conv_general_dilated(x, kernel, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    %1 = stablehlo.convolution(%x, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
         window = {stride = [1, 2], pad = [[1, 1], [0, 1]]}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..dtypes import as_dtype
from ..errors import DTypeError, ShapeError, UnsupportedError, called_as, described, is_one_of, message, shown
from ..numpy._primitives import broadcast_dims, compare, convert, iota, reshape, reverse, static_integer, transpose
from ..recording.tracing import Tracer
from .calls import lifted, on_arrays, recording
from .paddings import Pads, integers, pads_of

__all__ = [
    "ConvDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_patches",
    "conv_transpose",
    "conv_with_general_padding",
]

_LARGEST = 2**62


# ---- numbers of dims -----------------------------------------------------------------------------------------------


class ConvDimensionNumbers(NamedTuple):
    """The dims of a convolution by their meaning; as `jax.lax.ConvDimensionNumbers`.

    Attributes:
        lhs_spec: of the input, the dims of the batch, the features, and the space.
        rhs_spec: of the kernel, the dims of the output features, the input features, and the space.
        out_spec: of the result, the dims of the batch, the features, and the space.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]

    def _text(self) -> str:
        """The dims in StableHLO's form: ``[b, 0, f]x[0, i, o]->[b, 0, f]``."""

        def side(spec: Sequence[int], first: str, second: str) -> str:
            names = dict(zip(spec, [first, second, *map(str, range(len(spec) - 2))]))
            return f"[{', '.join(names[dim] for dim in range(len(spec)))}]"

        lhs, rhs, out = side(self.lhs_spec, "b", "f"), side(self.rhs_spec, "o", "i"), side(self.out_spec, "b", "f")
        return f"{lhs}x{rhs}->{out}"


_LETTERS = (("N", "C"), ("O", "I"), ("N", "C"))


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """The dims of a convolution by their meaning.

    Args:
        lhs_shape: the shape of the input.
        rhs_shape: the shape of the kernel.
        dimension_numbers: the dims of input, kernel and result as words such as ``("NHWC", "HWIO", "NHWC")``, where N
            is the batch, C the features, I and O the input and output features, and any other letter a dim of the
            space, in the order of the kernel's word; None for NC, OI and NC followed by the space; or a
            `ConvDimensionNumbers`.

    Raises:
        TypeError: ``dimension_numbers`` is no such value.
        ShapeError: the numbers of dims differ, or a word does not name each dim once.

    Source: `jax.lax.conv_dimension_numbers`.

    >>> conv_dimension_numbers((8, 32, 32, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    return _numbers("lax.conv_dimension_numbers", lhs_shape, rhs_shape, dimension_numbers)


def _numbers(function: str, lhs: Sequence[int], rhs: Sequence[int], given: Any) -> ConvDimensionNumbers:
    for shape in (lhs, rhs):
        if not isinstance(shape, (tuple, list)):
            raise TypeError(message(function, "a shape must be a list of integers", shown(shape)))
    ndim = len(lhs)
    if len(rhs) != ndim or ndim < 2:
        rule = "input and kernel must have the same number of dims, at least 2"
        raise ShapeError(message(function, rule, f"shapes {tuple(lhs)} and {tuple(rhs)}"))
    if given is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if isinstance(given, tuple) and hasattr(given, "lhs_spec"):  # jax.lax's, too
        specs = [integers(function, f"dimension_numbers[{i}]", spec, ndim, 0) for i, spec in enumerate(given)]
        if any(sorted(spec) != list(range(ndim)) for spec in specs):
            raise ShapeError(message(function, "dimension_numbers must name each dim once", shown(given)))
        return ConvDimensionNumbers(*specs)
    if not isinstance(given, (tuple, list)) or not all(isinstance(word, str) for word in given):
        rule = "dimension_numbers must be three words, such as ('NHWC', 'HWIO', 'NHWC')"
        raise TypeError(message(function, rule, described(given)))
    _check_words(function, given, ndim)
    return ConvDimensionNumbers(*[_places(word, letters, given[1]) for word, letters in zip(given, _LETTERS)])


def _check_words(function: str, words: Sequence[str], ndim: int) -> None:
    if len(words) != 3 or any(len(word) != ndim for word in words):
        raise ShapeError(message(function, f"dimension_numbers must be three words of {ndim} letters", shown(words)))
    for word, letters in zip(words, _LETTERS):
        if len(set(word)) != ndim or not set(letters) <= set(word):
            rule = f"a word must have {' and '.join(letters)}, and each letter once"
            raise ShapeError(message(function, rule, shown(word)))
    spaces = [set(word) - set(letters) for word, letters in zip(words, _LETTERS)]
    if spaces[0] != spaces[1] or spaces[0] != spaces[2]:
        raise ShapeError(message(function, "the words must have the same letters for the space", shown(words)))


def _places(word: str, letters: tuple[str, str], kernel: str) -> tuple[int, ...]:
    space = sorted(set(word) - set(letters), key=kernel.index)
    return tuple(word.index(letter) for letter in (*letters, *space))


# ---- precisions and windows ----------------------------------------------------------------------------------------

_PRECISIONS = {
    **dict.fromkeys(("default", "fastest", "bfloat16"), "DEFAULT"),
    **dict.fromkeys(("high", "bfloat16_3x", "tensorfloat32"), "HIGH"),
    **dict.fromkeys(("highest", "float32"), "HIGHEST"),
}


def precision_of(function: str, given: Any) -> list[str] | None:
    """The precision of both operands under its name in StableHLO; None for the default one."""
    if given is None:
        return None
    pair = list(given) if isinstance(given, (tuple, list)) else [given, given]
    # jax.lax.Precision has names like these.
    words = ["default" if p is None else str(getattr(p, "name", p)).lower() for p in pair]
    if len(words) != 2 or any(word not in _PRECISIONS for word in words):
        rule = "precision must be None, 'default', 'high', 'highest', or a pair of these"
        raise ShapeError(message(function, rule, shown(given)))
    found = [_PRECISIONS[word] for word in words]
    return None if found == ["DEFAULT"] * 2 else found


class _Options(NamedTuple):
    """The arguments of `conv_general_dilated` after both operands."""

    window_strides: Any
    padding: Any
    lhs_dilation: Any = None
    rhs_dilation: Any = None
    dimension_numbers: Any = None
    feature_group_count: Any = 1
    batch_group_count: Any = 1
    precision: Any = None
    preferred_element_type: Any = None


class _Windows(NamedTuple):
    """The windows along the dims of the space."""

    strides: tuple[int, ...]
    pads: Pads
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]

    def along(self, i: int, size: int, taps: int) -> int:
        """The number of windows along dim i of the space."""
        whole = _dilated(size, self.lhs_dilation[i]) + sum(self.pads[i])
        return max((whole - _dilated(taps, self.rhs_dilation[i])) // self.strides[i] + 1, 0)


def _dilated(size: int, step: int) -> int:
    return (size - 1) * step + 1 if size > 0 else 0


def _windows(function: str, sizes: Sequence[int], taps: Sequence[int], options: _Options) -> _Windows:
    count = len(sizes)
    strides = integers(function, "window_strides", options.window_strides, count, 1)
    ones = (1,) * count
    dilations = [
        ones if given is None else integers(function, name, given, count, 1)
        for name, given in (("lhs_dilation", options.lhs_dilation), ("rhs_dilation", options.rhs_dilation))
    ]
    if isinstance(options.padding, str) and dilations[0] != ones:
        rule = "padding must be pairs where lhs_dilation is given"
        raise ShapeError(message(function, rule, shown(options.padding), "use lax.conv_transpose"))
    windows = [_dilated(size, step) for size, step in zip(taps, dilations[1])]
    return _Windows(strides, pads_of(function, options.padding, sizes, windows, strides), *dilations)


def _check_groups(function: str, lhs: Tracer, rhs: Tracer, dims: ConvDimensionNumbers, groups: tuple[int, int]) -> None:
    features, batches = groups
    if min(groups) > 1:
        raise ShapeError(message(function, "one of feature_group_count and batch_group_count must be 1", groups))
    batch, channels = (lhs.shape[dim] for dim in dims.lhs_spec[:2])
    made, read = (rhs.shape[dim] for dim in dims.rhs_spec[:2])
    if channels != read * features:
        groups_text = f" for feature_group_count={features}" if features > 1 else ""
        rule = "the input must have the features that the kernel reads"
        raise ShapeError(message(function, rule, f"{channels} and {read}{groups_text} of {_both(lhs, rhs)}"))
    if batch % batches or made % (features * batches):
        name, count = ("feature_group_count", features) if features > 1 else ("batch_group_count", batches)
        rule = f"{name} must divide the output features" + (" and the batch" if batches > 1 else "")
        raise ShapeError(message(function, rule, f"{count} for {_both(lhs, rhs)}"))


def _both(lhs: Tracer, rhs: Tracer) -> str:
    return f"{lhs.dtype.name}{list(lhs.shape)} and {rhs.dtype.name}{list(rhs.shape)}"


def _convolved(function: str, lhs: Tracer, rhs: Tracer, options: _Options) -> Tracer:
    """The convolution, for the public ``function``."""
    if lhs.dtype != rhs.dtype:
        raise DTypeError(message(function, "input and kernel must have the same dtype", _both(lhs, rhs)))
    dims = _numbers(function, lhs.shape, rhs.shape, options.dimension_numbers)
    groups = (
        static_integer(function, "feature_group_count", options.feature_group_count, 1, _LARGEST),
        static_integer(function, "batch_group_count", options.batch_group_count, 1, _LARGEST),
    )
    _check_groups(function, lhs, rhs, dims, groups)
    sizes, taps = ([x.shape[dim] for dim in spec[2:]] for x, spec in ((lhs, dims.lhs_spec), (rhs, dims.rhs_spec)))
    windows = _windows(function, sizes, taps, options)
    attrs: dict[str, Any] = {
        "window_strides": windows.strides,
        "padding": np.array(windows.pads, np.int64).reshape(-1, 2),
        "lhs_dilation": windows.lhs_dilation,
        "rhs_dilation": windows.rhs_dilation,
        "dimension_numbers": _core.ir.Struct("stablehlo.conv", {"": dims._text()}),
        "feature_group_count": groups[0],
        "batch_group_count": groups[1],
    }
    precision = precision_of(function, options.precision)
    if precision is not None:
        attrs["precision_config"] = [_core.ir.EnumValue("stablehlo", "precision", word) for word in precision]
    wanted = options.preferred_element_type
    dtype = lhs.dtype if wanted is None else as_dtype(function, wanted)
    shape = [0] * lhs.ndim
    shape[dims.out_spec[0]] = lhs.shape[dims.lhs_spec[0]] // groups[1]
    shape[dims.out_spec[1]] = rhs.shape[dims.rhs_spec[0]]
    for i, dim in enumerate(dims.out_spec[2:]):
        shape[dim] = windows.along(i, sizes[i], taps[i])
    with called_as(function, "stablehlo.convolution", "convolution"):
        return recording().emit("stablehlo.convolution", (lhs, rhs), attrs, tuple(shape), dtype)


# ---- the functions -------------------------------------------------------------------------------------------------


@on_arrays("lhs", "rhs")
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution of any number of dims: sums of products under a window that moves over the input.

    As in JAX, the kernel is not flipped. Along a split dim of the space, devices exchange the rows that windows
    of other devices read.

    Args:
        lhs: the input: batch, features, and n dims of the space.
        rhs: the kernel, of the same dtype: output features, input features, and n dims of the space.
        window_strides: n steps from one window to the next, in elements.
        padding: n pairs of zeros before and after the input, in elements (negative ones cut); or ``"VALID"`` for none,
            ``"SAME"`` for as many windows as the input has elements, divided by the stride and rounded up, with the odd
            zero at the end, or ``"SAME_LOWER"``, with the odd zero at the start.
        lhs_dilation: n factors: zeros fill the input so that its elements are that far apart.
        rhs_dilation: n factors: the taps of the kernel are that far apart.
        dimension_numbers: the order of the dims, as in :func:`conv_dimension_numbers`.
        feature_group_count: the number of groups of features that are convolved apart; the kernel has the input
            features of one group, and the output features of all.
        batch_group_count: the number of groups of the batch; each has a share of the output features.
        precision: recorded for the programs of other libraries; kernels multiply floats as they are.
        preferred_element_type: the dtype of the result; None for that of the operands.

    Raises:
        ShapeError: shapes, lists or groups do not fit, or there is no such padding or precision.
        DTypeError: the dtypes differ.
        TypeError: a list is not of integers, or ``dimension_numbers`` is no such value.

    Source: `jax.lax.conv_general_dilated`; StableHLO convolution.

    >>> conv_general_dilated(np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 3)), (2,), "SAME")
    array([[[1., 6., 7.]]])
    """
    options = _Options(
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
        batch_group_count, precision, preferred_element_type,
    )  # fmt: skip
    x, kernel = lifted(lhs, rhs)
    return _convolved("lax.conv_general_dilated", x, kernel, options)


@on_arrays("lhs", "rhs")
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """:func:`conv_general_dilated` without dilation, of dims in the order batch, features, space.

    Args:
        lhs, rhs, window_strides, padding, precision, preferred_element_type: as in :func:`conv_general_dilated`.

    Raises:
        ShapeError, DTypeError, TypeError: as :func:`conv_general_dilated`.

    Source: `jax.lax.conv`.
    """
    options = _Options(window_strides, padding, precision=precision, preferred_element_type=preferred_element_type)
    x, kernel = lifted(lhs, rhs)
    return _convolved("lax.conv", x, kernel, options)


@on_arrays("lhs", "rhs")
def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """:func:`conv_general_dilated` of dims in the order batch, features, space.

    Args:
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as in
            :func:`conv_general_dilated`.

    Raises:
        ShapeError, DTypeError, TypeError: as :func:`conv_general_dilated`.

    Source: `jax.lax.conv_with_general_padding`.
    """
    options = _Options(
        window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    x, kernel = lifted(lhs, rhs)
    return _convolved("lax.conv_with_general_padding", x, kernel, options)


_SPACES = ("", "H", "HW", "HWD")


def _pads_of_transpose(taps: int, stride: int, padding: Any) -> tuple[int, int]:
    """The padding along a dim, from that of the convolution whose transpose it is."""
    if isinstance(padding, str):
        whole = taps + stride - 2 + (max(taps - stride, 0) if padding == "VALID" else 0)
        low = taps - 1 if padding == "VALID" or stride > taps - 1 else -(-whole // 2)
        return low, whole - low
    low, high = padding
    return taps - low - 1, taps - high - 1


@on_arrays("lhs", "rhs")
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """A convolution with fractional strides, which makes the space larger: the transpose of one with these strides.

    Args:
        lhs: the input.
        rhs: the kernel.
        strides: n factors by which the space grows.
        padding: ``"SAME"`` or ``"VALID"`` of the convolution whose transpose this is; or n pairs, of this convolution
            itself, or with ``use_consistent_padding`` of the other one.
        rhs_dilation: as in :func:`conv_general_dilated`.
        dimension_numbers: as in :func:`conv_general_dilated`; None for the features last, as in ``("NHWC", "HWIO",
            "NHWC")``.
        transpose_kernel: flip the space of the kernel, and swap its input and output features; the result is then the
            gradient of the convolution with that kernel.
        precision, preferred_element_type: as in :func:`conv_general_dilated`.
        use_consistent_padding: pairs of ``padding`` count like strings.

    Raises:
        UnsupportedError: more than 3 dims of the space without ``dimension_numbers``.
        ShapeError, DTypeError, TypeError: as :func:`conv_general_dilated`.

    Source: `jax.lax.conv_transpose`.
    """
    function = "lax.conv_transpose"
    x, kernel = lifted(lhs, rhs)
    if dimension_numbers is None and x.ndim >= 2:
        if x.ndim - 2 >= len(_SPACES):
            rule = "dimension_numbers must be given for more than 3 dims of the space"
            raise UnsupportedError(message(function, rule, f"{x.ndim} dims"))
        space = _SPACES[x.ndim - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    dims = _numbers(function, x.shape, kernel.shape, dimension_numbers)
    count = x.ndim - 2
    factors = integers(function, "strides", strides, count, 1)
    dilation = (1,) * count if rhs_dilation is None else integers(function, "rhs_dilation", rhs_dilation, count, 1)
    is_named = is_one_of(padding, ("SAME", "VALID"))
    if use_consistent_padding and isinstance(padding, str) and not is_named:
        raise ShapeError(message(function, "padding must be 'SAME', 'VALID' or pairs", shown(padding)))
    if is_named or use_consistent_padding:
        taps = [_dilated(kernel.shape[dim], step) for dim, step in zip(dims.rhs_spec[2:], dilation)]
        given = [padding] * count if is_named else pads_of(function, padding, taps, taps, factors)
        padding = [_pads_of_transpose(*row) for row in zip(taps, factors, given)]
    if transpose_kernel:
        order = list(range(kernel.ndim))
        out, into = dims.rhs_spec[:2]
        order[out], order[into] = into, out
        kernel = transpose(reverse(kernel, sorted(dims.rhs_spec[2:])), order)
    options = _Options(
        (1,) * count, padding, factors, dilation, dims, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    return _convolved(function, x, kernel, options)


@on_arrays("lhs")
def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The elements under each window of :func:`conv_general_dilated`, as the features of the result.

    Args:
        lhs: the input.
        filter_shape: the size of the window along the n dims of the space, in the order of the kernel's word.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, preferred_element_type: as in
            :func:`conv_general_dilated`.
        precision: that of the input.

    Returns:
        The result of a convolution, whose features are those of the input times the elements of the window.

    Raises:
        ShapeError, TypeError: as :func:`conv_general_dilated`.

    Source: `jax.lax.conv_general_dilated_patches`.
    """
    function = "lax.conv_general_dilated_patches"
    (x,) = lifted(lhs)
    if x.ndim < 2:
        raise ShapeError(message(function, "the input must have at least 2 dims", shown(x.shape)))
    shape = integers(function, "filter_shape", filter_shape, x.ndim - 2, 1)
    dims = _numbers(function, x.shape, (1, 1, *shape), dimension_numbers)
    channels, taps = x.shape[dims.lhs_spec[1]], math.prod(shape)
    rows, columns = (iota(recording(), (taps, taps), dim, np.int32) for dim in (0, 1))
    one_of_each = broadcast_dims(convert(compare("EQ", rows, columns), x.dtype), (channels, taps, taps), (1, 2))
    kernel = reshape(one_of_each, (channels * taps, 1, *shape))
    order = [dims.rhs_spec.index(dim) if dim in dims.rhs_spec[:2] else -1 for dim in range(x.ndim)]
    space = iter(range(2, x.ndim))
    kernel = transpose(kernel, [next(space) if place < 0 else place for place in order])
    pair = None if precision is None else (precision, "default")
    options = _Options(
        window_strides, padding, lhs_dilation, rhs_dilation, dims, channels, 1, pair, preferred_element_type
    )
    return _convolved(function, x, kernel, options)
