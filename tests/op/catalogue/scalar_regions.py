# SPDX-License-Identifier: Apache-2.0
"""Regions of scalars: what a reduction, a scatter or a sort combines."""

from __future__ import annotations

from collections.abc import Sequence

from tests.op.catalogue.instance import tensor


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


# Comparators that give one strict order, written in different ways.
FORMS = ("strict", "swapped", "negated", "without equality")


def comparator(dtypes: Sequence[str], keys: Sequence[tuple[int, str, str]]) -> str:
    """A region that compares keys in turn: (operand, L or G, form); complex keys by their parts.

    The form is one of FORMS, where NaN are equal to each other and come last, so that the order is a strict weak one,
    and zeros of both signs are equal; or "total", which is TOTALORDER.
    """
    pairs = ", ".join(f"%u{i}: {tensor((), d)}, %v{i}: {tensor((), d)}" for i, d in enumerate(dtypes))
    lines: list[str] = []
    scalars: list[tuple[str, str, str, str, str]] = []
    for key, direction, form in keys:
        dtype = dtypes[key]
        if not dtype.startswith("complex"):
            scalars.append((f"%u{key}", f"%v{key}", dtype, direction, form))
            continue
        part = "float32" if dtype == "complex64" else "float64"
        for name in ("real", "imag"):
            for side in "uv":
                lines.append(
                    f"%{side}{key}{name} = stablehlo.{name} %{side}{key} : ({tensor((), dtype)}) -> {tensor((), part)}"
                )
            scalars.append((f"%u{key}{name}", f"%v{key}{name}", part, direction, form))
    result = ""
    for i, scalar in reversed([*enumerate(scalars)]):
        lines += before(*scalar, f"w{i}")
        if result:  # or equal in this key and before in the next ones
            lines.append(f"%e{i} = stablehlo.and %w{i}q, {result} : tensor<i1>")
            lines.append(f"%f{i} = stablehlo.or %w{i}, %e{i} : tensor<i1>")
        result = f"%f{i}" if result else f"%w{i}"
    body = "".join(f"    {line}\n" for line in lines)
    return f'{{\n  ^bb0({pairs}):\n{body}    "stablehlo.return"({result}) : (tensor<i1>) -> ()\n  }}'


def before(x: str, y: str, dtype: str, direction: str, form: str, name: str) -> list[str]:
    """%name is whether x comes before y; %nameq whether they are equal."""
    t, i = tensor((), dtype), "tensor<i1>"

    def compare(to: str, how: str, a: str, c: str) -> str:
        return f"%{name}{to} = stablehlo.compare {how}, {a}, {c}, {comparison(dtype)} : ({t}, {t}) -> {i}"

    if form == "total":  # NaN and zeros by their signs
        return [
            f"%{name}{to} = stablehlo.compare {how}, {x}, {y}, TOTALORDER : ({t}, {t}) -> {i}"
            for to, how in (("", direction + "T"), ("q", "EQ"))
        ]
    opposite = {"L": "G", "G": "L"}[direction]
    real = comparison(dtype) == "FLOAT"
    first = "s" if real else ""
    lines = {
        "strict": [compare(first, direction + "T", x, y)],
        "swapped": [compare(first, opposite + "T", y, x)],
        "negated": [
            compare("n", opposite + "E", x, y), f"%{name}m = stablehlo.not %{name}n : {i}",
            *([compare("ox", "EQ", x, x), compare("oy", "EQ", y, y)] if real else []),
            *([f"%{name}o = stablehlo.and %{name}ox, %{name}oy : {i}"] if real else []),
            f"%{name}{first} = stablehlo.and %{name}m, %{name}{'o' if real else 'm'} : {i}",
        ],
        "without equality": [
            compare("l", direction + "E", x, y), compare("d", "NE", x, y),
            f"%{name}{first} = stablehlo.and %{name}l, %{name}d : {i}",
        ],
    }[form]  # fmt: skip
    if not real:
        return [*lines, compare("q", "EQ", x, y)]
    return [
        *lines, compare("px", "EQ", x, x), compare("py", "NE", y, y),
        f"%{name}p = stablehlo.and %{name}px, %{name}py : {i}", f"%{name} = stablehlo.or %{name}s, %{name}p : {i}",
        compare("z", "EQ", x, y), compare("nx", "NE", x, x), f"%{name}nn = stablehlo.and %{name}nx, %{name}py : {i}",
        f"%{name}q = stablehlo.or %{name}z, %{name}nn : {i}",
    ]  # fmt: skip


def comparison(dtype: str) -> str:
    """The type of comparison of a dtype."""
    if dtype.startswith(("float", "bfloat", "complex")):
        return "FLOAT"
    return "UNSIGNED" if dtype.startswith(("uint", "bool")) else "SIGNED"
