// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/dot_general.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_algorithm.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/operation_counts.h"

namespace shardwise {
namespace {

bool has_rule_of_user(const OpView& op) { return op.attrs().find(text_words::kShardingRule) != nullptr; }

int64_t size_at(const TensorType& type, int64_t dim) { return type.shape[static_cast<size_t>(dim)]; }

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_pairs(const InferContext& op, std::string_view kind, DimSpan lhs, DimSpan rhs) {
  const TensorType& left = op.operand(0);
  const TensorType& right = op.operand(1);
  expect_dims(op, str("lhs_", kind, "_dimensions"), lhs, left.ndim());
  expect_dims(op, str("rhs_", kind, "_dimensions"), rhs, right.ndim());
  if (lhs.size() != rhs.size()) {
    op.fail_shape(str(kind, " dims must come in pairs"), str(lhs, " x ", rhs, " for ", op.operand_types_text()),
                  "list as many dims on each side");
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (size_at(left, lhs[i]) == size_at(right, rhs[i])) continue;
    op.fail_shape(str(kind, " dims must have equal size"),
                  str(size_at(left, lhs[i]), " and ", size_at(right, rhs[i]), " for ", op.operand_types_text(),
                      " with ", lhs, " x ", rhs),
                  "transpose an operand or choose other dims");
  }
}

enum class NumberClass : uint8_t { kBool, kInteger, kFloat, kComplex };

NumberClass number_class(DType dtype) {
  if (is_complex(dtype)) return NumberClass::kComplex;
  if (is_float(dtype)) return NumberClass::kFloat;
  return dtype == DType::kBool ? NumberClass::kBool : NumberClass::kInteger;
}

void infer_dot_general(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  op.attr<StructAttr>("dot_dimension_numbers");
  expect_one_precision(op);
  const DotDims dims = dot_dims(op.attrs());
  const TensorType& lhs = op.operand(0);
  const TensorType& rhs = op.operand(1);
  expect_pairs(op, "batching", dims.lhs_batching, dims.rhs_batching);
  expect_pairs(op, "contracting", dims.lhs_contracting, dims.rhs_contracting);
  expect_dims(op, "batching and contracting dims of lhs", joined(dims.lhs_batching, dims.lhs_contracting), lhs.ndim());
  expect_dims(op, "batching and contracting dims of rhs", joined(dims.rhs_batching, dims.rhs_contracting), rhs.ndim());
  const NumberClass left = number_class(lhs.dtype), right = number_class(rhs.dtype);
  const bool has_one_bool = left != right && std::min(left, right) == NumberClass::kBool;
  // Two dtypes need a declared result to compute in. A boolean product is "or of ands", which has no meaning for a
  // boolean and a number.
  expect_dtype(op, lhs.dtype == rhs.dtype || !(op.declared().empty() || has_one_bool),
               "operands must have the same dtype", "convert one of them");
  const DType dtype = contracted_dtype(op);
  if (number_class(dtype) != std::max(left, right)) {
    op.fail_dtype("the result must be of the operands' kind (complex, float, integer or boolean)",
                  str(op.operand_types_text(), " to ", dtype), "convert the operands or the result");
  }
  results.push_back(result_or_declared(op, {dtype, dot_shape(lhs, rhs, dims)}));
}

// ---- rule and cost --------------------------------------------------------------------------------------------------

// The padding of uneven contracting dims is masked on both sides (partition_by_rule): 0 times the other side's padding
// is not 0 if that is infinite or NaN.
ShardingRule rule_dot_general(const OpView& op) {
  RuleBuilder rule(op);
  map_dot(rule, op, dot_dims(op.attrs()));
  return rule.build();
}

OpCost cost_dot_general(const OpView& op, const LocalTypes& types) {
  int64_t products = types.result().element_quantity();
  for (int64_t dim : dot_dims(op.attrs()).lhs_contracting) {
    products = saturated_product(products, size_at(types.operand(0), dim));
  }
  return {
      .matrix = contraction_flops(products, types.result().dtype),
      .touched = {types.operand(0).byte_quantity(), types.operand(1).byte_quantity(), types.result().byte_quantity()}};
}

// ---- vjp -----------------------------------------------------------------------------------------------------------

DotDims swapped(const DotDims& dims) {
  return {dims.rhs_batching, dims.lhs_batching, dims.rhs_contracting, dims.lhs_contracting};
}

// One operand `x` of the product x · y, whose free dims start at `x_free_begin` in the result. Its cotangent is that of
// the result times y, contracted over the free dims of y. The dims of this product are batching, free dims of x,
// contracting dims in y's order; they are permuted back to x's order. With y first, the contracting dims come before
// the free dims: the order of x for the rhs of a matrix product.
struct OperandSide {
  TensorType x, y;
  DotDims dims;  // x is lhs
  int64_t x_free_begin, y_free_begin;
};

ValueId operand_cotangent(VjpContext& context, const OperandSide& side, ValueId y) {
  const DotDims& dims = side.dims;
  const Dims x_free = dims.lhs_free(side.x.ndim());
  const Dims y_free = dims.rhs_free(side.y.ndim());
  const auto batch = static_cast<int64_t>(dims.lhs_batching.size());
  DotDims product{identity_dims(batch), dims.rhs_batching,
                  identity_dims(static_cast<int64_t>(y_free.size()), side.y_free_begin), y_free};

  // The free dims of a dot_general are ascending, whereas pairs of contracting dims may be in any order.
  Dims x_contracting;  // in y's order
  Dims y_contracting = dims.rhs_contracting;
  std::sort(y_contracting.begin(), y_contracting.end());
  for (int64_t dim : y_contracting) {
    const auto at = std::find(dims.rhs_contracting.begin(), dims.rhs_contracting.end(), dim);
    x_contracting.push_back(dims.lhs_contracting[static_cast<size_t>(at - dims.rhs_contracting.begin())]);
  }
  // For each dim of the product, the dim of x.
  Dims x_dims = joined(joined(dims.lhs_batching, x_free), x_contracting);
  const Dims with_y_first = joined(joined(dims.lhs_batching, x_contracting), x_free);
  Builder& builder = context.builder();
  const DType wide = context.op().result_type().dtype;
  const ValueId factor = build_convert(builder, y, wide);
  ValueId left = context.cotangent(), right = factor;
  // The order of the factors that needs no transpose: x = [i, k] has the cotangent [i, j] · [k, j] over j, but for
  // x = [k, j] it is [i, k] · [i, j] over i, with the other operand first.
  if (!std::ranges::is_sorted(x_dims) && std::ranges::is_sorted(with_y_first)) {
    x_dims = with_y_first;
    product = swapped(product);
    std::swap(left, right);
  }
  const ValueId value = build_dot(builder, left, right, product, wide, context.op().attrs());
  return build_convert(builder, build_transpose(builder, value, inverse_permutation(x_dims)), side.x.dtype);
}

void vjp_dot_general(VjpContext& context) {
  const OpView op = context.op();
  const DotDims dims = dot_dims(op.attrs());
  const TensorType lhs = op.operand_type(0), rhs = op.operand_type(1);
  const auto lhs_begin = static_cast<int64_t>(dims.lhs_batching.size());
  const auto rhs_begin = lhs_begin + static_cast<int64_t>(dims.lhs_free(lhs.ndim()).size());
  if (context.needs(0)) {
    context.set(0, operand_cotangent(context, {lhs, rhs, dims, lhs_begin, rhs_begin}, context.operand(1)));
  }
  if (context.needs(1)) {
    context.set(1, operand_cotangent(context, {rhs, lhs, swapped(dims), rhs_begin, lhs_begin}, context.operand(0)));
  }
}

// ---- fold ----------------------------------------------------------------------------------------------------------

// The operand before its transpose, with the dims numbered as there. The operand itself where its free dims, whose
// order is that of the result, would change their order.
ValueId before_transpose(const Module& module, ValueId operand, Dims& batching, Dims& contracting) {
  const std::optional<OpView> made = made_by(module, operand, "stablehlo.transpose");
  // A sharding on the value between them is an annotation of the user, which must not vanish.
  if (!made || module.value(operand).sharding || has_rule_of_user(*made)) return operand;
  const Dims& permutation = dims_attr(*made, "permutation");
  const Dims free = other_dims(std::ssize(permutation), batching, contracting);
  if (!std::ranges::is_sorted(sizes_at(permutation, free))) return operand;
  batching = sizes_at(permutation, batching);
  contracting = sizes_at(permutation, contracting);
  return made->operand(0);
}

// x · transpose(w) reads w: what is gathered of w then serves all products with w or its transpose.
ValueId fold_dot_general(Builder& builder, const OpView& op) {
  if (has_rule_of_user(op)) return {};
  const Module& module = builder.module();
  DotDims dims = dot_dims(op.attrs());
  const ValueId lhs = before_transpose(module, op.operand(0), dims.lhs_batching, dims.lhs_contracting);
  const ValueId rhs = before_transpose(module, op.operand(1), dims.rhs_batching, dims.rhs_contracting);
  if (lhs == op.operand(0) && rhs == op.operand(1)) return {};
  return build_dot(builder, lhs, rhs, dims, op.result_type().dtype, op.attrs());
}

// ---- batch ---------------------------------------------------------------------------------------------------------

// If both operands are batched, the new dim is a batching dim. If one is, it is a free dim, so that nothing is
// repeated, and moves to the front of the result.
void batch_dot_general(BatchContext& context) {
  const OpView op = context.op();
  DotDims dims = dot_dims(op.attrs());
  const bool lhs = context.is_batched(0), rhs = context.is_batched(1);
  const auto batch = static_cast<int64_t>(dims.lhs_batching.size());
  const auto lhs_free = static_cast<int64_t>(dims.lhs_free(op.operand_type(0).ndim()).size());
  for (Dims* list : {&dims.lhs_batching, &dims.lhs_contracting}) *list = shifted(*list, lhs ? 1 : 0);
  for (Dims* list : {&dims.rhs_batching, &dims.rhs_contracting}) *list = shifted(*list, rhs ? 1 : 0);
  int64_t new_dim = lhs ? batch : batch + lhs_free;
  if (lhs && rhs) {
    dims.lhs_batching.insert(dims.lhs_batching.begin(), 0);
    dims.rhs_batching.insert(dims.rhs_batching.begin(), 0);
    new_dim = 0;
  }
  Builder& builder = context.builder();
  const DType dtype = op.result_type().dtype;
  const ValueId product = build_dot(builder, context.operand(0), context.operand(1), dims, dtype, op.attrs());
  context.set_result(0, build_move_to_front(builder, product, new_dim));
}

constexpr OpDef kDotGeneralOps[] = {
    {.name = "stablehlo.dot_general",
     .infer = infer_dot_general,
     .rule = rule_dot_general,
     .fold = fold_dot_general,
     .prepare = prepare_dot_general,
     .cost = cost_dot_general,
     .vjp = vjp_dot_general,
     .batch = batch_dot_general,
     .linear = {Linear::kEach, reducer_bit(Reducer::kSum)},
     .addends = Addends::kWideResult,
     .verify_runnable = verify_dot_algorithm,
     .format = "operands `,` custom<dot_dimensions> attr-dict `:` functional-type",
     .doc = "A product summed over contracting dims, per index of the batching dims (StableHLO dot_general)."},
};
static_assert(all_complete(kDotGeneralOps));

}  // namespace

std::span<const OpDef> dot_general_ops() { return kDotGeneralOps; }

Dims DotDims::lhs_free(int64_t ndim) const { return other_dims(ndim, lhs_batching, lhs_contracting); }
Dims DotDims::rhs_free(int64_t ndim) const { return other_dims(ndim, rhs_batching, rhs_contracting); }

DotDims dot_dims(const Attrs& attrs, std::string_view name) {
  const auto& numbers = attrs.get<StructAttr>(name);
  return {list_field(numbers, "lhs_batching_dimensions"), list_field(numbers, "rhs_batching_dimensions"),
          list_field(numbers, "lhs_contracting_dimensions"), list_field(numbers, "rhs_contracting_dimensions")};
}

StructAttr dot_attribute(const DotDims& dims) {
  StructAttr attribute{"stablehlo.dot", {}};
  add_list_field(attribute, "lhs_batching_dimensions", dims.lhs_batching);
  add_list_field(attribute, "rhs_batching_dimensions", dims.rhs_batching);
  add_list_field(attribute, "lhs_contracting_dimensions", dims.lhs_contracting);
  add_list_field(attribute, "rhs_contracting_dimensions", dims.rhs_contracting);
  return attribute;
}

Dims dot_shape(const TensorType& lhs, const TensorType& rhs, const DotDims& dims) {
  const Dims of_lhs = joined(dims.lhs_batching, dims.lhs_free(lhs.ndim()));
  return joined(sizes_at(lhs.shape, of_lhs), sizes_at(rhs.shape, dims.rhs_free(rhs.ndim())));
}

void map_dot(RuleBuilder& rule, const OpView& op, const DotDims& dims, size_t result_dim, int64_t whole) {
  const TensorType& lhs = op.operand_type(0);
  const TensorType& rhs = op.operand_type(1);
  const size_t result = rule.result_tensor(0);
  const auto at = [](int64_t dim) { return static_cast<size_t>(dim); };
  const auto kept_factor = [&](int64_t dim) {
    return dim == whole ? rule.need_replication(size_at(lhs, dim)) : rule.factor(size_at(lhs, dim));
  };
  for (size_t i = 0; i < dims.lhs_batching.size(); ++i) {
    const FactorId factor = kept_factor(dims.lhs_batching[i]);
    rule.map(0, at(dims.lhs_batching[i]), factor);
    rule.map(1, at(dims.rhs_batching[i]), factor).map(result, result_dim++, factor);
  }
  for (int64_t dim : dims.lhs_free(lhs.ndim())) {
    const FactorId factor = kept_factor(dim);
    rule.map(0, at(dim), factor).map(result, result_dim++, factor);
  }
  for (int64_t dim : dims.rhs_free(rhs.ndim())) {
    const FactorId factor = rule.factor(size_at(rhs, dim));
    rule.map(1, at(dim), factor).map(result, result_dim++, factor);
  }
  // A boolean dot is "or of ands", so its parts combine by "or".
  const Reducer reducer = lhs.dtype == DType::kBool ? Reducer::kOr : Reducer::kSum;
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int64_t dim = dims.lhs_contracting[i], size = size_at(lhs, dim);
    const FactorId factor = dim == whole ? rule.need_replication(size) : rule.reduction(size, reducer);
    rule.map(0, at(dim), factor).map(1, at(dims.rhs_contracting[i]), factor);
  }
}

ValueId build_dot(Builder& builder, ValueId lhs, ValueId rhs, const DotDims& dims, DType result, Attrs attrs) {
  attrs.set("dot_dimension_numbers", dot_attribute(dims));
  const TensorType left = builder.module().type(lhs), right = builder.module().type(rhs);
  // The declared type keeps a dtype that is wider than the operands', which infer could not know.
  return builder.create(kDotGeneralOps[0], {lhs, rhs}, attrs,
                        {builder.context().tensor(result, dot_shape(left, right, dims))});
}

}  // namespace shardwise
