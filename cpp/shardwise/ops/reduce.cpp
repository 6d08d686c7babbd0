// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce.h"

#include <algorithm>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/create.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/elementwise.h"
#include "shardwise/ops/layout.h"
#include "shardwise/ops/reduce_partition.h"
#include "shardwise/ops/reduce_product.h"
#include "shardwise/ops/reduce_region_vjp.h"
#include "shardwise/ops/reduce_regions.h"

namespace shardwise {
namespace {

const Dims& reduced_dims(const OpView& op) { return op.attrs().get<IntArray>("dimensions"); }

Dims kept_dims(const OpView& op) { return other_dims(op.operand_type(0).ndim(), reduced_dims(op)); }

// ---- infer ---------------------------------------------------------------------------------------------------------

void check_region(const InferContext& op, size_t inputs) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  if (region.arguments.size() != 2 * inputs || region.results.size() != inputs) {
    op.fail_shape(str("the region must take ", 2 * inputs, " arguments and return ", inputs),
                  str(region.arguments.size(), " arguments and ", region.results.size(), " results"),
                  "give it one scalar per operand for each side");
  }
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const TensorType& type = op.module().type(region.arguments[i]);
    if (type != TensorType{op.operand(i % inputs).dtype, {}}) {
      op.fail_dtype("the region's arguments must be scalars of the operands' dtypes",
                    str("argument ", i, " of ", type.text(), " for ", op.operand_types_text()), "correct its type");
    }
  }
  for (size_t i = 0; i < inputs; ++i) {
    const TensorType& type = op.module().type(region.results[i]);
    if (type != TensorType{op.operand(i).dtype, {}}) {
      op.fail_dtype("the region must return scalars of the operands' dtypes",
                    str("result ", i, " of ", type.text(), " for ", op.operand_types_text()), "convert it back");
    }
  }
}

void infer_reduce(const InferContext& op, std::vector<TypeId>& results) {
  const size_t inputs = expect_reduction(op);
  expect_elementwise_region(op);
  const Dims& dims = op.attr<IntArray>("dimensions");
  const Dims& shape = op.operand(0).shape;
  expect_dims(op, "dimensions", dims, op.operand(0).ndim());
  for (size_t i = 0; i < inputs; ++i) {
    TensorType result{op.operand(i).dtype, {}};
    for (int64_t dim : other_dims(op.operand(0).ndim(), dims)) result.shape.push_back(shape[static_cast<size_t>(dim)]);
    results.push_back(result_or_declared(op, result, i));
  }
}

// ---- rule and partition --------------------------------------------------------------------------------------------

ShardingRule rule_reduce(const OpView& op) {
  RuleBuilder rule(op);
  const size_t inputs = op.result_count();
  const Dims& dims = reduced_dims(op);
  const Dims& shape = op.operand_type(0).shape;
  const std::optional<Reducer> reducer = op_reducer(op);
  size_t result_dim = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const bool reduced = contains_dim(dims, static_cast<int64_t>(dim));
    const FactorId factor =
        reduced ? rule.reduction(shape[dim], reducer.value_or(Reducer::kNone)) : rule.factor(shape[dim]);
    // No collective combines by an arbitrary region, so partition_exchanged_reduce sends the partial results itself.
    if (reduced && !reducer) rule.exchanged(factor);
    for (size_t i = 0; i < inputs; ++i) {
      rule.map(i, dim, factor);
      if (!reduced) rule.map(rule.result_tensor(i), result_dim, factor);
    }
    result_dim += reduced ? 0 : 1;
  }
  return rule.build();
}

void partition_reduce(PartitionContext& context) {
  const OpView op = context.op();
  const Dims dims = reduced_dims(op);
  const std::optional<Reducer> reducer = op_reducer(op);
  if (!reducer) return partition_exchanged_reduce(context);
  const Scalar neutral = neutral_element(*reducer, op.operand_type(0).dtype);
  ValueId operand = context.operand(0);
  for (int64_t dim : dims)
    operand = context.masked_operand(0, context.rule().dim(0, static_cast<size_t>(dim))[0], neutral);
  const ValueId init = counted_once(context, 1, context.result_layout(0).unreduced, *reducer);
  const ValueId local = build_reduce(context.builder(), operand, init, *reducer, dims);
  context.set_result(0, local, result_padding(context.result_layout(0)));
}

// ---- vjp -----------------------------------------------------------------------------------------------------------

ValueId repeat_over_reduced(VjpContext& context, ValueId value) {
  const Dims shape = context.op().operand_type(0).shape;
  return build_broadcast(context.builder(), value, shape, kept_dims(context.op()));
}

// The gradient goes to the elements that equal the maximum, and ties share it evenly. The init value counts as an
// element.
void vjp_extremum(VjpContext& context, Reducer reducer) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Dims dims = reduced_dims(op);
  const ValueId hit =
      build_equal_as_number(builder, context.operand(0), repeat_over_reduced(context, context.result()));
  ValueId count = build_reduce(builder, hit, {}, Reducer::kSum, dims);
  const std::optional<Scalar> init = splat_value(op.module(), op.operand(1));
  ValueId init_hit;
  // A neutral init value cannot be the maximum, so it needs no share.
  if (!init || !is_neutral(reducer, *init) || context.needs(1)) {
    const ValueId repeated = build_broadcast(builder, context.operand(1), op.result_type().shape, {});
    init_hit = build_equal_as_number(builder, repeated, context.result());
    count = builder.create("stablehlo.add", {count, init_hit});
  }
  const ValueId share = builder.create("stablehlo.divide", {context.cotangent(), count});
  if (context.needs(0)) {
    context.set(0, builder.create("stablehlo.multiply", {hit, repeat_over_reduced(context, share)}));
  }
  if (context.needs(1)) {
    const ValueId part = builder.create("stablehlo.multiply", {init_hit, share});
    const Dims all = identity_dims(builder.module().type(part).ndim());
    context.set(1, build_reduce(builder, part, {}, Reducer::kSum, all));
  }
}

void vjp_sum(VjpContext& context) {
  if (context.needs(0)) context.set(0, repeat_over_reduced(context, context.cotangent()));
  if (!context.needs(1)) return;
  const ValueId cotangent = context.cotangent();
  const Dims all = identity_dims(context.builder().module().type(cotangent).ndim());
  context.set(1, build_reduce(context.builder(), cotangent, {}, Reducer::kSum, all));
}

void vjp_reduce(VjpContext& context) {
  const std::optional<Reducer> reducer = op_reducer(context.op());
  if (!reducer) return vjp_reduce_region(context);
  switch (*reducer) {
    case Reducer::kSum: return vjp_sum(context);
    case Reducer::kMax: return vjp_extremum(context, Reducer::kMax);
    case Reducer::kMin: return vjp_extremum(context, Reducer::kMin);
    case Reducer::kProd: return vjp_product(context, reduced_dims(context.op()));
    default: return not_differentiable(context);  // and, or: of integers
  }
}

// A batched init value cannot be the scalar init of the batched op, so it is combined with the results.
void batch_reduce(BatchContext& context) {
  const OpView op = context.op();
  const std::optional<Reducer> known = op_reducer(op);
  if (!known) return batch_reduce_region(context);
  const Reducer reducer = *known;
  Builder& builder = context.builder();
  const Dims dims = shifted(reduced_dims(op));
  if (!context.is_batched(1)) {
    context.set_result(0, build_reduce(builder, context.operand(0), context.operand(1), reducer, dims));
    return;
  }
  const Dims shape = with_leading(context.size(), op.result_type().shape);
  const ValueId reduced = build_reduce(builder, context.batched(0), {}, reducer, dims);
  const ValueId init = build_broadcast(builder, context.operand(1), shape, Dims{0});
  context.set_result(0, builder.create(reducer_op_name(reducer), {init, reduced}));
}

// A sum distributes over a pending sum, a maximum over a pending maximum. The caller compares the reducer of the
// pending operand with that of the rule.
constexpr OpDef kReduce{
    .name = "stablehlo.reduce",
    .infer = infer_reduce,
    .rule = rule_reduce,
    .partition = partition_reduce,
    .prepare = prepare_reduce,
    .vjp = vjp_reduce,
    .batch = batch_reduce,
    .format = "custom<reduce>",
    .doc = "Combines the elements along dims (StableHLO reduce).",
    .traits = {.linear = Linear::kFirst, .linear_reducers = kAllReducers},
};
static_assert(kReduce.complete());

constexpr OpDef kReduceOps[] = {kReduce};

Scalar lowest(DType dtype) {
  if (is_float(dtype)) return Scalar::of_float(dtype, -std::numeric_limits<double>::infinity());
  if (!is_signed_integer(dtype)) return scalar_of(dtype, 0);
  return Scalar::of_int(dtype, std::numeric_limits<int64_t>::min() >> (64 - 8 * item_size(dtype)));
}

Scalar highest(DType dtype) {
  if (is_float(dtype)) return Scalar::of_float(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::kBool) return scalar_of(dtype, 1);
  const auto unused = 64 - 8 * item_size(dtype);
  if (is_unsigned_integer(dtype)) return Scalar::of_uint(dtype, std::numeric_limits<uint64_t>::max() >> unused);
  return Scalar::of_int(dtype, std::numeric_limits<int64_t>::max() >> unused);
}

Scalar all_bits(DType dtype) { return is_signed_integer(dtype) ? Scalar::of_int(dtype, -1) : highest(dtype); }

struct ReducerName {
  Reducer reducer;
  std::string_view op;
};
constexpr ReducerName kReducerNames[] = {
    {Reducer::kSum, "stablehlo.add"},     {Reducer::kProd, "stablehlo.multiply"}, {Reducer::kMax, "stablehlo.maximum"},
    {Reducer::kMin, "stablehlo.minimum"}, {Reducer::kAnd, "stablehlo.and"},       {Reducer::kOr, "stablehlo.or"},
};

Reducer on_booleans(Reducer reducer) {
  if (reducer == Reducer::kSum || reducer == Reducer::kMax) return Reducer::kOr;
  if (reducer == Reducer::kProd || reducer == Reducer::kMin) return Reducer::kAnd;
  return reducer;
}

}  // namespace

std::span<const OpDef> reduce_ops() { return kReduceOps; }

std::optional<Reducer> op_reducer(const OpView& op) {
  return op.result_count() == 1 ? region_reducer(op.module(), op.regions()[0]) : std::nullopt;
}

Reducer required_reducer(const OpView& op) {
  const std::optional<Reducer> reducer = op_reducer(op);
  if (!reducer) {
    fail<ShapeError>(op.name(), "the region must be one of add, multiply, maximum, minimum, and, or of its arguments",
                     str("another region over ", op.result_count(), " operand(s)"),
                     "write it as several reductions by one of these");
  }
  return *reducer;
}

size_t expect_reduction(const InferContext& op) {
  const size_t inputs = op.operand_count() / 2;
  if (inputs == 0 || op.operand_count() % 2 != 0) {
    op.fail_shape("operands must be one or more tensors and as many init values", op.operand_types_text(),
                  "give one scalar per tensor");
  }
  for (size_t i = 0; i < inputs; ++i) {
    if (!equal(op.operand(i).shape, op.operand(0).shape)) {
      op.fail_shape("all tensors must have the same shape", op.operand_types_text(), "broadcast them first");
    }
    expect_scalar(op, inputs + i, op.operand(i).dtype);
  }
  check_region(op, inputs);
  return inputs;
}

std::optional<Reducer> region_reducer(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  if (region.arguments.size() != 2 || region.ops.size() != 1 || region.results.size() != 1) return std::nullopt;
  return value_reducer(module, region.results[0], region.arguments[0], region.arguments[1]);
}

std::optional<Reducer> value_reducer(const Module& module, ValueId value, ValueId first, ValueId second) {
  if (!module.value(value).op) return std::nullopt;
  const OpView op(module, module.value(value).op);
  if (op.operand_count() != 2 || op.result_count() != 1) return std::nullopt;
  const bool straight = op.operand(0) == first && op.operand(1) == second;
  const bool swapped = op.operand(0) == second && op.operand(1) == first;
  if (!straight && !swapped) return std::nullopt;
  for (const ReducerName& entry : kReducerNames) {
    if (entry.op != op.name()) continue;
    return op.result_type().dtype == DType::kBool ? on_booleans(entry.reducer) : entry.reducer;
  }
  return std::nullopt;
}

Scalar neutral_element(Reducer reducer, DType dtype) {
  switch (reducer) {
    case Reducer::kSum: return scalar_of(dtype, 0);
    case Reducer::kProd: return scalar_of(dtype, 1);
    case Reducer::kMax: return lowest(dtype);
    case Reducer::kMin: return highest(dtype);
    case Reducer::kAnd: return all_bits(dtype);
    case Reducer::kOr: return scalar_of(dtype, 0);
    case Reducer::kNone: break;
  }
  fail<InternalError>("neutral_element", "the reducer must be one");
}

Scalar exact_neutral(Reducer reducer, DType dtype) {
  if (reducer == Reducer::kSum && is_float(dtype)) return Scalar::of_float(dtype, -0.0);
  return neutral_element(reducer, dtype);
}

bool is_neutral(Reducer reducer, Scalar value) {
  if (reducer == Reducer::kSum && is_float(value.dtype)) return value.real == 0;
  return value == neutral_element(reducer, value.dtype);
}

bool is_idempotent(Reducer reducer) { return reducer != Reducer::kSum && reducer != Reducer::kProd; }

ValueId counted_once(PartitionContext& context, size_t operand, const AxisList& unreduced, Reducer reducer) {
  const ValueId all = context.operand(operand);
  const std::optional<Scalar> value = splat_value(context.op().module(), context.op().operand(operand));
  // These may be counted any number of times, so they need no select.
  if (unreduced.empty() || is_idempotent(reducer) || (value && is_neutral(reducer, *value))) return all;
  Builder& builder = context.builder();
  const TensorType type = builder.module().type(all);
  const ValueId index = context.axis_index(unreduced);
  const ValueId first = build_compare(builder, "EQ", index, build_zeros(builder, builder.module().type(index)));
  const ValueId neutral = build_splat(builder, type.shape, exact_neutral(reducer, type.dtype));
  return builder.create("stablehlo.select", {first, all, neutral});
}

std::string_view reducer_op_name(Reducer reducer) {
  const auto* entry = std::find_if(std::begin(kReducerNames), std::end(kReducerNames),
                                   [&](const ReducerName& candidate) { return candidate.reducer == reducer; });
  check_internal(entry != std::end(kReducerNames), "the reducer must be one");
  return entry->op;
}

RegionId build_reducer_region(Builder& builder, Reducer reducer, DType dtype) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  const TypeId scalar = builder.context().tensor(dtype, {});
  const ValueId lhs = module.add_argument(id, scalar);
  const ValueId rhs = module.add_argument(id, scalar);
  Builder inner(module, id, builder.loc());
  const ValueId combined = inner.create(reducer_op_name(reducer), {lhs, rhs});
  module.region(id).results = {combined};
  return id;
}

ValueId build_reduce(Builder& builder, ValueId operand, ValueId init, Reducer reducer, DimSpan dims) {
  if (dims.empty() && !init) return operand;
  const DType dtype = builder.module().type(operand).dtype;
  if (!init) init = build_scalar(builder, neutral_element(reducer, dtype));
  const RegionId region = build_reducer_region(builder, reducer, dtype);
  const ValueId operands[] = {operand, init};
  const AttrsId attrs = builder.context().intern(Attrs{{"dimensions", to_dims(dims)}});
  const OpId op = builder.create_op(kReduceOps[0], operands, attrs, {}, {&region, 1});
  return builder.module().result(op);
}

}  // namespace shardwise
