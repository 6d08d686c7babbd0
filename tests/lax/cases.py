# SPDX-License-Identifier: Apache-2.0
"""Calls of `sw.lax` and `jax.lax`: the same function of either module and of the names that both give to np's ufuncs.

Numbers are small integers, so that sums and products have no rounding: results are equal, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import shardwise as sw

DTYPES = {name: np.dtype(name) for name in ("float32", "float64", "int32", "int8")} | {
    "bfloat16": np.dtype(sw.bfloat16)
}
FLOATS = ("float32", "float64", "bfloat16")


class Case(NamedTuple):
    """A call.

    Attributes:
        name: what is asked.
        function: of the module `lax`, of `np` or what stands for it, and of the arrays.
        shapes: of the arrays.
        dtype: of the arrays.
        draw: "small" integers with ties, "distinct" ones, or "factors" of short products.
        splits: the dims of the arrays that are split along the mesh axis x in turn: (array, dim).
        places: how many units in the last place results may differ; 0 where all is exact.
        has_gradient: whether `jax.grad` differentiates it.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"
    draw: str = "small"
    splits: tuple[tuple[int, int], ...] = ()
    places: int = 0
    has_gradient: bool = True

    def arrays(self) -> list[np.ndarray]:
        """The arguments, the same in every process."""
        rng = np.random.default_rng(len(self.name))
        return [self._drawn(rng, shape).astype(DTYPES[self.dtype]) for shape in self.shapes]

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.draw == "distinct":
            size = int(np.prod(shape))
            return (rng.permutation(size) - size // 2).reshape(shape)
        if self.draw == "factors":
            return rng.choice([-1, 1, 2], shape, p=[0.45, 0.45, 0.1])
        return rng.integers(-2, 3, shape)

    @property
    def differentiated(self) -> bool:
        """Whether there are gradients to compare."""
        return self.has_gradient and self.dtype in FLOATS


def weights(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """The cotangent of a result: small integers."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - 2).astype(dtype)


LAST = ("NHWC", "HWIO", "NHWC")
IMAGES, KERNEL = (4, 8, 6, 3), (3, 3, 3, 4)
_SPLITS = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 3))  # batch, space, input features, output features


def _conv(name: str, shapes: tuple[tuple[int, ...], ...] = (IMAGES, KERNEL), **given: Any) -> Case:
    """A call of `conv_general_dilated`."""
    case = {key: given.pop(key) for key in ("dtype", "splits") if key in given}
    options = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": LAST} | given
    return Case(name, lambda lax, np, x, k: lax.conv_general_dilated(x, k, **options), shapes, **case)


CONVOLUTIONS = [
    _conv("same", splits=_SPLITS),
    _conv("same lower, strided", padding="SAME_LOWER", window_strides=(2, 3), splits=_SPLITS),
    _conv("valid, in a small letter", padding="valid", window_strides=(2, 1), splits=_SPLITS[:3]),
    _conv("pairs", padding=[(2, -1), (0, 3)], window_strides=(1, 2), splits=_SPLITS[:3]),
    _conv("input dilated", padding=((1, 2), (3, 0)), lhs_dilation=(2, 3), splits=_SPLITS[:3]),
    _conv("kernel dilated", rhs_dilation=(2, 1), padding="SAME", splits=_SPLITS[:3]),
    _conv("groups of features", ((4, 8, 6, 6), (3, 2, 2, 6)), feature_group_count=3, splits=((0, 0), (0, 3), (1, 3))),
    _conv("depthwise", ((4, 8, 6, 6), (3, 3, 1, 6)), feature_group_count=6, splits=((0, 1), (0, 3))),
    _conv("groups of the batch", ((4, 5, 6, 3), (2, 2, 3, 4)), batch_group_count=2, splits=((0, 0), (1, 3))),
    _conv("other orders", ((6, 3, 8, 4), (4, 3, 3, 2)), dimension_numbers=("WCHN", "OWIH", "HNCW"), splits=((0, 2),)),
    Case("specs", lambda lax, np, x, k: lax.conv_general_dilated(
             x, k, (1, 2), "SAME",
             dimension_numbers=lax.ConvDimensionNumbers((0, 3, 2, 1), (3, 2, 0, 1), (1, 0, 2, 3))),
         (IMAGES, KERNEL), splits=((0, 1),)),
    _conv("float64", dtype="float64", splits=((0, 1),)),
    _conv("bfloat16", dtype="bfloat16", splits=((0, 1), (1, 3))),
    _conv("bfloat16 in float32", dtype="bfloat16", preferred_element_type=np.float32, splits=((0, 1),)),
    _conv("int32", dtype="int32", splits=((0, 1),)),
    _conv("int8 in int32", dtype="int8", preferred_element_type=np.int32, splits=((0, 0), (0, 2))),
    _conv("highest precision", precision="highest"),
    Case("default order", lambda lax, np, x, k: lax.conv_general_dilated(x, k, (2,), "SAME"), ((2, 3, 9), (4, 3, 3)),
         splits=((0, 2),)),
    Case("no space", lambda lax, np, x, k: lax.conv_general_dilated(x, k, (), ()), ((4, 3), (5, 3)), splits=((0, 0),)),
    Case("three dims", lambda lax, np, x, k: lax.conv_general_dilated(x, k, (1, 2, 1), "SAME"),
         ((2, 2, 4, 5, 3), (3, 2, 2, 3, 1)), splits=((0, 2), (0, 3))),
    Case("conv", lambda lax, np, x, k: lax.conv(x, k, (1, 2), "SAME"), ((2, 3, 6, 8), (4, 3, 3, 2)),
         splits=((0, 2), (0, 1))),
    Case("conv_with_general_padding",
         lambda lax, np, x, k: lax.conv_with_general_padding(x, k, (1, 2), ((1, 0), (2, 2)), (2, 1), (1, 2)),
         ((2, 3, 6, 8), (4, 3, 3, 2)), splits=((0, 2), (0, 3))),
]  # fmt: skip


def _transpose(name: str, *args: Any, shapes: Any = ((2, 5, 4, 3), (3, 2, 3, 4)), **options: Any) -> Case:
    splits = ((0, 0), (0, 1)) if len(shapes[0]) > 2 else ((0, 0),)
    return Case(f"transpose, {name}", lambda lax, np, x, k: lax.conv_transpose(x, k, *args, **options), shapes,
                splits=splits)  # fmt: skip


TRANSPOSED = [
    _transpose("same", (2, 3), "SAME"),
    _transpose("valid", (2, 3), "VALID"),
    _transpose("valid, short kernel", (4, 5), "VALID", (1, 1)),
    _transpose("dilated kernel", (3, 2), "SAME", (2, 2)),
    _transpose("pairs", (2, 1), [(1, 2), (0, 1)]),
    _transpose("consistent pairs", (2, 1), [(1, 0), (0, 1)], use_consistent_padding=True),
    _transpose("gradient", (2, 2), "SAME", None, ("NHWC", "HWIO", "NHWC"), True, shapes=((2, 5, 4, 4), (3, 2, 3, 4))),
    _transpose("numbers", (2,), "SAME", dimension_numbers=("NCH", "OIH", "NCH"), shapes=((2, 3, 5), (4, 3, 3))),
    _transpose("one dim", (3,), "SAME", shapes=((2, 5, 3), (3, 3, 4))),
    _transpose("three dims", (2, 1, 2), "SAME", shapes=((1, 3, 2, 3, 2), (2, 2, 2, 2, 2))),
    _transpose("no space", (), "SAME", shapes=((4, 3), (3, 2))),
    Case("patches", lambda lax, np, x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"), ((2, 3, 6, 5),),
         splits=((0, 0), (0, 1), (0, 2))),
    Case("patches, numbers",
         lambda lax, np, x: lax.conv_general_dilated_patches(
             x, (3, 2), (1, 1), ((1, 0), (2, 1)), (1, 2), (2, 1), ("NHWC", "OIWH", "CNHW")),
         ((2, 6, 5, 3),), splits=((0, 1),)),
]  # fmt: skip


def _reduced(name: str, start: Any, combine: str, *args: Any, **given: Any) -> Case:
    """A call of `reduce_window` with a ufunc."""
    keys = ("dtype", "draw", "has_gradient")
    case = {key: given.pop(key) for key in keys if key in given}
    splits = given.pop("splits", ((0, 0), (0, 1), (0, 3)))
    return Case(
        name, lambda lax, np, x: lax.reduce_window(x, start, getattr(np, combine), *args, **given), ((4, 8, 6, 3),),
        splits=splits, **case,
    )  # fmt: skip


def _largest(a: Any, b: Any, np: Any) -> Any:
    """The larger value, and its index."""
    takes = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return np.where(takes, a[0], b[0]), np.where(takes, a[1], b[1])


def _values_and_places(lax: Any, np: Any, x: Any) -> Any:
    # Of a tree: the values under each window, and another function of them.
    tree = {"value": x, "place": -x}
    starts = {"value": np.float32(-99), "place": np.float32(-99)}

    def combine(a: Any, b: Any) -> Any:
        value, place = _largest((a["value"], a["place"]), (b["value"], b["place"]), np)
        return {"value": value, "place": place}

    found = lax.reduce_window(tree, starts, combine, (1, 3, 2, 1), (1, 2, 1, 1), "VALID")
    return [found["value"], found["place"]]


def _reduced_tree(lax: Any, np: Any, x: Any) -> Any:
    return list(
        lax.reduce((x, x * 2), (np.float32(-99), np.float32(-99)), lambda a, b: _largest(a, b, np), (1, 2))
    )  # fmt: skip


def _scattered(select: str, *args: Any) -> Callable[..., Any]:
    return lambda lax, np, source, x: lax.select_and_scatter_add(source, x, getattr(np, select), *args)


_INF = float("inf")
POOL, HALVED, EVERY = (1, 2, 2, 1), (1, 2, 2, 1), (1, 1, 1, 1)
WINDOWS = [
    _reduced("max", -_INF, "maximum", POOL, HALVED, "VALID"),
    _reduced("max, overlapping", -_INF, "maximum", (1, 3, 3, 1), (1, 2, 1, 1), "SAME"),
    _reduced("max, same lower", -_INF, "maximum", (1, 2, 2, 1), EVERY, "SAME_LOWER"),
    _reduced("max, pairs", -_INF, "maximum", (1, 2, 3, 1), (1, 1, 2, 1), ((0, 0), (2, 1), (0, 2), (0, 0))),
    _reduced("max, cut", -_INF, "maximum", POOL, EVERY, ((-1, 0), (2, -1), (-1, 2), (0, 0)), has_gradient=False),
    _reduced("max, dilated", -_INF, "maximum", POOL, None, "VALID", None, (1, 3, 1, 1), draw="distinct",
             has_gradient=False),
    _reduced("min", _INF, "minimum", (1, 3, 2, 1), (1, 2, 2, 1), "SAME"),
    _reduced("max of bfloat16", -_INF, "maximum", (1, 3, 3, 1), HALVED, "SAME", dtype="bfloat16"),
    _reduced("max of int8", np.int8(-128), "maximum", (1, 3, 3, 1), HALVED, "SAME", dtype="int8"),
    _reduced("sum", 0.0, "add", (1, 3, 2, 1), (1, 2, 1, 1), "SAME"),
    _reduced("sum, defaults", 0.0, "add", POOL),
    _reduced("sum, dilated", 0.0, "add", POOL, HALVED, ((0, 0), (1, 2), (3, 0), (0, 0)), (1, 2, 1, 1), (1, 1, 2, 1)),
    _reduced("sum of features", 0.0, "add", (1, 1, 1, 2), EVERY, "SAME"),
    _reduced("sum of float64", 0.0, "add", (2, 2, 1, 1), EVERY, "SAME", dtype="float64"),
    _reduced("sum of bfloat16", 0.0, "add", (1, 3, 3, 1), HALVED, "SAME", dtype="bfloat16"),
    _reduced("sum of int32", 0, "add", (1, 3, 2, 1), HALVED, "SAME", dtype="int32"),
    _reduced("product", np.float32(1), "multiply", (1, 3, 2, 1), HALVED, "SAME", has_gradient=False),
    Case("lambda", lambda lax, np, x: lax.reduce_window(
             x, np.float32(-_INF), lambda a, b: np.where(a > b, a, b), POOL, HALVED),
         ((4, 8, 6, 3),), splits=((0, 0), (0, 1)), has_gradient=False),
    Case("tree", _values_and_places, ((4, 8, 6, 3),), splits=((0, 0), (0, 1)), has_gradient=False),
    Case("select the largest", _scattered("greater_equal", POOL, HALVED, ((0, 0),) * 4), ((4, 4, 3, 3), (4, 8, 6, 3)),
         splits=((1, 0), (1, 1), (0, 3))),
    Case("select the smallest", _scattered("less_equal", (1, 3, 3, 1), HALVED, ((0, 0), (0, 1), (1, 1), (0, 0))),
         ((4, 4, 3, 3), (4, 8, 6, 3)), splits=((1, 1), (1, 2))),
    Case("select of bfloat16", _scattered("greater_equal", POOL, HALVED, ((0, 0),) * 4),
         ((4, 4, 3, 3), (4, 8, 6, 3)), "bfloat16", splits=((1, 1),)),
]  # fmt: skip


def _cumulative(name: str, draw: str, dtype: str = "float32", places: int = 0) -> list[Case]:
    return [
        Case(f"{name} {dtype} along {dim}{' in reverse' * reverse}",
             lambda lax, np, x, dim=dim, reverse=reverse: getattr(lax, name)(x, dim, reverse), ((5, 7, 2),), dtype,
             draw, ((0, 0), (0, 1)), places)
        for dim, reverse in ((0, False), (1, True))
    ]  # fmt: skip


CUMULATIVE = [
    *_cumulative("cumsum", "small"),
    *_cumulative("cumsum", "small", "bfloat16"),
    *_cumulative("cumsum", "small", "int8"),
    *_cumulative("cumprod", "factors"),
    *_cumulative("cumprod", "factors", "int32"),
    *_cumulative("cummax", "distinct"),
    *_cumulative("cummax", "distinct", "int32"),
    *_cumulative("cummin", "distinct"),
    *_cumulative("cumlogsumexp", "small", places=64),
    *_cumulative("cumlogsumexp", "small", "bfloat16", places=8),
]

REDUCED = [
    Case("reduce sum", lambda lax, np, x: lax.reduce(x, 0.0, np.add, (0, 2)), ((4, 6, 3),), splits=((0, 0), (0, 1))),
    Case("reduce max", lambda lax, np, x: lax.reduce(x, -_INF, np.maximum, [1]), ((4, 6, 3),), draw="distinct",
         splits=((0, 0), (0, 1))),
    Case("reduce by a lambda", lambda lax, np, x: lax.reduce(x, np.float32(1), lambda a, b: a * b, (1,)), ((4, 6, 3),),
         draw="factors", splits=((0, 0), (0, 1)), has_gradient=False),
    Case("reduce bfloat16", lambda lax, np, x: lax.reduce(x, -_INF, np.maximum, (0,)), ((4, 6, 3),), "bfloat16",
         "distinct", ((0, 0),)),
    Case("reduce a tree", _reduced_tree, ((4, 6, 3),), draw="distinct", splits=((0, 0), (0, 1)), has_gradient=False),
    Case("round", lambda lax, np, x: lax.reduce_precision(x / 3, 5, 10), ((4, 6),), splits=((0, 0),)),
    Case("round bfloat16", lambda lax, np, x: lax.reduce_precision(x, 4, 1), ((4, 6),), "bfloat16", "distinct",
         ((0, 0),)),
]  # fmt: skip

_BATCHED = (((3,), (2,)), ((0, 2), (1, 0)))
_BOTH = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 3))
PRODUCTS = [
    Case("dot_general", lambda lax, np, x, w: lax.dot_general(x, w, _BATCHED), ((4, 3, 2, 6), (2, 4, 6, 5)),
         splits=_BOTH),
    Case("dot_general bfloat16", lambda lax, np, x, w: lax.dot_general(x, w, _BATCHED, None, np.float32),
         ((4, 3, 2, 6), (2, 4, 6, 5)), "bfloat16", splits=_BOTH),
    Case("dot_general int8", lambda lax, np, x, w: lax.dot_general(x, w, (((1,), (0,)), ((), ())), None, "int32"),
         ((6, 8), (8, 5)), "int8", splits=((0, 0), (0, 1), (1, 1))),
    Case("pad", lambda lax, np, x: lax.pad(x, np.float32(1), [(2, 1, 0), (-1, -2, 0), (1, 0, 2)]), ((4, 6, 3),),
         splits=((0, 0), (0, 1), (0, 2))),
]  # fmt: skip

ALL = {
    "convolution": [*CONVOLUTIONS, *TRANSPOSED],
    "windows": [*WINDOWS, *CUMULATIVE, *REDUCED],
    "products": PRODUCTS,
}
