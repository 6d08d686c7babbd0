# SPDX-License-Identifier: Apache-2.0
"""Regions of scalars: what a reduction, a scatter or a sort combines."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.stablehlo.ops.instance import tensor


def combiner(op: str, dtype: str, names: tuple[str, str] = ("u", "v")) -> str:
    """A region of one binary op."""
    t, (u, v) = tensor((), dtype), names
    return (
        f"{{\n  ^bb0(%{u}: {t}, %{v}: {t}):\n    %{u}{v} = stablehlo.{op} %{u}, %{v} : {t}\n"
        f'    "stablehlo.return"(%{u}{v}) : ({t}) -> ()\n  }}'
    )


def replacement(dtype: str) -> str:
    """A region that returns its second argument."""
    t = tensor((), dtype)
    return f'{{\n  ^bb0(%u: {t}, %v: {t}):\n    "stablehlo.return"(%v) : ({t}) -> ()\n  }}'


def comparator(dtypes: Sequence[str], direction: str, form: str, by: int = 0) -> str:
    """A region that compares operand `by` of a sort."""
    pairs = ", ".join(f"%u{i}: {tensor((), d)}, %v{i}: {tensor((), d)}" for i, d in enumerate(dtypes))
    t = tensor((), dtypes[by])
    return (
        f"{{\n  ^bb0({pairs}):\n"
        f"    %w = stablehlo.compare {direction}, %u{by}, %v{by}, {form} : ({t}, {t}) -> tensor<i1>\n"
        f'    "stablehlo.return"(%w) : (tensor<i1>) -> ()\n  }}'
    )


def comparison(dtype: str) -> str:
    """The type of comparison of a dtype."""
    if dtype.startswith(("float", "bfloat", "complex")):
        return "FLOAT"
    return "UNSIGNED" if dtype.startswith(("uint", "bool")) else "SIGNED"
