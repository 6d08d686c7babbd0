// SPDX-License-Identifier: Apache-2.0
//
// Ops whose shapes, sizes or bounds are operands; a text may hold them with static result types.
//
//   %1 = stablehlo.dynamic_reshape %0, %shape : (tensor<8xf32>, tensor<2xi32>) -> tensor<4x2xf32>
#include <algorithm>
#include <array>
#include <tuple>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/refusals.h"
#include "shardwise/ops/shared/scalars.h"

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

// Here and below the result type is the declared one: all types are static, so the shape operand can only repeat it.
void infer_dynamic_broadcast(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<IntArray>("broadcast_dimensions");
  infer_shape_operand<2>(op, results);
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

// ---- static ops ----------------------------------------------------------------------------------------------------
//
// The result type has the shape that a shape operand gives; only amounts and bounds must be known.

std::optional<Dims> constant_list(const Module& module, ValueId value) {
  const OpId id = module.value(value).op;
  const auto* dense = id ? module.attrs(id).find<DenseAttr>("value") : nullptr;
  // Only a constant is known: values that the program computes are not followed.
  if (dense == nullptr || !module.op(id).def->traits.constant_like || !is_integer(dense->data.dtype())) {
    return std::nullopt;
  }
  Dims list;
  for (int64_t i = 0; i < dense->data.size(); ++i) {
    const Scalar amount = dense->data.scalar_at(i);
    // Amounts may have any integer dtype in StableHLO.
    list.push_back(is_unsigned_integer(amount.dtype) ? static_cast<int64_t>(amount.natural) : amount.integer);
  }
  return list;
}

std::optional<std::vector<Dims>> constant_lists(const OpView& op, size_t first) {
  std::vector<Dims> lists;
  for (size_t i = first; i < op.operand_count(); ++i) {
    std::optional<Dims> list = constant_list(op.module(), op.operand(i));
    if (!list) return std::nullopt;
    lists.push_back(std::move(*list));
  }
  return lists;
}

void verify_constants(const OpView& op, size_t first, std::string_view what, const Refusal& refusal) {
  if (constant_lists(op, first)) return;
  fail<UnsupportedError>(op.name(), str("the ", what, " must be constants to run it"),
                         "values that the program computes", refusal.way_out);
}
void verify_amounts(const OpView& op) { verify_constants(op, 2, "amounts", refusals::kDynamicPad); }
void verify_bounds(const OpView& op) { verify_constants(op, 1, "bounds", refusals::kDynamicSlice); }

void verify_convolution(const OpView& op) {
  verify_amounts(op);
  const OpDef& convolution = get_op("stablehlo.convolution");
  // The convolution that it becomes may be one that cannot run.
  if (convolution.runnable()) return;
  fail<UnsupportedError>(convolution.name, "can be read, propagated and printed, but not run", {},
                         "replace it by other ops");
}

// The amounts decide the shape, and the declared type may be another one.
void set_checked(DecomposeContext& context, ValueId result) {
  const TensorType& type = context.builder().module().type(result);
  const OpView op = context.op();
  if (type != op.result_type()) {
    fail<ShapeError>(op.name(), str("the result must have type ", type.text(), " for these constants"),
                     op.result_type().text(), "correct the declared type");
  }
  context.set_result(0, result);
}

void decompose_get_dimension_size(DecomposeContext& context) {
  const OpView op = context.op();
  const auto dim = static_cast<size_t>(op.attrs().get_int("dimension"));
  context.set_result(0, build_scalar(context.builder(), Scalar::of_int(DType::kI32, op.operand_type(0).shape[dim])));
}

// Types are static, so only the size that the dim has already can be set.
bool keeps_size(const OpView& op) {
  const std::optional<Scalar> size = splat_value(op.module(), op.operand(1));
  return size && size->integer == op.operand_type(0).shape[static_cast<size_t>(op.attrs().get_int("dimension"))];
}

void verify_size(const OpView& op) {
  if (keeps_size(op)) return;
  const std::optional<Scalar> size = splat_value(op.module(), op.operand(1));
  fail<UnsupportedError>(
      op.name(), str("the size must be that of the type, ", op.operand_type(0).text(), ", to run it"),
      size ? std::to_string(size->integer) : "a value that the program computes", refusals::kSetDimensionSize.way_out);
}

void decompose_set_dimension_size(DecomposeContext& context) {
  if (keeps_size(context.op())) context.set_result(0, context.operand(0));
}

void decompose_dynamic_broadcast(DecomposeContext& context) {
  const OpView op = context.op();
  const auto& dims = op.attrs().get<IntArray>("broadcast_dimensions");
  context.set_result(0, build_broadcast(context.builder(), context.operand(0), op.result_type().shape, dims));
}

void decompose_iota(DecomposeContext& context) {
  const OpView op = context.op();
  const TensorType& type = op.result_type();
  context.set_result(0, build_iota(context.builder(), type.dtype, type.shape, op.attrs().get_int("iota_dimension")));
}

void decompose_reshape(DecomposeContext& context) {
  context.set_result(0, build_reshape(context.builder(), context.operand(0), context.op().result_type().shape));
}

// The padding is a low and a high count per spatial dim.
void decompose_conv(DecomposeContext& context) {
  const OpView op = context.op();
  const auto counts = constant_lists(op, 2);
  if (!counts) return;
  // The operand may be of int32; the attribute of the convolution is int64.
  const NdArray padding = NdArray::empty(DType::kI64, op.operand_type(2).shape);
  std::ranges::copy((*counts)[0], reinterpret_cast<int64_t*>(padding.data()));
  // All other attributes are those of the static convolution.
  Attrs attrs = op.attrs();
  attrs.set("padding", DenseAttr{padding});
  const std::array declared{context.builder().module().value(op.result()).type};
  const std::array operands{context.operand(0), context.operand(1)};
  context.set_result(0, context.builder().create("stablehlo.convolution", operands, attrs, declared));
}

void decompose_pad(DecomposeContext& context) {
  const auto amounts = constant_lists(context.op(), 2);
  if (!amounts) return;
  const auto& [low, high, interior] = std::tie((*amounts)[0], (*amounts)[1], (*amounts)[2]);
  set_checked(context, build_pad(context.builder(), context.operand(0), context.operand(1), low, high, interior));
}

void decompose_slice(DecomposeContext& context) {
  const auto bounds = constant_lists(context.op(), 1);
  if (!bounds) return;
  const auto& [start, limit, strides] = std::tie((*bounds)[0], (*bounds)[1], (*bounds)[2]);
  set_checked(context, build_slice(context.builder(), context.operand(0), start, limit, strides));
}

constexpr std::string_view kFunctional = "operands attr-dict `:` functional-type";
constexpr std::string_view kReadsSizesAlone = "it depends on no element of an operand";

constexpr OpDef kDynamicShapeOps[] = {
    without_gradient(
        composed_op("stablehlo.get_dimension_size", infer_get_dimension_size, no_rule, decompose_get_dimension_size,
                    "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                    "The size of a dim (StableHLO get_dimension_size)."),
        kReadsSizesAlone),
    runnable_if(
        composed_op("stablehlo.set_dimension_size", infer_set_dimension_size, no_rule, decompose_set_dimension_size,
                    "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
                    "The tensor with another size of a dim (StableHLO set_dimension_size)."),
        verify_size),
    composed_op("stablehlo.dynamic_broadcast_in_dim", infer_dynamic_broadcast, no_rule, decompose_dynamic_broadcast,
                "operands `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type",
                "broadcast_in_dim to a shape that is an operand (StableHLO dynamic_broadcast_in_dim)."),
    runnable_if(composed_op("stablehlo.dynamic_conv", infer_dynamic_conv, no_rule, decompose_conv, {},
                            "Convolution whose padding is an operand (StableHLO dynamic_conv)."),
                verify_convolution),
    without_gradient(composed_op("stablehlo.dynamic_iota", infer_dynamic_iota, no_rule, decompose_iota,
                                 "operands `,` `dim` `=` $iota_dimension attr-dict `:` functional-type",
                                 "iota of a shape that is an operand (StableHLO dynamic_iota)."),
                     kReadsSizesAlone),
    runnable_if(composed_op("stablehlo.dynamic_pad", infer_shape_operand<5>, no_rule, decompose_pad, kFunctional,
                            "pad by amounts that are operands (StableHLO dynamic_pad)."),
                verify_amounts),
    composed_op("stablehlo.dynamic_reshape", infer_dynamic_reshape, no_rule, decompose_reshape, kFunctional,
                "reshape to a shape that is an operand (StableHLO dynamic_reshape)."),
    runnable_if(composed_op("stablehlo.real_dynamic_slice", infer_shape_operand<4>, no_rule, decompose_slice,
                            kFunctional, "slice between bounds that are operands (StableHLO real_dynamic_slice)."),
                verify_bounds),
};
static_assert(all_complete(kDynamicShapeOps));

}  // namespace

std::span<const OpDef> dynamic_shape_ops() { return kDynamicShapeOps; }

}  // namespace shardwise
