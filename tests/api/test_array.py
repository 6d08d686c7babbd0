# SPDX-License-Identifier: Apache-2.0
"""Arrays on a mesh: what they tell, how NumPy works on them, how they are placed and stored."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 4, "y": 2})
PERMUTED = sw.Mesh({"x": 4, "y": 2}, [3, 1, 4, 0, 7, 5, 2, 6])
X = np.arange(24, dtype=np.float32).reshape(6, 4)


def put(x: Any = X, spec: P | None = None, mesh: sw.Mesh = MESH) -> sw.Array:
    return sw.device_put(x, NamedSharding(mesh, P("x", "y") if spec is None else spec))


A = put()


# ---- facts ----------------------------------------------------------------------------------------------------------


def test_an_array_tells_what_numpys_does() -> None:
    for x in (X, X[0], X[0, 0], X[:0], X.astype(sw.bfloat16), X > 3):
        a = sw.device_put(x, MESH)
        for name in ("dtype", "shape", "ndim", "size", "nbytes", "itemsize"):
            assert getattr(a, name) == getattr(x, name)
    assert len(A) == 6
    np.testing.assert_array_equal(A.T, X.T)
    np.testing.assert_array_equal(A.mT, X.T)
    assert (np.shape(A), np.ndim(A), np.size(A), np.size(A, 1)) == ((6, 4), 2, 24, 4)


def test_len_and_iteration_need_a_dim() -> None:
    scalar = sw.device_put(1.0, MESH)
    for use in (len, iter, list):
        with pytest.raises(TypeError):
            use(scalar)


def test_repr_shows_elements_and_dtype_and_shortens_large_arrays() -> None:
    assert repr(sw.device_put(np.arange(3), MESH)) == "Array([0, 1, 2], dtype=int64)"
    assert repr(sw.device_put(np.float32(1.5), MESH)) == "Array(1.5, dtype=float32)"
    assert repr(put()).startswith("Array([[ 0.,  1.,  2.,  3.],\n       [ 4.,")
    large = repr(sw.device_put(np.zeros((1000, 1000)), MESH))
    assert "..." in large
    assert len(large) < 1000
    assert str(sw.device_put(np.arange(2), MESH)) == "Array([0, 1], dtype=int64)"


def test_a_scalar_can_be_formatted_as_a_number() -> None:
    assert f"{A.sum():.2f}" == "276.00"
    assert f"{A.sum()}" == repr(A.sum())
    with pytest.raises(TypeError):
        f"{A:.2f}"


def test_html_of_an_array_is_its_tiles() -> None:
    assert "<svg" in A._repr_html_()


# ---- to NumPy and to Python -----------------------------------------------------------------------------------------


def test_np_asarray_gathers_a_writable_copy() -> None:
    host = np.asarray(A)
    assert type(host) is np.ndarray
    host[...] = 0
    np.testing.assert_array_equal(np.asarray(A), X)
    np.testing.assert_array_equal(np.array(A, dtype=np.int8), X.astype(np.int8))
    assert np.asarray(A, np.float64).dtype == np.float64


def test_np_asarray_without_a_copy_is_read_only_or_refused() -> None:
    whole = sw.device_put(X, MESH)
    view = np.asarray(whole, copy=False)
    assert not view.flags.writeable
    np.testing.assert_array_equal(view, X)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(A, np.float64, copy=False)


def test_python_numbers_come_from_one_element() -> None:
    a = sw.device_put(np.array(3), MESH)
    assert (int(a), float(a), complex(a), bool(a), operator.index(a), a.item()) == (3, 3.0, 3 + 0j, True, 3, 3)
    assert [10, 11, 12, 13][a] == 13
    assert A.tolist() == X.tolist()
    assert A.item(5) == 5.0
    for convert in (bool, operator.index):
        with pytest.raises((ValueError, TypeError)):
            convert(A)


def test_an_array_has_no_hash_and_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(A)
    with pytest.raises(sw.UnsupportedError, match="cannot be written in place"):
        A[0] = 1


def test_the_shape_and_the_dtype_of_an_array_cannot_be_assigned() -> None:
    def assigns(x: Any) -> Any:
        with pytest.raises(sw.UnsupportedError, match=r"shape: an array cannot be changed in place, got \(24,\); x"):
            x.shape = (24,)
        with pytest.raises(sw.UnsupportedError, match=r"dtype: an array cannot be changed in place, got .*; x\.as"):
            x.dtype = np.dtype(np.int64)
        return x

    for x in (assigns(A), sw.jit(assigns, mesh=MESH)(X)):
        np.testing.assert_array_equal(x, X, strict=True)


# ---- shards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", [MESH, PERMUTED], ids=["in order", "permuted"])
@pytest.mark.parametrize("shape", [(8, 4), (7, 3), (17, 1), (1, 5), (0, 4), (5, 0)])
@pytest.mark.parametrize("spec", [P(), P("x"), P("x", "y"), P(("y", "x")), P(None, ("x", "y")), P("y"),
                                  P(sw.sub("x", pre=2, size=2))], ids=repr)  # fmt: skip
def test_shards_are_the_slices_of_their_devices(mesh: sw.Mesh, shape: tuple[int, ...], spec: P) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    a = put(x, spec, mesh)
    assert a.sharding == NamedSharding(mesh, spec)
    shards = a.addressable_shards
    assert [shard.device for shard in shards] == list(mesh.device_ids)
    indices = NamedSharding(mesh, spec).devices_indices_map(shape)
    seen = np.zeros(shape, bool)
    for shard in shards:
        assert shard.index == indices[shard.device]
        assert shard.data.shape == x[shard.index].shape
        np.testing.assert_array_equal(shard.data, x[shard.index])
        seen[shard.index] = True
    assert seen.all()
    np.testing.assert_array_equal(np.asarray(a), x)


def test_a_shard_prints_its_device_index_and_shape() -> None:
    assert repr(put(X, P("x")).addressable_shards[2]) == "Shard(device=2, index=[2:4, 0:4], shape=(2, 4))"


# ---- eager NumPy ----------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "array and number": lambda a: a * 2 + 1,
    "number first": lambda a: 2 / (1 + a),
    "array and ndarray": lambda a: a + X,
    "ndarray first": lambda a: X[::-1] - a,
    "array and numpy scalar": lambda a: a * np.float64(2),
    "two arrays": lambda a: a * a,
    "two shardings": lambda a: a + (put(X, P(None, "x")) if isinstance(a, sw.Array) else X),
    "matmul": lambda a: a @ X.T,
    "matmul with ndarray first": lambda a: X.T @ a,
    "einsum": lambda a: np.einsum("ij,kj->ik", a, X),
    "sum": lambda a: np.sum(a),
    "sum over a numpy axis": lambda a: np.sum(a, axis=np.int64(1)),
    "method": lambda a: a.mean(0),
    "ufunc reduce": lambda a: np.maximum.reduce(a, axis=1),
    "concatenate": lambda a: np.concatenate([a, X, a], axis=1),
    "stack": lambda a: np.stack([a, a]),
    "where": lambda a: np.where(a > 3, a, 0),
    "where with a large mask": lambda a: np.where(X > 3, a, -X),
    "compare": lambda a: (a >= X[::-1]) & ~(a == 3),
    "not equal": lambda a: a != 3,
    "divmod": lambda a: divmod(a, 3)[0],
    "power": lambda a: 2**a,
    "negative": lambda a: -a,
    "clip": lambda a: a.clip(1, 5),
    "reshape": lambda a: a.reshape(3, -1),
    "reshape to numpy sizes": lambda a: a.reshape(np.int64(3), np.int64(8)),
    "reshape to an array of sizes": lambda a: np.reshape(a, np.array([3, 8])),
    "transpose": lambda a: np.transpose(a, np.array([1, 0])),
    "astype": lambda a: a.astype(np.int16),
    "copy": lambda a: a.copy(),
    "flatten": lambda a: a.flatten(),
    "pad": lambda a: np.pad(a, ((1, 2), (0, 1)), constant_values=7),
    "zeros_like": lambda a: np.zeros_like(a),
    "array_equal": lambda a: np.array_equal(a, X),
    "linalg.matrix_transpose": lambda a: np.linalg.matrix_transpose(a),
    "index": lambda a: a[1],
    "negative index": lambda a: a[-1, -2],
    "numpy index": lambda a: a[np.int64(2)],
    "slice": lambda a: a[1:5:2, ::-1],
    "newaxis": lambda a: a[..., None, 0],
}


@pytest.mark.parametrize("name", CALLS)
def test_numpy_on_an_array_gives_numpys_numbers_on_the_mesh(name: str) -> None:
    call = CALLS[name]
    result, expected = call(A), np.asarray(call(X))
    assert isinstance(result, sw.Array)
    assert result.sharding.mesh == MESH
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_equal_calls_share_a_program_and_others_do_not() -> None:
    for k in (0, 1, 0, 1.0, True):
        np.testing.assert_array_equal(A[:, int(k)] * k, X[:, int(k)] * k)
    for k in (np.int64(1), np.int64(3), np.int8(2)):
        result = sw.device_put(X, MESH).astype(np.int16) + k
        assert result.dtype == (X.astype(np.int16) + k).dtype
        np.testing.assert_array_equal(result, X.astype(np.int16) + k)
    large = [np.arange(4000) % 7, np.arange(4000) % 5]
    a = sw.device_put(large[0], MESH)
    for b in large:  # arrays whose repr is the same but for its middle
        np.testing.assert_array_equal(a + b, large[0] + b)


def test_functions_of_one_name_in_two_modules_are_not_confused() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    a = sw.device_put(x, MESH)
    for function in (np.diagonal, np.linalg.diagonal, np.trace, np.linalg.trace, np.diagonal):
        np.testing.assert_array_equal(function(a), function(x))


def test_arrays_on_different_meshes_are_a_clear_error() -> None:
    with pytest.raises(
        sw.MeshError, match=r"must be on meshes over the same devices, those of .*move arrays with device_put"
    ):
        _ = A + sw.device_put(X, sw.Mesh({"z": 2}))


def test_numpy_testing_and_conversions_of_lists_of_arrays() -> None:
    np.testing.assert_allclose(A, X)
    np.testing.assert_array_equal(np.array([A[0], A[1]]), X[:2])
    np.testing.assert_array_equal(np.asarray([A.sum(), A.min()]), [276, 0])
    assert np.allclose(A, X)
    assert bool(np.all(A == X))


def test_iteration_and_unpacking_give_rows() -> None:
    for row, expected in zip(A, X):
        assert isinstance(row, sw.Array)
        np.testing.assert_array_equal(row, expected)
    p, q = sw.device_put(np.array([1, 2]), MESH)
    assert (int(p), int(q)) == (1, 2)


@pytest.mark.parametrize("function", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow])
def test_in_place_operators_bind_a_new_array(function: Callable[[Any, Any], Any]) -> None:
    a = put()
    b = function(a, 2)
    assert b is not a
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, function(X.copy(), 2))


def test_a_numpy_array_is_updated_in_place_by_an_array() -> None:
    x = same = X.copy()
    x += A
    assert x is same
    np.testing.assert_array_equal(x, X + X)


@pytest.mark.parametrize(
    "call",
    [lambda a: np.partition(a, 2), lambda a: np.add(a, 1, out=a), lambda a: np.sum(a, out=np.zeros(()))],
)
def test_what_has_no_form_on_a_mesh_is_an_unsupported_error(call: Callable[[Any], Any]) -> None:
    with pytest.raises(sw.UnsupportedError):
        call(A)


@pytest.mark.parametrize("index", [6, -7, (0, 4), (0, 0, 0)])
def test_an_index_out_of_bounds_is_an_index_error(index: Any) -> None:
    with pytest.raises(IndexError):
        A[index]


# ---- placing --------------------------------------------------------------------------------------------------------


def test_device_put_takes_a_sharding_a_mesh_or_a_spec_on_the_ambient_mesh() -> None:
    assert sw.device_put(X, NamedSharding(MESH, P("x"))).sharding.spec == P("x", None)
    assert sw.device_put(X, MESH).sharding == NamedSharding(MESH, P())
    with sw.set_mesh(MESH):
        assert sw.device_put(X, P("y")).sharding == NamedSharding(MESH, P("y"))
    with pytest.raises(sw.MeshError, match="a spec needs a mesh"):
        sw.device_put(X, P("y"))
    with pytest.raises(sw.ShardingError, match="takes a NamedSharding, a spec or a mesh"):
        sw.device_put(X, 3)


@pytest.mark.parametrize("x", [1, 2.5, True, np.arange(3), np.float16(2)])
def test_device_put_takes_arrays_and_numbers(x: Any) -> None:
    a = sw.device_put(x, MESH)
    assert a.dtype == np.asarray(x).dtype
    np.testing.assert_array_equal(a, x)


def test_device_put_copies() -> None:
    x = X.copy()
    arrays = [sw.device_put(x, MESH), put(x), put(x, P(("x", "y")))]
    x[...] = -1
    for a in arrays:
        np.testing.assert_array_equal(a, X)


def test_device_put_of_an_array_reshards_it() -> None:
    for before in (P(), P("x"), P("y", "x"), P(("x", "y"))):
        for after in (P(), P("y"), P(None, ("x", "y")), P(sw.sub("x", pre=2, size=2))):
            a = sw.device_put(put(X, before), NamedSharding(MESH, after))
            assert a.sharding == NamedSharding(MESH, after)
            np.testing.assert_array_equal(a, X)


@pytest.mark.parametrize("mesh", [PERMUTED, sw.Mesh({"z": 3})], ids=["permuted", "other axes"])
def test_device_put_moves_an_array_to_another_mesh(mesh: sw.Mesh) -> None:
    axis = mesh.axis_names[0]
    a = sw.device_put(put(), NamedSharding(mesh, P(axis)))
    assert a.sharding == NamedSharding(mesh, P(axis))
    np.testing.assert_array_equal(a, X)
    for shard in a.addressable_shards:
        np.testing.assert_array_equal(shard.data, X[shard.index])


@pytest.mark.parametrize("spec", [P("nope"), P("x", "y", "x"), P("x", "x"), P(None, None, None)])
def test_a_sharding_that_does_not_fit_is_refused(spec: P) -> None:
    with pytest.raises(sw.ShardingError):
        put(X, spec)


@pytest.mark.parametrize("x", [np.ones(2, np.clongdouble), np.array(["a"]), object(), np.array([None])])
def test_what_is_no_array_of_numbers_is_refused(x: Any) -> None:
    with pytest.raises(sw.DTypeError):
        sw.device_put(x, MESH)


# ---- storing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize("mesh", [MESH, PERMUTED], ids=["in order", "permuted"])
def test_an_array_pickles_as_its_data_and_sharding(dtype: str, mesh: sw.Mesh) -> None:
    x = X.astype(sw.bfloat16 if dtype == "bfloat16" else dtype)
    a = put(x, P("x", "y"), mesh)
    b = pickle.loads(pickle.dumps(a))
    assert b.sharding == a.sharding
    assert b.dtype == a.dtype
    np.testing.assert_array_equal(np.asarray(b), x)


def test_copies_of_an_array_hold_the_same() -> None:
    for b in (copy.copy(A), copy.deepcopy(A), copy.deepcopy({"a": [A]})["a"][0], A.copy(), np.copy(A)):
        assert isinstance(b, sw.Array)
        np.testing.assert_array_equal(b, X)


@pytest.mark.parametrize("copied", [sw.Array.copy, copy.copy, copy.deepcopy], ids=["method", "copy", "deepcopy"])
def test_a_copy_outlives_its_original(copied: Callable[[Any], Any]) -> None:
    deleted, donated = (sw.device_put(X, NamedSharding(MESH, P("x"))) for _ in range(2))
    kept = copied(deleted), copied(donated)
    deleted.delete()
    added = sw.jit(lambda x: x + 1, mesh=MESH, donate_argnums=0)(donated)
    np.testing.assert_array_equal(added, X + 1)
    for each in kept:
        np.testing.assert_array_equal(each, X)
        assert each.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), 2)
    with pytest.raises(sw.DeletedArrayError, match="donated"):
        copied(donated)


def test_a_tree_of_tracers_can_be_copied() -> None:
    result = sw.jit(lambda x: copy.deepcopy({"w": x})["w"] * copy.copy(x), mesh=MESH)(X)
    np.testing.assert_array_equal(result, X * X)


# ---- shapes without data --------------------------------------------------------------------------------------------


def test_a_shape_dtype_struct_has_shape_dtype_and_sharding() -> None:
    sharding = NamedSharding(MESH, P("x"))
    s = sw.ShapeDtypeStruct([6, np.int64(4)], "bfloat16", sharding=sharding)
    assert (s.shape, s.dtype, s.ndim, s.size, len(s)) == ((6, 4), sw.bfloat16, 2, 24, 6)
    assert repr(s) == f"ShapeDtypeStruct(shape=(6, 4), dtype=bfloat16, sharding={sharding!r})"
    assert sw.ShapeDtypeStruct(3, np.int8).shape == (3,)
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert other == s
        assert hash(other) == hash(s)
    assert s != sw.ShapeDtypeStruct((6, 4), "bfloat16")


@pytest.mark.parametrize(
    ("shape", "dtype", "sharding", "kind"),
    [
        ((-1,), np.float32, None, sw.ShapeError),
        ((2,), np.clongdouble, None, sw.DTypeError),
        ((2,), "O", None, sw.DTypeError),
        ((2,), None, None, sw.DTypeError),
        ({1, 2}, np.float32, None, TypeError),
        ("", np.float32, None, TypeError),
        ((2,), np.float32, 3, sw.ShardingError),
    ],
)
def test_what_is_no_shape_dtype_struct_is_refused(shape: Any, dtype: Any, sharding: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sw.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def test_take_is_numpys() -> None:
    a = np.arange(12.0).reshape(4, 3)
    held = sw.device_put(a, sw.NamedSharding(sw.Mesh({"x": 4}), sw.P("x")))
    np.testing.assert_array_equal(np.asarray(held.take([2, 0], axis=1)), a.take([2, 0], axis=1))
    traced = sw.jit(lambda x, i: x.take(i), mesh=sw.Mesh({"x": 4}))(a, np.array([5, 0]))
    np.testing.assert_array_equal(np.asarray(traced), a.take([5, 0]))


def test_bfloat16_is_a_type_of_scalars() -> None:
    assert sw.bfloat16(1.5) == 1.5
    assert sw.bfloat16.__name__ == "bfloat16"
    assert np.zeros(2, np.float32).astype(sw.bfloat16).dtype == sw.bfloat16
    assert sw.ShapeDtypeStruct((2,), sw.bfloat16).dtype == sw.bfloat16
