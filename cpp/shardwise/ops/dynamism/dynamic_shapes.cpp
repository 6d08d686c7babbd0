// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/dynamism/dynamic_shapes.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

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

void infer_dynamic_reshape(const InferContext& op, std::vector<TypeId>& results) {
  infer_shape_operand<2>(op, results);
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

constexpr OpDef kDynamicShapeOps[] = {
    propagation_only_op("stablehlo.get_dimension_size", infer_get_dimension_size, no_rule,
                        "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                        "The size of a dim (StableHLO get_dimension_size)."),
    propagation_only_op("stablehlo.set_dimension_size", infer_set_dimension_size, no_rule,
                        "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                        "The tensor with another size of a dim (StableHLO set_dimension_size)."),
    propagation_only_op("stablehlo.dynamic_broadcast_in_dim", infer_shape_operand<2>, no_rule,
                        "operands `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type",
                        "broadcast_in_dim to a shape that is an operand (StableHLO dynamic_broadcast_in_dim)."),
    propagation_only_op("stablehlo.dynamic_conv", infer_dynamic_conv, no_rule, {},
                        "Convolution whose padding is an operand (StableHLO dynamic_conv)."),
    propagation_only_op("stablehlo.dynamic_gather", infer_shape_operand<3>, no_rule, {},
                        "gather whose slice sizes are an operand (StableHLO dynamic_gather)."),
    propagation_only_op("stablehlo.dynamic_iota", infer_dynamic_iota, no_rule,
                        "operands `,` `dim` `=` $iota_dimension attr-dict `:` functional-type",
                        "iota of a shape that is an operand (StableHLO dynamic_iota)."),
    propagation_only_op("stablehlo.dynamic_pad", infer_shape_operand<5>, no_rule, kFunctional,
                        "pad by amounts that are operands (StableHLO dynamic_pad)."),
    propagation_only_op("stablehlo.dynamic_reshape", infer_dynamic_reshape, no_rule, kFunctional,
                        "reshape to a shape that is an operand (StableHLO dynamic_reshape)."),
    propagation_only_op("stablehlo.real_dynamic_slice", infer_shape_operand<4>, no_rule, kFunctional,
                        "slice between bounds that are operands (StableHLO real_dynamic_slice)."),
};
static_assert(all_complete(kDynamicShapeOps));

}  // namespace

std::span<const OpDef> dynamic_shape_ops() { return kDynamicShapeOps; }

}  // namespace shardwise
