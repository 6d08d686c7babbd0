# SPDX-License-Identifier: Apache-2.0
"""Golden texts: ``tests/golden/<pass>/<what>.mlir`` is a program before and after one pass.

A line ``// option shard_update={"data"}`` of its comment is an option of the compilation.

``SHARDWISE_UPDATE_GOLDEN=1 pytest tests/partition/test_golden.py`` writes what the passes do now; read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import P, _core
from tests.support.paths import GOLDEN

FILES = sorted(GOLDEN.glob("*/*.mlir"))
PASSES = _core.passes.pass_names()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pass_gives_the_golden_text(path: Path) -> None:
    name = path.parent.name
    marker = f"// ---- after {name} ----\n"
    before, _, expected = path.read_text().partition(marker)
    comment = before[: before.index("module")]
    assert comment.startswith("// "), "a golden text says in its first line what it shows"
    module = _core.ir.parse(before)
    assert before == comment + module.text(), "the text before the pass is as the printer writes it"
    options = dict(re.findall(r"^// option (\w+)=(.*)$", comment, re.MULTILINE))
    found = _core.passes.run_passes(module, [name], **options).text()
    if os.environ.get("SHARDWISE_UPDATE_GOLDEN"):
        path.write_text(before + marker + found)
    else:
        assert found == expected


def test_every_pass_has_goldens() -> None:
    assert sorted({path.parent.name for path in FILES}) == sorted(PASSES)
    assert all(len(list((GOLDEN / name).glob("*.mlir"))) >= 4 for name in PASSES)


def test_unknown_pass_is_an_error_that_lists_them() -> None:
    module = _core.ir.parse((FILES[0]).read_text().partition("// ----")[0])
    with pytest.raises(ValueError, match=r"a pass must be one of inline_calls, simplify, .*, got optimise"):
        _core.passes.run_passes(module, ["optimise"])


# ---- one program for every number of devices ------------------------------------------------------------------------


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    x = sw.split(x, 0, "data")
    w1 = sw.shard(w1, P(None, "model"))
    h = np.maximum(np.einsum("bm,mh->bh", x, w1), 0)
    return np.einsum("bh,hm->bm", h, w2)


def mlp_loss(weights: Any, x: Any, target: Any) -> Any:
    return np.mean((mlp(x, *weights) - target) ** 2)


def deep_loss(layers: Any, x: Any, target: Any) -> Any:
    for weights in layers:
        x = x + mlp(x, *weights)
    return np.mean((x - target) ** 2)


def struct(*shape: int) -> sw.ShapeDtypeStruct:
    return sw.ShapeDtypeStruct(shape, np.float32)


def local_text(function: Callable[..., Any], devices: int, layers: int, *, gradient: bool) -> str:
    mesh = sw.Mesh({"data": devices // 2, "model": 2})
    # The batch grows with the devices, and is large throughout: of 4 rows per device, gathering activations would be
    # cheaper on 8 devices than reducing the gradients of weights.
    batch, model, hidden = 128 * devices, 64, 256
    weights: Any = (struct(model, hidden), struct(hidden, model))
    x = struct(batch, model)
    if gradient:
        params = weights if layers == 1 else [weights] * layers
        # What travels together depends on the times of each mesh.
        traced = sw.jit(sw.value_and_grad(function), mesh=mesh, combine_bytes=0).lower(params, x, x)
    else:
        traced = sw.jit(function, mesh=mesh).lower(x, *weights)
    return re.sub(r"\d+", "N", traced.compile().as_text("local"))


@pytest.mark.parametrize(
    ("function", "layers", "gradient"),
    [(mlp, 1, False), (mlp_loss, 1, True), (deep_loss, 24, True)],
    ids=["quickstart forward", "quickstart gradient", "24 layers"],
)
def test_local_text_is_the_same_for_every_number_of_devices(
    function: Callable[..., Any], layers: int, gradient: bool
) -> None:
    texts = [local_text(function, devices, layers, gradient=gradient) for devices in (8, 2048, 1 << 20)]
    assert "shardwise.all_reduce" in texts[0]
    assert texts[1] == texts[0]
    assert texts[2] == texts[0]


@pytest.mark.parametrize("columns", [1, 3, 64], ids=["gathered", "padded columns", "columns"])
def test_a_running_sum_along_a_sharded_dim_is_one_text_for_every_number_of_devices(columns: int) -> None:
    def running(x: Any) -> Any:
        return np.cumsum(sw.split(x, 0, "x"), axis=0)

    def program(n: int, choices: sw.Choices | None = None) -> sw.Program:
        return sw.jit(running, mesh=sw.Mesh({"x": n}), choices=choices).lower(struct(4 * n, columns)).compile()

    small = program(8)
    texts = [re.sub(r"\d+", "N", one.as_text("local")) for one in (small, program(1 << 20, small.choices))]
    assert ("shardwise.all_gather" if columns == 1 else "shardwise.all_to_all") in texts[0]
    assert texts[1] == texts[0]


@pytest.mark.parametrize("function", [mlp, mlp_loss])
def test_passes_through_text_give_the_compiled_program(function: Callable[..., Any]) -> None:
    weights = (struct(32, 128), struct(128, 32))
    jitted = sw.jit(function, mesh=sw.Mesh({"data": 4, "model": 2}))
    arguments = (struct(17, 32), *weights) if function is mlp else (weights, struct(17, 32), struct(17, 32))
    lowered = jitted.lower(*arguments)
    text = lowered.as_text()
    for name in PASSES:
        text = _core.passes.run_passes(_core.ir.parse(text), [name]).text()
    assert text == lowered.compile().as_text("local")
