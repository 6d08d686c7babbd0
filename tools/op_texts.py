# SPDX-License-Identifier: Apache-2.0
"""Programs of the ops that the table of op cases does not have: collectives, regions, annotations and tokens.

``{t}`` stands for an element type. The partitioner writes the ops of the dialect shardwise for their programs.
"""

from __future__ import annotations

MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
TWO_AXES = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
MATRIX, SQUARE, VECTOR = "tensor<8x4x{t}>", "tensor<8x8x{t}>", "tensor<4x{t}>"
ROWS, COLUMNS, WHOLE, CROSSED = '[{"x"}, {}]', '[{}, {"x"}]', "[{}, {}]", '[{"y", "x"}, {}]'
UNREDUCED = '[{}, {}], unreduced={"x"}'
BOTH_AXES = '[{"x", "y"}, {}]'
ADD = (
    "({{\n  ^bb0(%a: tensor<{{t}}>, %b: tensor<{{t}}>):\n    %s = stablehlo.{op} %a, %b : tensor<{{t}}>\n"
    "    stablehlo.return %s : tensor<{{t}}>\n  }})"
).format(op="add")


def _annotation(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}" if sharding else ""


def function(body: str, result: str = MATRIX, arguments: str = f"%arg0: {MATRIX}", head: str = "", to: str = "") -> str:
    """A program whose body defines %0; `to` is the sharding of the result."""
    return (
        f"{head}func.func @main({arguments}) -> ({result} {_annotation(to)}) {{\n  {body}\n  return %0 : {result}\n}}"
    )


def on_mesh(body: str, given: str = ROWS, result: str = MATRIX, to: str = "") -> str:
    """A program on the mesh whose argument has a sharding."""
    return function(body, result, f"%arg0: {MATRIX} {_annotation(given)}", MESH, to)


def manual(body: str, local: str = "tensor<2x4x{t}>", out: str = ROWS, result: str = MATRIX) -> str:
    """A program of one device in a manual computation: the device has two rows, and the body defines %1."""
    return function(
        f"%0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, {ROWS}>] out_shardings=[<@mesh, {out}>] "
        f'manual_axes={{"x"}} (%arg1: tensor<2x4x{{t}}>) {{\n    {body}\n    sdy.return %1 : {local}\n'
        f"  }} : ({MATRIX}) -> {result}",
        result,
        head=MESH,
    )


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GROUPS = f"{CHANNEL}, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
IDS = f"{GROUPS}, use_global_device_ids"
PAIRS = f"{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>"
SAME = "(tensor<2x4x{t}>) -> tensor<2x4x{t}>"
TWICE = (
    f"func.func private @twice(%a: {MATRIX}) -> {MATRIX} {{\n  %s = stablehlo.add %a, %a : {MATRIX}\n"
    f"  return %s : {MATRIX}\n}}\n"
)


def _number_of_device(op: str) -> str:
    return manual(
        f"%n = stablehlo.{op} : tensor<ui32>\n    %c = stablehlo.convert %n : (tensor<ui32>) -> tensor<{{t}}>\n"
        "    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<{t}>) -> tensor<2x4x{t}>"
    )


OF_DEVICES = {
    "stablehlo.all_gather": manual(
        f'%1 = "stablehlo.all_gather"(%arg1) <{{all_gather_dim = 0 : i64, {IDS}}}> '
        ": (tensor<2x4x{t}>) -> tensor<8x4x{t}>",
        MATRIX,
        WHOLE,
    ),
    "stablehlo.all_reduce": manual(f'%1 = "stablehlo.all_reduce"(%arg1) <{{{IDS}}}> {ADD} : {SAME}'),
    "stablehlo.all_to_all": manual(
        f'%1 = "stablehlo.all_to_all"(%arg1) <{{concat_dimension = 0 : i64, split_count = 4 : i64, '
        f"split_dimension = 1 : i64, {GROUPS}}}> : (tensor<2x4x{{t}}>) -> tensor<8x1x{{t}}>",
        "tensor<8x1x{t}>",
        COLUMNS,
    ),
    "stablehlo.collective_broadcast": manual(f'%1 = "stablehlo.collective_broadcast"(%arg1) <{{{GROUPS}}}> : {SAME}'),
    "stablehlo.collective_permute": manual(f'%1 = "stablehlo.collective_permute"(%arg1) <{{{PAIRS}}}> : {SAME}'),
    "stablehlo.cross-replica-sum": function(
        '%0 = "stablehlo.cross-replica-sum"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>}> '
        f": ({MATRIX}) -> {MATRIX}"
    ),
    "stablehlo.reduce_scatter": manual(
        f'%1 = "stablehlo.reduce_scatter"(%arg1) <{{scatter_dimension = 1 : i64, {IDS}}}> {ADD} '
        ": (tensor<2x4x{t}>) -> tensor<2x1x{t}>",
        "tensor<2x1x{t}>",
        COLUMNS,
        "tensor<2x4x{t}>",
    ),
    "shardwise.match_varying": manual(
        '%1 = "shardwise.match_varying"(%arg1, %arg1) : (tensor<2x4x{t}>, tensor<2x4x{t}>) -> tensor<2x4x{t}>'
    ),
    "shardwise.vary": manual(f'%1 = "shardwise.vary"(%arg1) <{{{GROUPS}}}> : {SAME}'),
    "stablehlo.partition_id": _number_of_device("partition_id"),
    "stablehlo.replica_id": _number_of_device("replica_id"),
}
TO_ROWS = f"<@mesh, {ROWS}>"


def _inlined(op: str, properties: str) -> str:
    return on_mesh(
        f'%0 = "{op}"(%arg0) <{{{properties}}}> ({{\n  ^bb0(%arg1: {MATRIX}):\n    %1 = stablehlo.add %arg1, %arg1 '
        f": {MATRIX}\n    stablehlo.return %1 : {MATRIX}\n  }}) : ({MATRIX}) -> {MATRIX}"
    )


OF_SHARDY = {
    "sdy.reshard": on_mesh(f"%0 = sdy.reshard %arg0 <@mesh, {COLUMNS}> : {MATRIX}"),
    "sdy.sharding_constraint": on_mesh(f"%0 = sdy.sharding_constraint %arg0 <@mesh, {COLUMNS}> : {MATRIX}"),
    "sdy.sharding_group": on_mesh(
        f"%0 = stablehlo.add %arg0, %arg0 : {MATRIX}\n  sdy.sharding_group %0 group_id=1 : {MATRIX}"
    ),
    "sdy.propagation_barrier": on_mesh(f"%0 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD : {MATRIX}"),
    "sdy.data_flow_edge": on_mesh(f"%0 = sdy.data_flow_edge %arg0 sharding={TO_ROWS} : {MATRIX}"),
    "sdy.func_data_flow_edge": on_mesh(f"%0 = sdy.func_data_flow_edge %arg0 : {MATRIX}"),
    "sdy.manual_computation": manual("%1 = stablehlo.add %arg1, %arg1 : tensor<2x4x{t}>"),
    "shardwise.checkpoint": _inlined("shardwise.checkpoint", 'policy = "nothing"'),
    "shardwise.custom_derivative": _inlined("shardwise.custom_derivative", 'derivative = 0 : i64, name = "layer"'),
    "sdy.named_computation": on_mesh(
        f'%0 = sdy.named_computation<"layer">(%arg0) (%arg1: {MATRIX}) {{\n    %1 = stablehlo.add %arg1, %arg1 '
        f": {MATRIX}\n    sdy.return %1 : {MATRIX}\n  }} : ({MATRIX}) -> {MATRIX}"
    ),
}
COUNT = (
    "cond {\n    %k = stablehlo.constant dense<3> : tensor<i32>\n    %p = stablehlo.compare LT, %i, %k "
    ": (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  } do {\n"
    "    %s = stablehlo.constant dense<1> : tensor<i32>\n    %j = stablehlo.add %i, %s : tensor<i32>\n"
)
LOOP = (
    f"%n = stablehlo.constant dense<0> : tensor<i32>\n  %1:2 = stablehlo.while(%i = %n, %x = %arg0) : tensor<i32>, "
    f"{MATRIX}\n  {COUNT}"
    f"    %y = stablehlo.add %x, %x : {MATRIX}\n    stablehlo.return %j, %y : tensor<i32>, {MATRIX}\n  }}\n"
    f"  %0 = stablehlo.optimization_barrier %1#1 : {MATRIX}"
)
ROWS_OF_LOOP = (
    "%n = stablehlo.constant dense<0> : tensor<i32>\n"
    f"  %1:2 = stablehlo.while(%i = %n, %x = %arg1) : tensor<i32>, {VECTOR}\n  {COUNT}"
    f"    %b = stablehlo.dynamic_slice %arg0, %i, %n, sizes = [1, 4] : ({MATRIX}, tensor<i32>, tensor<i32>) -> "
    f"tensor<1x4x{{t}}>\n    %c = stablehlo.reshape %b : (tensor<1x4x{{t}}>) -> {VECTOR}\n"
    f"    %y = stablehlo.add %x, %c : {VECTOR}\n    stablehlo.return %j, %y : tensor<i32>, {VECTOR}\n  }}\n"
    f"  %0 = stablehlo.optimization_barrier %1#1 : {VECTOR}"
)
BRANCHES = (
    f"({{\n    %y = stablehlo.add %arg0, %arg0 : {MATRIX}\n    stablehlo.return %y : {MATRIX}\n  }}, {{\n"
    f"    stablehlo.return %arg0 : {MATRIX}\n  }})"
)
OF_REGIONS = {
    "stablehlo.while": function(LOOP),
    "stablehlo.if": function(
        f'%0 = "stablehlo.if"(%arg1) {BRANCHES} : (tensor<i1>) -> {MATRIX}',
        arguments=f"%arg0: {MATRIX}, %arg1: tensor<i1>",
    ),
    "stablehlo.case": function(
        f'%0 = "stablehlo.case"(%arg1) {BRANCHES} : (tensor<i32>) -> {MATRIX}',
        arguments=f"%arg0: {MATRIX}, %arg1: tensor<i32>",
    ),
    "func.call": function(f"%0 = call @twice(%arg0) : ({MATRIX}) -> {MATRIX}", head=TWICE),
    "stablehlo.composite": function(
        f'%0 = stablehlo.composite "my.twice" %arg0 {{decomposition = @twice}} : ({MATRIX}) -> {MATRIX}', head=TWICE
    ),
    "chlo.scan": function(
        f"%0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0 {{\n  ^bb0(%a: {VECTOR}, %b: {VECTOR}):\n"
        f"    %y = stablehlo.add %a, %b : {VECTOR}\n    stablehlo.return %y, %y : {VECTOR}, {VECTOR}\n  }} : "
        f"({MATRIX}, {VECTOR}) -> ({MATRIX}, {VECTOR})",
        arguments=f"%arg0: {MATRIX}, %arg1: {VECTOR}",
    ).replace("return %0 :", "return %0#0 :"),
    "stablehlo.dynamic_conv": function(
        "%p = stablehlo.constant dense<1> : tensor<1x2xi64>\n"
        '  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %p) <{batch_group_count = 1 : i64, dimension_numbers = '
        "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<8x6x2x{t}>, "
        "tensor<3x2x4x{t}>, tensor<1x2xi64>) -> tensor<8x6x4x{t}>",
        "tensor<8x6x4x{t}>",
        "%arg0: tensor<8x6x2x{t}>, %arg1: tensor<3x2x4x{t}>",
    ),
}
OF_TOKENS = {
    name: function(f"{statement}\n  %0 = stablehlo.optimization_barrier %arg0 : {MATRIX}")
    for name, statement in {
        "stablehlo.create_token": "%t = stablehlo.create_token : !stablehlo.token",
        "stablehlo.after_all": (
            "%s = stablehlo.create_token : !stablehlo.token\n  %t = stablehlo.after_all %s, %s : !stablehlo.token"
        ),
    }.items()
}
_SUM = (
    "%0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0] : "
    f"({MATRIX}, tensor<{{t}}>) -> {VECTOR}"
)
_SUMMED = f"%arg0: {MATRIX} {_annotation(ROWS)}, %arg1: tensor<{{t}}>"
_COPY = f"%0 = stablehlo.optimization_barrier %arg0 : {MATRIX}"
# The partitioner makes the op for the program: those of Shardy by plan_reshards, those of shardwise by localize.
OF_PARTITIONED_PROGRAMS = {
    "sdy.all_gather": on_mesh(_COPY, to=WHOLE),
    "sdy.all_reduce": function(_SUM, VECTOR, _SUMMED, MESH, "[{}]"),
    "sdy.all_slice": on_mesh(_COPY, WHOLE, to=ROWS),
    "sdy.all_to_all": on_mesh(_COPY, to=COLUMNS),
    "sdy.collective_permute": function(_COPY, MATRIX, f"%arg0: {MATRIX} {_annotation(BOTH_AXES)}", TWO_AXES, CROSSED),
    "sdy.reduce_scatter": function(_SUM, VECTOR, _SUMMED, MESH, '[{"x"}]'),
    "shardwise.all_gather": on_mesh(_COPY, to=WHOLE),
    "shardwise.all_reduce": function(_SUM, VECTOR, _SUMMED, MESH, "[{}]"),
    "shardwise.reduce_scatter": function(_SUM, VECTOR, _SUMMED, MESH, '[{"x"}]'),
    "shardwise.all_to_all": on_mesh(_COPY, to=COLUMNS),
    "shardwise.collective_permute": function(
        _COPY, MATRIX, f"%arg0: {MATRIX} {_annotation(BOTH_AXES)}", TWO_AXES, CROSSED
    ),
    "shardwise.axis_index": on_mesh(
        f"%i = stablehlo.iota dim = 0 : {MATRIX}\n  %0 = stablehlo.add %i, %arg0 : {MATRIX}", to=ROWS
    ),
    "shardwise.exchange": on_mesh(
        f"%0 = stablehlo.slice %arg0 [1:7, 0:4] : ({MATRIX}) -> tensor<6x4x{{t}}>", result="tensor<6x4x{t}>", to=ROWS
    ),
    "shardwise.random_bits": function(
        "%1, %0 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> "
        "(tensor<2xui64>, tensor<8x4x{t}>)",
        MATRIX,
        "%arg0: tensor<2xui64>",
        MESH,
        ROWS,
    ),
    "shardwise.scan": function(ROWS_OF_LOOP, VECTOR, f"%arg0: {MATRIX} {_annotation(COLUMNS)}, %arg1: {VECTOR}", MESH),
}
# Programs after plan_reshards: an addend that is no sum joins a sum that is reduced later.
OF_RESHARDED_PROGRAMS = {
    f"sdy.{name}": (
        'module attributes {shardwise.stage = "resharded"} {\n'
        + function(
            f"%1 = sdy.{name} {axes} %arg0 out_sharding=<@mesh, {UNREDUCED}> : {MATRIX}\n"
            f'  %0 = sdy.all_reduce {{"x"}} %1 out_sharding=<@mesh, {WHOLE}> : {MATRIX}',
            arguments=f"%arg0: {MATRIX} {_annotation(given)}",
            head=MESH,
            to=WHOLE,
        )
        + "\n}"
    )
    for name, axes, given in (
        ("replicated_to_unreduced", '{"x"}', WHOLE),
        ("sharded_to_unreduced", '[{"x"}, {}]', ROWS),
    )
}
TEXTS = {
    **OF_DEVICES,
    **OF_SHARDY,
    **OF_REGIONS,
    **OF_TOKENS,
    **OF_PARTITIONED_PROGRAMS,
    **OF_RESHARDED_PROGRAMS,
}
