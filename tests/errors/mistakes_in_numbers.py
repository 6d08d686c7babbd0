# SPDX-License-Identifier: Apache-2.0
"""Mistakes with numbers: integers that do not fit, bits of another width, random numbers without a key."""

from __future__ import annotations

import numpy as np

import shardwise as sw
from tests.errors.mistakes import N, X, on_mesh, row

KEY = sw.random.key(0)
SMALL = np.arange(4, dtype=np.int8)

# ---- integers -------------------------------------------------------------------------------------------------------


@row(OverflowError, r"constant: a number must fit int8, got 300; ")
def number_beyond_the_dtype_beside_it() -> None:
    on_mesh(lambda x: x + 300).trace(SMALL)


@row(
    OverflowError,
    r"call: a Python int must fit int8, the dtype that the program uses it in, got 300; convert the array",
)
def argument_beyond_the_dtype_beside_it() -> None:
    on_mesh(lambda x, n: x + n)(SMALL, 300)


@row(OverflowError, r"constant: a number must fit int8, got 300; ")
def padding_beyond_the_dtype() -> None:
    on_mesh(lambda x: np.pad(x, 1, constant_values=300)).trace(SMALL)


@row(ValueError, r"np.power: an integer's power must not be negative, got -1; convert the base to a float dtype")
def integers_to_a_negative_power() -> None:
    on_mesh(lambda x: x**-1).trace(N)


@row(ValueError, r"np.power: an integer's power must not be negative, got an array with -2; convert the base")
def integers_to_negative_powers() -> None:
    on_mesh(lambda x: np.power(x, np.array([1, -2, 3, 0, 1, 1]))).trace(N)


@row(ValueError, r"call: an integer's power must not be negative, got -3; convert the base to a float dtype")
def integers_to_a_power_that_is_a_negative_argument() -> None:
    on_mesh(lambda x, n: x**n)(N, -3)


@row(
    sw.DTypeError, r"np.left_shift: has no meaning for these dtypes, got float32, int; convert the operands with astype"
)
def shift_of_floats() -> None:
    on_mesh(lambda x: x << 1).trace(X)


@row(
    sw.DTypeError,
    r"view: the dtype must have the width of the array's, got Tracer<float32\[8,6\]> as int16; use astype",
)
def view_of_another_width() -> None:
    on_mesh(lambda x: x.view(np.int16)).trace(X)


@row(
    sw.DTypeError,
    r"view: the dtype must have the width of the array's, got Tracer<int8\[4\]> as bool; compare it with 0",
)
def view_as_booleans() -> None:
    on_mesh(lambda x: x.view(bool)).trace(SMALL)


# ---- keys -----------------------------------------------------------------------------------------------------------


@row(sw.DTypeError, r"random.normal: a key must be uint32\[2\], got int64\[\]; make one with sw.random.key\(seed\)")
def seed_in_place_of_a_key() -> None:
    sw.random.normal(0, (3,))


@row(sw.DTypeError, r"random.uniform: a key must be uint32\[2\], got int32\[8, 6\]; make one with")
def traced_array_in_place_of_a_key() -> None:
    on_mesh(lambda x: sw.random.uniform(x)).trace(N)


@row(sw.ShapeError, r"random.bits: a key must be uint32\[2\], got uint32\[3, 2\]; map over keys with sw.vmap")
def several_keys() -> None:
    sw.random.bits(sw.random.split(KEY, 3))


@row(sw.ShapeError, r"random.split: a key must be uint32\[2\], got uint32\[3\]; make one with")
def key_of_three_words() -> None:
    sw.random.split(np.zeros(3, np.uint32))


@row(sw.UnsupportedError, r"trace: a traced value must not leave the function that recorded it, got .*; return it")
def key_of_another_program() -> None:
    keys = []
    on_mesh(lambda k: keys.append(k) or k).trace(KEY)  # type: ignore[func-returns-value]
    sw.random.bits(keys[0])


@row(OverflowError, r"random.key: a seed must have at most 64 bits, got 18446744073709551616")
def seed_of_too_many_bits() -> None:
    sw.random.key(2**64)


@row(sw.DTypeError, r"random.key: a seed must be an integer, got float64; convert it with astype")
def seed_of_a_float() -> None:
    sw.random.key(0.5)


@row(sw.ShapeError, r"random.key: a seed must be a scalar, got int64\[2\]; map over it with sw.vmap")
def several_seeds() -> None:
    sw.random.key(np.arange(2))


@row(OverflowError, r"random.fold_in: data must fit uint32, got -1; take it modulo 2\*\*32")
def negative_data() -> None:
    sw.random.fold_in(KEY, -1)


@row(sw.DTypeError, r"random.fold_in: data must be an integer, got float32; convert it with astype")
def data_of_floats() -> None:
    on_mesh(lambda x: sw.random.fold_in(KEY, x[0, 0])).trace(X)


# ---- draws ----------------------------------------------------------------------------------------------------------


@row(sw.ShapeError, r"random.uniform: a shape must be of integers that are not negative, got \(3, -1\); give the sizes")
def negative_size() -> None:
    sw.random.uniform(KEY, (3, -1))


@row(sw.ShapeError, r"random.normal: a shape must be of integers that are not negative, got \(2.5,\); give a tuple")
def size_that_is_no_integer() -> None:
    sw.random.normal(KEY, (2.5,))


@row(sw.TracerConversionError, r"sw.random.normal: argument n must be static: sw.jit\(f, static_argnames='n'\) \(at")
def traced_size() -> None:
    on_mesh(lambda n: sw.random.normal(KEY, (n,))).trace(np.int32(3))


@row(sw.ShapeError, r"random.bits: a key has 2\*\*64 random numbers, got \(4294967296, 4294967297\); split the key")
def more_numbers_than_a_key_has() -> None:
    sw.random.bits(KEY, (2**32, 2**32 + 1))


@row(sw.DTypeError, r"random.bits: dtype must be an unsigned integer dtype, got int32; convert the result with astype")
def bits_of_a_signed_dtype() -> None:
    sw.random.bits(KEY, (), np.int32)


@row(sw.DTypeError, r"random.uniform: dtype must be floating, got int32; draw floats and convert them with astype")
def uniform_integers() -> None:
    sw.random.uniform(KEY, (), np.int32)


@row(
    sw.DTypeError,
    r"random.uniform: dtype must be floating, of at least 16 bits, got float8_e5m2; draw floats and convert them",
)
def uniform_floats_of_eight_bits() -> None:
    sw.random.uniform(KEY, (), "float8_e5m2")


@row(sw.DTypeError, r"random.uniform: minval must be of real numbers, got complex128; convert it with astype")
def complex_bounds() -> None:
    sw.random.uniform(KEY, (), minval=1j)


@row(
    sw.ShapeError,
    r"random.uniform: parameters must broadcast to the result's shape, got maxval of shape \(3,\) for \(2,\)",
)
def bounds_of_another_shape() -> None:
    sw.random.uniform(KEY, (2,), maxval=np.ones(3))


@row(
    sw.ShapeError, r"random.truncated_normal: parameters must broadcast to one shape, got lower \(3,\) and upper \(2,\)"
)
def bounds_of_two_shapes() -> None:
    sw.random.truncated_normal(KEY, -np.ones(3), np.ones(2))


@row(sw.DTypeError, r"random.randint: dtype must be an integer dtype, got float32; convert the result with astype")
def random_integers_of_a_float_dtype() -> None:
    sw.random.randint(KEY, (), 0, 5, np.float32)


@row(sw.DTypeError, r"random.randint: maxval must be of integers, got float64; give integers of at most 64 bits")
def random_integers_below_a_float() -> None:
    sw.random.randint(KEY, (), 0, 5.0)


@row(ValueError, r"random.bernoulli: p must be in \[0, 1\], got 1.5; limit it with np.clip")
def probability_above_one() -> None:
    sw.random.bernoulli(KEY, 1.5)


@row(sw.DTypeError, r"random.bernoulli: p must be floating, got int64; convert it with astype")
def probability_of_an_integer() -> None:
    sw.random.bernoulli(KEY, 1)


@row(ValueError, r"random.bernoulli: mode must be 'low' or 'high', got 'medium'")
def unknown_mode_of_bernoulli() -> None:
    sw.random.bernoulli(KEY, 0.5, mode="medium")


@row(ValueError, r"random.gumbel: mode must be 'low', 'high' or 'highest', got 'medium'")
def unknown_mode_of_gumbel() -> None:
    sw.random.gumbel(KEY, mode="medium")


@row(
    sw.ShapeError,
    r"random.choice: replace=False draws at most the 10 elements of a, got shape \(3, 4\), 12 draws; pass",
)
def choice_without_replacement() -> None:
    sw.random.choice(KEY, 10, (3, 4), replace=False)


@row(sw.ShapeError, r"random.permutation: an axis of 2 dims must be in \[-2, 2\), got 2")
def permutation_along_a_missing_axis() -> None:
    sw.random.permutation(KEY, X, axis=2)


@row(
    TypeError,
    r"np.clip: takes both a_min and a_max, as in NumPy, or min= and max=, got only a_min; pass a_max=None, or m",
)
def clip_by_one_bound() -> None:
    on_mesh(lambda x: np.clip(x, 0))(X)


@row(sw.UnsupportedError, r"np.round: booleans have no digits to round, got decimals=-1 of bool; convert to a number")
def round_of_booleans() -> None:
    on_mesh(lambda x: np.round(x > 0, -1))(X)


@row(sw.DTypeError, r"random.choice: a must be an array or an integer, got 2.5")
def choice_from_a_float() -> None:
    sw.random.choice(KEY, 2.5)


@row(sw.ShapeError, r"random.choice: there must be an element to draw, got 0")
def choice_from_nothing() -> None:
    sw.random.choice(KEY, 0)


@row(sw.ShapeError, r"random.choice: p must have one number for each of 3 elements, got \(2,\)")
def choice_with_too_few_probabilities() -> None:
    sw.random.choice(KEY, 3, p=np.ones(2, np.float32))


@row(sw.DTypeError, r"random.categorical: logits must be floating, got int64; convert it with astype")
def logits_of_integers() -> None:
    sw.random.categorical(KEY, np.arange(3))


@row(sw.ShapeError, r"random.categorical: logits must have a dim, got a scalar; give one a choice")
def one_logit() -> None:
    sw.random.categorical(KEY, 0.5)


@row(sw.ShapeError, r"random.categorical: an axis of 1 dims must be in \[-1, 1\), got 1")
def logits_along_a_dim_that_is_not_there() -> None:
    sw.random.categorical(KEY, np.ones(3), axis=1)


@row(sw.ShapeError, r"random.categorical: parameters must broadcast to the result's shape, got logits of shape \(4,\)")
def choices_of_another_shape() -> None:
    sw.random.categorical(KEY, np.ones((4, 3)), shape=(5,))
