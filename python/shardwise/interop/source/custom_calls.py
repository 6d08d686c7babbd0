# SPDX-License-Identifier: Apache-2.0
"""Custom calls of linear algebra, written for a target. Each target has a table of them, by LAPACK's routine.

    @calls.emits("syevd")
    def eigh(scope: Scope, op: Op, options: Options) -> str:
        return call(scope.helper("syevd"), scope(op.operands[0]), …)

Calls of one routine share an emission: `lapack_ssyevd_ffi` and `lapack_cheevd_ffi` are "syevd".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..._core.ir import Op
from ...dtypes import numpy_dtype
from .scope import Scope, call
from .target import Target, attributes

__all__ = ["CustomCalls", "Options", "flags_of", "letter", "widened"]

Options = dict[str, Any]
_Emission = Callable[[Scope, Op, Options], str]
_E = TypeVar("_E", bound=_Emission)

_LAPACK = re.compile(r"lapack_[sdcz](\w+)_ffi")
_REAL_NAMES = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "hetrd": "sytrd"}  # by those of complex numbers
_DTYPES = ("float32", "float64", "complex64", "complex128")
_IDENTITIES = (
    "annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding",
)  # fmt: skip


@dataclass(frozen=True)
class CustomCalls:
    """The custom calls that a target has a form for.

    Attributes:
        target: their target. Its errors name those without a form.
        no_function: routines of LAPACK that the target lacks, and what they compute.
    """

    target: Target
    no_function: dict[str, str]
    emissions: dict[str, _Emission] = field(default_factory=dict)

    def emits(self, *routines: str) -> Callable[[_E], _E]:
        """Make the decorated function the emission of these routines."""

        def register(emission: _E) -> _E:
            self.emissions.update(dict.fromkeys(routines, emission))
            return emission

        return register

    def emit(self, scope: Scope, op: Op) -> str:
        """The emission of ``stablehlo.custom_call``."""
        own = attributes(op)
        name = own["call_target_name"]
        if name in _IDENTITIES:
            scope.rename(op.results, list(map(scope, op.operands)))
            return ""
        found = _LAPACK.fullmatch(name)
        routine = _REAL_NAMES.get(found[1], found[1]) if found else name
        emission = self.emissions.get(routine)
        if name == "shardwise.debug_print":
            rule = "debug.print in a loop, a branch or a manual region prints only in shardwise"
            raise scope.refusal(op, rule, f"custom_call @{name}", "return the value, and print it outside")
        if emission is None:
            what = self.no_function.get(routine)
            raise self.refusal(scope, op, f"it has no {what}" if what else "it is no call of linear algebra")
        options = own.get("mhlo.backend_config") or {}
        return emission(scope, op, {**options, "backend_config": own.get("backend_config", "")})

    def expect_unused(self, scope: Scope, op: Op, *results: int) -> None:
        """Refuse a call of which the program uses what LAPACK leaves in its workspace."""
        for i in results:
            if op.results[i] in scope.shared.used:
                raise self.refusal(scope, op, f"it does not return result {i}, LAPACK's workspace")

    def refusal(self, scope: Scope, op: Op, reason: str) -> Exception:
        """The error for a call without a form."""
        rule = f"every op must have a form in {self.target.library}: {reason}"
        return scope.refusal(op, rule, f"custom_call @{attributes(op)['call_target_name']}", self.target.way_out)


def flags_of(**options: bool) -> list[str]:
    """The text of keyword arguments whose default is False."""
    return [f"{name}=True" for name, value in options.items() if value]


def letter(options: Options, name: str) -> str:
    """An option of LAPACK, which texts hold as the code of its letter."""
    return chr(options[name])


def widened(scope: Scope, op: Op, function: str, *options: str) -> str:
    """A call of a function that takes only the dtypes of LAPACK: others in float32, and rounded once."""
    dtype = op.results[0].type.dtype
    if dtype in _DTYPES:
        return call(function, *map(scope, op.operands), *options)
    operands = [f'{scope(x)}.astype("float32")' for x in op.operands]
    return f'{call(function, *operands, *options)}.astype("{numpy_dtype(dtype).name}")'
