# SPDX-License-Identifier: Apache-2.0
"""Initial parameters with the names and the numbers of ``jax.nn.initializers``.

An initializer is a function ``init(key, shape, dtype)``; keys are those of :mod:`shardwise.random`, and the default
dtype is float32. Each number depends on the key and on its index, so that in a traced function every device draws its
own shard, without communication.

>>> import numpy as np
>>> import shardwise as sw
>>> init = sw.nn.initializers.lecun_normal()
>>> init(sw.random.key(0), (2, 3)).shape
(2, 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import random as sw_random
from ..dtypes import as_dtype, is_float
from ..errors import DTypeError, ShapeError, described, is_one_of, message, shown
from ..numpy._primitives import normalize_axes, normalize_axis
from ..random._threefry import check_key
from ._arguments import number, public

__all__ = [
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

Initializer = Callable[..., Any]
_MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
_DISTRIBUTIONS = ("truncated_normal", "normal", "uniform")
_DEVIATION = 0.87962566103423978  # of a standard normal number that is truncated to (-2, 2)


def _float(name: str, dtype: Any) -> np.dtype[Any]:
    found = as_dtype(f"nn.initializers.{name}", np.float32 if dtype is None else dtype)
    if not is_float(found):
        raise DTypeError(message(f"nn.initializers.{name}", "dtype must be floating", str(found), "convert the result"))
    return found


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(size, (int, np.integer)) and size >= 0 for size in sizes):
        rule = "a shape must be of integers that are not negative"
        raise ShapeError(message(f"nn.initializers.{name}", rule, shown(shape), "give a tuple such as (8, 16)"))
    return tuple(int(size) for size in sizes)


def _check_numbers(name: str, **values: Any) -> None:
    """Raise DTypeError unless the values are real numbers."""
    for parameter, value in values.items():
        if isinstance(value, (list, tuple)):
            rule = f"{parameter} must be a real number"
            raise DTypeError(message(f"nn.initializers.{name}", rule, described(value)))
        number(f"nn.initializers.{name}", parameter, value, np.zeros(()))


def _initializer(name: str, dtype: Any, draw: Callable[[Any, tuple[int, ...], np.dtype[Any]], Any]) -> Initializer:
    """``init(key, shape, dtype)`` that checks shape and dtype."""
    default = dtype

    @public
    def init(key: Any, shape: Any, dtype: Any = default) -> Any:
        return draw(check_key(f"nn.initializers.{name}", key), _sizes(name, shape), _float(name, dtype))

    return init


@public
def zeros(key: Any, shape: Any, dtype: Any = np.float32) -> Any:
    """Zeros.

    Args:
        key: not used.
        shape: the shape of the result.
        dtype: any dtype; None for float32.

    Raises:
        ShapeError: a negative size.

    Source: `jax.nn.initializers.zeros`.

    >>> zeros(None, (2,))
    array([0., 0.], dtype=float32)
    """
    return np.zeros(_sizes("zeros", shape), as_dtype("nn.initializers.zeros", np.float32 if dtype is None else dtype))


@public
def ones(key: Any, shape: Any, dtype: Any = np.float32) -> Any:
    """Ones.

    Args:
        key: not used.
        shape: the shape of the result.
        dtype: any dtype; None for float32.

    Raises:
        ShapeError: a negative size.

    Source: `jax.nn.initializers.ones`.

    >>> ones(None, (2,))
    array([1., 1.], dtype=float32)
    """
    return np.ones(_sizes("ones", shape), as_dtype("nn.initializers.ones", np.float32 if dtype is None else dtype))


@public
def constant(value: Any, dtype: Any = np.float32) -> Initializer:
    """An initializer that fills arrays with a value.

    Args:
        value: a number, or an array that broadcasts to the shape.
        dtype: the default dtype of the result: any dtype; None for float32.

    Raises:
        ShapeError: the initializer got a negative size, or the value does not broadcast to the shape.

    Source: `jax.nn.initializers.constant`.

    >>> constant(-7)(None, (2,))
    array([-7., -7.], dtype=float32)
    """
    default = dtype

    @public
    def init(key: Any, shape: Any, dtype: Any = default) -> Any:
        sizes = _sizes("constant", shape)
        found = as_dtype("nn.initializers.constant", np.float32 if dtype is None else dtype)
        try:
            return np.broadcast_to(np.asarray(value, found), sizes).copy()
        except TypeError:
            rule = "value must be a number or an array"
            raise DTypeError(message("nn.initializers.constant", rule, described(value))) from None
        except ValueError:
            got = f"{np.shape(value)} for {sizes}"
            raise ShapeError(message("nn.initializers.constant", "value must broadcast to the shape", got)) from None

    return init


@public
def uniform(scale: float = 1e-2, dtype: Any = np.float32) -> Initializer:
    """An initializer that draws uniformly from [0, scale).

    Args:
        scale: the upper bound.
        dtype: the default dtype of the result, floating; None for float32.

    Raises:
        ShapeError, DTypeError: the initializer got no key, a negative size, or a dtype that is not floating.

    Source: `jax.nn.initializers.uniform`, bit for bit.

    >>> uniform(1.0)(sw_random.key(0), (2,))
    array([0.947667 , 0.9785799], dtype=float32)
    """
    _check_numbers("uniform", scale=scale)
    return _initializer("uniform", dtype, lambda key, shape, to: sw_random.uniform(key, shape, to) * to.type(scale))


@public
def normal(stddev: float = 1e-2, dtype: Any = np.float32) -> Initializer:
    """An initializer that draws from the normal distribution with mean 0.

    Args:
        stddev: the standard deviation.
        dtype: the default dtype of the result, floating; None for float32.

    Raises:
        ShapeError, DTypeError: the initializer got no key, a negative size, or a dtype that is not floating.

    Source: `jax.nn.initializers.normal`, within a few units in the last place.

    >>> normal(1.0)(sw_random.key(0), (2,)).round(4)
    array([1.6226, 2.0253], dtype=float32)
    """
    _check_numbers("normal", stddev=stddev)
    return _initializer("normal", dtype, lambda key, shape, to: sw_random.normal(key, shape, to) * to.type(stddev))


@public
def truncated_normal(
    stddev: float = 1e-2, dtype: Any = np.float32, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """An initializer that draws from the normal distribution between two bounds.

    Args:
        stddev: the standard deviation before the truncation.
        dtype: the default dtype of the result, floating; None for float32.
        lower: the lower bound, in standard deviations.
        upper: the upper bound, in standard deviations.

    Raises:
        ShapeError, DTypeError: the initializer got no key, a negative size, or a dtype that is not floating.

    Source: `jax.nn.initializers.truncated_normal`, within a few units in the last place.

    >>> bool(np.all(abs(truncated_normal(1.0)(sw_random.key(0), (100,))) < 2))
    True
    """
    _check_numbers("truncated_normal", stddev=stddev, lower=lower, upper=upper)

    def draw(key: Any, shape: tuple[int, ...], to: np.dtype[Any]) -> Any:
        return sw_random.truncated_normal(key, lower, upper, shape, to) * to.type(stddev)

    return _initializer("truncated_normal", dtype, draw)


def _fans(name: str, shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input."""
    what = f"nn.initializers.{name}"
    if len(shape) < 2 and in_axis == -2:
        rule = "with the default in_axis, a shape must have two dims at least"
        raise ShapeError(message(what, rule, shape, "give in_axis and out_axis"))
    inputs, outputs, batch = (
        math.prod(shape[d] for d in normalize_axes(what, axis, len(shape))) for axis in (in_axis, out_axis, batch_axis)
    )
    if not inputs * outputs * batch:
        raise ShapeError(message(what, "inputs, outputs and batch must not be empty", shape))
    field = math.prod(shape) / inputs / outputs / batch
    return inputs * field, outputs * field


def _scaled(
    name: str, scale: float, mode: str, distribution: str, in_axis: Any, out_axis: Any, batch_axis: Any, dtype: Any
) -> Initializer:
    def draw(key: Any, shape: tuple[int, ...], to: np.dtype[Any]) -> Any:
        into, out = _fans(name, shape, in_axis, out_axis, batch_axis)
        fan = {"fan_in": into, "fan_out": out, "fan_avg": (into + out) / 2, "fan_geo_avg": (into * out) ** 0.5}[mode]
        variance = to.type(scale / fan)
        if distribution == "truncated_normal":
            return sw_random.truncated_normal(key, -2, 2, shape, to) * (np.sqrt(variance) / to.type(_DEVIATION))
        if distribution == "normal":
            return sw_random.normal(key, shape, to) * np.sqrt(variance)
        return sw_random.uniform(key, shape, to, -1) * np.sqrt(to.type(3) * variance)

    return _initializer(name, dtype, draw)


@public
def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = np.float32,
) -> Initializer:
    """An initializer whose variance is ``scale`` divided by the number of inputs or outputs.

    Args:
        scale: a positive number.
        mode: by what is divided: ``"fan_in"``, ``"fan_out"``, ``"fan_avg"`` (their mean), or ``"fan_geo_avg"``.
        distribution: ``"truncated_normal"`` (at two standard deviations), ``"normal"``, or ``"uniform"``.
        in_axis: the dim, or dims, of the inputs.
        out_axis: the dim, or dims, of the outputs.
        batch_axis: dims that are neither. Sizes of all others multiply both numbers: a window has many inputs.
        dtype: the default dtype of the result, floating; None for float32.

    Raises:
        ValueError: another mode or distribution.
        ShapeError, DTypeError: the initializer got no key, a shape without these dims, or a dtype that is not floating.

    Source: `jax.nn.initializers.variance_scaling`: uniform numbers bit for bit, others within a few units in the last
        place.

    >>> init = variance_scaling(1.0, "fan_in", "uniform")
    >>> bool(np.all(abs(init(sw_random.key(0), (3, 5))) <= 1))
    True
    """
    _check_numbers("variance_scaling", scale=scale)
    for name, given, known in (("mode", mode, _MODES), ("distribution", distribution, _DISTRIBUTIONS)):
        if not is_one_of(given, known):
            rule = f"{name} must be one of {', '.join(known)}"
            raise ValueError(message("nn.initializers.variance_scaling", rule, repr(given)))
    return _scaled("variance_scaling", scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)


def _named(name: str, scale: float, mode: str, distribution: str, source: str) -> Callable[..., Initializer]:
    def function(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = np.float32,
    ) -> Initializer:
        return _scaled(name, scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``variance_scaling({scale}, "{mode}", "{distribution}")``.

    Args:
        in_axis: the dim, or dims, of the inputs.
        out_axis: the dim, or dims, of the outputs.
        batch_axis: dims that are neither.
        dtype: the default dtype of the result, floating; None for float32.

    Raises:
        ShapeError, DTypeError: the initializer got no key, a shape without these dims, or a dtype that is not floating.

    Source: `jax.nn.initializers.{name}`; {source}.
    """
    return public(function)


_GLOROT = 'Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010'
_LECUN = 'LeCun, Bottou, Orr, Müller, "Efficient backprop", 1998'
_HE = 'He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015'
glorot_uniform = xavier_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def _orthogonal(name: str, key: Any, shape: tuple[int, ...], column_axis: int, scale: float, to: np.dtype[Any]) -> Any:
    if len(shape) < 2:
        raise ShapeError(message(f"nn.initializers.{name}", "a shape must have two dims at least", shape))
    column = normalize_axis(f"nn.initializers.{name}", column_axis, len(shape))
    if 0 in shape:
        return np.zeros(shape, to)
    columns = shape[column]
    rows = math.prod(shape) // columns
    drawn = sw_random.normal(key, (max(rows, columns), min(rows, columns)), to)
    q, r = np.linalg.qr(drawn)
    # With the signs of R's diagonal, Q is uniformly distributed (Mezzadri).
    q = q * np.sign(np.diagonal(r))
    q = q if rows >= columns else q.T
    rest = tuple(size for d, size in enumerate(shape) if d != column)
    return np.moveaxis(q.reshape(*rest, columns), -1, column) * to.type(scale)


def _with_qr(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.itemsize < 4:
        rule = "dtype must be float32 or float64, in which NumPy factorizes"
        raise DTypeError(message(f"nn.initializers.{name}", rule, str(dtype), "convert the result with astype"))


@public
def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = np.float32) -> Initializer:
    """An initializer of orthogonal matrices, uniformly distributed.

    Args:
        scale: what the matrix is multiplied by.
        column_axis: the dim of the columns; all others together are the rows. The fewer of both are orthonormal.
        dtype: the default dtype of the result, float32 or float64; None for float32.

    Raises:
        ShapeError, DTypeError: the initializer got no key, fewer than two dims, or another dtype.

    Layout: the matrix is factorized on every device; a shard of it is a slice.

    Source: `jax.nn.initializers.orthogonal`; Mezzadri, "How to generate random matrices from the classical compact
        groups", 2007.

    >>> q = orthogonal()(sw_random.key(0), (3, 2))
    >>> (q.T @ q).round(3) + 0
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    _check_numbers("orthogonal", scale=scale)

    def draw(key: Any, shape: tuple[int, ...], to: np.dtype[Any]) -> Any:
        _with_qr("orthogonal", to)
        return _orthogonal("orthogonal", key, shape, column_axis, scale, to)

    return _initializer("orthogonal", dtype, draw)


@public
def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = np.float32) -> Initializer:
    """An initializer of convolutions: an orthogonal matrix at the middle of the window, and zeros elsewhere.

    Args:
        scale: what the matrix is multiplied by.
        column_axis: the dim of the columns of the matrix.
        dtype: the default dtype of the result, float32 or float64; None for float32.

    Raises:
        ShapeError, DTypeError: the initializer got no key, a shape that is not of one to three window dims, inputs and
            at least as many outputs, or another dtype.

    Source: `jax.nn.initializers.delta_orthogonal`; Xiao et al., "Dynamical isometry and a mean field theory of CNNs",
        2018.

    >>> kernel = delta_orthogonal()(sw_random.key(0), (3, 2, 2))
    >>> np.abs(kernel).sum(axis=(1, 2)) > 0
    array([False,  True, False])
    """
    _check_numbers("delta_orthogonal", scale=scale)

    def draw(key: Any, shape: tuple[int, ...], to: np.dtype[Any]) -> Any:
        _with_qr("delta_orthogonal", to)
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            rule = "a shape must have 1 to 3 window dims, inputs, and at least as many outputs"
            raise ShapeError(message("nn.initializers.delta_orthogonal", rule, shape))
        matrix = _orthogonal("delta_orthogonal", key, shape[-2:], column_axis, scale, to)
        before = [(size - 1) // 2 for size in shape[:-2]]
        widths = [(b, size - 1 - b) for b, size in zip(before, shape[:-2])]
        return np.pad(matrix.reshape((1,) * len(before) + shape[-2:]), [*widths, (0, 0), (0, 0)])

    return _initializer("delta_orthogonal", dtype, draw)


def __dir__() -> list[str]:
    return sorted(__all__)
