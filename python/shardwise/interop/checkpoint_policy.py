# SPDX-License-Identifier: Apache-2.0
"""What a program computes again, as a policy of ``jax.checkpoint``: ``Program.checkpoint_policy``.

    program.rematerialized()       exp   float32[8192,512]  kept      tanh  float32[8192,2048]  computed again
    jax.checkpoint(layer, policy=program.checkpoint_policy())       keeps exp, and nothing else that layer computes

JAX asks a policy about each primitive, with the types of its operands and its parameters. The op that a primitive
becomes is read in what JAX lowers it to, so that no list of names has to agree with JAX.
"""

from __future__ import annotations

import re
from typing import Any

from ..process.implementations import provides
from ..reports.rematerialization import Rematerialization
from .optional import jax, needs_jax

__all__ = ["CheckpointPolicy"]


class CheckpointPolicy:
    """A policy of `jax.checkpoint` that keeps what a program within a memory limit keeps.

    Attributes:
        kept: the pairs of StableHLO op and type, such as ``("stablehlo.tanh", "float32[8192,512]")``, whose values are
            kept; None: all are.
    """

    def __init__(self, kept: frozenset[tuple[str, str]] | None) -> None:
        self.kept = kept
        self._known: dict[Any, str] = {}

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        """Whether the results of a primitive are kept: what `jax.checkpoint` asks."""
        if self.kept is None or prim.call_primitive:
            return self.kept is None
        types = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        results = jax.eval_shape(lambda *xs: prim.bind(*xs, **params), *types)
        made = {f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in jax.tree.leaves(results)}
        if not any(type in made for _, type in self.kept):
            return False
        op = self._op_of(prim, types, params)
        return any((op, type) in self.kept for type in made)

    def __repr__(self) -> str:
        if self.kept is None:
            return "CheckpointPolicy(all)"
        return f"CheckpointPolicy({', '.join(f'{op} {type}' for op, type in sorted(self.kept)) or 'none'})"

    def _op_of(self, prim: Any, types: list[Any], params: dict[str, Any]) -> str:
        """The StableHLO op that makes the results of a primitive; "" for a call."""
        key = prim, tuple((x.shape, str(x.dtype)) for x in types), str(sorted(params.items(), key=lambda row: row[0]))
        if key not in self._known:
            text = jax.jit(lambda *xs: prim.bind(*xs, **params), keep_unused=True).lower(*types).as_text()
            main = text[text.index("@main") :]
            returned = re.search(r"^\s+(?:func\.)?return (%\w+)", main, re.MULTILINE)
            name = re.escape(returned[1]) if returned else "%"
            found = re.search(rf'^\s+{name}(?::\d+)? = "?(stablehlo\.\w+)', main, re.MULTILINE)
            self._known[key] = found[1] if found else ""
        return self._known[key]


@provides("checkpoint_policy")
def checkpoint_policy(report: Rematerialization) -> CheckpointPolicy:
    """Implements :meth:`Program.checkpoint_policy`."""
    needs_jax("checkpoint_policy")
    if not report.rows:
        return CheckpointPolicy(None)
    # JAX cannot tell values of one op and type apart: where some are computed again, all are.
    return CheckpointPolicy(report.kept - {(row.op, row.type) for row in report if row.how not in ("kept", "windowed")})
