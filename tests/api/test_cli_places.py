# SPDX-License-Identifier: Apache-2.0
"""The places of errors on the command line, and the order of the names that it suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.api.test_cli import run


def test_an_error_of_a_call_is_at_the_function(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "two.mlir"
    other = "  func.func private @other(%a: tensor<3xf32>) -> tensor<3xf32> {\n    return %a : tensor<3xf32>\n  }\n"
    main = "  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n    return %x : tensor<2xf32>\n  }\n"
    path.write_text(f"module {{\n{other}{main}}}\n")
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    code, out, err = run(capsys, "run", path)
    assert (code, out) == (1, "")
    assert err == f"{path}:5:3: error: call: @main takes x: float32[2], got 0 arguments; also pass x: float32[2]\n"
    err = run(capsys, "run", path, "--arg", tmp_path / "x.npy")[2]
    assert err.startswith(f"{path}:5:3: error: call: argument x must be float32[2] as compiled, got float32[3]; "), err
    err = run(capsys, "run", path, "--func", "nothing")[2]
    assert err == f"{path}: error: compile: func must be a function of the program, got 'nothing'; it has other, main\n"


def test_names_are_suggested_in_their_order(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "numbers.mlir"
    lines = [f"  %{i + 1} = stablehlo.add %{i}, %{i} : tensor<2xf32>" for i in range(12)]
    body = "\n".join(["  %0 = stablehlo.abs %x : tensor<2xf32>", *lines, "  return %12 : tensor<2xf32>"])
    path.write_text(f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n{body}\n}}\n")
    assert "such as %x, %0, %1, %2, %3, an op" in run(capsys, "why", path, "nowhere")[2]
