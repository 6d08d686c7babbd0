# SPDX-License-Identifier: Apache-2.0
"""`shardwise run`: arguments from files, results as text or files, the ledger, and errors as one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import shardwise as sw
from shardwise.cli import main
from tests.api.texts.test_text_programs import FUNCTIONS, LAYER, SCALE, V, W, X


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layer.mlir").write_text(LAYER)
    Path("scale.mlir").write_text(SCALE)
    Path("functions.mlir").write_text(FUNCTIONS)
    np.save("x.npy", X)
    np.save("w.npy", W)
    np.save("v.npy", V)
    np.savez("both.npz", batch=X, w=W)
    np.savez("unnamed.npz", X, W)
    np.savez("rest.npz", rate=np.float32(0.5), n=np.int32(3))
    np.save("a=b.npy", V)


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(["run", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_results_and_the_ledger_are_printed(capsys: Any) -> None:
    code, out, err = run(capsys, "scale.mlir", "--arg", "v.npy", "--arg", "rest.npz")
    assert (code, err) == (0, "")
    assert out == "result 0: float32[4]\n[0.  0.5 1.  1.5]\nno collectives\n"


@pytest.mark.parametrize(
    "arguments", [["x.npy", "w.npy"], ["w=w.npy", "x.npy"], ["both.npz"], ["unnamed.npz"], ["batch=x.npy", "w=w.npy"]]
)
def test_arguments_are_files_by_position_or_by_name(arguments: list[str], capsys: Any) -> None:
    given = [word for argument in arguments for word in ("--arg", argument)]
    code, out, err = run(capsys, "layer.mlir", *given, "--out", "results/of/layer")
    assert (code, err) == (0, "")
    first, second, *ledger = out.splitlines()
    assert first == "result 0: float32[8,4] in results/of/layer/result_0.npy"
    assert second == "result 1: float32[8,6] in results/of/layer/result_1.npy"
    assert ledger[-1] == "1 collective, 32 B received per device"
    assert ledger[1].split()[:2] == ["all_reduce", '{"model"}']
    assert "layer.mlir:5" in ledger[1]
    np.testing.assert_allclose(np.load("results/of/layer/result_0.npy"), X @ W, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.load("results/of/layer/result_1.npy"), X)


def test_a_function_a_mesh_and_standard_input(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(FUNCTIONS.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    code, out, err = run(capsys, "-", "--func", "again", "--arg", "a=b.npy", "--mesh", "x=2, y=3")
    assert (code, out, err) == (0, "result 0: float32[4]\n[ 0.  4.  8. 12.]\nno collectives\n", "")


def test_bfloat16_in_files(capsys: Any) -> None:
    Path("narrow.mlir").write_text(SCALE.replace("f32", "bf16"))
    np.save("v16.npy", V.astype(ml_dtypes.bfloat16))
    np.save("rate16.npy", np.asarray(0.5, ml_dtypes.bfloat16))
    np.save("n.npy", np.int32(1))
    given = ["--arg", "v16.npy", "--arg", "rate=rate16.npy", "--arg", "n.npy"]
    assert run(capsys, "narrow.mlir", *given)[2].startswith("narrow.mlir:1:1: error: call: argument rate must be given")
    given[-1] = "n=n.npy"
    code, out, err = run(capsys, "narrow.mlir", *given)
    assert (code, out, err) == (0, "result 0: bfloat16[4]\n[0 0.5 1 1.5]\nno collectives\n", "")


def test_a_path_may_contain_an_equals_sign(capsys: Any) -> None:
    Path("run=3").mkdir()
    np.save("run=3/v.npy", V)
    for argument in ("run=3/v.npy", "x=run=3/v.npy", "x=a=b.npy"):
        code, out, err = run(capsys, "scale.mlir", "--arg", argument, "--arg", "rest.npz")
        assert (code, err) == (0, "")
        assert out.startswith("result 0: float32[4]\n[0.  0.5 1.  1.5]\n")
    assert run(capsys, "scale.mlir", "--arg", "x=none=3.npy")[2] == "none=3.npy: error: No such file or directory\n"


def test_an_error_of_ours_is_no_error_of_the_arguments(capsys: Any, monkeypatch: Any) -> None:
    def broken(*_: Any) -> Any:
        raise TypeError("planted")

    monkeypatch.setattr(sw.Program, "_call_flat", broken)
    with pytest.raises(TypeError, match="planted"):
        run(capsys, "scale.mlir", "--arg", "v.npy", "--arg", "rest.npz")


TAKES = "call: @main takes batch: float32[8, 6], w: float32[6, 4]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["layer.mlir"], f"layer.mlir:2:1: error: {TAKES}, got 0 arguments; also pass batch: float32[8, 6], "
         "w: float32[6, 4]"),
        (["layer.mlir", "--arg", "z=x.npy"],
         "layer.mlir:2:1: error: call: an argument of @main must be one of batch, w, got 'z'"),
        (["layer.mlir", "--arg", "w.npy", "--arg", "x.npy"],
         "layer.mlir:2:1: error: call: argument batch must be float32[8, 6] as compiled, got float32[6, 4]; "
         "pass an array of the type in the text"),
        (["functions.mlir", "--arg", "v.npy", "--func", "g"],
         "functions.mlir: error: compile: func must be a function of the program, got 'g'; "
         "it has main, twice, again, strange"),
        (["functions.mlir", "--arg", "v.npy", "--func", "strange"],
         "functions.mlir:14:1: error: compile: a value must be a tensor, got !stablehlo.token; "
         "leave out the ops that have effects"),
        (["layer.mlir", "--arg", "none.npy"], "none.npy: error: No such file or directory"),
        (["layer.mlir", "--arg", "layer.mlir"], "layer.mlir: error: it must be an .npy or .npz file without objects"),
        (["layer.mlir", "--arg", "w=both.npz"],
         "both.npz: error: an .npz file has names for its arrays; leave out w="),
        (["layer.mlir", "--arg", "w=w.npy", "--arg", "both.npz"], "both.npz: error: argument w is given twice"),
        (["layer.mlir", "--arg", "both.npz", "--mesh", "x=2"],
         'layer.mlir: error: compile: the mesh must be that of the program\'s shardings, '
         '<["data"=4, "model"=2]>, got <["x"=2]>'),
        (["layer.mlir", "--arg", "both.npz", "--out", "x.npy"], "x.npy: error: File exists"),
        (["none.mlir"], "none.mlir: error: No such file or directory"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(arguments: list[str], said: str, capsys: Any) -> None:
    assert run(capsys, *arguments) == (1, "", f"{said}\n")


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ("x", "must be NAME=SIZE,… with different names, got 'x'"),
        ("x=2,x=3", "must be NAME=SIZE,… with different names, got 'x=2,x=3'"),
        ("x=-2", "must be NAME=SIZE,… with different names, got 'x=-2'"),
        ("x=0", 'the size of an axis must be at least 1, got "x"=0; leave the axis out or give it size 1'),
    ],
)
def test_a_wrong_mesh_is_an_error_of_the_command_line(mesh: str, said: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "layer.mlir", "--mesh", mesh])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"argument --mesh: {said}\n")


def test_a_dry_run_needs_no_data(capsys: Any) -> None:
    code, out, err = run(capsys, "layer.mlir", "--dry-run")
    program = sw.parse(Path("layer.mlir").read_text(), "layer.mlir").compile()
    assert (code, err) == (0, "")
    assert out == f"{program.collectives()!r}\n\n{program.memory()!r}\n"
    code, out, err = run(capsys, "layer.mlir", "--dry-run", "--json")
    read = json.loads(out)
    assert (code, err) == (0, "")
    assert read["collectives"] == json.loads(program.collectives().to_json())
    assert read["memory"]["peak_bytes"] == program.memory().peak_bytes > 0


@pytest.mark.parametrize("out", [[], ["--out", "results"]])
def test_results_as_json(out: list[str], capsys: Any) -> None:
    code, text, err = run(capsys, "functions.mlir", "--func", "again", "--arg", "v.npy", "--json", *out)
    assert (code, err) == (0, "")
    (row,) = json.loads(text)["results"]
    assert (row["dtype"], row["shape"]) == ("float32", [4])
    values = np.load(row["file"]) if out else row["values"]
    np.testing.assert_array_equal(values, 4 * V)
    assert json.loads(text)["collectives"]["total_bytes"] == 0
