# SPDX-License-Identifier: Apache-2.0
"""Run the code of the pages in docs/, and check or write what it prints.

    python tools/pages.py              # run every page; report each output that differs, and exit with 1
    python tools/pages.py --write      # run every page, and write the outputs into it
    python tools/pages.py docs/quickstart.md

A page is one program. Its blocks run in order, in one namespace and one temporary folder:

    ```python     runs; a first line `# NAME.py` also saves the block as that file, and `# test_NAME.py`
                  and `# NAME.py, run below` only save it
    ```console    each `$ COMMAND` runs as a subprocess: shardwise, pytest or python
    ```text       what the block before it prints; a block that raises prints the error's last line
    ```sh         how to install or build; these lines are not run
    ```{name}     a Sphinx directive
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Questions that users search for, and the page with a heading that answers each.
QUESTIONS = {
    "Does my model fit, and how fast is it?": "plan_a_model",
    "How far to trust the numbers": "step_time",
    "My loss needs a static argument": "sharp_bits",
    "x[0] = 1 fails": "sharp_bits",
    "Which functions work": "numpy",
    "What does P() mean for outputs?": "sharp_bits",
    "How do I test this?": "testing",
}
_BLOCK = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<shown>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_SECONDS = re.compile(r"\bin \d+\.\d+s\b")
_COMMANDS = {"shardwise": ["-m", "shardwise"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"], "python": []}
_ENVIRONMENT = {"COLUMNS": "110", "NO_COLOR": "1"}


class Block(NamedTuple):
    """A block of code and the output that the page shows for it."""

    language: str
    code: str
    shown: str


def pages() -> list[Path]:
    """Every page of the documentation, without the folders that the site generates."""
    return sorted(path for path in DOCS.rglob("*.md") if "generated" not in path.parts)


def blocks_of(text: str) -> list[Block]:
    """The blocks that run, in order."""
    return [Block(found["language"], found["code"], found["shown"] or "") for found in _BLOCK.finditer(text)]


def fences_of(text: str) -> list[str]:
    """The first line of every fence: the languages of opening fences, and an empty one for each closing fence."""
    return re.findall(r"^ *```(.*)$", text, re.MULTILINE)


def with_outputs(text: str, outputs: list[str]) -> str:
    """``text`` with these outputs, one per block that runs."""
    printed = iter(outputs)

    def block(found: re.Match[str]) -> str:
        code, output = f"```{found['language']}\n{found['code']}```", next(printed)
        return f"{code}\n\n```text\n{output}```" if output else code

    return _BLOCK.sub(block, text)


def run(path: Path) -> list[str]:
    """Run a page, and return what each block prints."""
    return list(outputs_of(path.read_text(), f"{path.stem}.py"))


def outputs_of(text: str, file: str) -> Iterator[str]:
    """Run the blocks of ``text`` one by one; places in reports name ``file``, or the file that a block names itself."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks_of(text):
            os.chdir(folder)
            try:
                yield _python(block.code, file, namespace) if block.language == "python" else _console(block.code)
            finally:
                os.chdir(before)


def _python(code: str, file: str, namespace: dict[str, Any]) -> str:
    if named := re.match(r"# (\w+\.py)(, run below)?\n", code):
        file = named[1]
        Path(file).write_text(code)
        if named[2] or file.startswith("test_"):  # for the page's own `$ python` or `$ pytest`
            return ""
    out = io.StringIO()

    def show(text: Warning | str, category: type[Warning], filename: str, line: int, *_: Any) -> None:
        out.write(f"{Path(filename).name}:{line}: {category.__name__}: {text}\n")

    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            # Errors quote the running expression, as they do for a file.
            linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
            exec(compile(code, file, "exec"), namespace)
        except Exception as error:
            out.write("".join(traceback.format_exception_only(error)))
    return out.getvalue()


def _console(code: str) -> str:
    printed = []
    for line in code.splitlines():
        command = shlex.split(line.removeprefix("$ "))
        argv = [sys.executable, *_COMMANDS[command[0]], *command[1:]]
        done = subprocess.run(
            argv, env={**os.environ, **_ENVIRONMENT}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        printed.append(_SECONDS.sub("in 0.10s", done.stdout))
    return "".join(printed)


def differences(path: Path) -> str:
    """A diff of the page and of what it prints now; empty where they agree."""
    text = path.read_text()
    fresh = with_outputs(text, run(path))
    name = str(path.relative_to(ROOT))
    return "".join(difflib.unified_diff(text.splitlines(True), fresh.splitlines(True), name, f"{name} (run)"))


def main() -> int:
    """Check or write the pages named on the command line, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the outputs into the pages")
    parser.add_argument("pages", nargs="*", type=Path)
    args = parser.parse_args()
    failed = False
    for path in [page.resolve() for page in args.pages] or pages():
        if args.write:
            path.write_text(with_outputs(path.read_text(), run(path)))
        elif difference := differences(path):
            failed = True
            print(difference)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
