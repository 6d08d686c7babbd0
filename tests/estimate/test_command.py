# SPDX-License-Identifier: Apache-2.0
"""``shardwise estimate FILE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardwise as sw
from shardwise.cli import main

TEXT = """sdy.mesh @mesh = <["x"=8]>
func.func @main(
    %a: tensor<4096x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4096x4096xbf16> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4096x8192xbf16>, tensor<8192x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c : tensor<4096x4096xbf16>
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.mlir"
    path.write_text(TEXT)
    return str(path)


def test_prints_the_groups_and_what_is_assumed(file: str, capsys: Any) -> None:
    assert main(["estimate", file, "--hardware", "h100_sxm"]) == 0
    printed = capsys.readouterr().out
    assert f"{file}:5" in printed
    assert "on h100_sxm, MFU" in printed
    assert "assumed: not modelled" in printed


def test_json_is_that_of_the_report(file: str, capsys: Any) -> None:
    assert main(["estimate", file, "--hardware", "tpu_v5p", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == sw.parse(TEXT, file).compile().estimate("tpu_v5p").to_dict()


def test_columns_and_trace(file: str, capsys: Any, tmp_path: Path) -> None:
    assert main(["estimate", file, "--by", "stream,axis", "--trace", str(tmp_path / "t.json")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["stream", "axis"]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--hardware", "h1000"], "must be a built-in name or the path of a file, got 'h1000'"),
        (["--by", "lines"], "keys must be of"),
        (["--by", ""], "keys must be of"),
        (["--trace"], "expected one argument"),
    ],
)
def test_wrong_options(file: str, given: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["estimate", file, *given])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_refusals(file: str, capsys: Any, tmp_path: Path) -> None:
    node = sw.hardware.load("h100_sxm").to_dict()
    (tmp_path / "node.json").write_text(
        json.dumps({**node, "name": "node", "tiers": [{**node["tiers"][0], "size": {"value": 4, "source": "book"}}]})
    )
    assert main(["estimate", file, "--hardware", str(tmp_path / "node.json")]) == 1
    assert f"{file}:2:" in capsys.readouterr().err
    assert main(["estimate", file, "--trace", str(tmp_path / "none" / "t.json")]) == 1
    assert "t.json: error: No such file" in capsys.readouterr().err
    assert main(["estimate", str(tmp_path / "none.mlir")]) == 1
