# SPDX-License-Identifier: Apache-2.0
"""Mistakes in what is said about shardings: specs, layouts, placements, trees of shardings, ambient meshes."""

from __future__ import annotations

from typing import Any

import shardwise as sw
from shardwise import P, dtensor
from shardwise.dtensor import Partial, Replicate, Shard
from tests.errors.mistakes import MESH, X, on_mesh, row, says

# ---- specs ----------------------------------------------------------------------------------------------------------


@row(sw.ShardingError, r"sub: the name of an axis must be text, got 3")
def sub_axis_of_a_number() -> None:
    sw.sub(3, pre=1, size=2)  # type: ignore[arg-type]


@row(sw.ShardingError, r"sub: pre must be an integer in \[1, 2\^63\), got 0")
def sub_axis_behind_nothing() -> None:
    sw.sub("data", pre=0, size=2)


@row(sw.ShardingError, r"sub: size must be an integer in \[1, 2\^63\), got 2.0")
def sub_axis_of_a_broken_size() -> None:
    sw.sub("data", pre=1, size=2.0)  # type: ignore[arg-type]


@row(sw.ShardingError, r"open: a dim must be None, an axis name, a tuple of names, or open\(...\), got \(None,\)")
def open_of_nothing() -> None:
    sw.open(None)  # type: ignore[arg-type]


@row(sw.ShardingError, r"priority: a priority must be an integer in \[0, 2\^63\), got -1")
def negative_priority() -> None:
    sw.priority("data", -1)


@row(sw.ShardingError, r"priority: a priority must be an integer in \[0, 2\^63\), got 9223372036854775808")
def priority_of_more_than_a_text_can_say() -> None:
    sw.priority("data", 2**63)


@row(sw.ShardingError, r"sub: size must be an integer in \[1, 2\^63\), got 9223372036854775808")
def part_of_more_than_any_axis() -> None:
    sw.sub("data", pre=1, size=2**63)


@row(sw.ShardingError, r"why: counterfactual must be True or False, got 'no'")
def switch_of_why_that_is_a_word() -> None:
    on_mesh(lambda x: x + 1).lower(X).compile().why("x", counterfactual="no")  # type: ignore[arg-type]


@row(sw.ShardingError, r"why: counterfactual must be True or False, got 1")
def switch_of_why_of_a_module_that_is_a_number() -> None:
    on_mesh(lambda x: x + 1).trace(X).why("x", counterfactual=1)  # type: ignore[arg-type]


@row(sw.ShardingError, r"priority: a dim must have axes or be open, got \(\); name axes, or use open\(\)")
def priority_of_a_whole_dim() -> None:
    sw.priority((), 1)


@row(sw.ShardingError, r"priority: a dim must have one priority, got priority\('data', 1\)")
def priority_of_a_priority() -> None:
    sw.priority(sw.priority("data", 1), 2)  # type: ignore[arg-type]


@row(sw.ShardingError, r"P: replicated must be an axis name or a set of them, got 3")
def replicated_over_a_number() -> None:
    P(replicated=3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"P: unreduced must be an axis name or a set of them, got \['data', None\]")
def unreduced_over_nothing() -> None:
    P(unreduced=["data", None])  # type: ignore[list-item]


@row(sw.ShardingError, r"P: reducer must be one of sum, prod, max, min, and, or, got 'mean'")
def unknown_reducer() -> None:
    P(unreduced="data", reducer="mean")


@row(sw.ShardingError, r"P: a reducer needs unreduced axes, got 'max'; name them: unreduced=")
def reducer_of_nothing() -> None:
    P("data", reducer="max")


@row(sw.ShardingError, r'an axis must be of mesh @mesh, got "dta"; use one of "data", "model"')
def named_sharding_over_an_unknown_axis() -> None:
    sw.NamedSharding(MESH, P("dta"))


@row(sw.ShardingError, r"NamedSharding: spec must be P\(...\) or text, got 3")
def named_sharding_of_a_number() -> None:
    sw.NamedSharding(MESH, 3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"ShapeDtypeStruct: sharding must be a NamedSharding, P\(...\), text or None, got 3")
def shape_with_a_number_for_a_sharding() -> None:
    sw.ShapeDtypeStruct((8,), "float32", sharding=3)


# ---- trees of shardings, meshes -------------------------------------------------------------------------------------


@row(
    sw.ShardingError,
    r"with_sharding_constraint: must be a prefix of the tree it describes, "
    r"got a tuple of 2 where the tree has a tuple of 1; give",
)
def constraint_that_is_no_prefix() -> None:
    on_mesh(lambda x: sw.with_sharding_constraint((x,), (P(), P()))).trace(X)


@row(sw.ShardingError, r"reshard: takes P\(...\), NamedSharding or text, got None")
def reshard_to_nothing() -> None:
    sw.reshard(X, None)


@row(sw.MeshError, r"reshard: a spec needs a mesh, got P\('data'\); use NamedSharding\(mesh, spec\) or set_mesh")
def reshard_by_a_spec_without_a_mesh() -> None:
    sw.reshard(X, P("data"))


@row(sw.MeshError, r"device_put: the mesh must be over the 8 devices of the program's mesh, .* got Mesh\('a': 2\); use")
def device_put_to_another_mesh_in_a_program() -> None:
    on_mesh(lambda x: sw.device_put(x, sw.Mesh({"a": 2}))).trace(X)


@row(sw.MeshError, r"set_mesh: must not be called in a traced function; give the mesh to jit, or set it before")
def set_mesh_in_a_program() -> None:
    def f(x: Any) -> Any:
        sw.set_mesh(MESH)
        return x

    on_mesh(f).trace(X)


@row(
    sw.MeshError,
    r"with_sharding_constraint: the mesh must be over the 8 devices of the program's mesh, Mesh\(.*\), "
    r"got Mesh\('a': 2\); use Mesh\(.*\), or a mesh of 8 devices",
)
def constraint_on_another_mesh() -> None:
    other = sw.NamedSharding(sw.Mesh({"a": 2}), P("a"))
    on_mesh(lambda x: sw.with_sharding_constraint(x, other)).trace(X)


@row(
    sw.ShardingError,
    r"with_sharding_constraint: takes P\(...\), NamedSharding, text or a device assignment, got Mesh\(",
)
def constraint_to_a_mesh() -> None:
    on_mesh(lambda x: sw.with_sharding_constraint(x, MESH)).trace(X)


@row(
    sw.ShardingError,
    r"split: takes one array in a traced function, got list; annotate each of its arrays, or use with_sharding_constr",
)
def split_of_a_list() -> None:
    on_mesh(lambda x: sw.split([x], 0, "data")).trace(X)


@row(sw.ShardingError, r"replicate: takes one array in a traced function, got tuple; annotate each of its arrays")
def replicate_of_a_tuple() -> None:
    on_mesh(lambda x: sw.replicate((x, x))).trace(X)


@row(sw.ShardingError, r"logical: takes one array in a traced function, got dict; annotate each of its arrays")
def logical_of_a_dict() -> None:
    on_mesh(lambda x: sw.logical({"x": x}, "batch hidden")).trace(X)


@row(sw.ShardingError, r"^shard: a spec for 0 dims must have at most 0 entries, got P\('data'\); drop the extra ones")
def shard_of_a_number() -> None:
    on_mesh(lambda x: x * sw.shard(2.0, P("data"))).trace(X)


@row(TypeError, r"split: dim must be an integer, got '0'")
def split_of_a_dim_by_name() -> None:
    on_mesh(lambda x: sw.split(x, "0", "data")).trace(X)  # type: ignore[arg-type]


@row(
    sw.ShardingError,
    r"split: the number of partitions must divide the 2 devices of Mesh\(.*\) beside the manual axes 'data', got 4;",
)
def split_over_more_than_a_manual_region_leaves() -> None:
    on_mesh(_manual(lambda part: sw.split(part, 1, 4))).trace(X)


@row(ValueError, r"name: a name must not be empty, nor start with % or @, as those of program text do, got '%h'")
def name_like_those_of_texts() -> None:
    on_mesh(lambda x: sw.name(x + 1, "%h")).trace(X)


@row(sw.MeshError, r"NamedSharding: the mesh of the text must be Mesh\(.*\), got Mesh\('q': 2\); leave it out")
def text_on_another_mesh() -> None:
    sw.NamedSharding(MESH, '<mesh<["q"=2]>, [{"q"}]>')


@row(sw.MeshError, r"the mesh of the text must be Mesh\(.*\), got Mesh\('model': 2, 'data': 4\); leave it out")
def text_on_a_mesh_of_another_order() -> None:
    sw.NamedSharding(MESH, '<mesh<["model"=2, "data"=4]>, [{"data"}]>')


@row(sw.ShardingError, r'an axis must be used once, got "data" again in dim 1')
def text_with_an_axis_twice() -> None:
    sw.NamedSharding(MESH, '[{"data"}, {"data"}]')


@row(
    sw.ShardingError,
    r"P: both specs must have one reducer, got P\(unreduced={'a'}\) \+ P\(unreduced={'b'}, reducer='max'",
)
def sum_of_specs_with_two_reducers() -> None:
    P(unreduced="a") + P(unreduced="b", reducer="max")


@row(sw.MeshError, r"make_mesh: takes a sequence of sizes and one of names, got 2")
def mesh_of_one_number() -> None:
    sw.make_mesh(2, "x")  # type: ignore[arg-type]


@row(sw.MeshError, r"Mesh: the size of an axis must be below 2\^63, got 'x': 9223372036854775808")
def mesh_larger_than_numbers() -> None:
    sw.Mesh({"x": 2**63})


@row(sw.MeshError, r"Mesh: device ids must be integers, got \[1, '0'\]")
def mesh_of_devices_by_name() -> None:
    sw.Mesh({"x": 2}, [1, "0"])  # type: ignore[list-item]


# ---- layouts --------------------------------------------------------------------------------------------------------


def _lay_out(rules: Any, names: Any) -> None:
    with sw.axis_rules(rules):
        on_mesh(lambda x: sw.logical(x, names)).trace(X)


@row(
    sw.ShardingError,
    r"logical: two dims of a tensor must use different mesh axes, got 'batch' and 'hidden' both on 'data'; change",
    located=False,
)
def two_dims_on_one_axis() -> None:
    _lay_out({"batch": "data", "hidden": "data"}, "batch hidden")


@row(
    sw.ShardingError,
    r"the rule of a dim must name an axis of Mesh\(.*\), got 'batch': 'rows'; use one of 'data', 'model', or give",
    located=False,
)
def rule_for_an_axis_that_is_not_there() -> None:
    _lay_out({"batch": "rows"}, "batch hidden")


@row(sw.ShardingError, r"logical: the dims of a tensor must have different names, got 'batch' twice", located=False)
def two_dims_of_one_name() -> None:
    _lay_out({"batch": "data"}, "batch batch")


@row(sw.ShapeError, r"logical: an array of 2 dims needs as many names, got 'batch'")
def names_for_some_dims() -> None:
    on_mesh(lambda x: sw.logical(x, "batch")).trace(X)


@row(sw.ShardingError, r"logical: the names of dims must be text, got \(1, 2\)")
def dims_named_by_numbers() -> None:
    on_mesh(lambda x: sw.logical(x, (1, 2))).trace(X)  # type: ignore[arg-type]


@row(sw.ShardingError, r"axis_rules: the name of a dim must be an identifier, got 'a b'")
def rule_for_two_names() -> None:
    sw.axis_rules({"a b": "data"})


@row(sw.ShardingError, r"axis_rules: text must be 'name:axis;name:axis', got 'a:b:c'")
def rules_in_text_of_three_parts() -> None:
    sw.axis_rules("a:b:c")


@row(sw.ShardingError, r"axis_rules: a dim must have one rule, got 'a' again")
def two_rules_for_one_name() -> None:
    sw.axis_rules("a:data;a:model")


@row(sw.ShardingError, r"axis_rules: a rule must name an axis, several or None, got 'a': 3")
def rule_of_a_number() -> None:
    sw.axis_rules({"a": 3})


@row(sw.ShardingError, r"axis_rules: takes a mapping, pairs of names and axes, or text, got 3")
def rules_of_a_number() -> None:
    sw.axis_rules(3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"layout: the axes of this layout are \['data'\], got 'model'")
def renaming_of_an_axis_that_a_layout_has_not() -> None:
    sw.layouts.data_parallel(model="columns")


# ---- placements -----------------------------------------------------------------------------------------------------


@row(
    sw.ShardingError,
    r"^distribute_tensor: placements must be one for each of the 2 dims of Mesh\(.*\), got \[Shard\(dim=0\)\]; ",
)
def placements_for_some_mesh_dims() -> None:
    dtensor.distribute_tensor(X, MESH, [Shard(0)])


@row(sw.ShapeError, r"^distribute_tensor: dim of Shard must be an integer in \[-2, 2\), got 2")
def placement_of_a_dim_that_is_not_there() -> None:
    dtensor.distribute_tensor(X, MESH, [Shard(2), Replicate()])


@row(sw.MeshError, r"DeviceMesh: a mesh must have dims, got 3; use an array of device ids")
def device_mesh_of_a_number() -> None:
    dtensor.DeviceMesh("cpu", 3)


@row(sw.ShardingError, r"^spec: reduce_op of Partial must be one of sum, product, max, min, band, bor, got 'avg'")
def partial_mean() -> None:
    dtensor.spec(MESH, [Partial("avg"), Replicate()], 2)


@row(sw.ShardingError, r"^spec: all parts of a tensor must combine in one way, got \[Partial\(reduce_op='sum'\), ")
def partial_in_two_ways() -> None:
    dtensor.spec(MESH, [Partial("sum"), Partial("max")], 2)


@row(sw.ShardingError, r"redistribute: placements must be given, got None; use one per dim of the mesh")
def redistribute_to_nothing() -> None:
    dtensor.redistribute(X, MESH)


@row(sw.MeshError, r"distribute_tensor: no mesh given; pass device_mesh, or call set_mesh first")
def distribute_without_a_mesh() -> None:
    dtensor.distribute_tensor(X)


@row(
    sw.ShardingError,
    r"placements: placements need closed dims of whole axes in the order of the mesh, got P\(\('model'",
)
def placements_of_axes_in_another_order() -> None:
    dtensor.placements(sw.NamedSharding(MESH, P(("model", "data"))))


@row(sw.ShardingError, r"placements: placements need whole axes, got P\(unreduced={sub\('data', pre=1, size=2\)}\)")
def placements_of_parts_of_an_axis() -> None:
    dtensor.placements(sw.NamedSharding(MESH, P(unreduced=sw.sub("data", pre=1, size=2))))


@row(sw.MeshError, r"redistribute: device_mesh must be a Mesh, got \[Shard\(dim=0\)\]; write placements= for those")
def placements_in_the_place_of_the_mesh() -> None:
    dtensor.redistribute(X, [Shard(0)])  # type: ignore[arg-type]


@row(sw.MeshError, r"init_device_mesh: takes a sequence of sizes, got 2; write \(size,\)")
def device_mesh_of_one_size() -> None:
    dtensor.init_device_mesh("cpu", 2)  # type: ignore[arg-type]


@row(TypeError, r"placements: takes an Array or a NamedSharding, got ndarray")
def placements_of_a_plain_array() -> None:
    dtensor.placements(X)  # type: ignore[arg-type]


@row(sw.ShapeError, r"^spec: dim of Shard must be an integer in \[-2, 2\), got '0'")
def placement_of_a_dim_by_name() -> None:
    dtensor.spec(MESH, [Shard("0"), Replicate()], 2)  # type: ignore[arg-type]


# ---- groups, barriers, manual regions -------------------------------------------------------------------------------


@row(sw.ShapeError, r"sharding_group: all values of a group must have one shape, \(8, 6\), got \(6, 8\)")
def group_of_two_shapes() -> None:
    on_mesh(lambda x: sw.sharding_group((x, x.T))[0]).trace(X)


@row(ValueError, r"sharding_group: group_id must be an integer in \[0, 2\^63\), got -1")
def group_of_a_negative_number() -> None:
    sw.sharding_group(X, -1)


@row(ValueError, r"propagation_barrier: allowed_direction must be 'forward', 'backward' or 'none', got 'both'")
def barrier_in_both_directions() -> None:
    sw.propagation_barrier(X, "both")


def _manual(fun: Any = lambda part: part, **options: Any) -> Any:
    return sw.manual(fun, **{"in_specs": P("data"), "out_specs": P("data"), "axes": {"data"}, **options})


@row(
    sw.ShardingError,
    r"manual: axes must be of the mesh, and not manual already, got 'rows'; use one of 'data', 'model'",
)
def manual_axes_that_are_not_there() -> None:
    on_mesh(_manual(axes={"rows"})).trace(X)


@row(
    sw.ShardingError,
    r"in_specs of part: in each dim the manual axes 'data' must come first, got \[{\"model\", \"data\"}",
)
def manual_axes_behind_others() -> None:
    on_mesh(_manual(in_specs=P(("model", "data")))).trace(X)


@row(
    sw.ShapeError,
    r"manual: the manual axes of dim 1 of part have 4 parts, which must divide it, got 6 in \[8, 6\] for .*; pad",
)
def manual_axes_that_do_not_divide() -> None:
    on_mesh(_manual(in_specs=P(None, "data"))).trace(X)


@row(sw.ShardingError, r"in_specs of part: takes P\(...\), NamedSharding or text, got 3")
def manual_specs_of_a_number() -> None:
    on_mesh(_manual(in_specs=3)).trace(X)


@row(sw.MeshError, r"manual: must be on the program's mesh, Mesh\('data': 4, 'model': 2\), got Mesh\('data': 2\)")
def manual_on_another_mesh() -> None:
    on_mesh(_manual(mesh=sw.Mesh({"data": 2}))).trace(X)


@row(sw.MeshError, r"in_specs of part: must be on the program's mesh, Mesh\(.*\), got Mesh\('data': 2\)")
def manual_specs_on_another_mesh() -> None:
    on_mesh(_manual(in_specs=sw.NamedSharding(sw.Mesh({"data": 2}), P("data")))).trace(X)


@row(sw.MeshError, r"manual: mesh must be a Mesh, got 3")
def manual_on_a_number() -> None:
    sw.manual(lambda part: part, 3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"manual: axes must be names, or None for all, got 3")
def manual_axes_of_a_number() -> None:
    sw.manual(lambda part: part, axes=3)  # type: ignore[arg-type]


@row(TypeError, r"manual: takes a function, got 3")
def manual_of_a_number() -> None:
    sw.manual(3)  # type: ignore[arg-type]


@row(sw.ShardingError, r"^split: must not use an axis of a manual region around it, got 'data'")
def annotation_over_a_manual_axis() -> None:
    on_mesh(sw.manual(lambda part: sw.split(part, 0, "data"), MESH, P(), P(), axes={"data"})).trace(X)


@row(
    sw.UnsupportedError,
    r"sdy.manual_computation: its values must not be unreduced, got \[{}, {}\], unreduced={\"model\"}; reduce them",
)
def run_of_a_manual_region_with_an_unreduced_value() -> None:
    on_mesh(_manual(in_specs='[{}, {}], unreduced={"model"}', out_specs=P()))(X)


# ---- passes ---------------------------------------------------------------------------------------------------------


@row(sw.ShardingError, r"passes: a pass must be one of inline_calls, simplify, .*, got optimise")
def unknown_pass() -> None:
    sw.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }").apply("optimise")


@row(
    sw.ShardingError,
    r"localize: the program must not have been through localize, got a program at stage local; give it the program",
)
def pass_on_a_program_that_is_partitioned() -> None:
    program = on_mesh(lambda x: x.sum(), in_shardings=P("data")).lower(X).compile()
    sw.parse(program.as_text("local")).apply("localize")


@row(sw.MeshError, r"^Mesh: name must not be empty, got '' \(at ")
def a_mesh_without_a_name() -> None:
    sw.Mesh({"a": 2}, name="")


@row(TypeError, r"^Mesh: name must be a str, got None \(at ")
def a_mesh_named_none() -> None:
    sw.Mesh({"a": 2}, name=None)


@row(sw.ShardingError, r"^sharding_rule: reduction must be names of factors, got 0 \(at ")
def a_reduction_by_number() -> None:
    sw.sharding_rule("i j -> i j", reduction=0)


@says(sw.ShardingError, "shard: takes P(...), NamedSharding or text, got ['data']; write P('data')")
def shard_by_a_list_of_names() -> None:
    on_mesh(lambda x: sw.shard(x, ["data"]))(X)


@says(
    sw.ShardingError,
    "shard: takes P(...), NamedSharding or text, got (('data', 'model'), None); write P(('data', 'model'), None)",
)
def shard_by_a_tuple_of_names() -> None:
    on_mesh(lambda x: sw.shard(x, (("data", "model"), None)))(X)
