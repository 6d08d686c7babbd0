# SPDX-License-Identifier: Apache-2.0
"""Values of wrong types, and the whole message of each: what must hold, what was given, what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import NamedSharding, P

MESH = sw.Mesh({"x": 2, "y": 2})
X = np.zeros((4, 2), np.float32)


@cache
def program() -> Any:
    return sw.jit(lambda x: x, mesh=MESH).lower(X).compile()


DOUBLED = sw.jit(lambda x: x + x, mesh=MESH)

ROWS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: sw.Mesh({"x"}), sw.MeshError,
     "Mesh: axes must be a mapping from names to sizes, got {'x'}; make_mesh takes sizes and names"),
    (lambda: sw.Mesh({"x": 2.5}), sw.MeshError,
     "Mesh: axes must map names to integers, got 'x': 2.5"),
    (lambda: sw.Mesh(3), sw.MeshError,
     "Mesh: axes must be a mapping from names to sizes, got 3; make_mesh takes sizes and names"),
    (lambda: sw.make_mesh(3, "x"), sw.MeshError,
     "make_mesh: takes a sequence of sizes and one of names, got 3"),
    (lambda: sw.Mesh({"x": 2}, "ab"), sw.MeshError,
     "Mesh: device ids must be integers, got 'ab'"),
    (lambda: sw.Mesh({"x": 2}, range(2**40)), sw.MeshError,
     "Mesh: device ids must be a permutation of the devices, got range(0, 1099511627776) for 2 devices"),
    (lambda: sw.Mesh({"x": 2**40}, range(2**40)), sw.MeshError,
     "Mesh: device ids can be given for at most 1048576 devices, since each is kept, got 1099511627776 "
     "devices; leave device_ids out: 0, 1, 2, … in order"),
    (lambda: sw.set_mesh(3), sw.MeshError,
     "set_mesh: takes a Mesh or None, got 3"),
    (lambda: NamedSharding(3, P()), sw.ShardingError,
     "NamedSharding: mesh must be a Mesh, got 3"),
    (lambda: NamedSharding(MESH, 3), sw.ShardingError,
     "NamedSharding: spec must be P(...) or text, got 3"),
    (lambda: NamedSharding(MESH, P("x")).shard_shape("n"), sw.ShapeError,
     "shard_shape: a shape must be of integers that are not negative, got 'n'; give a tuple such as (8, 16)"),
    (lambda: NamedSharding(MESH, P("x")).shard_shape((2.5,)), sw.ShapeError,
     "shard_shape: a shape must be of integers that are not negative, got (2.5,); give a tuple such as (8, 16)"),
    (lambda: NamedSharding(MESH, P("x")).is_equivalent_to(3, 1), TypeError,
     "is_equivalent_to: takes a NamedSharding, got 3"),
    (lambda: sw.parse(5), TypeError,
     "parse: text must be a str, got 5"),
    (lambda: sw.parse(None), TypeError,
     "parse: text must be a str, got None"),
    (lambda: sw.parse(b"module {}"), TypeError,
     "parse: text must be a str, got b'module {}'"),
    (lambda: sw.parse("module {}", 3), TypeError,
     "parse: filename must be a str, got 3"),
    (lambda: sw.Module.from_json(5), TypeError,
     "Module.from_json: text must be a str, got 5"),
    (lambda: sw.Module.from_json("{"), sw.ParseError,
     "1:2: program: must be JSON, got syntax error while parsing object key - unexpected end of input; "
     "expected string literal"),
    (lambda: sw.Module.from_json("n"), sw.ParseError,
     "1:2: program: must be JSON, got syntax error while parsing value - invalid literal"),
    (lambda: sw.Mesh.from_json(5), TypeError,
     "Mesh.from_json: text must be a str, got 5"),
    (lambda: sw.Mesh.from_json("n"), sw.ParseError,
     "1:2: JSON: expected a JSON document, got syntax error while parsing value - invalid literal"),
    (lambda: sw.device_put(X, 5), sw.ShardingError,
     "device_put: takes a NamedSharding, a spec or a mesh, got 5"),
    (lambda: sw.reshard(X, 5), sw.ShardingError,
     "reshard: takes P(...), NamedSharding or text, got 5"),
    (lambda: sw.Array(3), TypeError,
     "Array: arrays are made by device_put and jitted functions, got 3"),
    (lambda: sw.Program(3), TypeError,
     "Program: takes a traced program, as Lowered.compile() does, got 3"),
    (lambda: sw.ShapeDtypeStruct((2.9,), np.float32), TypeError,
     "ShapeDtypeStruct: sizes must be integers, got (2.9,)"),
    (lambda: sw.ShapeDtypeStruct((-2,), np.float32), sw.ShapeError,
     "ShapeDtypeStruct: a shape must be of integers that are not negative, got (-2,); give a tuple such as (8, 16)"),
    (lambda: sw.ShapeDtypeStruct((2,), 3), sw.DTypeError,
     "ShapeDtypeStruct: dtype must be a NumPy dtype or the name of one, got 3"),
    (lambda: program().why(3), TypeError,
     "why: takes the name of a value, an op or FILE:LINE, got 3"),
    (lambda: program().as_text("nostage"), ValueError,
     "as_text: kind must be one of global, propagated, resharded, local, export, got 'nostage'"),
    (lambda: program().as_text(3), ValueError,
     "as_text: kind must be one of global, propagated, resharded, local, export, got 3"),
    (lambda: program().as_text(locations="n"), sw.ShardingError,
     "as_text: locations must be True or False, got 'n'"),
    (lambda: program().run(X, faithful="n"), sw.ShardingError,
     "run: faithful must be True or False, got 'n'"),
    (lambda: sw.sharding_rule("i j -> i").text(3, 3), sw.ShardingError,
     "sharding_rule: operand_shapes must be a sequence of shapes, got 3; write [(8, 4)] for one tensor"),
    (lambda: sw.device_put(X, MESH).reshape(6.0, 4), TypeError,
     "np.reshape: sizes must be integers, got (6.0, 4); use // or int(...) to compute a size"),
    (lambda: sw.device_put(X, MESH).astype(3), sw.DTypeError,
     "astype: dtype must be a NumPy dtype or the name of one, got 3"),
    (lambda: sw.device_put(X, MESH).sum(dtype=3), sw.DTypeError,
     "np.sum: dtype must be a NumPy dtype or the name of one, got 3"),
    (lambda: sw.device_put(X, MESH).repeat(2**70), sw.ShapeError,
     "np.repeat: repeats must be in [0, 72057594037927935], got 1180591620717411303424"),
    (lambda: sw.device_put(X, MESH).round(2.5), TypeError,
     "np.round: decimals must be an integer, got 2.5"),
    (lambda: sw.random.uniform(sw.random.key(0), "n"), sw.ShapeError,
     "random.uniform: a shape must be of integers that are not negative, got 'n'; give a tuple such as (8, 16)"),
    (lambda: sw.random.uniform(sw.random.key(0), (2,), 3), sw.DTypeError,
     "random.uniform: dtype must be a NumPy dtype or the name of one, got 3"),
    (lambda: sw.jit(lambda n: n, static_argnums="n"), TypeError,
     "jit: static_argnums must be an integer or a sequence of integers, got 'n'; write static_argnames='n'"),
    (lambda: sw.grad(lambda x: x, argnums="n"), TypeError,
     "grad: argnums must be an integer or a sequence of integers, got 'n'; count the positional arguments from 0"),
    (lambda: sw.dtensor.spec(3, [], 1), sw.MeshError,
     "spec: device_mesh must be a Mesh, got 3"),
    (lambda: sw.testing.assert_collectives(3), TypeError,
     "assert_collectives: takes a compiled program, got 3"),
    (lambda: sw.testing.assert_collectives(DOUBLED), TypeError,
     "assert_collectives: takes a compiled program, got <jit of <lambda>>; use f.lower(*args).compile()"),
    (lambda: sw.testing.assert_collectives(DOUBLED.lower(X)), TypeError,
     "assert_collectives: takes a compiled program, got <lowered program of 1 ops for Mesh('x': 2, 'y': 2)>; "
     "use lowered.compile()"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ROWS, ids=[message[:60] for *_, message in ROWS])
def test_the_whole_message(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    place = f" \\(at {re.escape(__file__)}:[0-9]+\\)"
    assert re.sub(place + "$", "", str(caught.value)) == message
    assert re.search(place, str(caught.value))
