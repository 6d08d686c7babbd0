# SPDX-License-Identifier: Apache-2.0
"""Mistakes around trees: leaves that are no arrays, classes that cannot be registered, donated arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import shardwise as sw
from shardwise import P
from tests.errors.mistakes import MESH, N, X, on_mesh, row


def scaled(x: np.ndarray, mode: str) -> np.ndarray:
    return x * 2 if mode == "twice" else x


class Model:
    pass


@sw.register_pytree_node_class
class Twins:
    """Its children have no names."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[Any, None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Twins:
        return cls(*children)


@dataclass
class Sizes:
    layers: int


@dataclass
class Layer:
    w: Any
    activation: str


# ---- leaves that are no arrays --------------------------------------------------------------------------------------


@row(
    sw.DTypeError,
    r"^jit: argument mode must be an array of numbers, got str 'twice'; "
    r"make it static: sw.jit\(scaled, static_argnames='mode'\) \(at [^)]*\)$",
)
def argument_that_is_a_string() -> None:
    on_mesh(scaled)(X, "twice")


@row(
    sw.DTypeError,
    r"^jit: argument mode must be an array of numbers, got str 'twice'; "
    r"make it static: sw.jit\(scaled, static_argnames='mode'\) \(at [^)]*\)$",
)
def keyword_argument_that_is_a_string() -> None:
    on_mesh(scaled)(X, mode="twice")


@row(
    sw.DTypeError,
    r"^jit: argument arg1 must be an array of numbers, got str 'b'; "
    r"make it static: sw.jit\(f, static_argnums=1\) \(at [^)]*\)$",
)
def argument_without_a_name_that_is_a_string() -> None:
    on_mesh(lambda *xs: xs[0])(X, "b")


@row(
    sw.DTypeError,
    r"^jit: argument params\['w'\]\[0\] must be an array of numbers, got str 'relu'; "
    r"take it out of params, or pass it as a separate static argument \(at [^)]*\)$",
)
def string_in_a_tree_of_arguments() -> None:
    on_mesh(lambda params: params["w"][1])({"w": ["relu", X]})


@row(
    sw.DTypeError,
    r"^jit: argument model must be an array of numbers, got Model; "
    r"make it static: sw.jit\(f, static_argnames='model'\), "
    r"or register its class as a tree of arrays: sw.register_pytree_node \(at [^)]*\)$",
)
def argument_of_an_unknown_class() -> None:
    on_mesh(lambda model: X)(Model())


@row(
    sw.DTypeError,
    r"^jit: argument sizes must be an array of numbers, got Sizes\(layers=2\); "
    r"make it static: sw.jit\(f, static_argnames='sizes'\), "
    r"or register it as a tree of arrays: @sw.register_dataclass above Sizes \(at [^)]*\)$",
)
def argument_that_is_a_dataclass_without_arrays() -> None:
    on_mesh(lambda sizes: X)(Sizes(2))


@row(
    sw.DTypeError,
    r"^jit: argument layer.activation must be an array of numbers, got str 'relu'; "
    r"make the field static, in a dataclass with field\(metadata={'static': True}\) \(at [^)]*\)$",
)
def string_in_a_dataclass() -> None:
    on_mesh(lambda layer: layer.w)(Layer(X, "relu"))


@row(
    sw.DTypeError,
    r"^jit: an output must be an array, got str 'b' for result\['name'\]\[1\]; "
    r"return arrays, and anything else outside the function \(at [^)]*\)$",
)
def result_with_text_in_it() -> None:
    on_mesh(lambda x: {"name": (x, "b")})(X)


@row(sw.DTypeError, r"^vmap: an output must be an array, got the function len for result\[1\]; return arrays, and")
def result_of_a_map_with_a_function_in_it() -> None:
    on_mesh(sw.vmap(lambda x: (x, len)))(X)


@row(sw.DTypeError, r"^manual: an output must be an array, got str 'b' for result\[1\]; return arrays, and anything")
def result_of_a_manual_region_with_text_in_it() -> None:
    on_mesh(sw.manual(lambda x: (x, "b"), MESH, P(), P())).trace(X)


@row(
    sw.DTypeError,
    r"^grad: an argument to differentiate by must be floating, got int32\[8, 6\] for params\['w'\]\[0\]; "
    r"convert it with astype, or take it out of params \(at [^)]*\)$",
)
def gradient_by_integers_in_a_tree() -> None:
    on_mesh(sw.grad(lambda x, params: x.sum(), argnums=1))(X, {"w": [N]})


@row(
    sw.ShapeError,
    r"^vmap: mapped dims must have one size, got 8 for x, 6 for params\['w'\]; give every example a row in each of",
)
def mapped_dims_of_two_sizes() -> None:
    on_mesh(sw.vmap(lambda x, params: x))(X, {"w": X[:6]})


@row(
    sw.ShapeError,
    r"^vmap: mapped dims must have one size, got 8 for twins\[<flat index 0>\], 6 for twins\[<flat index 1>\]; give",
)
def mapped_dims_of_two_sizes_in_a_class() -> None:
    on_mesh(sw.vmap(lambda twins: twins.a))(Twins(X, X[:6]))


@row(
    sw.DTypeError,
    r"^jit: argument -x must be an array of numbers, got str 'a'; make it static: sw.jit\(f, static_argnames",
)
def keyword_that_is_no_name() -> None:
    on_mesh(lambda **xs: xs["-x"])(**{"-x": "a"})


@row(
    sw.ShapeError,
    r"^vmap: in_axes must map an argument, got \(None,\); write in_axes=0, or call the function without vmap \(at",
)
def map_of_no_argument() -> None:
    on_mesh(sw.vmap(lambda x: x, in_axes=(None,)))(X)


@row(
    sw.DTypeError,
    r"^device_put: every leaf must be an array of numbers, got str 'b' for x\['a'\]\[1\]; leave it out of the tree \(",
)
def device_put_of_a_tree_with_text() -> None:
    sw.device_put({"a": (X, "b")}, MESH)


@row(
    sw.ShardingError,
    r"^jit: in_shardings: must be a prefix of the tree it describes, got "
    r"a tuple of 3 where the tree has Weights, at \[0\]; give one spec",
)
def in_shardings_that_are_no_prefix_of_a_dataclass() -> None:
    @dataclass
    class Weights:
        w: Any
        b: Any

    on_mesh(lambda p: p.w, in_shardings=((P("data"), P("model"), P()),))(Weights(X, X))


# ---- shardings that do not fit a leaf -------------------------------------------------------------------------------

TREE = {"w": [X], "b": X[0]}
TOO_LONG = r": a spec for 1 dims must have at most 1 entries, got P\('data', 'model'\); drop the extra ones \(at "


@row(sw.ShardingError, r"^jit: in_shardings of params\['b'\]" + TOO_LONG)
def sharding_of_an_argument_that_is_too_long() -> None:
    on_mesh(lambda params: params, in_shardings=P("data", "model"))(TREE)


@row(sw.ShardingError, r"^jit: out_shardings of result\['b'\]" + TOO_LONG)
def sharding_of_a_result_that_is_too_long() -> None:
    on_mesh(lambda params: params, out_shardings=P("data", "model"))(TREE)


@row(sw.ShardingError, r"^with_sharding_constraint of x\['b'\]" + TOO_LONG)
def constraint_that_is_too_long() -> None:
    on_mesh(lambda params: sw.with_sharding_constraint(params, P("data", "model")))(TREE)


@row(sw.ShardingError, r"^device_put of x\['b'\]" + TOO_LONG)
def device_put_by_a_spec_that_is_too_long() -> None:
    sw.device_put(TREE, sw.NamedSharding(MESH, P("data", "model")))


@row(sw.ShardingError, r"^(shard_map|manual): in_specs of params\['b'\]" + TOO_LONG)
def manual_spec_that_is_too_long() -> None:
    on_mesh(sw.manual(lambda params: params, MESH, P("data", "model"), P())).trace(TREE)


@row(sw.ShardingError, r"^(shard_map|manual): out_specs of result\['b'\]" + TOO_LONG)
def manual_spec_of_a_result_that_is_too_long() -> None:
    on_mesh(sw.manual(lambda params: params, MESH, P(), P("data", "model"))).trace(TREE)


@row(
    sw.ShardingError,
    r"^jit: in_shardings of params\['w'\]\[0\]: an axis must be of mesh @mesh, "
    r'got "x"; use one of "data", "model" \(at',
)
def sharding_of_an_argument_over_an_unknown_axis() -> None:
    on_mesh(lambda params: params, in_shardings=({"w": P("x"), "b": None},))(TREE)


@row(sw.ShapeError, r"^vmap: in_axes must be in \[-1, 1\) for params\['b'\] of 1 dims, got 1 \(at")
def mapped_dim_that_a_leaf_has_not() -> None:
    on_mesh(sw.vmap(lambda params: params, in_axes=1))({"b": X[0]})


@dataclass
class Stack:
    w: Any
    layers: int = 2


@row(
    sw.TracerConversionError,
    r"^range: model\.layers must be static: make the field static, in a dataclass with "
    r"field\(metadata={'static': True}\) \(at",
)
def loop_over_a_field() -> None:
    on_mesh(lambda model: [model.w for _ in range(model.layers)])(Stack(X))


@row(
    sw.DTypeError,
    r"^grad: an argument to differentiate by must be floating, got int64\[\] for model\.layers; "
    r"convert it with astype, or make the field static, in a dataclass with field\(metadata={'static': True}\) \(at",
)
def gradient_of_a_number_in_a_field() -> None:
    on_mesh(sw.grad(lambda model: model.w.sum()))(Stack(X))


@row(
    sw.ShapeError,
    r"^vmap: in_axes must be a prefix of the tree it describes, got a dict with key 'w' where "
    r"the tree has a dict with keys 'b', 'w', at \[0\]; give one axis for everything below a point of the tree",
)
def mapped_dims_that_are_no_prefix() -> None:
    on_mesh(sw.vmap(lambda params: params, in_axes=({"w": 0},)))(TREE)


# ---- donated arguments ----------------------------------------------------------------------------------------------


@row(ValueError, r"^jit: an argument must not be static and donated, got 'mode'; leave it out of donate_argnums \(")
def argument_that_is_static_and_donated() -> None:
    sw.jit(scaled, static_argnames="mode", donate_argnums=1)


@row(ValueError, r"^jit: donate_argnums must be below the 2 parameters, got 2 \(")
def donated_argument_that_there_is_not() -> None:
    sw.jit(scaled, donate_argnums=2)


@row(ValueError, r"^jit: donate_argnames must name parameters, got 'y' \(")
def donated_name_that_there_is_not() -> None:
    sw.jit(scaled, donate_argnames="y")


# ---- classes in trees -----------------------------------------------------------------------------------------------


@row(TypeError, r"^register_pytree_node: takes a class, got 3 \(")
def registered_number() -> None:
    sw.register_pytree_node(3, lambda x: ((), None), lambda _, xs: 3)  # type: ignore[arg-type]


@row(TypeError, r"^register_pytree_node_class: the class must have a method tree_flatten, got <class '.*Model'> \(")
def registered_class_without_methods() -> None:
    sw.register_pytree_node_class(Model)


@row(ValueError, r"^register_pytree_node: a class must be registered once, got list again \(")
def registered_list() -> None:
    sw.register_pytree_node(list, lambda x: (x, None), lambda _, xs: list(xs))


@row(
    TypeError,
    r"^register_dataclass: takes a dataclass, got <class '.*Model'>; "
    r"decorate it with @dataclass first, or name data_fields and meta_fields \(",
)
def registered_class_that_is_no_dataclass() -> None:
    sw.register_dataclass(Model)


@row(
    TypeError,
    r"^register_dataclass: data_fields and meta_fields must be given together, "
    r"got data_fields=\['w'\], meta_fields=None \(",
)
def registered_dataclass_without_static_fields() -> None:
    sw.register_dataclass(Layer, data_fields=["w"])


@row(
    ValueError,
    r"^register_dataclass: data_fields and meta_fields must name every init field, and no other, "
    r"got none of activation; add them, or name them in drop_fields \(",
)
def registered_dataclass_with_a_missing_field() -> None:
    sw.register_dataclass(Layer, ["w"], [])


@row(
    ValueError,
    r"^register_dataclass: data_fields and meta_fields must name every init field, and no other, got b \(",
)
def registered_dataclass_with_an_unknown_field() -> None:
    sw.register_dataclass(Layer, ["w", "b"], ["activation"])


@row(ValueError, r"^register_dataclass: a field must be in one of data_fields and meta_fields, got w in both \(")
def registered_dataclass_with_a_field_in_both() -> None:
    sw.register_dataclass(Layer, ["w", "activation"], ["w"])


@row(
    ValueError,
    r"^register_dataclass: all fields must be in __init__, got 'norm'; "
    r"name it in drop_fields if __post_init__ computes it \(",
)
def registered_dataclass_with_a_field_that_is_computed() -> None:
    @dataclass
    class Computed:
        w: Any
        norm: float = field(init=False)

    sw.register_dataclass(Computed)


@row(
    TypeError,
    r"^tree: static data of static_field_that_is_a_list.<locals>.Layers must be hashable, got unhashable type: 'list'; "
    r"use a tuple, or make it a field of data \(",
)
def static_field_that_is_a_list() -> None:
    @dataclass
    class Layers:
        w: Any
        sizes: list[int] = field(metadata={"static": True})

    on_mesh(lambda layer: layer.w)(Layers(X, [1, 2]))
