# SPDX-License-Identifier: Apache-2.0
"""Run the texts that JAX lowers for CPU and TPU of its libraries' functions, whole and on 8 devices.

    python -m tests.conformance.jax.corpus
    python -m tests.conformance.jax.corpus --only fft --only linalg.qr

Each text must parse, run, and give what JAX gives on CPU: whole, and on 8 devices with each argument sharded along a
dim that the devices divide, and along one that they do not divide. JAX prints the first sharding. It refuses the
second, which the tool writes into the text. Partitioned programs run once per shard, and once for every device with
poisoned padding.

The tool stops if a public function of the modules in ``corpus_coverage.py`` is called by no row.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # reads XLA_FLAGS
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import shardwise as sw
from tests.conformance.jax.corpus_coverage import functions_without_row
from tests.conformance.jax.corpus_functions import FUNCTIONS
from tests.conformance.results import table, write
from tests.support.run_seed import add_share, share_of

PLATFORMS = ("cpu", "tpu")
LEAST_UNEVEN = 0.75  # of the rows have a dim that the devices do not divide
TOLERANCE = 3e-4  # of the largest number of a result: float32, and sums in another order
TOLERANCES = {"mixed.bfloat16 dot": 2.0**-7}  # the result is rounded to bfloat16
# JAX does not lower these for TPU; the reason.
NOT_ON_TPU = {
    **dict.fromkeys(
        ("linalg.eig", "linalg.eigvals"), "JAX implements the nonsymmetric eigendecomposition for CPU and GPU only"
    ),
    "linalg.schur": "the same for the Schur decomposition",
    "linalg.hessenberg": "the same for the Hessenberg decomposition",
    "linalg.schur and hessenberg of lax": "the same for both",
    "linalg.tridiagonal": "the same for the tridiagonal reduction",
    "linalg.eig of lax": "the same for the eigendecomposition",
    **dict.fromkeys(
        ("linalg.sqrtm", "linalg.funm", "linalg.rsf2csf", "linalg.solve_sylvester"), "it uses the Schur decomposition"
    ),
}


@dataclass
class Finding:
    """A text whose results differ from JAX's."""

    name: str
    platform: str
    stage: str  # lowering | whole | even | uneven
    message: str


def partition_spec(shape: Sequence[int]) -> P:
    """Shard the first dim that 8, 4 or 2 devices divide."""
    for axes, size in ((("x", "y"), 8), ("x", 4), ("y", 2)):
        for dim, extent in enumerate(shape):
            if extent and extent % size == 0:
                return P(*[None] * dim, axes)
    return P()


def uneven_axes(shape: Sequence[int]) -> tuple[int, str] | None:
    """A dim that 4, 8 or 2 devices do not divide, and the axes over which it is sharded."""
    for axes, size in (('"x"', 4), ('"x", "y"', 8), ('"y"', 2)):
        for dim, extent in enumerate(shape):
            if extent > 1 and extent % size:
                return dim, axes
    return None


def with_uneven_shards(text: str, arrays: Sequence[Any]) -> str:
    """The program with each argument sharded along an uneven dim, where it has one."""
    start = text.index("func.func public @main(")
    signature = text[start : text.index("\n", start)]
    arguments = re.findall(r"%arg\d+: tensor<(?:[^<>]|<[^<>]*>)*>(?: \{)?", signature)
    assert len(arguments) == len(arrays), signature
    annotated = signature
    for argument, array in zip(arguments, arrays):
        found = uneven_axes(array.shape)
        if found is not None:
            dims = ", ".join(f"{{{found[1] if dim == found[0] else ''}}}" for dim in range(array.ndim))
            sharding = f"sdy.sharding = #sdy.sharding<@mesh, [{dims}]>"
            kind = argument.removesuffix(" {")
            own = f"{kind} {{{sharding}, " if kind != argument else f"{kind} {{{sharding}}}"
            annotated = annotated.replace(argument, own, 1)
    mesh = 'sdy.mesh @mesh = <["x"=4, "y"=2]>'
    head, module, rest = text[:start].partition("{\n") if "module @" in text[:start] else ("", "", text[:start])
    return f"{head}{module}  {mesh}\n{rest}{annotated}{text[start + len(signature) :]}"


def lowered(function: Any, arrays: Sequence[Any], platform: str, mesh: Mesh | None) -> str:
    if mesh is None:
        traced = jax.jit(function).trace(*arrays)
    else:
        shardings = tuple(NamedSharding(mesh, partition_spec(x.shape)) for x in arrays)
        traced = jax.jit(function, in_shardings=shardings).trace(*arrays)
    return str(traced.lower(lowering_platforms=(platform,)).as_text())


def wrong(found: Any, expected: Sequence[np.ndarray[Any, Any]], tolerance: float) -> str:
    """The first difference, or nothing."""
    results = [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
    if len(results) != len(expected):
        return f"{len(results)} results, JAX has {len(expected)}"
    for i, (x, y) in enumerate(zip(results, expected)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"result {i} is {x.dtype}{x.shape}, JAX has {y.dtype}{y.shape}"
        if x.dtype.kind in "biu":
            if not np.array_equal(x, y):
                return f"result {i}: {np.count_nonzero(x != y)} of {x.size} elements differ"
            continue
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        a, b = x.astype(wide), y.astype(wide)
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"result {i}: differs by {np.nanmax(np.abs(a - b)):.3g} of {scale:.3g}"
    return ""


WHOLE: tuple[dict[str, bool], ...] = ({},)
BOTH: tuple[dict[str, bool], ...] = ({}, {"faithful": True, "poison": True})


def checked(name: str, platform: str, expected: Sequence[np.ndarray[Any, Any]]) -> Finding | None:
    """The first stage whose results differ from JAX's."""
    function, arrays = FUNCTIONS[name]
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))
    try:
        whole, even = (lowered(function, arrays, platform, on) for on in (None, mesh))
    except Exception as error:
        return Finding(name, platform, "lowering", str(error).splitlines()[0])
    runs = [("whole", whole, WHOLE), ("even", even, BOTH)]
    if any(uneven_axes(x.shape) for x in arrays):
        runs.append(("uneven", with_uneven_shards(whole, arrays), BOTH))
    for stage, text, modes in runs:
        try:
            program = sw.parse(text, f"{name}.mlir").compile()
            if stage == "uneven" and not any(any(given.spec) for given in program.input_shardings):
                return Finding(name, platform, stage, "no argument is sharded")
            found = [wrong(program.run(*arrays, **mode), expected, TOLERANCES.get(name, TOLERANCE)) for mode in modes]
            message = next(filter(None, found), "")
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if message:
            return Finding(name, platform, stage, message)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.jax.corpus", description=__doc__)
    parser.add_argument("--only", action="append", help="functions whose names begin so")
    add_share(parser)
    options = parser.parse_args()
    if missing := functions_without_row():
        raise SystemExit(f"functions of JAX that no row calls: {', '.join(missing)}")
    names = share_of([n for n in FUNCTIONS if not options.only or n.startswith(tuple(options.only))], options)
    began = time.monotonic()
    rows, findings = [], []
    for name in names:
        function, arrays = FUNCTIONS[name]
        expected = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arrays))]
        states = []
        for platform in PLATFORMS:
            if platform == "tpu" and name in NOT_ON_TPU:
                states.append("-")
                continue
            finding = checked(name, platform, expected)
            states.append(finding.stage if finding else "equal")
            findings += [finding] if finding else []
        rows.append((name, *states))
    table("functions of JAX", ("function", *PLATFORMS), rows)
    for finding in findings:
        print(f"\n{finding.name} for {finding.platform}, {finding.stage}: {finding.message}")
    uneven = sum(any(uneven_axes(x.shape) for x in FUNCTIONS[name][1]) for name in names)
    print(
        f"\n{len(names)} rows in {time.monotonic() - began:.0f} s, {uneven} with uneven shards: {len(findings)} differ"
    )
    if len(names) == len(FUNCTIONS):
        write("jax_corpus", [dict(zip(("function", *PLATFORMS), row)) for row in rows])
    if not options.only and uneven < LEAST_UNEVEN * len(names):
        raise SystemExit(f"only {uneven} of {len(names)} rows have arguments with uneven shards")
    if findings:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
