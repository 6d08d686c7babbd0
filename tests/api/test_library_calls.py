# SPDX-License-Identifier: Apache-2.0
"""Traced arrays and Arrays in other libraries: pandas, SciPy, the standard library, and one that is made here."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.support.oracles import oracle

pd = oracle("pandas")

MESH = sw.Mesh({"x": 4})
V = np.arange(5.0, dtype=np.float32)
FRAME = pd.DataFrame(
    {
        "age": np.array([30, 41, 25, 60, 35]),
        "score": [1.5, np.nan, 2.0, 0.5, 1.0],
        "member": [True, False, True, True, False],
        "name": list("abcde"),
        "city": pd.Categorical(["Rome", "Oslo", "Rome", "Lima", "Oslo"]),
        "day": pd.date_range("2024-01-01", periods=5),
    }
)
UNKNOWN = "needs the values of a traced array, which are unknown during tracing, got Tracer<float32[5]>"
REWRITE = "write it with NumPy functions, or call it outside jit on np.asarray(x)"
UNPACK = "take the numbers out of the Series or DataFrame first, with to_numpy()"


def assert_says(function: Callable[..., Any], x: Any, error: type[Exception], text: str, places: bool = True) -> None:
    """The whole message, at the line of the function."""
    with pytest.raises(error) as caught:
        sw.jit(function, mesh=MESH)(x)
    line = getattr(function, "__code__").co_firstlineno  # noqa: B009 - a Callable has none for mypy
    assert str(caught.value) == f"{text} (at {__file__}:{line})"


def test_a_product_with_a_frame_is_an_error_of_the_users_line() -> None:
    text = f'FRAME[["age"]].T @ x: pandas {UNKNOWN}; {UNPACK}'
    assert_says(lambda x: FRAME[["age"]].T @ x, V, sw.TracerConversionError, text)


def test_what_the_pandas_message_advises_works() -> None:
    got = sw.jit(lambda x: FRAME[["age"]].to_numpy().T @ x, mesh=MESH)(V)
    np.testing.assert_allclose(np.asarray(got), FRAME[["age"]].to_numpy().T @ V)


def test_a_function_of_scipy_is_an_error_of_the_users_line() -> None:
    special = oracle("scipy.special")
    text = f"special.logsumexp: scipy {UNKNOWN}; {REWRITE}"
    assert_says(lambda x: special.logsumexp(x), V, sw.TracerConversionError, text)


@pytest.fixture
def faraway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installed package."""
    package = tmp_path / "site-packages" / "faraway"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import numpy as np\n"
        "def total(x):\n    return inner(x)\n"
        "def inner(x):\n    return np.asarray(x).sum()\n"
        "def sign(x):\n    return 1 if x.sum() > 0 else -1\n"
        "def product(x):\n    return np.prod(x)\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    return importlib.import_module("faraway")


def test_the_call_is_named_that_entered_the_library(faraway: Any) -> None:
    text = f"faraway.total: faraway {UNKNOWN}; {REWRITE}"
    assert_says(lambda x: faraway.total(x), V, sw.TracerConversionError, text)


def test_a_condition_in_a_library_is_an_error_of_the_users_line(faraway: Any) -> None:
    text = f"faraway.sign: faraway {UNKNOWN.replace('float32[5]', 'bool[]')}; {REWRITE}"
    assert_says(lambda x: faraway.sign(x), V, sw.TracerBoolConversionError, text)


def test_a_library_that_calls_numpy_is_traced(faraway: Any) -> None:
    assert float(sw.jit(lambda x: faraway.product(x + 1), mesh=MESH)(V)) == 120


def test_a_jitted_function_of_a_library_keeps_its_own_line(faraway: Any) -> None:
    with pytest.raises(sw.TracerConversionError, match=r"np.asarray: x is already an array: .*faraway/__init__.py:5\)"):
        sw.jit(faraway.total, mesh=MESH)(V)


def test_a_module_of_the_standard_library_is_an_error_of_the_users_line() -> None:
    text = f"statistics.fmean: statistics {UNKNOWN.replace('[5]', '[]')}; {REWRITE}"
    assert_says(lambda x: statistics.fmean(x), V, sw.TracerConversionError, text)


NO_NUMBERS = {
    "frame": (FRAME, "DataFrame; pass its columns of numbers, df[columns].to_numpy(np.float32)"),
    "mixed numbers": (
        FRAME[["age", "score", "member"]],
        "DataFrame; pass its columns of numbers, df[columns].to_numpy(np.float32)",
    ),
    "texts": (
        FRAME["name"].to_numpy(dtype="U1"),
        "<U1[5]; number its strings with np.unique(x, return_inverse=True)",
    ),
    "categories": (FRAME["city"], "category[5]; pass x.cat.codes"),
    "objects": (FRAME[["age", "member"]].to_numpy(), "object[5, 2]; convert it with astype"),
    "times": (
        FRAME["day"].to_numpy(dtype="datetime64[ns]"),
        "datetime64[ns][5]; convert it with astype(np.int64)",
    ),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_columns_without_numbers_are_refused_with_what_works(name: str) -> None:
    x, got = NO_NUMBERS[name]
    with pytest.raises(sw.DTypeError) as caught:
        sw.jit(lambda x: x, mesh=MESH)(x)
    assert str(caught.value).startswith(f"jit: argument x must be an array of numbers, got {got} (at {__file__}:")


def test_what_the_messages_advise_works() -> None:
    numbers = {
        "frame": FRAME[["age", "score", "member"]].to_numpy(np.float32),
        "texts": np.unique(FRAME["name"].to_numpy(dtype="U1"), return_inverse=True)[1],
        "categories": FRAME["city"].cat.codes,
        "objects": FRAME[["age", "member"]].to_numpy().astype(np.float32),
        "times": FRAME["day"].to_numpy(dtype="datetime64[ns]").astype(np.int64),
    }
    for name, x in numbers.items():
        got = sw.jit(lambda x: x, mesh=MESH)(x)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(x), err_msg=name)


def test_results_become_columns() -> None:
    @sw.jit(mesh=MESH, in_shardings=sw.P("x"))
    def standardised(x: Any) -> Any:
        mean = np.nanmean(x, axis=0)
        return (np.where(np.isnan(x), mean, x) - mean) / np.nanstd(x, axis=0)

    columns = ["age", "score"]
    got = pd.DataFrame(standardised(FRAME[columns]), columns=columns)
    want = (FRAME[columns] - FRAME[columns].mean()) / FRAME[columns].std(ddof=0)
    pd.testing.assert_frame_equal(got, want.fillna(0.0))
