// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/composed.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

// ---- regions and functions -----------------------------------------------------------------------------------------

void infer_map(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("must have operands");
  const Dims& shape = op.operand(0).shape;
  const auto ndim = static_cast<int64_t>(shape.size());
  if (op.attr<IntArray>("dimensions") != identity_dims(ndim)) {
    op.fail_shape("dimensions must be all dims, in order", str(op.attr<IntArray>("dimensions")));
  }
  for (size_t i = 1; i < op.operand_count(); ++i) {
    if (op.operand(i).shape != shape) {
      op.fail_shape("operands must have the same shape", op.operand_types_text(), "broadcast one of them first");
    }
  }
  op.expect_regions(1);
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  bool fits = region.arguments.size() == op.operand_count() && region.results.size() == 1 &&
              module.type(region.results[0]).ndim() == 0;
  for (size_t i = 0; fits && i < region.arguments.size(); ++i) {
    fits = module.type(region.arguments[i]) == TensorType{op.operand(i).dtype, {}};
  }
  if (!fits) op.fail_dtype("the region must make one scalar from a scalar of each operand", op.operand_types_text());
  results.push_back(result_or_declared(op, {module.type(region.results[0]).dtype, shape}));
}

void infer_composite(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>("name");
  op.attr<Symbol>("decomposition");
  infer_declared(op, results);
}

void infer_scan(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<IntAttr>("dimension");
  op.expect_regions(1);
  infer_declared(op, results);
}

// ---- broadcast -----------------------------------------------------------------------------------------------------

void infer_broadcast(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  Dims shape = op.attr<IntArray>("broadcast_sizes");
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; })) {
    op.fail_shape("broadcast_sizes must not be negative", str(shape));
  }
  shape.insert(shape.end(), op.operand(0).shape.begin(), op.operand(0).shape.end());
  results.push_back(result_or_declared(op, {op.operand(0).dtype, shape}));
}

ShardingRule rule_broadcast(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.result_type().shape;
  const size_t added = shape.size() - op.operand_type(0).shape.size();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const FactorId factor = rule.factor(shape[dim]);
    // The operand does not have the added dims, so any device can create its part of them.
    if (dim >= added) rule.map(0, dim - added, factor);
    rule.map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

void infer_get_dimension_size(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_dim(op, "dimension", op.operand(0).ndim());
  results.push_back(result_or_declared(op, {DType::kI32, {}}));
}

void infer_set_dimension_size(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_dim(op, "dimension", op.operand(0).ndim());
  expect_scalar(op, 1, DType::kI32);
  results.push_back(result_or_declared(op, op.operand(0)));
}

// The result's shape is an operand, so its type comes from the text. `Count` operands, of which the first is the data.
template <int Count>
void infer_dynamic(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(Count);
  const TensorType& result = op.declared_result();
  if (result.dtype != op.operand(0).dtype) {
    op.fail_dtype("operand and result must have the same dtype", str(op.operand_types_text(), " -> ", result.text()),
                  "convert first");
  }
  results.push_back(op.declared()[0]);
}

void infer_dynamic_reshape(const InferContext& op, std::vector<TypeId>& results) {
  infer_dynamic<2>(op, results);
  if (op.operand(0).size() != op.declared_result().size()) {
    op.fail_shape("operand and result must have the same number of elements",
                  str(op.operand(0).text(), " -> ", op.declared_result().text()));
  }
}

void infer_dynamic_conv(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.attr<StructAttr>("dimension_numbers");
  op.declared_result();
  results.push_back(op.declared()[0]);
}

void infer_dynamic_iota(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const int64_t dim = op.attr<IntAttr>("iota_dimension").value;
  const TensorType& result = op.declared_result();
  if (dim < 0 || dim >= result.ndim()) op.fail_shape("iota_dimension must be a dim of the result", result.text());
  results.push_back(op.declared()[0]);
}

constexpr std::string_view kFunctional = "operands attr-dict `:` functional-type";

constexpr OpDef kComposedOps[] = {
    propagation_only_op("stablehlo.map", infer_map, rule_like_first_result, {},
                        "A region applied to each element (StableHLO map)."),
    propagation_only_op("stablehlo.composite", infer_composite, no_rule, "$name operands attr-dict `:` functional-type",
                        "A named op with a function that says what it does (StableHLO composite).",
                        {.side_effect = true}),
    propagation_only_op("chlo.scan", infer_scan, no_rule, {}, "A loop over one dim (CHLO scan)."),
    propagation_only_op("stablehlo.broadcast", infer_broadcast, rule_broadcast,
                        "operands `,` `sizes` `=` $broadcast_sizes attr-dict `:` functional-type",
                        "Repeats a tensor along new leading dims (StableHLO broadcast)."),
    propagation_only_op("stablehlo.get_dimension_size", infer_get_dimension_size, no_rule,
                        "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                        "The size of a dim (StableHLO get_dimension_size)."),
    propagation_only_op("stablehlo.set_dimension_size", infer_set_dimension_size, no_rule,
                        "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                        "The tensor with another size of a dim (StableHLO set_dimension_size)."),
    propagation_only_op("stablehlo.dynamic_broadcast_in_dim", infer_dynamic<2>, no_rule,
                        "operands `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type",
                        "broadcast_in_dim to a shape that is an operand (StableHLO dynamic_broadcast_in_dim)."),
    propagation_only_op("stablehlo.dynamic_conv", infer_dynamic_conv, no_rule, {},
                        "Convolution whose padding is an operand (StableHLO dynamic_conv)."),
    propagation_only_op("stablehlo.dynamic_gather", infer_dynamic<3>, no_rule, {},
                        "gather whose slice sizes are an operand (StableHLO dynamic_gather)."),
    propagation_only_op("stablehlo.dynamic_iota", infer_dynamic_iota, no_rule,
                        "operands `,` `dim` `=` $iota_dimension attr-dict `:` functional-type",
                        "iota of a shape that is an operand (StableHLO dynamic_iota)."),
    propagation_only_op("stablehlo.dynamic_pad", infer_dynamic<5>, no_rule, kFunctional,
                        "pad by amounts that are operands (StableHLO dynamic_pad)."),
    propagation_only_op("stablehlo.dynamic_reshape", infer_dynamic_reshape, no_rule, kFunctional,
                        "reshape to a shape that is an operand (StableHLO dynamic_reshape)."),
    propagation_only_op("stablehlo.real_dynamic_slice", infer_dynamic<4>, no_rule, kFunctional,
                        "slice between bounds that are operands (StableHLO real_dynamic_slice)."),
    propagation_only_op("stablehlo.torch_index_select", infer_dynamic<2>, no_rule, {},
                        "Rows at the places of an index (StableHLO torch_index_select)."),
};
static_assert(all_complete(kComposedOps));

}  // namespace

std::span<const OpDef> composed_ops() { return kComposedOps; }

}  // namespace shardwise
