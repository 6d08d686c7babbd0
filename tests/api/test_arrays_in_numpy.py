# SPDX-License-Identifier: Apache-2.0
"""Arrays outside jit in NumPy's functions that make text, files or bools, as sizes, and beside NumPy arrays."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw

MESH = sw.Mesh({"data": 2})
X = np.arange(24, dtype=np.float32).reshape(4, 6)
A = sw.device_put(X, sw.NamedSharding(MESH, sw.P("data")))
N = sw.device_put(np.int32(2), MESH)


def written(function: Callable[..., Any], *args: Any, **kwargs: Any) -> bytes:
    file = io.BytesIO()
    function(file, *args, **kwargs)
    return file.getvalue()


SAME: dict[str, Callable[[Any], Any]] = {
    "save": lambda x: written(np.save, x),
    "savetxt": lambda x: written(np.savetxt, x),
    "savez": lambda x: {k: v.tolist() for k, v in np.load(io.BytesIO(written(np.savez, x, b=x))).items()},
    "savez_compressed": lambda x: np.load(io.BytesIO(written(np.savez_compressed, b=x)))["b"].tolist(),
    "array2string": np.array2string,
    "array_repr": np.array_repr,
    "array_str": np.array_str,
    "array_equiv": lambda x: np.array_equiv(x, X),
    "isrealobj": np.isrealobj,
    "iscomplexobj": np.iscomplexobj,
    "common_type": np.common_type,
    "result_type": lambda x: np.result_type(x, np.float64),
    "min_scalar_type": np.min_scalar_type,
    "shares_memory": lambda x: np.shares_memory(x, np.zeros(1)),
    "isscalar": np.isscalar,
    "array": lambda x: np.array([x, x]).tolist(),
    "format": lambda x: f"{x[1, 2]:.3f} {x.sum():.1e} {int(x[0, 1]):d} {x[0, 1]:.0f}",
    "round": lambda x: (round(x[1, 2]), float(round(x[1, 2], -1))),
}


@pytest.mark.parametrize("name", SAME)
def test_as_of_a_numpy_array(name: str) -> None:
    result, expected = SAME[name](A), SAME[name](X)
    assert type(result) is type(expected)
    assert result == expected


def test_repr_info_pickle_and_tests_of_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    assert repr(A).startswith("Array([[ 0.,  1.,")
    assert "Tracer" not in repr(A)
    np.info(A)
    assert "Tracer" not in capsys.readouterr().out
    restored = pickle.loads(pickle.dumps(A))
    assert restored.sharding == A.sharding
    np.testing.assert_array_equal(restored, X)
    np.testing.assert_allclose(A, X)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(A, X + 1)
    assert np.array_equal(A, X)
    assert np.allclose(A, X)
    assert not np.array_equal(A, X + 1)


SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": lambda x, n: x.reshape(n, -1),
    "np.reshape": lambda x, n: np.reshape(x, (-1, n)),
    "axis": lambda x, n: x.sum(n - 1),
    "tile": np.tile,
    "repeat": np.repeat,
    "roll": np.roll,
    "split": lambda x, n: np.split(x, n)[1],
    "slice": lambda x, n: x[:n],
    "expand_dims": lambda x, n: np.expand_dims(x, n),
    "zeros": lambda x, n: np.zeros(n),
    "arange": lambda x, n: np.arange(n),
}


@pytest.mark.parametrize("name", SIZES)
def test_an_array_as_a_size(name: str) -> None:
    result, expected = SIZES[name](A, N), SIZES[name](X, 2)
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert np.asarray(result).dtype == expected.dtype


def test_numpy_array_that_is_written() -> None:
    total = np.zeros((4, 6))
    same = total
    total += A
    total -= A * 3
    assert total is same
    np.testing.assert_array_equal(total, -2.0 * X)
    row = np.zeros(6)
    row[1] = A[1, 1]
    row[2:4] = A[0, 2:4]
    np.testing.assert_array_equal(row, [0, 7, 2, 3, 0, 0])
    np.copyto(total, A)
    np.testing.assert_array_equal(total, X)
    with pytest.raises(TypeError, match="same_kind"):
        np.add(A, A, out=np.zeros((4, 6), np.int32))


@pytest.mark.parametrize("other", [None, "a", b"a"])
def test_comparison_with_none_and_text(other: Any) -> None:
    for result, expected in ((other == A, other == X), (other != A, other != X)):
        assert isinstance(result, sw.Array)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "bins", [[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [2.0, 2.0, 0.0], [0.0, 1.0, np.nan], [1.0, 1.0], [1.0], []]
)
def test_bins_of_an_array_increase_or_decrease(bins: list[float], right: bool) -> None:
    x = np.array([-1.5, 0.5, 1.0, 1.5, 2.0, 2.5, np.nan])
    expected = np.digitize(x, bins, right)
    for edges in (bins, np.array(bins), sw.device_put(np.array(bins), MESH)):
        result = np.digitize(sw.device_put(x, MESH), edges, right)
        np.testing.assert_array_equal(np.asarray(result), expected)
        assert result.dtype == expected.dtype


def test_numbers_of_choices_outside() -> None:
    """Known ones raise as NumPy's; traced ones are clamped, which the docstring states."""
    numbers, rows = np.array([0, 5, -1, 1]), [np.arange(4), np.arange(4) + 10]
    for mode in ("wrap", "clip"):
        result = np.choose(sw.device_put(numbers, MESH), rows, mode=mode)
        np.testing.assert_array_equal(np.asarray(result), np.choose(numbers, rows, mode=mode))
    for function in (np.choose, lambda n, rows: np.choose(sw.device_put(n, MESH), rows)):
        with pytest.raises(ValueError, match=r"invalid entry in choice array|^np\.choose: there are 2 choices"):
            function(numbers, rows)
    traced = sw.jit(lambda n: np.choose(n, rows), mesh=MESH)(numbers)
    np.testing.assert_array_equal(np.asarray(traced), np.choose(numbers, rows, mode="clip"))
    mask = numbers > 0
    np.testing.assert_array_equal(np.asarray(np.choose(sw.device_put(mask, MESH), rows)), np.choose(mask, rows))


def test_counted_numbers_outside() -> None:
    """Known ones raise; traced ones are not counted, which the docstring states."""
    numbers = np.array([0, 5, 1, 1])
    with pytest.raises(
        ValueError, match=r"np.bincount: the numbers must be below minlength, 4, got 5; raise minlength"
    ):
        np.bincount(sw.device_put(numbers, MESH), minlength=4)
    traced = sw.jit(lambda n: np.bincount(n, minlength=4), mesh=MESH)(numbers)
    np.testing.assert_array_equal(np.asarray(traced), [1, 2, 0, 0])


def test_names_that_only_numpy_has() -> None:
    for name in dir(np):
        if callable(getattr(np, name)) and not name.startswith("_") and not hasattr(sw.numpy, name):
            with pytest.raises(AttributeError, match=f"^shardwise.numpy: np.{name} is not supported; "):
                getattr(sw.numpy, name)
    with pytest.raises(AttributeError, match=r"^module 'shardwise.numpy' has no attribute '__path_of_it__'$"):
        sw.numpy.__path_of_it__  # noqa: B018
