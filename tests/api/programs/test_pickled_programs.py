# SPDX-License-Identifier: Apache-2.0
"""Programs are pickled as text and options, and compiled again: equal texts, ledgers, choices and results.

The names of variables are looked up in the code of the function, which is not pickled; those of `sw.name` are kept.
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P
from tests.support.paths import ROOT

MESH = sw.Mesh({"x": 2, "y": 2})
TABLE = np.arange(32, dtype=np.float32).reshape(8, 4)
PARAMS = {"x": np.arange(32, dtype=np.float32).reshape(8, 4) / 32, "w": np.eye(4, dtype=np.float32) + 1}
KINDS = ("global", "propagated", "resharded", "local")
TEXT = """func.func @main(%x: tensor<4xf32> loc("rows")) -> tensor<4xf32> {
  %h = stablehlo.add %x, %x : tensor<4xf32>
  return %h : tensor<4xf32>
}"""


def model(params: Any, n: int = 2) -> Any:
    hidden = sw.name(np.tanh(params["x"] @ params["w"]), "named")
    hidden = sw.shard(hidden, sw.NamedSharding(sw.Mesh({"z": 4}), P(None, "z")))
    last, sums = sw.scan(lambda c, row: (c * np.float32(0.5) + row, row.sum()), np.zeros(4, np.float32), hidden)
    return {"last": last * n, "sums": sums + TABLE[:, 0], "first": hidden[:3]}


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "sharded": {"in_shardings": ({"x": P("x"), "w": P(None, "y")},)},
    "bytes": {"objective": "bytes", "strategy": "basic", "in_shardings": ({"x": P(("x", "y")), "w": None},)},
    "donated": {"donate_argnums": 0},
}


def same(found: sw.Program, wanted: sw.Program) -> None:
    for kind in KINDS:
        assert found.as_text(kind, locations=True) == wanted.as_text(kind, locations=True)
    assert repr(found.collectives()) == repr(wanted.collectives())
    assert found.choices == wanted.choices
    assert found.memory().peak_bytes == wanted.memory().peak_bytes
    assert (found.input_shardings, found.output_shardings) == (wanted.input_shardings, wanted.output_shardings)
    assert found.choice_price() == wanted.choice_price()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_program_is_the_same_again(name: str, again: Any) -> None:
    function = sw.jit(model, mesh=MESH, **OPTIONS[name])
    lowered = function.lower(PARAMS)
    program = lowered.compile()
    copied = again(program)
    same(copied, program)
    same(again(copied), program)
    same(again(lowered).compile(), program)
    traced = function.trace(PARAMS)
    same(again(traced).compile(), traced.compile())
    results, expected = copied(PARAMS), program(PARAMS)
    for key, value in expected.items():
        np.testing.assert_array_equal(results[key], value)
        assert results[key].sharding == value.sharding
    assert repr(copied.why("named")) == repr(program.why("named"))


def test_pinned_choices_are_kept() -> None:
    """In the numbers of the traced program, which its text has not."""
    options = OPTIONS["sharded"]
    free = sw.jit(model, mesh=MESH, **options).lower(PARAMS).compile()
    copied = pickle.loads(pickle.dumps(free))
    pinned = sw.jit(model, mesh=MESH, choices=copied.choices, **options).lower(PARAMS).compile()
    assert pinned.choices == free.choices
    same(pickle.loads(pickle.dumps(pinned)), pinned)


def test_a_parsed_program_keeps_its_names() -> None:
    module = sw.parse(TEXT)
    program = module.compile(MESH)
    for copied in (pickle.loads(pickle.dumps(program)), pickle.loads(pickle.dumps(module)).compile(MESH)):
        same(copied, program)
        np.testing.assert_array_equal(copied(rows=np.arange(4, dtype=np.float32)), [0, 2, 4, 6])
        assert repr(copied.why("%h")) == repr(program.why("%h"))
    assert pickle.loads(pickle.dumps(module)) == module


def test_another_process_runs_a_pickled_program(tmp_path: Path) -> None:
    program = sw.jit(lambda x: x @ x.T, mesh=MESH, in_shardings=P("x")).lower(TABLE).compile()
    (tmp_path / "program.pickle").write_bytes(pickle.dumps(program))
    code = """
import pickle, sys, numpy as np
program = pickle.load(open(sys.argv[1] + "/program.pickle", "rb"))
np.save(sys.argv[1] + "/result.npy", np.asarray(program(np.arange(32, dtype=np.float32).reshape(8, 4))))
print(program.as_text(), program.collectives(), sep="|", end="")
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"{program.as_text()}|{program.collectives()}", done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "result.npy"), program(TABLE))
