# SPDX-License-Identifier: Apache-2.0
"""`jit(objective="time")`: the product of an output projection takes the least time, at all sizes.

The oracle knows shapes, the JSON of the hardware, and nothing of the compiler. Each axis goes to the rows, the columns
or the contraction, or to nothing. Each way has the time of its transfers, and of its products or its memory.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, models

FILES = Path(sw.__file__).parents[2] / "cpp/shardwise/cost/hardware"
RATES = json.loads((FILES / "h100_sxm.json").read_text())  # `default` has its rates,
LINKS = json.loads((FILES / "default.json").read_text())["tiers"]  # and tiers of its own
PEAKS = {name: row["value"] for name, row in RATES["peak_flops"]["matrix"].items()}
MEMORY = RATES["memory"]["bandwidth"]["value"]
NODE = LINKS[0]["bandwidth"]["value"]
SIZES = tuple(2**n for n in range(6, 17, 2))


# ---- the oracle ------------------------------------------------------------------------------------------------------

Dims = tuple[tuple[str, ...], ...]  # the axes of each dim, major first


@dataclass(frozen=True)
class Product:
    """``(m, k) @ (k, n)``, its operands where they are, and its result where it must be."""

    m: int
    k: int
    n: int
    sizes: dict[str, int]  # of the axes
    x: Dims
    w: Dims
    y: Dims
    item: int  # bytes of an operand's element,
    result_item: int  # and of a result's
    peak: int


def picoseconds(quantity: Fraction | int, rate: int) -> int:
    return math.ceil(Fraction(quantity) * 10**12 / rate)


def interval(axes: tuple[str, ...], device: dict[str, int], sizes: dict[str, int]) -> tuple[Fraction, Fraction]:
    """The part of a dim that a device has, as shares of it."""
    start, length = Fraction(0), Fraction(1)
    for axis in axes:
        length /= sizes[axis]
        start += device[axis] * length
    return start, start + length


def share_received(before: Dims, after: Dims, sizes: dict[str, int]) -> Fraction:
    """The share of a tensor that the device receives which has least of what it needs."""
    most = Fraction(0)
    for indices in itertools.product(*map(range, sizes.values())):
        device = dict(zip(sizes, indices))
        needed = had = Fraction(1)
        for old, new in zip(before, after):
            (a, b), (c, d) = interval(old, device, sizes), interval(new, device, sizes)
            needed, had = needed * (d - c), had * max(Fraction(0), min(b, d) - max(a, c))
        most = max(most, needed - had)
    return most


def tile(dims: Dims, sizes: dict[str, int]) -> Fraction:
    return Fraction(1, math.prod(sizes[axis] for axes in dims for axis in axes))


def placed(axes_of: dict[str, str], factors: str) -> Dims:
    """The placement of a tensor with these factors, where each axis splits one factor."""
    return tuple(tuple(axis for axis, factor in axes_of.items() if factor == own) for own in factors)


def reduced(made: Dims, summed: list[str], after: Dims, sizes: dict[str, int]) -> Fraction:
    """The share of a sum that a device receives: its parts are scattered somehow, and move from there."""
    best = None
    for dims in itertools.product((0, 1), repeat=len(summed)):
        scattered = [
            tuple(axis for axis in sizes if axis in own or (axis in summed and dims[summed.index(axis)] == d))
            for d, own in enumerate(made)
        ]
        group = math.prod(sizes[axis] for axis in summed)
        share = tile(made, sizes) * (group - 1) / group + share_received(tuple(scattered), after, sizes)
        best = share if best is None else min(best, share)
    assert best is not None
    return best


def time_of(p: Product, factors: tuple[str, ...]) -> int:
    """Picoseconds, where each axis splits the rows, the contraction or the columns, or nothing."""
    axes_of = dict(zip(p.sizes, factors))
    x, w, y = (placed(axes_of, of) for of in ("mk", "kn", "mn"))
    bytes_of = {"x": p.m * p.k * p.item, "w": p.k * p.n * p.item, "y": p.m * p.n * p.result_item}
    sent = [bytes_of["x"] * share_received(p.x, x, p.sizes), bytes_of["w"] * share_received(p.w, w, p.sizes)]
    summed = [axis for axis, factor in axes_of.items() if factor == "k"]
    last = reduced(y, summed, p.y, p.sizes) if summed else share_received(y, p.y, p.sizes)
    sent.append(bytes_of["y"] * last)
    local = sum(bytes_of[name] * tile(dims, p.sizes) for name, dims in (("x", x), ("w", w), ("y", y)))
    shares = math.prod(p.sizes[axis] for axis, factor in axes_of.items() if factor)
    compute = max(picoseconds(Fraction(2 * p.m * p.k * p.n, shares), p.peak), picoseconds(local, MEMORY))
    return compute + sum(picoseconds(size, NODE) for size in sent)


def least(p: Product) -> tuple[int, tuple[str, ...]]:
    return min((time_of(p, ways), ways) for ways in itertools.product(("k", "m", "n", ""), repeat=len(p.sizes)))


# ---- the programs ----------------------------------------------------------------------------------------------------


def dtype_rates(dtype: Any) -> tuple[int, int]:
    """Item size, and the peak of a product of default precision."""
    return (4, PEAKS[RATES["default_dot"]]) if dtype == np.float32 else (2, PEAKS["bf16"])


def compiled(function: Callable[..., Any], mesh: sw.Mesh, specs: Any, out: Any, *shapes: Any, dtype: Any) -> sw.Program:
    arguments = [sw.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return sw.jit(function, mesh=mesh, in_shardings=specs, out_shardings=out).lower(*arguments).compile()


LINE, GRID, PODS = sw.Mesh({"t": 8}), sw.Mesh({"d": 2, "t": 4}), sw.Mesh({"d": 64, "t": 8})


def program_of(spelling: str, mesh: sw.Mesh, m: int, k: int, n: int, dtype: Any) -> sw.Program:
    """The output projection in a spelling: both sides are split along the contraction over "t", and rows over "d"."""
    d = "d" if "d" in mesh.axis_names else None
    out = P(d)
    match spelling:
        case "at":
            return compiled(lambda x, w: x @ w, mesh, (P(d, "t"), P("t")), out, (m, k), (k, n), dtype=dtype)
        case "einsum":
            return compiled(
                lambda x, w: np.einsum("mk,kn->mn", x, w), mesh, (P(d, "t"), P("t")), out, (m, k), (k, n), dtype=dtype
            )
        case "transposed":
            return compiled(
                lambda x, w: np.einsum("mk,nk->mn", x, w),
                mesh,
                (P(d, "t"), P(None, "t")),
                out,
                (m, k),
                (n, k),
                dtype=dtype,
            )
        case "weight first":
            return compiled(
                lambda w, x: np.einsum("kn,mk->mn", w, x), mesh, (P("t"), P(d, "t")), out, (k, n), (m, k), dtype=dtype
            )
        case "gradient":
            return compiled(
                lambda x, w: np.einsum("km,kn->mn", x, w), mesh, (P("t", d), P("t")), out, (k, m), (k, n), dtype=dtype
            )
        case "heads":
            return compiled(
                lambda x, w: np.einsum("mhd,hdn->mn", x, w),
                mesh,
                (P(d, "t"), P("t")),
                out,
                (m, 16, k // 16),
                (16, k // 16, n),
                dtype=dtype,
            )
        case "batched":
            return compiled(
                lambda x, w: np.einsum("bsk,kn->bsn", x, w),
                mesh,
                (P(d, None, "t"), P("t")),
                P(d),
                (2, m // 2, k),
                (k, n),
                dtype=dtype,
            )
        case _:
            raise AssertionError(spelling)


def result_item(spelling: str, dtype: Any) -> int:
    """NumPy's `@` of two bfloat16 arrays is a float32 array."""
    return 4 if dtype == np.float32 or spelling == "at" else 2


def product_of(spelling: str, mesh: sw.Mesh, m: int, k: int, n: int, dtype: Any) -> Product:
    item, peak = dtype_rates(dtype)
    rows = ("d",) if "d" in mesh.axis_names else ()
    return Product(
        m, k, n, dict(mesh.shape), (rows, ("t",)), (("t",), ()), (rows, ()), item, result_item(spelling, dtype), peak
    )


@pytest.mark.parametrize("dtype", [np.float32, sw.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("spelling", ["at", "einsum", "transposed", "weight first", "gradient", "heads", "batched"])
@pytest.mark.parametrize("mesh", [LINE, GRID], ids=["8", "2x4"])
def test_a_projection_takes_the_least_time(mesh: sw.Mesh, spelling: str, dtype: Any) -> None:
    for tokens, width in itertools.product(SIZES, SIZES):
        program = program_of(spelling, mesh, tokens, width, width, dtype)
        time, ways = least(product_of(spelling, mesh, tokens, width, width, dtype))
        price = program.choice_price()
        assert abs(price.ps - time) <= 4, (tokens, width, price, ways, program.collectives())


@pytest.mark.parametrize("dtype", [np.float32, sw.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("spelling", ["at", "transposed", "heads"])
def test_a_projection_takes_the_least_time_on_pods(spelling: str, dtype: Any) -> None:
    """Rows are split over 64 nodes. The oracle lets them be: links between nodes are slow."""
    for tokens, width in itertools.product((4096, 16384, 65536), SIZES):
        program = program_of(spelling, PODS, tokens, width, width, dtype)
        of_a_node = product_of(spelling, LINE, tokens // 64, width, width, dtype)
        time, ways = least(of_a_node)
        price = program.choice_price()
        lets_rows_be = all("d" not in row.axes for row in program.collectives())
        assert (time - 4 if lets_rows_be else 0) <= price.ps <= time + 4, (tokens, width, price, ways)


@pytest.mark.parametrize("dtype", [np.float32, sw.bfloat16], ids=["float32", "bfloat16"])
def test_no_work_is_repeated_for_a_whole_result_of_rows(dtype: Any) -> None:
    for tokens, width in itertools.product(SIZES, [4096, 16384, 65536]):
        program = compiled(
            lambda x, w: np.einsum("mk,kn->mn", x, w),
            LINE,
            (P("t"), P()),
            P(),
            (tokens, width),
            (width, width),
            dtype=dtype,
        )
        assert program.choice_price().flops == 2 * tokens * width * width // 8, (tokens, width, program.collectives())


def test_a_step_of_a_million_experts_compiles() -> None:
    """Candidates of methods that would hold more elements than a type can have are out of the question."""
    experts = 1 << 20
    config = models.TransformerConfig.gshard(experts, 2, group_size=None)
    params = models.transformer_shapes(config, np.float32, sw.ShapeDtypeStruct)
    tokens = sw.ShapeDtypeStruct((experts, config.length + 1), np.int32)
    random = sw.ShapeDtypeStruct((config.moe_layers, experts, config.length), np.float32)

    def loss(params: Any, tokens: Any, random: Any) -> Any:
        return models.next_token_loss(params, tokens, config, axes="x", random=random)[0]

    step = sw.jit(sw.value_and_grad(loss), mesh=sw.Mesh({"x": experts}))
    program = step.lower(params, tokens, random).compile()
    assert set(program.collectives().by_kind()) <= {"all_to_all", "all_reduce"}
