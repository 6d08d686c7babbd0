# SPDX-License-Identifier: Apache-2.0
"""The script of the page "From the laptop to the cluster" in two processes of `jax.distributed`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.support.oracles import oracle
from tests.support.paths import ROOT
from tools import pages


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def test_two_processes_give_what_the_page_shows_for_one(tmp_path: Path) -> None:
    oracle("jax")
    page = (ROOT / "docs" / "cluster.md").read_text()
    script, command = [block for block in pages.blocks_of(page) if "train.py" in block.code][:2]
    file = tmp_path / "train.py"
    file.write_text(script.code)
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "COORDINATOR": f"localhost:{free_port()}",
        "HOSTS": "2",
    }
    started = [
        subprocess.Popen(
            [sys.executable, str(file)],
            cwd=tmp_path,
            env={**environment, "HOST": str(host)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(2)
    ]
    try:
        texts = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], texts
    assert "8 devices, a weight: " in command.shown
    assert command.shown in texts[0][0]  # after lines of XLA about its connections
    assert "weight" not in texts[1][0]
