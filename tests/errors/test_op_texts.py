# SPDX-License-Identifier: Apache-2.0
"""Texts of ops that are wrong, and the message of each: the op, what must hold, the values, the line and column."""

from __future__ import annotations

import re

import pytest

import shardwise as sw

F, M, V = "tensor<4x8xf32>", "tensor<4x4xf32>", "tensor<8xf32>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CONV = "dimension_numbers = #stablehlo.conv<{}>, batch_group_count = {} : i64, feature_group_count = {} : i64"
NUMBERS = "[b, 0, f]x[0, i, o]->[b, 0, f]"
SOLVE = "left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose {}>"
ADD = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32>
})"""
ONE = """({
^bb0(%x: tensor<f32>):
  stablehlo.return %x : tensor<f32>
})"""
LESS = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %z : tensor<i1>
})"""
RAGGED = (
    "ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = "
    "[1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
)
RNG = "rng_distribution = #stablehlo<rng_distribution {}>"
BITS = "rng_algorithm = #stablehlo<rng_algorithm {}>"
BATCH_NORM = "epsilon = 0.1 : f32, feature_index = {} : i64"
FFT = "fft_type = #stablehlo<fft_type {}>, fft_length = array<i64: {}>"
DIMS = "dimensions = array<i64: {}>"

# op, operand types, properties and regions, result types, message
ROWS = [
    (
        "stablehlo.add",
        "!stablehlo.token, !stablehlo.token",
        "",
        "!stablehlo.token",
        "and results must be tensors, got !st",
    ),
    (
        "stablehlo.abs",
        "tensor<4xui4>",
        "",
        "tensor<4xui4>",
        "operands must be signed integers or floats, got tensor<4xui4",
    ),
    (
        "stablehlo.ceil",
        "tensor<4xcomplex<f32>>",
        "",
        "tensor<4xcomplex<f32>>",
        "must be floats, got tensor<4xcomplex<f32>>",
    ),
    (
        "stablehlo.bitcast_convert",
        F,
        "",
        "tensor<4x8x3xi8>",
        "operand and result must have the same bits: equal widths, or",
    ),
    ("stablehlo.bitcast_convert", F, "", "tensor<4x8x32xi1>", "operand and result must have the same bits"),
    (
        "stablehlo.complex",
        "tensor<4xi32>, tensor<4xi32>",
        "",
        "tensor<4xcomplex<f32>>",
        "operands must be f32 or f64, got",
    ),
    ("stablehlo.complex", f"{F}, {V}", "", "tensor<4x8xcomplex<f32>>", "operands must have the same shape, got"),
    (
        "stablehlo.complex",
        "tensor<f32>, tensor<f64>",
        "",
        "tensor<complex<f32>>",
        "operands must have the same dtype, got",
    ),
    ("stablehlo.real", "tensor<4xi32>", "", "tensor<4xi32>", "operands must be floats, got tensor<4xi32>"),
    ("chlo._asin_acos_kernel", F, "", F, "operands must be complex numbers, got tensor<4x8xf32>"),
    ("chlo.mulhi", f"{F}, {F}", "", F, "operands must be integers, got tensor<4x8xf32>"),
    ("chlo.constant_like", F, "", F, "must have the attribute 'value'"),
    (
        "chlo.constant_like",
        F,
        "<{value = 1.0 : f32}>",
        V,
        "the result must have the operand's shape, got tensor<4x8xf32> ->",
    ),
    ("chlo.broadcast_add", f"{F}, tensor<7xf32>", "", F, "sizes of operands must be equal, or 1, got"),
    ("chlo.broadcast_add", f"{F}, tensor<8xf64>", "", F, "operands must have the same dtype, got"),
    ("chlo.broadcast_and", f"{F}, {F}", "", F, "operands must be booleans or integers, got"),
    ("chlo.broadcast_select", f"{F}, {F}, {F}", "", F, "the predicate must be i1, got tensor<4x8xf32>"),
    (
        "stablehlo.convolution",
        "tensor<2x8x3xf32>, tensor<2x3x5xf32>",
        f"<{{{CONV.format('[b, f]x', 1, 1)}}}>",
        F,
        "dimension_numbers must name each dim once, such as",
    ),
    (
        "stablehlo.convolution",
        f"{F}, tensor<2x3x5xf32>",
        f"<{{{CONV.format(NUMBERS, 1, 1)}}}>",
        F,
        "operands must have the dims that dimension_numbers name",
    ),
    (
        "stablehlo.convolution",
        "tensor<2x8x3xf32>, tensor<2x3x5xf32>",
        f"<{{{CONV.format(NUMBERS, 2, 2)}}}>",
        F,
        "must be positive, and one of them 1, got 2 and 2",
    ),
    (
        "stablehlo.convolution",
        "tensor<2x8x3xf32>, tensor<2x4x5xf32>",
        f"<{{{CONV.format(NUMBERS, 1, 1)}}}>",
        F,
        "groups must divide batch and features, and the kernel take the features of one group",
    ),
    (
        "stablehlo.select_and_scatter",
        f"{F}, tensor<2x9xf32>, tensor<f32>",
        f"<{{window_dimensions = array<i64: 2, 1>}}> {LESS[:-1]}, {ADD[1:]}",
        F,
        "the source must have one element per window",
    ),
    (
        "stablehlo.select_and_scatter",
        f"{F}, {F}, tensor<f32>",
        f"{ADD[:-1]}, {ADD[1:]}",
        F,
        "the first region must compare two scalars of the operand",
    ),
    (
        "stablehlo.select_and_scatter",
        f"{F}, {F}, tensor<f32>",
        f"{LESS[:-1]}, {LESS[1:]}",
        F,
        "the second region must combine two scalars of the operand into one",
    ),
    (
        "stablehlo.select_and_scatter",
        f"{F}, tensor<4x8xf64>, tensor<f32>",
        f"{LESS[:-1]}, {ADD[1:]}",
        F,
        "operand and source must have the same dtype",
    ),
    ("stablehlo.cholesky", F, "", F, "the last two dims of the matrix must be equal, got tensor<4x8xf32>"),
    ("stablehlo.cholesky", "tensor<4x4xi32>", "", "tensor<4x4xi32>", "operands must be floats"),
    (
        "stablehlo.triangular_solve",
        f"{M}, {M}",
        f"<{{{SOLVE.format('MIRROR')}}}>",
        M,
        "transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT, got MIRROR",
    ),
    ("stablehlo.triangular_solve", f"{M}, tensor<4x4xf64>", f"<{{{SOLVE.format('ADJOINT')}}}>", M, "the same dtype"),
    (
        "stablehlo.triangular_solve",
        f"{M}, tensor<5x4xf32>",
        f"<{{{SOLVE.format('ADJOINT')}}}>",
        M,
        "the matrix must have the rows (left_side) or columns of the right-hand side",
    ),
    ("stablehlo.fft", F, f"<{{{FFT.format('SLOW', 8)}}}>", F, "fft_type must be FFT, IFFT, RFFT or IRFFT, got SLOW"),
    ("stablehlo.fft", F, f"<{{{FFT.format('FFT', 8)}}}>", F, "RFFT takes f32 or f64, the others complex numbers, got"),
    (
        "stablehlo.fft",
        F,
        f"<{{{FFT.format('RFFT', 7)}}}>",
        F,
        "fft_length must be the sizes of the last one to three dims",
    ),
    ("stablehlo.sort", "", f"<{{dimension = 0 : i64}}> {LESS}", "", "must have operands"),
    (
        "stablehlo.sort",
        F,
        f"<{{dimension = 2 : i64}}> {LESS}",
        F,
        "dimension must be a dim of the operands, or count from",
    ),
    ("stablehlo.sort", f"{F}, {V}", f"<{{dimension = 0 : i64}}> {LESS}", f"{F}, {V}", "must have the same shape"),
    ("stablehlo.sort", F, f"<{{dimension = 0 : i64}}> {ADD}", F, "the region must compare two scalars of each operand"),
    ("chlo.top_k", F, "<{k = 9 : i64}>", f"{F}, {F}", r"k must lie in \[0, the size of the last dim\], got k = 9"),
    (
        "chlo.top_k",
        "tensor<4xcomplex<f32>>",
        "<{k = 2 : i64}>",
        f"{F}, {F}",
        "operands must be numbers that have an order",
    ),
    (
        "stablehlo.batch_norm_inference",
        f"{F}, {V}, {V}, {V}, {F}",
        f"<{{{BATCH_NORM.format(1)}}}>",
        F,
        "operand 4 must have one element per feature, tensor<8xf32>",
    ),
    (
        "stablehlo.batch_norm_grad",
        f"{F}, {V}, {V}, {V}, {V}",
        f"<{{{BATCH_NORM.format(1)}}}>",
        f"{F}, {V}, {V}",
        "the gradient must have the type of the operand",
    ),
    (
        "stablehlo.all_gather",
        F,
        "<{all_gather_dim = 0 : i64, replica_groups = dense<1> : tensor<2xi64>}>",
        F,
        "replica_groups must be a row of devices per group, got tensor<2xi64>; give a tensor<GROUPSxSIZExi64>",
    ),
    (
        "stablehlo.all_gather",
        F,
        f"<{{all_gather_dim = 0 : i64, {GROUPS}}}>",
        "tensor<6x8xf32>",
        "results must have the operands' types, with dim 0 a multiple",
    ),
    (
        "stablehlo.reduce_scatter",
        F,
        f"<{{scatter_dimension = 0 : i64, {GROUPS}}}> {ADD}",
        "tensor<3x8xf32>",
        "results must have the operands' types, with dim 0 a part",
    ),
    ("stablehlo.all_reduce", F, f"<{{{GROUPS}}}> {ONE}", F, "the region must combine two scalars into one, got 1 argu"),
    ("stablehlo.all_reduce", "", f"<{{{GROUPS}}}> {ADD}", "", "must have operands"),
    (
        "stablehlo.all_to_all",
        F,
        f"<{{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 3 : i64, {GROUPS}}}>",
        F,
        "split_count must divide the dim that is split, got split_count = 3",
    ),
    (
        "stablehlo.collective_permute",
        F,
        "<{source_target_pairs = dense<0> : tensor<1x3xi64>}>",
        F,
        "source_target_pairs must have a source and a target in each row",
    ),
    ("stablehlo.custom_call", F, '<{call_target_name = ""}>', F, "call_target_name must not be empty"),
    ("stablehlo.after_all", F, "", "!stablehlo.token", "operands must be tokens, got tensor<4x8xf32>"),
    ("stablehlo.send", F, "", "!stablehlo.token", "the last operand must be a token, got tensor<4x8xf32>"),
    ("stablehlo.recv", "!stablehlo.token", "", F, "the last result must be a token, got tensor<4x8xf32>"),
    (
        "stablehlo.rng",
        "tensor<f32>, tensor<f32>, tensor<2xi64>",
        f"<{{{RNG.format('DICE')}}}>",
        F,
        "rng_distribution must be UNIFORM or NORMAL, got DICE",
    ),
    (
        "stablehlo.rng",
        "tensor<f32>, tensor<f32>, tensor<3xi64>",
        f"<{{{RNG.format('NORMAL')}}}>",
        F,
        "the last operand must have the size of each dim of the result",
    ),
    (
        "stablehlo.rng",
        "tensor<complex<f32>>, tensor<complex<f32>>, tensor<2xi64>",
        f"<{{{RNG.format('UNIFORM')}}}>",
        "tensor<4x8xcomplex<f32>>",
        "bounds must be booleans, integers or floats",
    ),
    (
        "stablehlo.rng",
        "tensor<i32>, tensor<i32>, tensor<2xi64>",
        f"<{{{RNG.format('NORMAL')}}}>",
        "tensor<4x8xi32>",
        "mean and deviation must be floats",
    ),
    (
        "stablehlo.rng_bit_generator",
        "tensor<2xui64>",
        f"<{{{BITS.format('DICE')}}}>",
        f"tensor<2xui64>, {F}",
        "rng_algorithm must be DEFAULT, THREE_FRY or PHILOX, got DICE",
    ),
    (
        "stablehlo.rng_bit_generator",
        V,
        f"<{{{BITS.format('PHILOX')}}}>",
        f"{V}, {F}",
        "the state must be a list of unsigned integers, got tensor<8xf32>",
    ),
    (
        "stablehlo.rng_bit_generator",
        "tensor<2xui64>",
        f"<{{{BITS.format('PHILOX')}}}>",
        "tensor<2xui64>, tensor<4xi1>",
        "the output must be numbers, got tensor<4xi1>",
    ),
    (
        "stablehlo.dot",
        f"{F}, {F}",
        "",
        F,
        "operands must be vectors or matrices, and the last dim of the first as large",
    ),
    ("stablehlo.einsum", f"{F}, {F}", '<{einsum_config = "ij,jk->ik"}>', F, "einsum_config must have a letter per dim"),
    (
        "chlo.ragged_dot",
        f"{F}, tensor<3x9x7xf32>, tensor<3xi64>",
        f"<{{{RAGGED}}}>",
        "tensor<4x7xf32>",
        "batching and contracting dims must have the same sizes",
    ),
    (
        "chlo.ragged_dot",
        f"{F}, tensor<3x8x7xf32>, tensor<3xi64>",
        f"<{{{RAGGED.replace('group_dimensions = [0]', 'group_dimensions = []')}}}>",
        "tensor<4x7xf32>",
        "rhs_group_dimensions must have 1 entry",
    ),
    (
        "chlo.ragged_dot",
        f"{F}, tensor<2x8x7xf32>, tensor<3xi64>",
        f"<{{{RAGGED}}}>",
        "tensor<4x7xf32>",
        "the group dim of the right side must have one element per group",
    ),
    (
        "chlo.ragged_dot",
        f"{F}, tensor<3x8x7xf32>, tensor<3xi64>",
        f"<{{{RAGGED.replace('ragged_dimensions = [0]', 'ragged_dimensions = [1]')}}}>",
        "tensor<3x4x7xf32>",
        "rhs_group_dimensions must have 0 entries",
    ),
    (
        "chlo.broadcast_add",
        f"{V}, {F}",
        "<{broadcast_dimensions = array<i64: 0, 1>}>",
        F,
        "broadcast_dimensions must have 1 entry",
    ),
    (
        "chlo.broadcast_add",
        "tensor<4x4xf32>, tensor<4x4xf32>",
        "<{broadcast_dimensions = array<i64: 1, 0>}>",
        "tensor<4x4xf32>",
        "broadcast_dimensions of operands with the same ndim must be in order, got [1, 0]; transpose first",
    ),
    ("stablehlo.map", "", f"<{{{DIMS.format(0)}}}> {ADD}", F, "must have operands"),
    ("stablehlo.map", f"{V}, {V}", f"<{{{DIMS.format(1)}}}> {ADD}", V, "dimensions must be all dims, in order"),
    (
        "stablehlo.map",
        V,
        f"<{{{DIMS.format(0)}}}> {ADD}",
        V,
        "the region must make one scalar from a scalar of each oper",
    ),
    ("stablehlo.map", f"{V}, tensor<7xf32>", f"<{{{DIMS.format(0)}}}> {ADD}", V, "operands must have the same shape"),
    ("stablehlo.broadcast", F, "<{broadcast_sizes = array<i64: -1>}>", F, "broadcast_sizes must not be negative"),
    (
        "stablehlo.dynamic_reshape",
        f"{F}, tensor<1xi64>",
        "",
        V,
        "operand and result must have the same number of elements",
    ),
    (
        "stablehlo.dynamic_pad",
        f"tensor<f32>, {'tensor<f32>, ' * 3}tensor<f32>",
        "",
        "tensor<f64>",
        "must have the same dtype",
    ),
    (
        "stablehlo.dynamic_iota",
        "tensor<1xi64>",
        "<{iota_dimension = 1 : i64}>",
        V,
        "iota_dimension must be a dim of the",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[4][:40]}")
def test_a_wrong_op_is_refused_with_its_place(row: tuple[str, str, str, str, str]) -> None:
    op, operands, rest, results, message = row
    types = re.findall(r"tensor<[^,]*?(?:<f32>)?>|!stablehlo.token", operands)
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    values = ", ".join(f"%a{i}" for i in range(len(types)))
    count = len(re.findall(r"tensor<|!stablehlo", results))
    names = f"%r:{count} = " if count else ""
    text = f'func.func public @main({arguments}) {{\n  {names}"{op}"({values}) {rest} : ({operands}) -> ({results})\n'
    with pytest.raises(sw.ParseError) as caught:
        sw.parse(text + "  return\n}\n")
    found = str(caught.value)
    assert re.search(rf"2:{len(names) + 3}: {re.escape(op)}: .*", found), found
    pattern = message if "\\" in message else re.escape(message)
    assert re.search(pattern, found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "%r = stablehlo.tuple %a : tuple<tensor<4xf32>>",
            "an op must be one that shardwise knows, got 'stablehlo.tuple'",
        ),
        (
            '%r = "stablehlo.custom_call"(%a) <{call_target_name = "t"}> : (tensor<4xf32>) -> tuple<tensor<4xf32>>',
            'such as tensor<4xf32>, or !stablehlo.token, got "tuple"; pass the parts of a',
        ),
        (
            "%r = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>",
            "an op must be one that shardwise knows, got 'stablehlo.uniform_quantize'; use floats, or integers with "
            "their scales as operands, because no kernel computes with scales and zero points",
        ),
        (
            '%r = "stablehlo.async_start"(%a) : (tensor<4xf32>) -> tensor<4xf32>',
            "an op must be one that shardwise knows, got 'stablehlo.async_start'; lower the program without them, "
            "because shardwise decides when collectives run",
        ),
        ("%r = stablehlo.complex %a, %a : tensor<4xf32>", "the type must be one of complex numbers, got tensor<4xf32>"),
        (
            "%r = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {step = [1]} : ()",
            "a window has stride, pad, lhs_dilate, rhs_dilate and reverse, got step",
        ),
        (
            "%r = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {pad = [[1]]} : ()",
            "the padding of a dim must be a low and a high count",
        ),
        ("%r = stablehlo.constant dense<1> : !stablehlo.token", "the elements of a constant must be numbers"),
    ],
)
def test_a_text_that_cannot_be_held_is_refused(text: str, message: str) -> None:
    with pytest.raises(sw.ParseError, match=re.escape(message)):
        sw.parse(f"func.func public @main(%a: tensor<4xf32>) {{\n  {text}\n  return\n}}\n")
