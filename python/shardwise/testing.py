# SPDX-License-Identifier: Apache-2.0
"""Assertions for the tests of your own programs: same numbers as plain NumPy, and no unexpected communication."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from . import _core
from .dtypes import as_wide, is_inexact, numpy_dtype
from .errors import Error, UnsupportedError, called_as, is_integer, message, shown
from .jit import JitFunction, jitted_with
from .process.traceback_filtering import entry_point
from .programs.stages import Lowered, Program
from .reports.collective_rows import COLLECTIVE_KINDS
from .shardings.mesh import Mesh
from .shardings.sharding import UNSPECIFIED
from .trees import flatten, leaf_names, unflatten
from .unpartitioned import as_numpy, unpartitioned

__all__ = [
    "assert_collectives",
    "assert_matches_unpartitioned",
    "assert_memory",
    "assert_time",
    "assert_work",
]

_DIRECTIONS = 3  # random directions in which the arguments are perturbed
_STEP = 2.0**-14
_MODES: tuple[dict[str, bool], ...] = ({}, {"faithful": True}, {"poison": True}, {"faithful": True, "poison": True})


@entry_point
def assert_matches_unpartitioned(
    fn: Callable[..., Any],
    *args: Any,
    mesh: Any = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
    **kwargs: Any,
) -> Program:
    """Run ``fn`` as plain NumPy and as a program on a mesh, in every mode, and compare the trees of results.

    The modes are: the default; every device computed separately; padding filled with NaN; both. The plain run calls the
    NumPy code of jitted functions, gathers each :class:`Array`, and loops over the examples of :func:`shardwise.vmap`.
    Gradients come from the unpartitioned program, and are checked against finite differences.

    Args:
        fn: a NumPy function with or without annotations, a jitted function, whose options apply, or the result of
            :func:`shardwise.grad` or :func:`shardwise.vmap`.
        args, kwargs: its arguments: trees of arrays. An :class:`Array` keeps its sharding in the partitioned run.
        mesh: the devices; default as in :func:`shardwise.jit`.
        in_shardings, out_shardings, static_argnums, static_argnames: as in :func:`shardwise.jit`.
        rtol: relative to each expected element. Default: exact for integers, bools, and programs that only move data.
        atol: absolute. Default for other floats: 8 eps of the coarsest float dtype that the result depends on, times
            the largest finite expected element; more where the function is smooth and cancellation amplifies rounding.

    Returns:
        The compiled program, for further assertions.

    Raises:
        AssertionError: the trees, shapes, dtypes or elements differ; it names the result, the mode, the worst element.
        UnsupportedError: ``fn`` cannot run as plain NumPy.

    >>> import numpy as np, shardwise as sw
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> program = assert_matches_unpartitioned(np.sum, x, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> program.collectives().by_kind()
    {'all_reduce': 1}
    """
    if not callable(fn):
        raise TypeError(message("assert_matches_unpartitioned", "takes a function", shown(fn)))
    for name, bound in (("rtol", rtol), ("atol", atol)):
        _expect_bound("assert_matches_unpartitioned", name, bound)
    given: dict[str, Any] = {
        "mesh": mesh,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
    }
    unspecified = (None, UNSPECIFIED, ())
    options = {name: value for name, value in given.items() if not any(value is none for none in unspecified)}
    # The arguments are used in each mode, so that none is donated.
    jitted = jitted_with(fn, {**options, "donate_argnums": (), "donate_argnames": ()})
    with called_as("assert_matches_unpartitioned", "jit"):
        traced, leaves = jitted._traced_call(args, kwargs)
    program = traced.lower().compile()
    reference = _Reference(jitted._plain_function, as_numpy(args), as_numpy(kwargs), program.mesh)
    expected = reference.run()
    want, tree = flatten(expected)
    exact = _only_moves(program)
    bounds = [_Bound(rtol, atol, exact, name) for name in traced._coarsest_floats]
    for mode in _MODES:
        results, found_tree = flatten(program._call_flat(leaves, **mode))
        if found_tree != tree:
            raise AssertionError(f"the program returns the tree {found_tree}, NumPy {tree}")
        for i, (path, result, leaf) in enumerate(zip(leaf_names(expected), results, want)):
            where = f"result{path}" + "".join(f", {option}=True" for option in mode)
            try:
                _compare(where, np.asarray(result), np.asarray(leaf), bounds[i], partial(reference.rounding, i))
            except AssertionError:
                reference.check_repeats(expected)
                raise
    return program


def _expect_program(what: str, program: Any) -> None:
    if not isinstance(program, Program):
        way_out = {JitFunction: "use f.lower(*args).compile()", Lowered: "use lowered.compile()"}.get(type(program), "")
        raise TypeError(message(what, "takes a compiled program", shown(program), way_out))


def _expect_bound(what: str, name: str, bound: Any) -> None:
    is_number = isinstance(bound, (int, float, np.integer, np.floating)) and not isinstance(bound, bool)
    if bound is not None and not (is_number and bound >= 0):  # also for NaN
        raise TypeError(message(what, f"{name} must be a number of at least 0, or None", shown(bound)))


def _expect_number(what: str, name: str, bound: Any) -> None:
    """A bound that must be given."""
    _expect_bound(what, name, bound)
    if bound is None:
        raise TypeError(message(what, f"{name} must be a number", shown(bound)))


class _Reference:
    """The plain NumPy run of a function, and estimates of its rounding errors."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], mesh: Mesh) -> None:
        self._fun, self._args, self._kwargs, self._mesh = fun, args, kwargs, mesh

    def run(self, args: tuple[Any, ...] | None = None) -> Any:
        with unpartitioned(self._mesh):
            try:
                return self._fun(*(self._args if args is None else args), **self._kwargs)
            except (AttributeError, TypeError, ValueError) as error:
                if isinstance(error, Error):
                    raise
                rule = "the function must also run as plain NumPy"
                way_out = "sw.at(x, index) works on NumPy arrays where x.at[index] does not"
                got = f"{type(error).__name__}: {error}"
                raise UnsupportedError(message("assert_matches_unpartitioned", rule, got, way_out)) from error

    def check_repeats(self, expected: Any) -> None:
        """Raise AssertionError if a second run gives other results, which cannot be compared."""
        with np.errstate(all="ignore"):
            again = flatten(self.run())[0]
        for path, first, second in zip(leaf_names(expected), flatten(expected)[0], again):
            first, second = np.asarray(first), np.asarray(second)
            if first.shape != second.shape or not np.all(_same(second, first)):
                rule = "the function must return the same for the same arguments"
                got = f"another result{path} in a second plain run"
                way_out = "draw with sw.random and a key"
                raise AssertionError(message("assert_matches_unpartitioned", rule, got, way_out))

    def rounding(self, i: int, expected: np.ndarray) -> np.ndarray:
        """How far a relative change of 1 of all arguments moves each element of result ``i``, to first order.

        Times eps, this is the rounding error of any order of operations; cancellation makes it large relative to the
        result. It is 0 where the function is not smooth: a jump at a threshold has no rounding error.
        """
        slopes = [np.zeros(expected.shape)]
        leaves, tree = flatten(self._args)
        random = np.random.default_rng(0)
        for _ in range(_DIRECTIONS):
            signs = [random.choice([-1.0, 1.0], np.shape(x)) for x in leaves]

            def at(step: float, signs: list[Any] = signs) -> np.ndarray:
                moved = [
                    as_wide(x) * (1 + step * sign) if is_inexact(getattr(x, "dtype", np.dtype(bool))) else x
                    for x, sign in zip(leaves, signs)
                ]
                return as_wide(flatten(self.run(unflatten(tree, moved)))[0][i])

            with suppress(Error), np.errstate(all="ignore"):
                near, far = (np.abs(at(k * _STEP) - at(-k * _STEP)) / (2 * k * _STEP) for k in (1, 2))
                smooth = np.abs(near - far) <= 0.1 * near
                slopes.append(np.where(smooth & np.isfinite(near), near, 0.0))
        return np.asarray(np.max(slopes, axis=0))


def _only_moves(program: Program) -> bool:
    module: _core.ir.Module = program._compiled.stages["global"]
    definitions = {op.name: op.definition for op in module.ops}
    return all(op.movement or op.annotation or name == "stablehlo.constant" for name, op in definitions.items())


class _Bound(NamedTuple):
    """How close an element must be."""

    rtol: float | None
    atol: float | None
    exact: bool
    coarsest: str | None  # the float dtype whose rounding the result has at least

    @property
    def is_default(self) -> bool:
        return self.rtol is None and self.atol is None

    def eps(self, dtype: np.dtype[Any]) -> float:
        dtypes = [dtype] if self.coarsest is None else [dtype, numpy_dtype(self.coarsest)]
        return max(float(ml_dtypes.finfo(each).eps) for each in dtypes)  # type: ignore[no-untyped-call]

    def tolerance(self, expected: np.ndarray) -> np.ndarray:
        finite = np.abs(as_wide(np.where(np.isfinite(expected), expected, 0)))
        if self.is_default:
            return np.full(expected.shape, 8 * self.eps(expected.dtype) * float(np.max(finite)))
        return np.asarray((self.atol or 0.0) + (self.rtol or 0.0) * finite)


def _compare(
    where: str,
    result: np.ndarray,
    expected: np.ndarray,
    bound: _Bound,
    rounding: Callable[[np.ndarray], np.ndarray],
) -> None:
    if result.shape != expected.shape or result.dtype != expected.dtype:
        kinds = [f"{array.dtype.name}{list(array.shape)}" for array in (result, expected)]
        raise AssertionError(f"{where} is {kinds[0]}, NumPy gives {kinds[1]}")
    if not expected.size:
        return
    if not is_inexact(expected.dtype) or (bound.exact and bound.is_default):
        wrong = ~_same(result, expected)
        if np.any(wrong):
            raise AssertionError(_difference(where, None, result, expected, wrong))
        return
    tolerance = bound.tolerance(expected)
    wrong = _beyond(result, expected, tolerance)
    if np.any(wrong) and bound.is_default:
        tolerance = tolerance + 16 * bound.eps(expected.dtype) * rounding(expected)
        wrong = _beyond(result, expected, tolerance)
    if np.any(wrong):
        raise AssertionError(_difference(where, tolerance, result, expected, wrong) + _advice(bound, expected.dtype))


def _beyond(result: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> Any:
    with np.errstate(invalid="ignore"):
        near = np.abs(as_wide(result) - as_wide(expected)) <= tolerance
    return ~np.where(np.isfinite(expected), near, _same(result, expected))


def _same(result: np.ndarray, expected: np.ndarray) -> Any:
    if not is_inexact(expected.dtype):
        return result == expected
    return (result == expected) | (np.isnan(result) & np.isnan(expected))


def _difference(where: str, tolerance: Any, result: np.ndarray, expected: np.ndarray, wrong: Any) -> str:
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.abs(as_wide(result) - as_wide(expected)), -1)
    index = np.unravel_index(int(np.argmax(np.nan_to_num(distance, nan=np.inf))), expected.shape)
    at = f"[{', '.join(map(str, index))}]"
    bound = "exactly" if tolerance is None else f"within {tolerance[index]:.3g}"
    return (
        f"{where} must equal NumPy's {bound}, got {int(np.sum(wrong))} of {expected.size} elements that do not; "
        f"the worst is {result[index]!s} at {at} where NumPy has {expected[index]!s}"
    )


def _advice(bound: _Bound, dtype: np.dtype[Any]) -> str:
    if not bound.is_default:
        return ""
    advice = "; if that is rounding, pass rtol= or atol="
    if bound.coarsest is not None and bound.eps(dtype) > float(ml_dtypes.finfo(dtype).eps):  # type: ignore[no-untyped-call]
        advice += f"; the result is {dtype.name} but depends on {bound.coarsest} values: something promotes them"
    return advice


@entry_point
def assert_collectives(program: Any, *, bytes_max: float | None = None, **counts: int) -> None:
    """Assert how often a program communicates, by kind, and how much.

    Args:
        program: a compiled program.
        bytes_max: the most bytes that one device may receive in a run.
        counts: the number of executions of a kind: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all``,
            ``collective_permute``, ``exchange``. Other kinds are not checked. One that moves several operands together
            counts once; ``jit(combine_bytes=0)`` leaves each alone.

    Raises:
        AssertionError: with the ledger of the program. TypeError: no such kind.

    >>> import numpy as np, shardwise as sw
    >>> f = sw.jit(lambda x: x + 1, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> assert_collectives(f.lower(np.arange(4)).compile(), all_reduce=0, bytes_max=0)
    """
    unknown = sorted(set(counts) - set(COLLECTIVE_KINDS))
    if unknown:
        must_hold = f"a kind must be one of {', '.join(COLLECTIVE_KINDS)}"
        raise TypeError(message("assert_collectives", must_hold, ", ".join(unknown)))
    _expect_program("assert_collectives", program)
    _expect_bound("assert_collectives", "bytes_max", bytes_max)
    for kind, count in counts.items():
        if not is_integer(count, 0):
            raise TypeError(message("assert_collectives", f"{kind} must be an integer of at least 0", shown(count)))
    ledger = program.collectives()
    found = ledger.by_kind()
    wrong = [f"{found.get(k, 0)} {k} where {n} must be" for k, n in counts.items() if found.get(k, 0) != n]
    for row in ledger.rows:
        if row.bound == "per trip" and (bytes_max is not None or row.kind in counts):
            wrong.append(f"{row.kind} in a loop of unknown length, where sw.fori_loop or sw.scan would give a number")
            break
    if bytes_max is not None and ledger.total_bytes > bytes_max:
        wrong.append(f"{ledger.total_bytes:.0f} B received per device where at most {bytes_max:.0f} B must be")
    if wrong:
        raise AssertionError(f"the program has {'; '.join(wrong)}:\n{ledger!r}")


@entry_point
def assert_work(program: Any, *, ratio_max: float) -> None:
    """Assert that devices share the work of a program, instead of repeating it.

    Args:
        program: a compiled program.
        ratio_max: the most that one device may compute, in units of its share: with 1.0 nothing is repeated or padded.

    Raises:
        AssertionError: with the lines that repeat most.

    >>> import numpy as np, shardwise as sw
    >>> f = sw.jit(lambda x: x * 2, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> assert_work(f.lower(np.arange(4)).compile(), ratio_max=1.0)
    """
    _expect_program("assert_work", program)
    _expect_number("assert_work", "ratio_max", ratio_max)
    work = program.work()
    if work.ratio > ratio_max:
        raise AssertionError(f"a device computes {work.ratio:.4g} times its share, above {ratio_max:.4g}:\n{work!r}")


@entry_point
def assert_time(program: Any, *, seconds_max: float, hardware: Any = None) -> None:
    """Assert how long a step takes on some hardware, as :meth:`Program.estimate` has it.

    Args:
        program: a compiled program.
        seconds_max: the most seconds of the estimate.
        hardware: a :class:`shardwise.hardware.Hardware`, its name, or a path. Default: that of ``jit(hardware=)``.

    Raises:
        AssertionError: with the lines that take most of the step.

    >>> import numpy as np, shardwise as sw
    >>> f = sw.jit(lambda x: x * 2, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> assert_time(f.lower(np.arange(4)).compile(), seconds_max=2e-6, hardware="h100_sxm")
    """
    _expect_program("assert_time", program)
    _expect_number("assert_time", "seconds_max", seconds_max)
    estimate = program.estimate(hardware)
    if estimate.estimate > seconds_max:
        raise AssertionError(
            f"a step takes {estimate.estimate:.4g} s, above {seconds_max:.4g} s:\n{estimate.by('line', 'op')!r}"
        )


@entry_point
def assert_memory(program: Any, *, bytes_max: float) -> None:
    """Assert how much memory of one device a step needs, as :meth:`Program.memory` has it.

    Args:
        program: a compiled program.
        bytes_max: the most bytes at the peak.

    Raises:
        AssertionError: with the values that are alive then.

    >>> import numpy as np, shardwise as sw
    >>> f = sw.jit(lambda x: x * 2, mesh=sw.Mesh({"x": 2}), in_shardings=sw.P("x"))
    >>> assert_memory(f.lower(np.arange(4)).compile(), bytes_max=32)
    """
    _expect_program("assert_memory", program)
    _expect_number("assert_memory", "bytes_max", bytes_max)
    memory = program.memory()
    if memory.peak_bytes > bytes_max:
        largest = memory.group_by("where", "value")
        raise AssertionError(f"a device needs {memory.peak_bytes} B, above {bytes_max:.0f} B:\n{largest!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
