# SPDX-License-Identifier: Apache-2.0
"""The table behind test_random.py: draws that both ``jax.random`` and ``shardwise.random`` make, as ``draw(r, key)``.

Not exact are draws through logarithms and polynomials, whose last bits are the libraries' own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.jax.random.distributions import Draw, all_distributions

SEEDS = (0, 42, 2**40 + 3, -5)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
SHAPES: tuple[tuple[int, ...], ...] = ((17, 5), (), (1,), (3, 1, 4), (0, 3), (20000,))
LOGITS = np.random.default_rng(3).normal(size=(17, 9)).astype(np.float32)
RATES = np.arange(30, dtype=np.float32) / 435


def all_draws() -> list[Draw]:
    return [*_keys(), *_bits(), *_integers(), *_floats(), *_choices(), *_without_replacement(), *all_distributions()]


def _keys() -> list[Draw]:
    draws = [Draw(f"split-{num}", lambda r, k, n=num: r.split(k, n), True) for num in (2, 7, (2, 3), 0)]
    for data in (0, 1, 2**32 - 1, np.int32(-1), np.int64(2**40 + 1), np.uint8(3)):
        draws.append(Draw(f"fold_in-{data}", lambda r, k, d=data: r.fold_in(k, d), True))
    for seed in (np.int32(-1), np.uint8(200), np.int64(-1), np.uint32(2**32 - 1)):
        draws.append(Draw(f"key-{seed!r}", lambda r, k, s=seed: r.PRNGKey(s), True))
    return draws


def _bits() -> list[Draw]:
    dtypes = (np.uint8, np.uint16, np.uint32, np.uint64)
    return [
        Draw(f"bits-{np.dtype(dtype).name}-{shape}", lambda r, k, s=shape, d=dtype: r.bits(k, s, d), True)
        for shape, dtype in [*((s, np.uint32) for s in SHAPES), *((SHAPES[0], d) for d in dtypes)]
    ]


def _integers() -> list[Draw]:
    draws = []
    for dtype in INTEGERS:
        first, last = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        above = min(last + 1, 2**63 - 1) if last < 2**63 else np.uint64(last)
        for low, high in ((-5, 6), (5, 2), (first, above), (0, 300)):
            draws.append(
                Draw(
                    f"randint-{np.dtype(dtype).name}-{low}-{high}",
                    lambda r, k, a=low, b=high, d=dtype: r.randint(k, (17, 5), a, b, d),
                    True,
                )
            )
    highs = np.array([1, 2, 100, 2**31 - 1, -4])
    return [*draws, Draw("randint-array", lambda r, k: r.randint(k, (17, 5), -(2**31), highs, np.int32), True)]


def _floats() -> list[Draw]:
    draws = []
    for dtype in FLOATS:
        name = np.dtype(dtype).name
        for shape in SHAPES if dtype == np.float32 else SHAPES[:1]:
            draws.append(Draw(f"uniform-{name}-{shape}", lambda r, k, s=shape, d=dtype: r.uniform(k, s, d), True))
        bounds = np.array([-4, 0.5, 2, 8, 16]).astype(dtype)
        functions: dict[str, Callable[[Any, Any], Any]] = {
            # XLA fuses multiply and add, so the bounds' last bit may differ.
            "uniform-bounds": lambda r, k, d=dtype: r.uniform(k, (17, 5), d, -3.3, 0.7),
            "uniform-arrays": lambda r, k, d=dtype, b=bounds: r.uniform(k, (17, 5), d, -b, b),
            "normal": lambda r, k, d=dtype: r.normal(k, (100, 33), d),
            "exponential": lambda r, k, d=dtype: r.exponential(k, (100, 33), d),
            "gumbel": lambda r, k, d=dtype: r.gumbel(k, (100, 33), d),
            "gumbel-high": lambda r, k, d=dtype: r.gumbel(k, (100, 33), d, "high"),
            "truncated_normal": lambda r, k, d=dtype: r.truncated_normal(k, -2.0, 1.0, (100, 33), d),
            "truncated_normal-arrays": lambda r, k, d=dtype, b=bounds: r.truncated_normal(k, -np.inf, b / 8, None, d),
        }
        draws += [Draw(f"{kind}-{name}", function, False) for kind, function in functions.items()]
    return draws


def _choices() -> list[Draw]:
    draws = []
    for dtype in FLOATS:
        for mode in ("low", "high"):
            for p in (0.1, 0.5)[: 1 + (dtype == np.float32)]:
                q = np.array(p, dtype)
                draws.append(
                    Draw(
                        f"bernoulli-{np.dtype(dtype).name}-{mode}-{p}",
                        lambda r, k, q=q, m=mode: r.bernoulli(k, q, (17, 50), m),
                        True,
                    )
                )
    rates = np.linspace(0, 1, 85, dtype=np.float32).reshape(17, 5)
    draws.append(Draw("bernoulli-array", lambda r, k: r.bernoulli(k, rates), True))
    for axis in (0, 1, -1):
        rest = tuple(np.delete(LOGITS.shape, axis))
        draws.append(Draw(f"categorical-{axis}", lambda r, k, a=axis: r.categorical(k, LOGITS, a), True))
        draws.append(
            Draw(
                f"categorical-{axis}-shape",
                lambda r, k, a=axis, s=(30, *rest): r.categorical(k, LOGITS, a, s),
                True,
            )
        )
    return draws


def _without_replacement() -> list[Draw]:
    shapes: dict[int, Any] = {-1: (2, 3, 17), 0: (4, 9), 1: None}
    draws = [
        # Indices of 32 bits in JAX, of 64 here.
        Draw(f"different-{a}", lambda r, k, a=a, s=s: r.categorical(k, LOGITS, a, s, False).astype(np.int64), True)
        for a, s in shapes.items()
    ]
    for mode in ("high", "highest"):
        draws += [
            Draw(f"categorical-{mode}", lambda r, k, m=mode: r.categorical(k, LOGITS, mode=m), True),
            Draw(f"choice-{mode}", lambda r, k, m=mode: r.choice(k, 30, (7,), False, RATES, 0, m), True),
        ]
    return [
        *draws,
        Draw("gumbel-highest-float32", lambda r, k: r.gumbel(k, (100, 33), np.float32, "highest"), False),
        Draw("gumbel-highest-float64", lambda r, k: r.gumbel(k, (100, 33), np.float64, "highest"), False),
        Draw("permutation-independent", lambda r, k: r.permutation(k, LOGITS, 1, True), True),
    ]
