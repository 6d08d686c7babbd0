# SPDX-License-Identifier: Apache-2.0
"""The user's running expression in errors: calls over several lines, and code without source."""

from __future__ import annotations

import ast
import linecache
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise.user_code.call_sites import call_site, source_tree

MESH = sw.Mesh({"d": 2})
X = np.ones((4, 6))


def error_of(function: Any, *args: Any) -> str:
    with pytest.raises(sw.TracerConversionError) as caught:
        sw.jit(function, mesh=MESH)(*args)
    return str(caught.value)


def test_calls_over_several_lines() -> None:
    def f(x: Any, n: Any) -> Any:
        # fmt: off
        return (x
            .reshape(
                n,
                -1,
            ))
        # fmt: on

    assert "argument n must be static: sw.jit(f, static_argnames='n')" in error_of(f, X, 2)

    def g(x: Any) -> Any:
        return np.sum(
            [
                x[0],
                x[1],
            ],
            axis=0,
        )

    assert "use np.sum(np.stack([ x[0], x[1], ]), axis=0)" in error_of(g, X)


def test_code_without_source() -> None:
    names: dict[str, Any] = {"np": np}
    exec("def f(x, n):\n    return x + np.arange(n)\ndef g(x):\n    return np.asarray(x)", names)
    assert "argument n must be static: sw.jit(f, static_argnames='n')" in error_of(names["f"], X, 6)
    assert error_of(names["g"], X) == (
        "np.asarray: this needs the value of a traced array, which is unknown during tracing, "
        "got Tracer<float64[4,6]>; use functions that take traced arrays, "
        "or return the value from the jitted function (at <string>:4)"
    )


def test_no_code_runs_to_look_up_a_value() -> None:
    reads = []

    class Options:
        @property
        def axis(self) -> int:
            reads.append(1)
            return 0

    options = Options()
    text = error_of(lambda x: np.sum([x, x], axis=options.axis), X)
    assert "use np.sum(np.stack([x, x]), axis=options.axis)" in text
    assert len(reads) == 1


def test_the_running_call() -> None:
    site = call_site()
    assert site is not None
    assert site.text() == "call_site()"
    assert site.value(site.node.func) is call_site  # type: ignore[union-attr]


def test_a_file_is_parsed_again_only_where_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("x = 1\n")
    tree = source_tree(str(file))
    assert tree is not None
    assert source_tree(str(file)) is tree
    file.write_text("y = 2 + 3\n")
    os.utime(file, (1, 1))
    linecache.checkcache(str(file))
    changed = source_tree(str(file))
    assert changed is not None
    assert ast.unparse(changed) == "y = 2 + 3"
