# SPDX-License-Identifier: Apache-2.0
"""A program of the comparison, and the programs that move data: slices, windows, reshapes and reshards.

The bound of movement is |new tile| - |new tile ∩ old tile|, in bytes of the device that needs most; tiles are blocks of
ceil(size / shards).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["LINE", "MOVEMENT", "RESHARDS", "Library", "Program", "X"]

Axes = tuple[Any, ...]  # an axis, several axes or None for each dim
Shape = tuple[int, ...]

X: Axes = ("x",)
COLUMNS: Axes = (None, "x")
ROWS = (64, 16)
LINE = {"x": 8}


@dataclass(frozen=True)
class Library:
    """The functions that a program calls: of NumPy and Shardwise, or of JAX."""

    np: Any
    grad: Callable[..., Any]  # (function, argnums)
    shard: Callable[..., Any]  # (array, *axes): a constraint
    lax: Any
    vmap: Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """``function(library, *arrays)``, with the shardings of its arguments and of its result or results.

    Attributes:
        shapes: of the arguments, each with a dtype if it is not float32.
        bound: bytes that no schedule can do without (movement), or the bytes of the best known schedule.
        objective: what the program is compiled for.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    given: tuple[Axes, ...]
    wanted: Any  # Axes, or a list of them for several results
    bound: int
    mesh: dict[str, int]
    objective: Literal["time", "bytes"] = "time"


def moved(
    name: str,
    function: Callable[..., Any],
    bound: int,
    *shapes: Any,
    given: Axes | Sequence[Axes] = X,
    out: Axes = X,
    mesh: dict[str, int] = LINE,
    objective: Literal["time", "bytes"] = "time",
) -> Program:
    """A program of functions of NumPy only; all arguments have one sharding, or a list gives one for each."""
    shapes = shapes or (ROWS,)
    each = tuple(given) if isinstance(given, list) else (given,) * len(shapes)
    called = lambda library, *arrays: function(library.np, *arrays)  # noqa: E731
    return Program(name, called, shapes, each, out, bound, mesh, objective)


def reshard(shape: Shape, given: Axes, wanted: Axes, bound: int, **mesh: int) -> Program:
    return Program(f"{shape} {given} to {wanted}", lambda _, x: x, (shape,), (given,), wanted, bound, mesh)


def jacobi(np: Any, x: Any) -> Any:
    return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)


def stencil(np: Any, x: Any) -> Any:
    padded = np.pad(x, ((1, 1), (1, 1)))
    rows, columns = x.shape
    return sum(padded[i : i + rows, j : j + columns] * (3 * i + j + 1) for i in range(3) for j in range(3))


def split_in_3(np: Any, x: Any) -> Any:
    third = x.shape[0] // 3
    return x[:third] + x[third : 2 * third] + x[2 * third :]


def heads(np: Any, x: Any) -> Any:
    width = x.shape[1] // 3
    return x[:, :width] * x[:, width : 2 * width] + x[:, 2 * width :]


def glu(np: Any, x: Any) -> Any:
    half = x.shape[1] // 2
    return x[:, :half] * np.tanh(x[:, half:])


def running_sum(np: Any, x: Any) -> Any:
    return np.cumsum(x, 0)


def reversed_running_sum(np: Any, x: Any) -> Any:
    return np.cumsum(x[::-1], 0)[::-1]


MOVEMENT = [
    moved("roll by 3", lambda np, x: np.roll(x, 3, 0), 192),
    moved("x[0]", lambda np, x: x[0], 64, out=()),
    moved("h[:, -1]", lambda np, h: h[:, -1], 256, (4, 64, 16), given=COLUMNS, out=()),
    moved("x[:32]", lambda np, x: x[:32], 256),
    moved("x[10:40]", lambda np, x: x[10:40], 256),
    moved("x[10:40], replicated", lambda np, x: x[10:40], 1920, out=()),
    moved("x[::2]", lambda np, x: x[::2], 0),
    moved("x[::-1]", lambda np, x: x[::-1], 512),
    moved("x[::-1] of 33 rows", lambda np, x: x[::-1], 320, (33, 16)),
    moved("pad 3 low, 5 high", lambda np, x: np.pad(x, ((3, 5), (0, 0))), 256),
    moved("concatenate 32 and 16 rows", lambda np, a, b: np.concatenate([a, b]), 192, (32, 8), (16, 8)),
    moved("concatenate 33 and 17 rows", lambda np, a, b: np.concatenate([a, b]), 224, (33, 8), (17, 8)),
    moved("stack, interleave", lambda np, a, b: np.stack([a, b], 1).reshape(128, 16), 0, ROWS, ROWS),
    moved("x[1:] - x[:-1]", lambda np, x: x[1:] - x[:-1], 64),
    moved("split in 3", split_in_3, 192, (24, 16)),
    moved("Q, K, V of sharded features", heads, 1536, (16, 192), given=COLUMNS, out=COLUMNS),
    moved("gated halves of sharded features", glu, 1024, (16, 128), given=COLUMNS, out=COLUMNS),
    moved("next tokens of 65", lambda np, t: t[:, :-1] - t[:, 1:], 56, (2, 65), given=COLUMNS, out=COLUMNS),
    moved(
        "a token in front of 63",
        lambda np, t, x: np.concatenate([t, x], 1),
        128,
        (2, 1, 16),
        (2, 63, 16),
        given=[(), COLUMNS],
        out=COLUMNS,
    ),
    moved("Jacobi", jacobi, 384, (64, 64), given=("x", "y"), out=("x", "y"), mesh={"x": 2, "y": 4}),
    moved("3x3 stencil", stencil, 328, (64, 64), given=("x", "y"), out=("x", "y"), mesh={"x": 2, "y": 4}),
    moved("merge, minor dim sharded", lambda np, x: x.reshape(-1), 112, (16, 16), given=COLUMNS),
    moved("split (64, 4) to (4, 16, 4)", lambda np, x: x.reshape(4, 16, 4), 128, (64, 4), out=COLUMNS),
    moved("split (24, 4) to (3, 8, 4)", lambda np, x: x.reshape(3, 8, 4), 48, (24, 4), out=COLUMNS),
    moved("merge (3, 2) to 6", lambda np, x: x.reshape(6), 4, (3, 2), mesh={"x": 2}),
    moved("transpose", lambda np, x: x.T, 448, (32, 32)),
    moved("a + b.T", lambda np, a, b: a + b.T, 1792, (64, 64), (64, 64)),
    moved("tril", lambda np, x: np.tril(x), 0, (16, 16), given=("x", "y"), out=("x", "y"), mesh={"x": 2, "y": 4}),
    moved("argmax over the sharded dim", lambda np, x: np.argmax(x, 1), 168, (16, 64), given=COLUMNS, out=()),
    moved("argmax, rows sharded", lambda np, x: np.argmax(x, 1), 112, (16, 64), given=COLUMNS),
    # A chain of 7 messages would send 64 bytes.
    moved("cumsum along the sharded dim", running_sum, 112),
    moved("reversed cumsum", reversed_running_sum, 112),
    moved("cumsum, fewest bytes", running_sum, 64, objective="bytes"),
    moved("reversed cumsum, fewest bytes", reversed_running_sum, 64, objective="bytes"),
    moved("sort along the sharded dim", lambda np, x: np.sort(x, 0), 896),
    moved("fft along the sharded dim", lambda np, x: np.fft.fft(x, axis=0), 1344),
    moved(
        "30 heads and back",
        lambda np, x: np.tanh(x.reshape(4, 30, 8)).reshape(4, 240),
        320,
        (4, 240),
        given=COLUMNS,
        out=COLUMNS,
        mesh={"x": 4},
    ),
    moved("max over the sharded dim", lambda np, x: np.max(x, 0), 112, (8, 32), out=X),
    moved("17 rows: tanh, then sum", lambda np, x: np.sum(np.tanh(x), 0), 192, (17, 32), out=()),
    moved("17 rows to columns", lambda np, x: x * 2, 204, (17, 24), out=COLUMNS),
]

MOVEMENT.append(
    Program(
        "weights gathered inside the loss",
        lambda library, w, x: library.grad(lambda w: library.np.sum((x @ library.shard(w)) ** 2), 0)(w),
        ((32, 16), (64, 32)),
        (X, X),
        X,
        3584,
        LINE,
    )
)

RESHARDS = [
    reshard((8, 16, 8), ("y", None, "x"), (None, ("x", "y")), 448, x=4, y=2),
    reshard((8, 8, 8), ("a", "b", "c"), (("a", "b", "c"),), 192, a=2, b=2, c=2),
    reshard((4, 4, 4, 4), (("a", "b"),), ("a", None, None, "b"), 128, a=2, b=2),
    reshard((16, 16), ("x", "y"), ("y", "x"), 128, x=2, y=4),
    reshard((12, 12), ("x", "y"), ("y", "x"), 48, x=3, y=4),
    reshard((16, 16), ("x", "y"), (None, ("x", "y")), 128, x=2, y=4),
    reshard((8, 33), (None, ("x", "y")), ("y", "x"), 128, x=2, y=4),
    reshard((8, 8, 8), ("a", None, "c"), (None, ("a", "c")), 384, a=2, c=2),
    reshard((12, 12), (("x", "y"),), (None, ("y", "x")), 80, x=2, y=3),
    reshard((33, 33), ("x", "y"), ("y", "x"), 612, x=2, y=4),
    reshard((33,), ("x",), (("x", "y"),), 12, x=4, y=2),
    reshard((10, 8), ("x",), (("x", "y"),), 64, x=4, y=2),
    reshard((17, 4), (("x", "y"),), ("x",), 80, x=4, y=2),
    reshard((3, 1024), ("x",), (), 12288, x=64),  # 61 devices hold no row
]
