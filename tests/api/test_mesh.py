# SPDX-License-Identifier: Apache-2.0
"""Meshes as users make, compare, print, store and set them."""

from __future__ import annotations

import copy
import pickle
import threading
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import shardwise as sw


def test_a_mesh_tells_its_axes_sizes_and_devices() -> None:
    mesh = sw.Mesh({"data": 4, "model": 2}, name="pod")
    assert mesh.name == "pod"
    assert mesh.axis_names == ("data", "model")
    assert mesh.axis_sizes == (4, 2)
    assert dict(mesh.shape) == {"data": 4, "model": 2}
    assert mesh.size == 8
    assert mesh.device_ids == (0, 1, 2, 3, 4, 5, 6, 7)
    np.testing.assert_array_equal(mesh.devices, np.arange(8).reshape(4, 2))


def test_device_ids_may_be_an_array_of_the_axes_shape() -> None:
    mesh = sw.Mesh({"x": 2, "y": 2}, np.array([[3, 1], [2, 0]]))
    assert mesh.device_ids == (3, 1, 2, 0)
    np.testing.assert_array_equal(mesh.devices, [[3, 1], [2, 0]])


def test_the_shape_of_a_mesh_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        sw.Mesh({"x": 2}).shape["x"] = 3  # type: ignore[index]


@pytest.mark.parametrize(
    ("axes", "ids", "text"),
    [
        ([("x", 2)], None, "mapping"),
        ({"x": 2.0}, None, "integers"),
        ({"x": True}, None, "integers"),
        ({1: 2}, None, "integers"),
        ({"x": 0}, None, "x"),
        ({"x": -2}, None, "x"),
        ({"x": 2}, [0], "device"),
        ({"x": 2}, [0, 0], "device"),
        ({"x": 2}, [0, 2], "device"),
    ],
)
def test_what_is_no_mesh_is_refused(axes: Any, ids: Any, text: str) -> None:
    with pytest.raises(sw.MeshError, match=text):
        sw.Mesh(axes, ids)


def test_meshes_are_equal_by_axes_ids_and_name() -> None:
    mesh = sw.Mesh({"x": 2, "y": 3})
    assert mesh == sw.Mesh({"x": 2, "y": 3})
    assert hash(mesh) == hash(sw.Mesh({"x": 2, "y": 3}))
    different: list[Any] = [
        sw.Mesh({"y": 3, "x": 2}),
        sw.Mesh({"x": 2, "y": 3}, [1, 0, 2, 3, 4, 5]),
        sw.Mesh({"x": 2}),
        "mesh",
    ]
    for other in different:
        assert mesh != other


@pytest.mark.parametrize(
    "mesh",
    [
        sw.Mesh({"x": 2, "y": 3}),
        sw.Mesh({"x": 4}, [2, 0, 3, 1], name="other"),
        sw.Mesh({}),
        sw.Mesh({"x": 1 << 20}),
    ],
    ids=repr,
)
def test_a_mesh_survives_pickle_copy_and_json(mesh: sw.Mesh) -> None:
    for other in (
        pickle.loads(pickle.dumps(mesh)),
        copy.copy(mesh),
        copy.deepcopy(mesh),
        sw.Mesh.from_json(mesh.to_json()),
    ):
        assert other == mesh
        assert (other.name, other.device_ids) == (mesh.name, mesh.device_ids)


def test_json_that_is_no_mesh_is_refused() -> None:
    for text in ("", "{", "[]", '{"axes": 3}', '{"format": "shardwise"}'):
        with pytest.raises((sw.ParseError, sw.MeshError)):
            sw.Mesh.from_json(text)


def test_repr_shows_device_ids_only_when_given() -> None:
    assert repr(sw.Mesh({"x": 2})) == "Mesh('x': 2)"
    assert repr(sw.Mesh({"x": 2}, [1, 0])) == "Mesh('x': 2, device_ids=[1, 0])"


def test_html_of_a_mesh_names_its_axes_and_every_device() -> None:
    class Text(HTMLParser):
        words: list[str]

        def handle_data(self, data: str) -> None:
            self.words = [*getattr(self, "words", []), data.strip()]

    parser = Text()
    parser.feed(sw.Mesh({"rows": 2, "cols": 2}, [3, 2, 1, 0])._repr_html_())
    parser.close()
    text = " ".join(parser.words)
    for word in ("rows", "cols", "0", "1", "2", "3"):
        assert word in text


def test_make_mesh_is_as_in_jax() -> None:
    assert sw.make_mesh((4, 2), ("x", "y")) == sw.Mesh({"x": 4, "y": 2})
    assert sw.make_mesh((2,), ("x",), devices=[1, 0]) == sw.Mesh({"x": 2}, [1, 0])
    with pytest.raises(sw.MeshError, match="as many axis names"):
        sw.make_mesh((4, 2), ("x",))
    with pytest.raises(sw.MeshError, match="need 4 devices, got 3"):
        sw.make_mesh((4,), ("x",), devices=[0, 1, 2])


def test_set_mesh_is_a_context_manager_that_nests() -> None:
    a, b = sw.Mesh({"a": 2}), sw.Mesh({"b": 2})
    assert sw.get_mesh() is None
    with sw.set_mesh(a) as entered:
        assert entered is a
        with sw.set_mesh(b):
            assert sw.get_mesh() is b
        assert sw.get_mesh() is a
        with sw.set_mesh(None):
            assert sw.get_mesh() is None
    assert sw.get_mesh() is None


def test_set_mesh_is_undone_by_an_exception() -> None:
    with pytest.raises(KeyError), sw.set_mesh(sw.Mesh({"a": 2})):
        raise KeyError
    assert sw.get_mesh() is None


def test_set_mesh_is_also_a_function() -> None:
    mesh = sw.Mesh({"a": 2})
    try:
        sw.set_mesh(mesh)
        assert sw.get_mesh() is mesh
    finally:
        sw.set_mesh(None)
    assert sw.get_mesh() is None


def test_the_ambient_mesh_is_of_one_thread() -> None:
    seen: list[Any] = []
    with sw.set_mesh(sw.Mesh({"a": 2})):
        thread = threading.Thread(target=lambda: seen.append(sw.get_mesh()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_set_mesh_takes_only_meshes() -> None:
    with pytest.raises(sw.MeshError, match="takes a Mesh or None"):
        sw.set_mesh({"x": 2})  # type: ignore[arg-type]
