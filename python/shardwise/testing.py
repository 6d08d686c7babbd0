# SPDX-License-Identifier: Apache-2.0
"""Assertions for the tests of your own programs: same numbers as plain NumPy, and no unexpected communication."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from .dtypes import bfloat16
from .errors import message, shown
from .jit import jit
from .mesh import Mesh
from .reports import format_bytes
from .stages import Program
from .trees import flatten, leaf_names

__all__ = ["assert_collectives", "assert_matches_unpartitioned"]

_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")
_MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True}, {"poison": True}, {"faithful": True, "poison": True})
_OP = re.compile(r'"?\b((?:stablehlo|chlo|sdy|shardwise)\.\w+)')


def assert_matches_unpartitioned(
    fn: Callable[..., Any],
    *args: Any,
    mesh: Mesh | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Program:
    """Run ``fn`` as plain NumPy and as a program on ``mesh``, in every mode, and compare the trees of results.

    The modes are: as always; every device computed separately; padding filled with NaN; both.

    Args:
        fn: a function of arrays in NumPy, with or without annotations.
        args: its arguments: trees of NumPy arrays.
        mesh: the devices; default as in :func:`shardwise.jit`.
        in_shardings: as in :func:`shardwise.jit`.
        out_shardings: as in :func:`shardwise.jit`.
        rtol: relative to each expected element. Default: exact for integers, bools, and programs that only move data.
        atol: absolute. Default for other floats: 8 eps times the largest finite expected element.

    Returns:
        The compiled program, for further assertions.

    Raises:
        AssertionError: the trees, shapes, dtypes or elements differ; it names the result, the mode, the worst element.

    >>> import numpy as np, shardwise as sw
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> program = assert_matches_unpartitioned(np.sum, x, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> program.collectives().by_kind()
    {'all_reduce': 1}
    """
    if not callable(fn):
        raise TypeError(message("assert_matches_unpartitioned", "takes a function", shown(fn)))
    expected = fn(*args)
    program = jit(fn, mesh=mesh, in_shardings=in_shardings, out_shardings=out_shardings).lower(*args).compile()
    exact = _only_moves(program)
    leaves, tree = flatten(expected)
    names = leaf_names(expected)
    for mode in _MODES:
        results, found_tree = flatten(program.run(*args, **mode))
        if found_tree != tree:
            raise AssertionError(f"the program returns the tree {found_tree}, NumPy {tree}")
        for name, result, leaf in zip(names, results, leaves):
            where = f"result{name}" + "".join(f", {option}=True" for option in mode)
            _compare(where, np.asarray(result), np.asarray(leaf), rtol, atol, exact)
    return program


def _only_moves(program: Program) -> bool:
    moving = {
        row["name"]
        for row in _core.ir.all_ops()
        if row["movement"] or row["annotation"] or row["name"] == "stablehlo.constant"
    }
    return set(_OP.findall(program.as_text("global", generic=True))) <= moving


def _compare(
    where: str, result: np.ndarray, expected: np.ndarray, rtol: float | None, atol: float | None, exact: bool
) -> None:
    if result.shape != expected.shape or result.dtype != expected.dtype:
        kinds = [f"{array.dtype.name}{list(array.shape)}" for array in (result, expected)]
        raise AssertionError(f"{where} is {kinds[0]}, NumPy gives {kinds[1]}")
    if not expected.size:
        return
    is_float = expected.dtype.kind == "f" or expected.dtype == bfloat16
    if not is_float or (exact and rtol is None and atol is None):
        wrong = ~_same(result, expected, is_float)
        bound = "exactly"
    else:
        result, expected, tolerance = _tolerance(result, expected, rtol, atol)
        finite = np.isfinite(expected)
        with np.errstate(invalid="ignore"):
            near = np.abs(result - expected) <= tolerance
        wrong = ~np.where(finite, near, _same(result, expected, True))
        bound = f"within {np.max(np.where(finite, tolerance, 0)):.3g}"
    if np.any(wrong):
        with np.errstate(invalid="ignore"):
            distance = np.where(wrong, np.abs(result.astype(np.float64) - expected.astype(np.float64)), -1)
        index = np.unravel_index(int(np.argmax(np.nan_to_num(distance, nan=np.inf))), expected.shape)
        at = f"[{', '.join(map(str, index))}]"
        raise AssertionError(
            f"{where} must equal NumPy's {bound}, got {int(np.sum(wrong))} of {expected.size} elements that do not; "
            f"the worst is {result[index]!s} at {at} where NumPy has {expected[index]!s}"
        )


def _same(result: np.ndarray, expected: np.ndarray, is_float: bool) -> Any:
    return (result == expected) | (np.isnan(result) & np.isnan(expected)) if is_float else result == expected


def _tolerance(
    result: np.ndarray, expected: np.ndarray, rtol: float | None, atol: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import ml_dtypes

    eps = float(ml_dtypes.finfo(expected.dtype).eps)  # type: ignore[no-untyped-call]
    wide = expected.astype(np.float64)
    finite = np.abs(np.where(np.isfinite(wide), wide, 0))
    if rtol is None and atol is None:
        atol = 8 * eps * float(np.max(finite))
    return result.astype(np.float64), wide, (atol or 0.0) + (rtol or 0.0) * finite


def assert_collectives(program: Program, *, bytes_max: float | None = None, **counts: int) -> None:
    """Assert how often a program communicates, by kind, and how much.

    Args:
        program: a compiled program.
        bytes_max: the most bytes that one device may receive in a run.
        counts: the number of executions of a kind: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all``,
            ``collective_permute``. Kinds that are not given are not looked at.

    Raises:
        AssertionError: with the ledger of the program. TypeError: no such kind.

    >>> import numpy as np, shardwise as sw
    >>> f = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> assert_collectives(f.lower(np.arange(4)).compile(), all_reduce=0, bytes_max=0)
    """
    unknown = sorted(set(counts) - set(_KINDS))
    if unknown:
        raise TypeError(f"assert_collectives: a kind must be one of {', '.join(_KINDS)}, got {', '.join(unknown)}")
    if not isinstance(program, Program):
        raise TypeError(message("assert_collectives", "takes a compiled program", shown(program)))
    ledger = program.collectives()
    found = ledger.by_kind()
    wrong = [f"{found.get(k, 0)} {k} where {n} must be" for k, n in counts.items() if found.get(k, 0) != n]
    if bytes_max is not None and ledger.total_bytes > bytes_max:
        got = f"{format_bytes(ledger.total_bytes)} ({ledger.total_bytes:.0f} B)"
        wrong.append(f"{got} received per device where at most {bytes_max:.0f} B must be")
    if wrong:
        raise AssertionError(f"the program has {'; '.join(wrong)}:\n{ledger!r}")
