# SPDX-License-Identifier: Apache-2.0
"""Instances that found an error, as files: they stay the same when drawing changes.

    python -m tests.conformance.stablehlo.ops --keep stablehlo.scatter:280

A file has the body of the program, its text with shardings, and the bytes of the arguments.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from shardwise.dtypes import numpy_dtype
from tests.conformance.stablehlo.ops.partitioned import partitioned_text
from tests.op.catalogue.instance import Instance
from tests.op.catalogue.values import Array

FOLDER = Path(__file__).with_name("kept")
LINES = ("body", "functions", "for_xla", "partitioned")
PLAIN = ("op", "seed", "dtype", "kind", "ulps")


def keep(instance: Instance) -> Path:
    """Write an instance."""
    instance = replace(instance, partitioned=partitioned_text(instance))
    written = {name: getattr(instance, name) for name in PLAIN}
    written |= {name: getattr(instance, name).splitlines() for name in LINES}
    written["returned"] = instance.returned
    written["results"] = instance.results
    written["arguments"] = [[x.dtype.name, x.shape, x.tobytes().hex()] for x in instance.arguments]
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{instance.op}_{instance.seed}.json"
    path.write_text(json.dumps(written, indent=1) + "\n")
    return path


def kept() -> list[Instance]:
    """The instances of all files."""
    return [_read(path) for path in sorted(FOLDER.glob("*.json"))]


def _read(path: Path) -> Instance:
    found = json.loads(path.read_text())
    return Instance(
        **{name: found[name] for name in PLAIN},
        **{name: "".join(f"{line}\n" for line in found[name]) for name in LINES},
        arguments=tuple(_array(*x) for x in found["arguments"]),
        returned=tuple(found["returned"]),
        results=tuple((tuple(shape), dtype) for shape, dtype in found["results"]),
    )


def _array(dtype: str, shape: list[int], digits: str) -> Array:
    return np.frombuffer(bytes.fromhex(digits), numpy_dtype(dtype)).reshape(shape)
