// SPDX-License-Identifier: Apache-2.0
//
// Gradients and batching of reduce by any region.
//
//   argmax        the cotangent of a value goes to the element whose index won:
//                 select(%indices == broadcast %winner, broadcast %cotangent, 0)
//   other regions the reduction is written as its tree of elementwise ops, level by level over slices, and
//                 differentiated op by op; the init values are its first row. The program grows with log2 of the rows.
#include <unordered_map>

#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

using Values = std::vector<ValueId>;

Dims sorted_dims(const OpView& op) { return ascending(dims_attr(op, "dimensions")); }

bool is_float_value(const Module& module, ValueId value) { return is_inexact(module.type(value).dtype); }

ValueId add_term(Builder& builder, ValueId sum, ValueId term) {
  return sum ? builder.create("stablehlo.add", {sum, term}) : term;
}

// ---- argmax --------------------------------------------------------------------------------------------------------

// Whether elements that reduce to the same result all have different indices.
bool has_distinct_indices(const OpView& op, const Dims& dims) {
  const OpId id = op.module().value(op.operand(1)).op;
  if (!id || dims.size() != 1) return false;
  // An iota along the one reduced dim, as np.argmax has it. Along two reduced dims, it repeats its numbers.
  const IntAttr* dim = op.module().attrs(id).find<IntAttr>("iota_dimension");
  return dim != nullptr && dim->value == dims[0];
}

void vjp_arguments(VjpContext& context, Reducer reducer) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Dims dims = sorted_dims(op);
  const TensorType type = op.operand_type(0);
  if (!is_inexact(type.dtype)) return;
  const Dims kept = other_dims(type.ndim(), dims);
  const auto repeat = [&](ValueId value) { return build_broadcast(builder, value, type.shape, kept); };
  const ValueId hit = build_compare(builder, "EQ", context.operand(1), repeat(context.result(1)));
  const ValueId zeros = build_zeros(builder, type);
  const std::optional<Scalar> init = splat_value(op.module(), op.operand(2));
  // Different indices mean that one element has won, and a neutral init value has not: there are no ties to count.
  if (has_distinct_indices(op, dims) && init && is_neutral(reducer, *init) && !context.needs(2)) {
    return context.set(0, builder.create("stablehlo.select", {hit, repeat(context.cotangent()), zeros}));
  }
  // Elements of equal value and index share the cotangent. If there are none, the init value has won.
  const ValueId value = context.operand(0), best = repeat(context.result());
  const ValueId nans = builder.create(
      "stablehlo.and", {build_compare(builder, "NE", value, value), build_compare(builder, "NE", best, best)});
  const ValueId equal = builder.create("stablehlo.or", {build_compare(builder, "EQ", value, best), nans});
  const ValueId wins = builder.create("stablehlo.and", {hit, equal});
  const ValueId count = build_reduce(builder, build_convert(builder, wins, type.dtype), {}, Reducer::kSum, dims);
  const TensorType result = op.result_type();
  const ValueId one = build_splat(builder, result.shape, scalar_of(type.dtype, 1));
  const ValueId divisor = builder.create("stablehlo.maximum", {count, one});
  const ValueId share = builder.create("stablehlo.divide", {context.cotangent(), divisor});
  if (context.needs(0)) context.set(0, builder.create("stablehlo.select", {wins, repeat(share), zeros}));
  if (!context.needs(2)) return;
  const ValueId none = build_compare(builder, "EQ", count, build_zeros(builder, result));
  const ValueId part = builder.create("stablehlo.select", {none, context.cotangent(), build_zeros(builder, result)});
  context.set(2, build_sum_of_all(builder, part));
}

// ---- other regions -------------------------------------------------------------------------------------------------

// The VJP context of one elementwise op of the tree.
class OpVjp : public VjpContext {
 public:
  OpVjp(Builder& builder, OpId op, std::unordered_map<ValueId, ValueId>& cotangents)
      : builder_(builder), op_(op), cotangents_(cotangents) {}
  OpView op() const override { return {builder_.module(), op_}; }
  Builder& builder() override { return builder_; }
  ValueId operand(size_t i) const override { return op().operand(i); }
  ValueId result(size_t i) const override { return op().result(i); }
  ValueId cotangent(size_t i) override { return cotangents_.at(result(i)); }
  bool needs(size_t i) const override { return is_float_value(builder_.module(), operand(i)); }
  void set(size_t i, ValueId cotangent) override {
    ValueId& sum = cotangents_[operand(i)];
    sum = add_term(builder_, sum, cotangent);
  }

 private:
  Builder& builder_;
  OpId op_;
  std::unordered_map<ValueId, ValueId>& cotangents_;
};

// Arrays of rows: dim 0 is reduced, the others are kept.
class Tree {
 public:
  Tree(Builder& builder, const OpView& op) : builder_(builder), op_(op) {}

  // The tree of the kernel (reduce_region_kernels.cpp): neighbors combine, so that elements stay in order.
  void run_forward(Values rows) {
    while (rows_of(rows[0]) > 1) {
      const int64_t pairs = rows_of(rows[0]) / 2, count = rows_of(rows[0]);
      Level level{.inputs = {}, .first = {}, .outputs = {}, .end = {}, .rows = count};
      for (const int64_t start : {0, 1}) {
        for (const ValueId value : rows) level.inputs.push_back(every_second(value, start, pairs));
      }
      // The ops that the builder appends in between are those of the region, on whole levels.
      level.first = builder_.module().op_count();
      level.outputs = apply_region(builder_, op_.module(), op_.regions()[0], level.inputs);
      level.end = builder_.module().op_count();
      for (size_t i = 0; i < rows.size(); ++i) {
        ValueId next = level.outputs[i];
        if (count % 2 == 1) next = build_concatenate(builder_, {next, some(rows[i], count - 1, count)}, 0);
        rows[i] = next;
      }
      levels_.push_back(std::move(level));
    }
  }

  // Turns the cotangents of the last row into those of the original rows.
  Values run_backward(Values cotangents) {
    for (size_t i = levels_.size(); i-- > 0;) cotangents = backward(levels_[i], cotangents);
    return cotangents;
  }

 private:
  struct Level {
    Values inputs;  // left rows, then right rows
    size_t first;   // the ops between the two
    Values outputs;
    size_t end;
    int64_t rows;
  };

  const TensorType& type(ValueId value) const { return builder_.module().type(value); }
  int64_t rows_of(ValueId value) const { return type(value).shape[0]; }

  ValueId some(ValueId value, int64_t begin, int64_t end, int64_t step = 1) {
    return build_slice_along(builder_, value, 0, begin, end, step);
  }
  // Up to the last row that is read: start + 2 · count may be beyond the end.
  ValueId every_second(ValueId value, int64_t start, int64_t count) {
    return some(value, start, start + 2 * count - 1, 2);
  }

  Values backward(const Level& level, const Values& given) {
    const int64_t pairs = level.rows / 2;
    std::unordered_map<ValueId, ValueId> cotangents;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) continue;
      ValueId& sum = cotangents[level.outputs[i]];
      sum = add_term(builder_, sum, some(given[i], 0, pairs));
    }
    // In reverse order: the ops that read a result have set its cotangent by then.
    for (size_t index = level.end; index-- > level.first;) {
      const OpId id{static_cast<uint32_t>(index)};
      const OpView op(builder_.module(), id);
      if (op.operand_count() == 0 || !cotangents.contains(op.result())) continue;
      OpVjp vjp(builder_, id, cotangents);
      apply_vjp(vjp);
    }
    Values results;
    for (size_t i = 0; i < given.size(); ++i) {
      const ValueId left = level.inputs[i];
      if (!is_float_value(builder_.module(), left)) {
        results.emplace_back();
        continue;
      }
      const ValueId rows = interleaved(of(cotangents, left), of(cotangents, level.inputs[given.size() + i]));
      // An odd last row went to the next level as it was, so that its cotangent is the last one given.
      results.push_back(level.rows % 2 == 0 ? rows
                                            : build_concatenate(builder_, {rows, some(given[i], pairs, pairs + 1)}, 0));
    }
    return results;
  }

  ValueId of(const std::unordered_map<ValueId, ValueId>& cotangents, ValueId value) {
    const auto found = cotangents.find(value);
    return found != cotangents.end() ? found->second : build_zeros(builder_, TensorType(type(value)));
  }

  // [a, c] and [b, d] become [[a, b], [c, d]], and then [a, b, c, d].
  ValueId interleaved(ValueId left, ValueId right) {
    Dims shape = type(left).shape;
    Dims pair = shape;
    pair.insert(pair.begin() + 1, 1);
    const ValueId both =
        build_concatenate(builder_, {build_reshape(builder_, left, pair), build_reshape(builder_, right, pair)}, 1);
    shape[0] *= 2;
    return build_reshape(builder_, both, shape);
  }

  Builder& builder_;
  OpView op_;
  std::vector<Level> levels_;
};

void vjp_tree(VjpContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Dims dims = sorted_dims(op), shape = op.operand_type(0).shape;
  const Dims kept = other_dims(static_cast<int64_t>(shape.size()), dims);
  const Dims order = joined(dims, kept), moved = sizes_at(shape, order);
  const Dims result = op.result_type().shape;
  const int64_t rows = element_count(std::span(moved).first(dims.size()));
  const size_t count = op.result_count();
  Values values, cotangents;
  for (size_t i = 0; i < count; ++i) {
    // The init values are row 0 of the tree.
    const ValueId first = build_broadcast(builder, context.operand(count + i), with_leading(1, result), {});
    const ValueId rest =
        build_reshape(builder, build_transpose(builder, context.operand(i), order), with_leading(rows, result));
    values.push_back(build_concatenate(builder, {first, rest}, 0));
    const bool flows = is_float_value(op.module(), op.result(i));
    cotangents.push_back(flows ? build_reshape(builder, context.cotangent(i), with_leading(1, result)) : ValueId{});
  }
  Tree tree(builder, op);
  tree.run_forward(values);
  cotangents = tree.run_backward(cotangents);
  const Dims back = inverse_permutation(order);
  for (size_t i = 0; i < count; ++i) {
    if (!cotangents[i]) continue;
    if (context.needs(count + i)) {
      context.set(count + i, build_sum_of_all(builder, build_slice_along(builder, cotangents[i], 0, 0, 1)));
    }
    if (!context.needs(i)) continue;
    const ValueId rest = build_reshape(builder, build_slice_along(builder, cotangents[i], 0, 1, rows + 1), moved);
    context.set(i, build_transpose(builder, rest, back));
  }
}

}  // namespace

void vjp_reduce_region(VjpContext& context) {
  const OpView op = context.op();
  const std::optional<Reducer> pairs = region_argument_reducer(op.module(), op.regions()[0]);
  pairs ? vjp_arguments(context, *pairs) : vjp_tree(context);
}

void batch_reduce_region(BatchContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const size_t count = op.result_count();
  const Dims dims = shifted(sorted_dims(op));
  bool batched_init = false;
  for (size_t i = 0; i < count; ++i) batched_init = batched_init || context.is_batched(count + i);
  Values operands;
  for (size_t i = 0; i < count; ++i) operands.push_back(context.batched(i));
  const Dims whole = builder.module().type(operands[0]).shape;
  const auto flag = [&](const Dims& shape, int64_t value) {
    return build_splat(builder, shape, Scalar::of_int(DType::kBool, value));
  };
  if (batched_init) operands.push_back(flag(whole, 1));
  for (size_t i = 0; i < count; ++i) {
    const DType dtype = op.operand_type(i).dtype;
    // Init values that do not count, whatever they are: the real ones are combined with the results below.
    operands.push_back(batched_init ? build_scalar(builder, scalar_of(dtype, 0)) : context.operand(count + i));
  }
  if (batched_init) operands.push_back(flag({}, 0));
  const RegionId source = op.regions()[0];
  Values results = build_region_reduce(builder, op.module(), source, operands, dims, batched_init);
  if (batched_init) {
    const ValueId counted = results.back();
    results.pop_back();
    const Dims shape = builder.module().type(counted).shape;
    Values rows;
    for (size_t i = 0; i < count; ++i) {
      const ValueId init = context.operand(count + i);
      rows.push_back(build_broadcast(builder, init, shape, context.is_batched(count + i) ? Dims{0} : Dims{}));
    }
    Values both = rows;
    both.insert(both.end(), results.begin(), results.end());
    const Values combined = apply_region(builder, op.module(), source, both);
    for (size_t i = 0; i < count; ++i) {
      // Nothing was counted in a reduction of no rows: its result is the init value.
      results[i] = builder.create("stablehlo.select", {counted, combined[i], rows[i]});
    }
  }
  for (size_t i = 0; i < count; ++i) context.set_result(i, results[i]);
}

}  // namespace shardwise
