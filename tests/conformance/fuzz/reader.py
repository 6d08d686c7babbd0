# SPDX-License-Identifier: Apache-2.0
"""Asks a reading worker, with a limit of time for each text; used by the tests and by __main__.py.

with Reader() as reader:
    reader.read("program", "module {")       # {"outcome": "refused"}
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from typing import Any

from tests.support.paths import ROOT

WORKER = "tests.conformance.fuzz.worker"
SECONDS = 20.0


class Reader:
    """One process, started again when a text has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, kind: str, text: str) -> dict[str, Any]:
        """The worker's answer, or {"outcome": "crash"} or {"outcome": "hang"}."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"kind": kind, "text": text}) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], SECONDS)[0]:
                self.close()
                return {"outcome": "hang"}
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = process.wait()
            self.close()
            return {"outcome": "crash", "why": f"exit status {code}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process = None
