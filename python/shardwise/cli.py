# SPDX-License-Identifier: Apache-2.0
"""``shardwise``: programs as text, from the command line. ``python -m shardwise`` is the same.

``shardwise opt FILE.mlir --passes=propagate,insert-reshards`` runs passes and prints the program; ``shardwise why
FILE.mlir %value`` explains the sharding of a value; ``shardwise run FILE.mlir --arg x.npy`` runs the program;
``shardwise estimate FILE.mlir --hardware h100_sxm`` says how long a step takes. ``-`` is standard input. An error in
a program is one line, ``FILE:LINE:COLUMN: error: …``, with exit code 1; that of a call is at the function, and one
without a place in the text is ``FILE: error: …``. A warning is one line with ``warning:``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from . import __version__, _core
from .errors import Error, MeshError, ParseError, ShardingWarning
from .hardware import Hardware
from .programs.hardware_options import checked_hardware
from .programs.module import parse
from .programs.options import checked_options, options_among
from .programs.propagation_options import DEFAULTS, PropagationOptions, options_of_passes
from .programs.stages import Program
from .reports.estimate import checked_columns
from .run_command import ArgumentFileError, ArgumentsError, mesh_of_text, plan_of, results_of_run
from .shardings.mesh import Mesh

__all__ = ["main"]

_STANDARD_INPUT = "<stdin>"
_STANDARD_OUTPUT = "<stdout>"
_PLACE = re.compile(r" \(at (?P<file>.*?):(?P<line>\d+)\)$")


class _RefusedError(Exception):
    """An error that ends the command, as one line of text."""


class _Source:
    """The text of a program, and its file name for messages."""

    def __init__(self, path: str) -> None:
        self.name = _STANDARD_INPUT if path == "-" else path
        try:
            if path == "-" and sys.stdin is None:
                raise _RefusedError(f"{self.name}: error: it is closed")
            if path == "-":
                data = sys.stdin.buffer.read()
            else:
                with open(path, "rb") as file:
                    data = file.read()
        except OSError as error:
            raise _RefusedError(f"{self.name}: error: {error.strerror or error}") from None
        try:
            self.text = data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            raise _RefusedError(f"{self.name}:{line}:{column}: error: the text must be UTF-8") from None

    def refusal(self, error: Exception, called: str = "") -> _RefusedError:
        """The error with its place in the text, as compilers write it.

        Without one, that of the function ``called``; the error is of the whole file if there is no call.
        """
        message = str(error)
        place = _PLACE.search(message)
        line, column, file = 0, 1, self.name
        if called:
            line, column = self._place_of_function(called.removeprefix("@"))
        if place is not None:
            message = message[: place.start()]
        if isinstance(error, ParseError):
            line, column = error.line, error.column
            message = message.partition(f"{line}:{column}: ")[2] or message
        elif place is not None and place["file"] == self.name:
            line = int(place["line"])
            column = self._column_of_op(line)
        elif place is not None and f'"{place["file"]}":' in self.text:  # of the text's own loc("file":line:column)
            file, line = place["file"], int(place["line"])
        where = f"{file}:{line}:{column}" if line else file
        return _RefusedError(f"{where}: error: {' '.join(message.split())}")

    def _place_of_function(self, name: str) -> tuple[int, int]:
        """The line and column of a function, or of the only one; 0 if there is none."""
        found = list(re.finditer(r"^[ \t]*(\"?func\.func\b[^@\n]*@\"?([\w.$-]+))", self.text, re.MULTILINE))
        own = [one for one in found if one[2] == name] or found[:1]
        if not own:
            return 0, 0
        start = own[0].start(1)
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def _column_of_op(self, line: int) -> int:
        lines = self.text.split("\n")
        match = re.match(r"\s*(%[^=]*=\s*)?", lines[line - 1]) if line <= len(lines) else None
        return match.end() + 1 if match else 1


def _pass_table() -> str:
    rows = [(name.replace("_", "-"), doc) for name, doc in _core.passes.named_passes()]
    width = max(len(name) for name, _ in rows)
    return "passes:\n" + "\n".join(f"  {name:{width}}  {doc}" for name, doc in rows)


def _passes(text: str) -> list[str]:
    """Split ``--passes``. Unknown names are command-line errors."""
    known = [name.replace("_", "-") for name, _ in _core.passes.named_passes()]
    names = [name.strip().replace("_", "-") for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            raise argparse.ArgumentTypeError(f"no pass is called {name!r}; use {', '.join(near or known)}")
    return names


def _opt(options: argparse.Namespace) -> str:
    source = _Source(options.file)
    try:
        module = _core.ir.parse(source.text, source.name)
        how = options_of_passes("opt", options.passes, DEFAULTS, **options_among(PropagationOptions, vars(options)))
        changed = _core.passes.run_passes(module, options.passes, **how.as_arguments())
        return str(changed.text(locations=options.locations, generic=options.generic))
    except Error as error:
        raise source.refusal(error) from None


def _why(options: argparse.Namespace) -> str:
    source = _Source(options.file)
    name = " ".join(options.value)
    try:
        module = parse(source.text, source.name)
        given = options_among(PropagationOptions, vars(options))
        if options.compiled:
            how = checked_options("why", DEFAULTS, **given)
            explanation = module._why_compiled(name, options.counterfactual, how)
        else:
            explanation = module.why(name, counterfactual=options.counterfactual, **given)
    except Error as error:
        raise source.refusal(error) from None
    except KeyError as error:
        raise _RefusedError(f"{source.name}: error: {error.args[0]}") from None
    return explanation.to_json() + "\n" if options.json else f"{explanation!r}\n"


def _compiled(source: _Source, options: argparse.Namespace) -> Program:
    try:
        module = parse(source.text, source.name)
        return module.compile(options.mesh, func=options.func, **options_among(PropagationOptions, vars(options)))
    except Error as error:
        raise source.refusal(error) from None


def _estimate(options: argparse.Namespace) -> str:
    source = _Source(options.file)
    program = _compiled(source, options)
    try:
        estimate = program.estimate(options.hardware)
    except MeshError as error:  # the hardware joins fewer devices
        raise source.refusal(error, options.func) from None
    if options.trace is not None:
        try:
            estimate.save_trace(options.trace)
        except OSError as error:
            raise _RefusedError(f"{options.trace}: error: {error.strerror or error}") from None
    if options.json:
        return estimate.to_json() + "\n"
    return "\n".join([repr(estimate.by(*options.by.split(","))), *map("assumed: {}".format, estimate.assumptions), ""])


def _run(options: argparse.Namespace) -> str:
    source = _Source(options.file)
    program = _compiled(source, options)
    try:
        return plan_of(program, options.json) if options.dry_run else results_of_run(program, options)
    except ArgumentFileError as error:
        raise _RefusedError(str(error)) from None
    except (ArgumentsError, Error) as error:
        raise source.refusal(error, options.func) from None


def _mesh(text: str) -> Mesh:
    try:
        return mesh_of_text(text)
    except Error as error:
        raise argparse.ArgumentTypeError(_PLACE.sub("", str(error)).partition(": ")[2]) from None


def _hardware(text: str) -> Hardware:
    try:
        return checked_hardware("--hardware", text)
    except ValueError as error:  # every error of the package about a value is one
        raise argparse.ArgumentTypeError(_PLACE.sub("", str(error)).partition(": ")[2]) from None


def _columns(text: str) -> str:
    try:
        checked_columns("--by", text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).partition(": ")[2]) from None
    return text


def _print_warnings(warned: Sequence[warnings.WarningMessage], file: str) -> None:
    """Print warnings as compilers do, with the first location in the file that they name."""
    for one in warned:
        place = re.search(rf" at {re.escape(file)}:(\d+)", str(one.message))
        _print_error(f"{file}:{place[1] if place else 1}:1: warning: {one.message}")


def _print_error(what: object) -> None:
    if sys.stderr is not None:  # print() would take standard output
        print(what, file=sys.stderr)


def _write_output(text: str) -> None:
    """Write the output of the command."""
    if sys.stdout is None:
        raise _RefusedError(f"{_STANDARD_OUTPUT}: error: it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError as error:
        rule = f"its encoding, {error.encoding}, has no {error.object[error.start]!r}"
        raise _RefusedError(f"{_STANDARD_OUTPUT}: error: {rule}; set PYTHONIOENCODING=utf-8") from None
    except OSError as error:
        # The interpreter must not flush the rest again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe
            raise
        raise _RefusedError(f"{_STANDARD_OUTPUT}: error: {error.strerror or error}") from None


def _add_estimate(commands: Any) -> argparse.ArgumentParser:
    estimate: argparse.ArgumentParser = commands.add_parser(
        "estimate",
        help="say how long a step takes",
        description="Partition a program, and estimate how long one run takes on some hardware. Nothing runs.",
    )
    estimate.set_defaults(run=_estimate)
    estimate.add_argument(
        "--hardware", type=_hardware, metavar="NAME", help="a built-in name or a file (default: default)"
    )
    estimate.add_argument(
        "--by", type=_columns, default="line,op", metavar="COLUMNS", help="the columns of the table (default: line,op)"
    )
    estimate.add_argument("--trace", metavar="FILE", help="also write a Chrome trace, which ui.perfetto.dev shows")
    return estimate


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shardwise",
        description="Partition tensor programs: run passes on StableHLO text, explain a sharding, or run a program.",
    )
    parser.add_argument("--version", action="version", version=f"shardwise {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    opt = commands.add_parser(
        "opt",
        help="run passes on a program and print it",
        description="Run passes on a StableHLO program with Shardy's attributes, and print the result.",
        epilog=_pass_table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    opt.add_argument(
        "--passes", type=_passes, default="parse", metavar="P1,P2", help="what to run, in order (default: parse)"
    )
    opt.add_argument("--generic", action="store_true", help="print MLIR's generic form")
    opt.add_argument("--locations", action="store_true", help="print loc(...) after every op")
    opt.set_defaults(run=_opt)
    why = commands.add_parser(
        "why",
        help="explain the sharding of a value",
        description="Propagate shardings, and explain the sharding of a value.",
    )
    why.set_defaults(run=_why)
    run = commands.add_parser(
        "run",
        help="run a program on virtual devices",
        description="Partition a program, run it on virtual devices, and print its results and collectives.",
    )
    run.set_defaults(run=_run)
    run.add_argument(
        "--arg", action="append", default=[], metavar="[NAME=]FILE",
        help="an argument, by position or by name: an .npy file, or an .npz file with arrays by name",
    )  # fmt: skip
    run.add_argument("--out", metavar="DIR", help="write the results to DIR/result_0.npy, … instead of printing them")
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="print the collectives and the peak memory; nothing runs, no data is read",
    )
    estimate = _add_estimate(commands)
    for command in (run, estimate):
        command.add_argument("--func", default="main", metavar="NAME", help="the function to run (default: main)")
        command.add_argument("--mesh", type=_mesh, metavar="NAME=SIZE,…", help="the mesh, for a program that has none")
    for command in (opt, why, run, estimate):
        command.add_argument("file", metavar="FILE", help="the program's text; - for standard input")
        for option in fields(PropagationOptions):
            flag, text = f"--{option.name.replace('_', '-')}", option.metadata["help"]
            if "choices" in option.metadata:
                text = f"{text} (default: {option.default})"
                command.add_argument(flag, choices=option.metadata["choices"], help=text)
            else:
                command.add_argument(flag, action="store_true", default=None, help=text)
    why.add_argument(
        "value",
        metavar="%VALUE",
        nargs="+",
        help="a name in the text: %%h, %%arg0, %%r#1, or @f %%h for that of a function; or a given one: h; an op: "
        "dot_general, dot_general[0] for the first one; or a line: train.py:12",
    )
    why.add_argument(
        "--counterfactual", action="store_true", help="also propagate without each annotation, and show the difference"
    )
    why.add_argument(
        "--compiled", action="store_true", help="explain the program as `run` compiles it: calls inlined, simplified"
    )
    for command in (why, run, estimate):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0; 1 for an invalid program; 2 for an invalid command line.

    >>> main(["opt", "no_such_file.mlir"])
    1
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ShardingWarning)
            text = options.run(options)
        _print_warnings(caught, _STANDARD_INPUT if options.file == "-" else options.file)
        _write_output(text)
    except _RefusedError as refused:
        _print_error(refused)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
