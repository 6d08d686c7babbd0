# SPDX-License-Identifier: Apache-2.0
"""jaxlib's Shardy, asked from tests; the worker is one process, started anew when Shardy has ended it.

oracle = ShardyOracle()
oracle.run(text, "sdy-basic-propagate")["ops"]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.paths import ROOT

# Shardy's module pass -> our strategy and priorities.
# Shardy's module pass -> ours.
LEVELS = {
    "sdy-basic-propagate": "propagate_basic",
    "sdy-aggressive-propagate": "propagate_aggressive",
    "sdy-op-priority-propagate": "propagate_op_priority",
    "sdy-user-priority-propagate": "propagate_user_priority",
}
WORKER = "tests.conformance.shardy.worker"


class OracleError(Exception):
    """Shardy refused the text."""


class OracleDiedError(Exception):
    """Shardy ended its process on this input."""


class ShardyOracle:
    """One worker process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - lives as long as the oracle

    def run(self, text: str, passes: str = "") -> dict[str, Any]:
        """Arguments', ops' and results' shardings after these module passes, and the ops' rules."""
        return self._ask({"do": "run", "text": text, "passes": passes})

    def parse(self, text: str, unregistered: bool = False) -> str:
        """The module in MLIR's generic form, without locations and JAX's labels."""
        return str(self._ask({"do": "parse", "text": text, "unregistered": unregistered})["text"])

    def after(self, text: str, passes: str) -> str:
        """The module as these module passes leave it."""
        return str(self._ask({"do": "print", "text": text, "passes": passes})["text"])

    def lower(self, name: str, locations: bool = False) -> str:
        """A function of tests/conformance/jax/programs.py as JAX prints it."""
        return str(self._ask({"do": "lower", "name": name, "locations": locations})["text"])

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(120)  # a busy machine takes long to unload jaxlib
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        self._errors.close()

    def ask_all(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """An answer each; {"error": …} for a text that was refused, {"died": …} for one that ended the process."""
        replies: list[dict[str, Any]] = []
        while len(replies) < len(requests):
            replies += self._send(requests[len(replies) :])
        return replies

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        (reply,) = self._send([request])
        if "died" in reply:
            raise OracleDiedError(reply["died"])
        if "error" in reply:
            raise OracleError(reply["error"])
        return reply

    def _send(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers up to the first request that ends the process."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                cwd=ROOT,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        replies: list[dict[str, Any]] = []
        line = ""
        try:
            self._process.stdin.write(json.dumps(list(requests)) + "\n")
            self._process.stdin.flush()
            while len(replies) < len(requests):
                line = self._process.stdout.readline()
                if not line:
                    break
                replies.append(json.loads(line))
        except BrokenPipeError:
            pass
        if len(replies) < len(requests):
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None
            self._errors.seek(0)
            replies.append({"died": self._errors.read()[-2000:]})
            self._errors.seek(0)
            self._errors.truncate()
        return replies


@pytest.fixture(scope="session")
def shardy() -> Iterator[ShardyOracle]:
    oracle = ShardyOracle()
    yield oracle
    oracle.close()


# ---- what is compared -----------------------------------------------------------------------------------------------

Shardings = dict[str, str | None]


def shardings_of(reply: dict[str, Any]) -> Shardings:
    """A row per argument, op and result: its sharding, or None. Ops that the pass removed have no row."""
    rows: Shardings = {f"argument {i}": text for i, text in enumerate(reply["arguments"])}
    for i, row in enumerate(reply["ops"]):
        if row is not None:
            rows[f"op {i} {row[0]}"] = row[1]
    rows.update({f"result {i}": text for i, text in enumerate(reply["results"])})
    return rows


def differences(ours: Shardings, theirs: Shardings) -> list[str]:
    return [f"{name}: {ours.get(name)}, Shardy {want}" for name, want in theirs.items() if ours.get(name) != want]


_LISTS = re.compile(r"(reduction|need_replication|permutation|blocked_propagation)?=?\{([^}]*)\}")


def canonical_rule(text: str) -> str:
    """The rule with its factors numbered by their first appearance: ``([0 1])->([0, 1]) sizes{0=2, 1=4}``."""
    text = text.removeprefix("#sdy.op_sharding_rule<").removesuffix(">")
    if not text:
        return ""
    mapping, _, rest = text.partition(" {")
    if rest == "" and mapping.endswith("{}"):
        mapping = mapping[:-2]
    names: dict[str, str] = {}
    for found in re.findall(r"z_\d+|[i-z]", mapping):
        names.setdefault(found, str(len(names)))
    numbered = re.sub(r"z_\d+|[i-z]", lambda m: names[m[0]] + " ", mapping).replace(" ]", "]").replace(" ,", ",")
    parts = [numbered]
    for label, body in _LISTS.findall("{" + rest if rest else ""):
        entries = []
        for entry in filter(None, (e.strip() for e in body.split(","))):
            name, _, size = entry.partition("=")
            entries.append(f"{names[name]}={size}" if size else names[name])
        parts.append(f"{label or 'sizes'}{{{', '.join(sorted(entries))}}}")
    return " ".join(parts)
