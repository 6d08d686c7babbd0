// SPDX-License-Identifier: Apache-2.0
//
// Ops for tests of ir/, which knows none of its own: one for each directive of the format language.
#pragma once

#include <memory>
#include <string>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"

namespace shardwise::testing {

inline void infer_declared(const InferContext& op, std::vector<TypeId>& results) {
  results.assign(op.declared().begin(), op.declared().end());
}
inline void infer_first_operand(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("takes operands", "none");
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i) != op.operand_type(0)) op.fail_shape("operands must have one type", op.operand_types_text());
  }
  results.push_back(op.operand_type(0));
}
inline void infer_value(const InferContext& op, std::vector<TypeId>& results) {
  const NdArray& data = op.attr<DenseAttr>("value").data;
  results.push_back(op.context().tensor(data.dtype(), data.shape()));
}

constexpr OpDef test_op(std::string_view name, InferFn infer, std::string_view format, Traits traits = {}) {
  return {.name = name,
          .infer = infer,
          .rule = nullptr,
          .partition = nullptr,
          .prepare = nullptr,
          .cost = nullptr,
          .vjp = nullptr,
          .batch = nullptr,
          .tile = nullptr,
          .no_vjp_reason = {},
          .format = format,
          .doc = {},
          .traits = traits};
}

constexpr OpDef with_regions(OpDef def) {
  def.regions = Regions::kCombiner;
  return def;
}

inline constexpr OpDef kTestOps[] = {
    test_op("stablehlo.add", infer_first_operand, "operands attr-dict `:` same-or-functional-type",
            {.commutative = true}),
    test_op("stablehlo.constant", infer_value, "attr-dict $value"),
    with_regions(test_op("stablehlo.reduce", infer_declared, "custom<reduce>")),
    test_op("stablehlo.slice", infer_declared, "operands custom<slice_ranges> attr-dict `:` functional-type"),
    test_op("stablehlo.dot_general", infer_declared,
            "operands `,` custom<dot_dimensions> attr-dict `:` functional-type"),
    test_op("stablehlo.select", infer_declared, "operands attr-dict `:` select-type"),
    test_op("stablehlo.compare", infer_declared,
            "$comparison_direction `,` operands ( `,` $compare_type:comparison_type^ )? attr-dict `:` functional-type"),
    test_op("stablehlo.iota", infer_declared, "`dim` `=` $iota_dimension attr-dict `:` result-type"),
    test_op("stablehlo.reduce_precision", infer_first_operand,
            "operands `,` `format` `=` custom<exponent_mantissa> attr-dict `:` same-type"),
    test_op("chlo.erf", infer_first_operand, "operands attr-dict `:` operand-type `->` result-type"),
    test_op("func.call", infer_declared, "$callee `(` operands `)` attr-dict `:` functional-type"),
    test_op("sdy.all_gather", infer_first_operand,
            "custom<axes_per_dim>($gathering_axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:` "
            "result-type"),
    test_op("sdy.all_reduce", infer_first_operand,
            "custom<axes>($reduction_axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type"),
    test_op("sdy.all_to_all", infer_first_operand,
            "custom<all_to_all_params>($params) operands `out_sharding=` sharding($out_sharding) attr-dict `:` "
            "result-type"),
    test_op("sdy.reshard", infer_first_operand, "operands sharding attr-dict `:` result-type", {.reshard = true}),
    test_op("test.pair", infer_declared, "operand(0) `with` operand(1) attr-dict `:` functional-type"),
    with_regions(test_op("test.any", infer_declared, "")),
    test_op("test.effect", infer_declared, "", {.side_effect = true}),
    test_op("test.constraint", infer_first_operand, "", {.constraint = true}),
    test_op("test.gather", infer_first_operand, "", {.collective = CollectiveKind::kAllGather}),
};

inline const OpDef* find_test_op(std::string_view name) {
  for (const OpDef& def : kTestOps) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

inline Module parse_test(std::string_view text, const ParseOptions& options = {}) {
  install_op_lookup(find_test_op);
  return parse(text, std::make_shared<Context>(), options);
}

// A program whose function has the arguments %a, %b: tensor<8x8xf32>, %c: tensor<f32> and this body, on line 4. Printed
// texts call them %arg0, %arg1, %arg2, and so may the body.
inline std::string program(std::string_view body) {
  if (body.find("%arg0") != std::string_view::npos) {
    return "module @m {\n  sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n"
           "  func.func public @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<f32>) {\n" +
           std::string(body) + "\n    return\n  }\n}\n";
  }
  return "module @m {\n  sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n"
         "  func.func public @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<f32>) {\n" +
         std::string(body) + "\n    return\n  }\n}\n";
}

// The printed lines of the body.
inline std::string body_of(const Module& module, PrintOptions options = {}) {
  const std::string text = print(module, options);
  const size_t begin = text.find('\n', text.find("func.func")) + 1;
  const size_t end = text.find("    return", begin);
  std::string body;
  for (size_t line = begin; line < end; line = text.find('\n', line) + 1) {
    body += text.substr(line + 4, text.find('\n', line) - line - 3);
  }
  if (!body.empty()) body.pop_back();
  return body;
}

// The message of the ParseError for `text`; empty when it parses.
inline std::string parse_error(std::string_view text) {
  try {
    parse_test(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return {};
}

}  // namespace shardwise::testing
