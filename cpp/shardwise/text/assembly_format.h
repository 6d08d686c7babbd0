// SPDX-License-Identifier: Apache-2.0
//
// The pretty text of an op, as data. OpDef::format is one string in a small language (after MLIR's declarative assembly
// formats). The printer and the parser interpret the same string, so neither names an op. The format describes what
// follows the op's name. An op without a format is printed in MLIR's generic form, `"name"(%0) <{…}> : (…) -> …`, which
// the parser always accepts.
//
//   format:  operands `,` `dims` `=` $permutation attr-dict `:` functional-type
//   text:    stablehlo.transpose %0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
//
// Elements, separated by spaces:
//   `text`                     these characters
//   operands                   all operands: %0, %1 (nothing when there are none)
//   operand(1)                 one operand; a format has either `operands` or each operand once, in order
//   $name                      an attribute in short form: IntArray [0, 1], IntAttr 3 (parsed as i64), bool true,
//                              Symbol @f, EnumAttr LT (parsed as #<dialect of the op><name LT>), others in full
//                              (dense<1> : …)
//   $name:mnemonic             an EnumAttr whose mnemonic is not the attribute's name: $compare_type:comparison_type
//   ( `,` `x` `=` $x^ )?       an optional group, also with (custom<…>($x)^): printed when $x is present, parsed when
//                              its first literal is; it starts with a literal
//   attr-dict                  {a = 1 : i64, sdy.sharding = …}: attributes that the format does not show, and the
//                              shardings of the results; nothing when there are none
//   same-type                  tensor<4xf32>: the type of every operand and of the result
//   same-or-functional-type    the same when all types are equal; else (tensor<4xf32>) -> tensor<4xi1>
//   functional-type            (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
//   operand-type               types of the operands, a comma list
//   result-type                types of the results: tensor<4xf32>, or a comma list (none: nothing)
//   select-type                tensor<4xi1>, tensor<4xf32>: predicate, data
//   complex-type               tensor<4xcomplex<f32>>: type of the result, when the operands are its parts
//   sharding($out_sharding)    the result's sharding column, bare: <@mesh, [{"x"}]>; the generic form has it as the
//                              attribute of that name; `sharding` alone is sharding($sharding)
//   region-shardings           shows nothing: the shardings of the first region's arguments and of the results are
//                              in_shardings and out_shardings in the generic form, which an op with this alone has
//   optional-sharding($sharding)  sharding=<@mesh, [{"x"}]>, or nothing when the result has no sharding
//   custom<axes>($a)           AxesAttr: {"x", "y":(1)2}
//   custom<axes_per_dim>($a)   AxesPerDimAttr: [{"x"}, {}]
//   custom<all_to_all_params>($a)   AttrArray of AttrDict{axes, from_dim, to_dim}: [{"x"}: 0->1, {"y"}: 2->3]
//   custom<slice_ranges>       start_indices, limit_indices, strides: [0:5:2, 0:5]
//   custom<dot_dimensions>     dot_dimension_numbers, precision_config, algorithm:
//                              batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]
//   custom<symbol>($name)      a string as a symbol: @Sharding
//   custom<precisions>($name)  an AttrArray of precisions: [DEFAULT, HIGH]
//   custom<conv_dims>($name)   the dims of a convolution: [b, 0, f]x[0, i, o]->[b, 0, f]
//   custom<conv_window>        window_strides, padding, lhs_dilation, rhs_dilation, window_reversal:
//                              {stride = [2], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}
//   custom<exponent_mantissa>  exponent_bits, mantissa_bits (i32): e5m10
//   custom<reduce>             all of a reduce: (%0 init: %1) applies stablehlo.add across dimensions = [1] : …, or
//                              with its region written out: … reducer(%arg2: tensor<f32>, %arg3: tensor<f32>) { … }
//
// A space is printed before every element, except before a literal that starts with one of `,)]>(`, and after a literal
// that ends with one of `([<` or with `=` after a word. Names of properties follow StableHLO. Some of the formats in
// use, to copy from:
//
//   unary, binary   operands attr-dict `:` same-or-functional-type         %0, %1 : tensor<4xf32>
//   compare         $comparison_direction `,` operands ( `,` $compare_type:comparison_type^ )? attr-dict `:`
//                   functional-type
//   select          operands attr-dict `:` select-type
//   clamp, convert  operands attr-dict `:` same-or-functional-type
//   reduce_precision  operands `,` `format` `=` custom<exponent_mantissa> attr-dict `:` same-or-functional-type
//   constant        attr-dict $value                                       dense<1.0> : tensor<4xf32>
//   iota            `dim` `=` $iota_dimension attr-dict `:` result-type
//   broadcast_in_dim  operands `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type
//   reshape         operands attr-dict `:` functional-type
//   transpose       operands `,` `dims` `=` $permutation attr-dict `:` functional-type
//   reverse         operands `,` `dims` `=` $dimensions attr-dict `:` same-type
//   slice           operands custom<slice_ranges> attr-dict `:` functional-type
//   concatenate     operands `,` `dim` `=` $dimension attr-dict `:` functional-type
//   pad             operands `,` `low` `=` $edge_padding_low `,` `high` `=` $edge_padding_high `,`
//                   `interior` `=` $interior_padding attr-dict `:` functional-type
//   dynamic_slice   operands `,` `sizes` `=` $slice_sizes attr-dict `:` functional-type
//   dynamic_update_slice  operands attr-dict `:` functional-type
//   dot_general     operands `,` custom<dot_dimensions> attr-dict `:` functional-type
//   reduce          custom<reduce>
//   optimization_barrier  attr-dict operands `:` result-type
//   sdy.sharding_constraint, sdy.reshard   operands sharding($sharding) attr-dict `:` result-type
//   sdy.all_gather  custom<axes_per_dim>($gathering_axes) operands `out_sharding=` sharding($out_sharding) attr-dict
//                   `:` result-type
//   sdy.all_slice (slicing_axes), sdy.reduce_scatter (reduce_scatter_axes): the same with their attribute
//   sdy.all_to_all  custom<all_to_all_params>($params) operands `out_sharding=` sharding($out_sharding) attr-dict `:`
//                   result-type
//   sdy.collective_permute  operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type
//   sdy.all_reduce  custom<axes>($reduction_axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:`
//                   result-type
//   func.call       $callee `(` operands `)` attr-dict `:` functional-type
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

struct CustomDirective;  // custom_directive.h

enum class FormatKind : uint8_t {
  kLiteral,
  kOperands,
  kOperand,
  kAttribute,
  kGroup,
  kAttrDict,
  kSameType,
  kSameOrFunctionalType,
  kFunctionalType,
  kOperandType,
  kResultType,
  kSelectType,
  kComplexType,
  kSharding,
  kCustom
};

struct FormatElement {
  FormatKind kind = FormatKind::kLiteral;
  std::string_view text = {};      // the literal, or the attribute's name; of a group: the attribute with ^
  std::string_view mnemonic = {};  // kAttribute: of an EnumAttr
  // kOperand: its index; kGroup: the number of following elements in it; kSharding: 1 when it is optional
  size_t count = 0;
  const CustomDirective* custom = nullptr;
};

// A parsed format. Views point into OpDef::format.
struct AssemblyFormat {
  std::vector<FormatElement> elements;
  std::vector<std::string_view> attributes;  // names that the elements print, which attr-dict leaves out
  std::string_view sharding;                 // the name in sharding($name); empty without one
  bool sharding_optional = false;
  std::string_view argument_shardings, result_shardings;  // of a directive: attributes that are columns

  bool shows(std::string_view attribute) const;
};

// Throws InternalError, naming the op, for an invalid format.
AssemblyFormat parse_format(std::string_view op_name, std::string_view format);

// The format of `def`, parsed once. `def` must live as long as the program (ops are constants). Thread-safe.
const AssemblyFormat& assembly_format(const OpDef& def);

}  // namespace shardwise
