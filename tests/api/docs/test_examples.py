# SPDX-License-Identifier: Apache-2.0
"""The examples run as scripts and print what they promise."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.oracles import oracle
from tests.support.paths import ROOT


def output_of(script: str, *args: str) -> str:
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / script), *args],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def refused(script: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.splitlines()[-1].split())


def number_after(words: str, text: str) -> float:
    found = re.search(rf"{words} ([\d.e+-]+)", text)
    assert found, text
    return float(found[1])


def test_ring_attention_is_attention() -> None:
    text = output_of("ring_attention.py", "--length", "60", "--devices", "5", "--heads", "2", "--width", "8")
    assert number_after("whole attention: differs by at most", text) < 1e-5
    assert number_after("gradients: differ by at most", text) < 1e-4
    # Each block of keys and of values is sent on four times, to five devices.
    assert len(re.findall(r"collective_permute .* 4  float32", text)) == 2
    assert "all_gather" not in text


def test_cannons_product_is_the_product() -> None:
    text = output_of("cannon.py", "--size", "24", "--side", "4")
    assert number_after("differs by at most", text) < 1e-12
    # Three moves of each tile to its start, and three around the ring.
    assert "Cannon: {'collective_permute': 12}" in text


def test_a_pipeline_by_hand_is_all_layers_in_a_row() -> None:
    text = output_of("pipeline.py", "--devices", "4", "--microbatches", "6", "--width", "8")
    assert number_after("loss: differs by at most", text) < 1e-12
    assert number_after("gradients: differ by at most", text) < 1e-12
    # One activation down and one cotangent up in each tick.
    assert len(re.findall(r"collective_permute .* 12  float64", text)) == 2
    assert "2 collectives" in text or "3 collectives" in text


def test_gather_dispatch_is_all_experts_on_all_tokens() -> None:
    text = output_of("gather_dispatch.py", "--devices", "8", "--tokens", "24", "--width", "8")
    assert number_after("tokens that find no place:", text) > 0
    assert number_after("layer: differs by at most", text) < 1e-12
    assert number_after("gradients: differ by at most", text) < 1e-12
    assert len(re.findall(r"all_to_all ", text)) == 2
    assert "2 collectives" in text


def test_quickstart_shows_result_programs_ledger_and_reasons() -> None:
    text = output_of("quickstart.py")
    difference = re.search(r"max \|difference\| to NumPy ([\d.e+-]+)", text)
    assert difference
    assert float(difference[1]) < 1e-3
    loss = re.search(r"loss ([\d.]+) \(NumPy ([\d.]+)\)", text)
    assert loss
    assert float(loss[1]) == pytest.approx(float(loss[2]), rel=1e-3)
    for word in (
        "sdy.sharding",
        "stablehlo.dot_general",
        '"shardwise.all_reduce"',
        "received per device",
        "quickstart.py:",
    ):
        assert word in text
    assert re.search(r"\bw2 .*is tensor<128x32xf32>, sharded \[\{\"model\"\}, \{\}\]", text)
    assert re.search(r"\bh .*is tensor<64x128xf32>, sharded \[\{\"data\"\}, \{\"model\"\}\]", text)


def test_digits_reaches_its_accuracy_with_the_weights_of_one_device() -> None:
    oracle("sklearn")  # the example reads its digits
    text = output_of("digits.py", "--epochs", "15")
    accuracy = re.search(r"accuracy\D+([\d.]+)\D+([\d.]+)", text)
    assert accuracy
    assert float(accuracy[1]) > 0.95
    assert float(accuracy[1]) == pytest.approx(float(accuracy[2]), abs=0.01)
    difference = re.search(r"largest difference of a weight\D+([\d.e+-]+)", text)
    assert difference
    assert float(difference[1]) < 1e-3


KEYS = {
    "devices", "ops_local", "collectives", "max_relative_difference", "routing_disagreements", "seconds_numpy",
    "seconds_virtual", "peak_bytes", "losses",
}  # fmt: skip


def moe_report(tmp_path: Path, *args: str) -> tuple[str, dict[str, Any]]:
    path = tmp_path / "report.json"
    text = output_of("moe_layer.py", *args, "--json", str(path))
    report = json.loads(path.read_text())
    assert set(report) >= KEYS
    return text, report


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--mesh", "data=4,model=2", "--top-k", "1"),
        ("--mesh", "data=4,model=2", "--hidden-axis", "model"),
        ("--devices", "6", "--groups", "8", "--capacity", "3", "--dtype", "float64"),
        ("--layers", "4", "--experts", "16", "--capacity-factor", "2", "--seed", "3"),
    ],
    ids=" ".join,
)
def test_moe_layer_agrees_with_numpy_and_learns(tmp_path: Path, options: tuple[str, ...]) -> None:
    text, report = moe_report(tmp_path, "--steps", "20", *options)
    assert report["devices"] == (6 if "6" in options else 8)
    assert report["max_relative_difference"] <= (1e-12 if "float64" in options else 1e-5)
    assert report["routing_disagreements"] == 0
    kinds = [row["kind"] for row in report["collectives"]["collectives"]]
    # 8 groups on 6 devices are 4 shards of 2: an all_to_all would send padding to the other two.
    moves = kinds.count("all_to_all") + (kinds.count("exchange") if "6" in options else 0)
    assert moves == (4 if "4" in options else 2)
    if "--hidden-axis" not in options:  # with it, attention gathers heads where that is less than a reduction
        assert set(kinds) <= ({"all_to_all", "exchange"} if "6" in options else {"all_to_all"})
    assert all(report[name] > 0 for name in ("ops_local", "seconds_numpy", "seconds_virtual", "peak_bytes"))
    losses = report["losses"]
    assert len(losses) == 20
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    for word in ("annotated arrays", "all_to_all", "to_experts", "tokens per expert", "dropped", "plain NumPy"):
        assert word in text


def test_moe_layer_reads_a_file_and_draws_a_picture(tmp_path: Path) -> None:
    file, picture = tmp_path / "text.txt", tmp_path / "picture.png"
    file.write_text("to be or not to be " * 20)
    text, report = moe_report(tmp_path, "--text", str(file), "--steps", "3", "--plot", str(picture))
    assert len(report["losses"]) == 3
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in text.replace("\n", "")


def test_moe_layer_compiles_the_models_of_the_paper(tmp_path: Path) -> None:
    _, report = moe_report(tmp_path, "--layers", "36", "--experts", "2048", "--devices", "2048", "--no-run")
    assert report["parameters"] / 1e9 == pytest.approx(619, rel=0.01)
    assert report["parameter_bytes_per_device"] == report["parameter_bytes_formula"]
    assert report["losses"] == []
    assert report["seconds_trace"] + report["seconds_compile"] < 20
    text, report = moe_report(
        tmp_path, "--layers", "60", "--experts", "2048", "--devices", "2048", "--no-run", "--dtype", "bfloat16"
    )
    assert report["parameters"] > 1e12
    assert "trace" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--experts", "6"), "experts must be a multiple of the 8 devices along 'device', got 6; use 8 experts"),
        (("--capacity", "0"), "capacity must be an integer of at least 1, got 0"),
        (("--capacity-factor", "0"), "capacity_factor must be a positive number, got 0.0"),
        (
            ("--tokens", "99999999"),
            "the text must have at least 100000000 bytes, a sequence and the byte after it, got",
        ),
        (("--expert", "8"), "unrecognized arguments: --expert 8"),
        (("--mesh", "data=4,model"), "--mesh must be like data=4,model=2, with each name once, got 'data=4,model'"),
        (("--mesh", "a=4", "--devices", "8"), "--mesh a=4 has 4 devices, got --devices 8; leave one out"),
        (("--hidden-axis", "rows"), "--hidden-axis must be one of device, got rows"),
        (("--hidden-axis", "device"), "--hidden-axis must leave an axis for tokens and experts"),
        (("--groups", "0"), "--groups must be at least 1 and --steps at least 0, got 0 and 300"),
        (("--heads", "0"), "heads must be an integer of at least 1, got 0"),
        (("--dtype", "bfloat16"), "--dtype bfloat16 needs --no-run"),
        (("--text", "/nonexistent"), "No such file or directory: '/nonexistent'"),
        (("--devices", "0"), "got"),
        (("--seed", "-1"), "--seed must be at least 0, got -1"),
        (("--no-run", "--plot", "x.png"), "--plot needs a run, got --no-run; leave one of the two out"),
        (("--no-run", "--steps", "3"), "--steps needs a run, got --no-run"),
        (("--json", "/nonexistent/x.json"), "--json must be in a folder that exists, got /nonexistent/x.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_moe_layer_says_what_is_wrong_with_its_options(options: tuple[str, ...], message: str) -> None:
    assert message in refused("moe_layer.py", *options)


def test_on_jax_has_the_numbers_and_the_bytes_of_the_virtual_mesh() -> None:
    oracle("jax")
    oracle("sklearn")  # the example reads its digits
    text = output_of("on_jax.py")
    assert "Mesh('data': 4, 'model': 2) on 8 devices of JAX (cpu)" in text
    found = re.findall(r"(\w+): (\d+) B received per device here, (\d+) B in JAX", text)
    assert [name for name, _, _ in found] == ["digits", "experts"]
    assert all(here == there != "0" for _, here, there in found)
    rows = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in re.findall(r"│(.*)│(.*)│(.*)│", text)}
    assert len(rows) == 7
    assert all(rows[f"experts: {name}"][0] == "equal" for name in ("experts", "kept", "tokens_per_expert"))
    assert all(float(apart) <= 1e-5 for _, apart in rows.values())


def test_from_jax_explains_a_transformer_of_jax_and_hands_it_back() -> None:
    oracle("jax")
    text = output_of("from_jax.py")
    difference = re.search(r"largest difference to jax.value_and_grad: ([\d.e+-]+)", text)
    assert difference
    assert float(difference[1]) < 1e-5
    assert re.search(r"loss on 8 devices of JAX: 2\.\d{4}\n", text)
    assert re.search(r"hidden \(.*from_jax.py:\d+\) is .*sharded \[\{\"data\"\}, \{\}, \{\"model\"\}\]", text)
    before, after = map(int, re.findall(r"(\d+) KiB (?:before|after)", text))
    assert after < before


def test_translate_trains_on_two_meshes_and_translates(tmp_path: Path) -> None:
    oracle("num2words")  # the example's data
    path = tmp_path / "report.json"
    picture = tmp_path / "translate.png"
    sizes = ("--steps", "20", "--numbers", "400", "--width", "16")
    text = output_of("translate.py", *sizes, "--json", str(path), "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    report = json.loads(path.read_text())
    assert set(report) == {"experts", "dense"}
    for runs in report.values():
        losses = runs[0]["losses"]
        assert len(losses) == 20
        assert losses[-1] < losses[0]
        assert set(runs[0]["match"]) == {"de", "fr", "es", "it", "nl", "sv", "pt", "no"}
    assert text.count("languages with little data") == 2
