// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/slicing/slicing.h"

#include <algorithm>

#include "shardwise/base/size_error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/local_ranges.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// ---- slice ---------------------------------------------------------------------------------------------------------

void infer_slice(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const Dims& start = expect_list(op, "start_indices", operand.ndim());
  const Dims& limit = expect_list(op, "limit_indices", operand.ndim());
  const Dims& strides = expect_list(op, "strides", operand.ndim());
  TensorType result{operand.dtype, {}};
  for (size_t dim = 0; dim < start.size(); ++dim) {
    if (start[dim] < 0 || start[dim] > limit[dim] || limit[dim] > operand.shape[dim] || strides[dim] < 1) {
      op.fail_shape("0 <= start <= limit <= size and stride >= 1 must hold for every dim",
                    str(start[dim], ":", limit[dim], ":", strides[dim], " on dim ", dim, " of ", operand.text()),
                    "clip the range to the dim; reverse for a negative stride");
    }
    result.shape.push_back(slice_size(start[dim], limit[dim], strides[dim], operand.shape[dim]));
  }
  results.push_back(result_or_declared(op, result));
}

// A single row is read without a stride.
int64_t scale_of_slice(const OpView& op, size_t dim) {
  return op.result_type().shape[dim] > 1 ? dims_attr(op, "strides")[dim] : 1;
}

ShardingRule rule_slice(const OpView& op) {
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    if (from[dim] == to[dim]) return rule.factor(from[dim]);
    rule.range(0, dim, {.scale = scale_of_slice(op, dim), .offset = dims_attr(op, "start_indices")[dim]});
    return rule.permutation(from[dim]);
  });
}

void partition_slice(PartitionContext& context) {
  const OpView op = context.op();
  const Dims& start = dims_attr(op, "start_indices");
  Dims limit = dims_attr(op, "limit_indices");
  const Dims& strides = dims_attr(op, "strides");
  // A sharded dim ends past the last row of the result's block. Rows that are cut off become padding.
  // Each shard slices its block from the same `start`: the rule keeps a dim sharded only if that is right.
  const LayoutView result = context.result_layout(0);
  bool cuts = false;
  for (size_t dim = 0; dim < start.size(); ++dim) {
    if (result.axes(dim).empty()) continue;
    cuts = cuts || op.operand_type(0).shape[dim] != op.result_type().shape[dim];
    const Range* range = context.rule().range(0, dim);
    limit[dim] = places_read(range == nullptr ? Range{} : *range, result.block(dim)).end;
  }
  const ValueId local = build_slice(context.builder(), context.operand(0), start, limit, strides);
  context.set_result(0, local, cuts ? result_padding(result) : moved_padding(context));
}

void vjp_slice(VjpContext& context) {
  const OpView op = context.op();
  const Dims low = dims_attr(op, "start_indices");
  const Dims strides = dims_attr(op, "strides");
  const TensorType operand = op.operand_type(0);
  const Dims shape = op.result_type().shape;
  Dims high(shape.size()), interior(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    // The cotangent of a strided slice is spread by interior padding.
    interior[dim] = shape[dim] > 1 ? strides[dim] - 1 : 0;
    // [1:8:3] of 9 elements reads 1, 4 and 7, which covers 7: low 1 and high 1 are left.
    const int64_t covered = shape[dim] == 0 ? 0 : (shape[dim] - 1) * strides[dim] + 1;
    high[dim] = operand.shape[dim] - low[dim] - covered;
  }
  Builder& builder = context.builder();
  const ValueId zero = build_scalar(builder, scalar_of(operand.dtype, 0));
  context.set(0, build_pad(builder, context.cotangent(), zero, low, high, interior));
}

void batch_slice(BatchContext& context) {
  const OpView op = context.op();
  const Dims start = with_leading(0, dims_attr(op, "start_indices"));
  const Dims limit = with_leading(context.size(), dims_attr(op, "limit_indices"));
  const Dims strides = with_leading(1, dims_attr(op, "strides"));
  context.set_result(0, build_slice(context.builder(), context.operand(0), start, limit, strides));
}

// ---- pad -----------------------------------------------------------------------------------------------------------

struct PadSpec {
  Dims low, high, interior;
  bool changes(size_t dim, int64_t size) const {
    return low[dim] != 0 || high[dim] != 0 || (interior[dim] != 0 && size > 1);
  }
  Range range(size_t dim, int64_t size) const {  // read by the result
    return {.offset = -low[dim], .holes = size > 1 ? interior[dim] + 1 : 1, .outside = Outside::kScalar};
  }
};

PadSpec pad_spec(const OpView& op) {
  return {dims_attr(op, "edge_padding_low"), dims_attr(op, "edge_padding_high"), dims_attr(op, "interior_padding")};
}

void infer_pad(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  const TensorType& operand = op.operand(0);
  const Dims& low = expect_list(op, "edge_padding_low", operand.ndim());
  const Dims& high = expect_list(op, "edge_padding_high", operand.ndim());
  const Dims& interior = expect_list(op, "interior_padding", operand.ndim());
  expect_scalar(op, 1, operand.dtype);
  TensorType result{operand.dtype, {}};
  for (size_t dim = 0; dim < low.size(); ++dim) {
    const int64_t size = operand.shape[dim];
    const auto is_huge = [](int64_t count) { return count <= -kMaxElements || count >= kMaxElements; };
    // Compared by division, since the product of the interior padding and the size may overflow.
    if (is_huge(low[dim]) || is_huge(high[dim]) || interior[dim] >= kMaxElements / std::max<int64_t>(size, 1)) {
      fail<SizeError>(op.name(), "padding must add less than 2^56 elements to a dim",
                      str("low ", low[dim], ", high ", high[dim], ", interior ", interior[dim], " on dim ", dim));
    }
    const int64_t padded = low[dim] + size + std::max<int64_t>(size - 1, 0) * interior[dim] + high[dim];
    if (interior[dim] < 0 || padded < 0) {
      op.fail_shape("interior padding and the padded size must not be negative",
                    str("low ", low[dim], ", high ", high[dim], ", interior ", interior[dim], " on dim ", dim, " of ",
                        operand.text(), ", which gives size ", padded),
                    "cut off fewer elements");
    }
    result.shape.push_back(padded);
  }
  results.push_back(result_or_declared(op, result));
}

// Padding that shifts (low 1, high -1) moves elements although the size stays the same.
ShardingRule rule_pad(const OpView& op) {
  const PadSpec spec = pad_spec(op);
  const Dims& shape = op.operand_type(0).shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    if (!spec.changes(dim, shape[dim])) return rule.factor(shape[dim]);
    rule.range(0, dim, spec.range(dim, shape[dim]));
    return rule.permutation(shape[dim]);
  });
}

void partition_pad(PartitionContext& context) {
  const OpView op = context.op();
  PadSpec spec = pad_spec(op);
  const Dims& shape = op.operand_type(0).shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    spec.interior[dim] = spec.range(dim, shape[dim]).holes - 1;  // on a dim of size 1, it would fill a larger block
    const DimLayout to = context.result_layout(0).dim(dim);
    if (to.axes.empty() || !spec.changes(dim, shape[dim])) continue;
    // A sharded dim ends with the result's block.
    spec.high[dim] = padding_after(*context.rule().range(0, dim), to.block, context.operand_layout(0).block(dim));
  }
  const ValueId local =
      build_pad(context.builder(), context.operand(0), context.operand(1), spec.low, spec.high, spec.interior);
  context.set_result(0, local, result_padding(context.result_layout(0)));
}

// Which elements of a padded tensor are padding.
ValueId build_padding_mask(Builder& builder, DimSpan shape, const PadSpec& spec) {
  const ValueId inside = build_splat(builder, shape, scalar_of(DType::kBool, 0));
  const ValueId outside = build_scalar(builder, scalar_of(DType::kBool, 1));
  return build_pad(builder, inside, outside, spec.low, spec.high, spec.interior);
}

void vjp_pad(VjpContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const PadSpec spec = pad_spec(op);
  const TensorType result = op.result_type();
  if (context.needs(0)) context.set(0, build_unpad(builder, context.cotangent(), spec.low, spec.high, spec.interior));
  if (!context.needs(1)) return;
  // The padding value's gradient sums the cotangents of all padding, which a mask padded the same way selects.
  const ValueId is_padding = build_padding_mask(builder, op.operand_type(0).shape, spec);
  const ValueId part =
      builder.create("stablehlo.select", {is_padding, context.cotangent(), build_zeros(builder, result)});
  context.set(1, build_sum_of_all(builder, part));
}

// A batched padding value differs per example, so padding is selected by a mask that is padded the same way.
void batch_pad(BatchContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  PadSpec spec = pad_spec(op);
  for (Dims* list : {&spec.low, &spec.high, &spec.interior}) list->insert(list->begin(), 0);
  if (!context.is_batched(1)) {
    context.set_result(0,
                       build_pad(builder, context.operand(0), context.operand(1), spec.low, spec.high, spec.interior));
    return;
  }
  const ValueId operand = context.batched(0);
  const TensorType type = builder.module().type(operand);
  const ValueId zero = build_scalar(builder, scalar_of(type.dtype, 0));
  const ValueId padded = build_pad(builder, operand, zero, spec.low, spec.high, spec.interior);
  const ValueId is_padding = build_padding_mask(builder, type.shape, spec);
  const Dims shape = builder.module().type(padded).shape;
  const ValueId values = build_broadcast(builder, context.operand(1), shape, Dims{0});
  context.set_result(0, builder.create("stablehlo.select", {is_padding, values, padded}));
}

// ---- concatenate ---------------------------------------------------------------------------------------------------

void infer_concatenate(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("takes at least one operand", "none");
  TensorType result = op.operand(0);
  const auto dim = static_cast<size_t>(expect_dim(op, "dimension", result.ndim()));
  for (size_t i = 1; i < op.operand_count(); ++i) {
    const TensorType& operand = op.operand(i);
    expect_dtype(op, operand.dtype == result.dtype, "operands must have the same dtype", "convert them first");
    bool fits = operand.ndim() == result.ndim();
    for (size_t d = 0; fits && d < result.shape.size(); ++d) fits = d == dim || operand.shape[d] == result.shape[d];
    if (!fits) {
      op.fail_shape(str("operands must have the same shape apart from dim ", dim), op.operand_types_text(),
                    "reshape or broadcast them first");
    }
    // Capped, so that many operands cannot overflow the sum; result_or_declared rejects the cap.
    result.shape[dim] = std::min(result.shape[dim] + operand.shape[dim], kMaxElements);
  }
  results.push_back(result_or_declared(op, result));
}

// The operands are whole along the dim, or exchanged.
ShardingRule rule_concatenate(const OpView& op) {
  const auto joined = static_cast<size_t>(op.attrs().get_int("dimension"));
  const Dims& shape = op.result_type().shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    if (dim != joined) return rule.factor(shape[dim]);
    int64_t begin = 0;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      rule.range(i, joined, {.offset = -begin, .outside = Outside::kAbsent});
      begin += op.operand_type(i).shape[joined];
    }
    return rule.need_replication(shape[dim]);
  });
}

void partition_concatenate(PartitionContext& context) {
  const OpView op = context.op();
  Padding padding = moved_padding(context);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    // The fill of the result's padding is known only if all operands agree.
    if (padding.kind == Padding::Kind::kFill && !(context.operand_padding(i) == padding)) {
      padding = {Padding::Kind::kGarbage, {}};
    }
  }
  const int64_t dim = op.attrs().get_int("dimension");
  context.set_result(0, build_concatenate(context.builder(), operands_of(context), dim), padding);
}

void vjp_concatenate(VjpContext& context) {
  const OpView op = context.op();
  const auto dim = static_cast<size_t>(op.attrs().get_int("dimension"));
  const ValueId cotangent = context.cotangent();
  int64_t start = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const int64_t limit = start + op.operand_type(i).shape[dim];
    if (context.needs(i)) context.set(i, build_slice_along(context.builder(), cotangent, dim, start, limit));
    start = limit;
  }
}

void batch_concatenate(BatchContext& context) {
  const int64_t dim = context.op().attrs().get_int("dimension") + 1;
  context.set_result(0, build_concatenate(context.builder(), batched_operands(context), dim));
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr OpDef kSlicingOps[] = {
    moving({.name = "stablehlo.slice",
            .infer = infer_slice,
            .rule = rule_slice,
            .fold = fold_slice,
            .integers = integers_of_slice,
            .partition = partition_slice,
            .methods = kByExchange,
            .prepare = prepare_slice,
            .vjp = vjp_slice,
            .batch = batch_slice,
            .format = "operands custom<slice_ranges> attr-dict `:` functional-type",
            .doc = "A range with a stride of every dim (StableHLO slice).",
            .traits = {.shares_memory = true}}),
    moving({.name = "stablehlo.pad",
            .infer = infer_pad,
            .rule = rule_pad,
            .partition = partition_pad,
            .methods = kByExchange,
            .prepare = prepare_pad,
            .vjp = vjp_pad,
            .batch = batch_pad,
            .format = "operands `,` `low` `=` $edge_padding_low `,` `high` `=` $edge_padding_high `,` `interior` `=` "
                      "$interior_padding attr-dict `:` functional-type",
            .doc = "Puts a value around and between the elements, or cuts elements off (StableHLO pad)."},
           // A sum of pads is the pad of the sums, if the padding values are summed as well.
           Linear::kJoint),
    moving({.name = "stablehlo.concatenate",
            .infer = infer_concatenate,
            .rule = rule_concatenate,
            .fold = fold_concatenate,
            .integers = integers_of_concatenate,
            .partition = partition_concatenate,
            .methods = kByExchange,
            .prepare = prepare_concatenate,
            .vjp = vjp_concatenate,
            .batch = batch_concatenate,
            .format = "operands `,` `dim` `=` $dimension attr-dict `:` functional-type",
            .doc = "Tensors one after another along a dim (StableHLO concatenate)."},
           Linear::kJoint),
};
static_assert(all_complete(kSlicingOps));

}  // namespace

std::span<const OpDef> slicing_ops() { return kSlicingOps; }

// A stride beyond the end is as good as one up to it, and cannot overflow.
int64_t slice_size(int64_t start, int64_t limit, int64_t stride, int64_t size) {
  return ceil_div(limit - start, std::min(stride, size + 1));
}

}  // namespace shardwise
