// SPDX-License-Identifier: Apache-2.0
//
// Loops and branches with a new leading dim:
//
//   while  predicate of all examples    the loop, with batched carries
//          predicate of each example    while reduce_or(p) do { select(p, next, carry) }
//   inline a named computation, a checkpoint: the same op, with a batched region
//   case   index of all examples        the case, with batched branches
//          index of each example        all branches, and select
#include <array>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/transforms/batch/batch_dependence.h"
#include "shardwise/transforms/batch/batch_walk.h"
#include "shardwise/transforms/gradient/given_derivatives.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {

RegionId BatchWalk::in_new_region(const std::function<std::vector<ValueId>()>& results) {
  const RegionId region = module_.add_region();
  Builder inner(module_, region, builder_->loc());
  Builder* const outer = std::exchange(builder_, &inner);
  std::vector<ValueId> made = results();
  builder_ = outer;
  module_.region(region).results = std::move(made);
  return region;
}

std::vector<ValueId> BatchWalk::add_arguments(RegionId from, RegionId to, const std::vector<AxisSet>& sets) {
  const std::vector<ValueId> originals = module_.region(from).arguments;
  std::vector<ValueId> made;
  for (size_t i = 0; i < originals.size(); ++i) {
    const Value original = module_.value(originals[i]);
    const TensorType type = module_.type(originals[i]);
    const TypeId wanted = module_.context().tensor(type.dtype, axes_.with_rows(sets[i], type.shape));
    made.push_back(module_.add_argument(to, wanted, original.loc));
    if (sets[i] == 0) module_.value(made.back()).sharding = original.sharding;
    map(originals[i], made.back(), sets[i]);
  }
  return made;
}

std::vector<ValueId> BatchWalk::images(std::span<const ValueId> originals, const std::vector<AxisSet>& sets) {
  const std::vector<ValueId> values(originals.begin(), originals.end());
  std::vector<ValueId> found;
  for (size_t i = 0; i < values.size(); ++i) found.push_back(image(values[i], sets[i]));
  return found;
}

void BatchWalk::map_results(OpId op, OpId made, const std::vector<AxisSet>& sets) {
  for (uint32_t i = 0; i < sets.size(); ++i) map(module_.result(op, i), module_.result(made, i), sets[i]);
}

namespace {

// Selects between batched values; the predicate has one element per row.
ValueId select_rows(Builder& builder, ValueId predicate, ValueId if_true, ValueId if_false) {
  const Dims shape = builder.module().type(if_true).shape;
  return builder.create("stablehlo.select", {build_broadcast(builder, predicate, shape, Dims{0}), if_true, if_false});
}

}  // namespace

// ---- loops ---------------------------------------------------------------------------------------------------------

void BatchWalk::loop(OpId op) {
  const LoopBatching batching = dependence().loop(op);
  const LoopParts parts = loop_parts(OpView(module_, op));
  const std::string_view around = masked_by_;
  const bool is_masked = batching.predicate != 0;
  if (is_masked) masked_by_ = module_.op(op).def->name;
  const auto predicate = [&] {
    run(parts.condition);
    return image(parts.predicate, batching.predicate);
  };
  const RegionId goes_on = in_new_region([&] {
    add_arguments(parts.condition, builder_->region(), batching.carries);
    const ValueId of_each = predicate();
    return std::vector{is_masked ? build_reduce(*builder_, of_each, {}, Reducer::kOr, Dims{0}) : of_each};
  });
  const RegionId step = in_new_region([&] {
    const std::vector<ValueId> carries = add_arguments(parts.body, builder_->region(), batching.carries);
    ValueId of_each;
    if (is_masked) {
      for (size_t i = 0; i < carries.size(); ++i) map(parts.carries[i].tested, carries[i], batching.carries[i]);
      of_each = predicate();
    }
    run(parts.body);
    std::vector<ValueId> next = images(module_.region(parts.body).results, batching.carries);
    for (size_t i = 0; is_masked && i < next.size(); ++i) {
      if (parts.carries[i].is_invariant()) continue;
      const ValueId goes_on_here = align(of_each, batching.predicate, batching.carries[i]);
      next[i] = select_rows(*builder_, goes_on_here, next[i], carries[i]);
    }
    return next;
  });
  masked_by_ = around;
  const std::vector<ValueId> init = images(module_.operands(op), batching.carries);
  // A loop with a predicate per example no longer counts, so attributes of the old loop do not hold.
  const AttrsId attrs = is_masked ? AttrsId{} : module_.op(op).attrs;
  map_results(op, builder_->create_op(*module_.op(op).def, init, attrs, {}, std::array{goes_on, step}),
              batching.carries);
}

// ---- branches ------------------------------------------------------------------------------------------------------

void BatchWalk::branches(OpId op) {
  const ValueId index = module_.operands(op)[0];
  if (varies(index) != 0) return select_branch(op);
  const std::vector<AxisSet> sets = dependence().branches(op);
  const std::vector<RegionId> originals(module_.regions(op).begin(), module_.regions(op).end());
  std::vector<RegionId> made;
  for (const RegionId branch : originals) {
    made.push_back(in_new_region([&] {
      run(branch);
      return images(module_.region(branch).results, sets);
    }));
  }
  const std::array operands{image(index)};
  map_results(op, builder_->create_op(*module_.op(op).def, operands, module_.op(op).attrs, {}, made), sets);
}

// The first branch of an `if` is that of true. An index out of range selects the last branch.
void BatchWalk::select_branch(OpId op) {
  const std::string_view around = std::exchange(masked_by_, module_.op(op).def->name);
  const std::vector<RegionId> branches(module_.regions(op).begin(), module_.regions(op).end());
  const std::vector<AxisSet> sets = dependence().branches(op);
  std::vector<std::vector<ValueId>> results;
  for (const RegionId branch : branches) {
    run(branch);
    results.push_back(images(module_.region(branch).results, sets));
  }
  masked_by_ = around;
  const AxisSet of_index = varies(module_.operands(op)[0]);
  const ValueId index = image(module_.operands(op)[0]);
  const TensorType type = module_.type(index);
  std::vector<ValueId> chosen = results.back();
  for (size_t branch = branches.size() - 1; branch-- > 0;) {
    ValueId wins = index;
    if (type.dtype != DType::kBool) {
      const ValueId number = build_splat(*builder_, type.shape, scalar_of(type.dtype, static_cast<int64_t>(branch)));
      wins = build_compare(*builder_, "EQ", index, number);
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (results[branch][i] == chosen[i]) continue;
      chosen[i] = select_rows(*builder_, align(wins, of_index, sets[i]), results[branch][i], chosen[i]);
    }
  }
  for (uint32_t i = 0; i < chosen.size(); ++i) map(module_.result(op, i), chosen[i], sets[i]);
}

// ---- inline regions ------------------------------------------------------------------------------------------------

// The op keeps its attributes: the name of a computation, the policy of a checkpoint.
void BatchWalk::inline_region(OpId op) {
  const RegionId body = module_.regions(op)[0];
  std::vector<AxisSet> sets, of_results;
  std::vector<ValueId> operands;
  for (uint32_t i = 0; i < module_.op(op).operand_count; ++i) {
    operands.push_back(image(module_.operands(op)[i]));
    sets.push_back(varies(module_.operands(op)[i]));
  }
  const bool is_given = module_.op(op).def->region_gradient == RegionGradient::kGiven;
  // A given derivative may make a result depend on the examples that the function does not.
  AxisSet of_each = 0;
  for (const AxisSet set : sets) of_each |= is_given && axes_.are_examples() ? set : 0;
  const RegionId made = in_new_region([&] {
    add_arguments(body, builder_->region(), sets);
    run(body);
    const std::vector<ValueId> results = module_.region(body).results;
    for (const ValueId result : results) of_results.push_back(varies(result) | of_each);
    return images(results, of_results);
  });
  const std::vector<TypeId> types = types_of(module_, module_.region(made).results);
  const std::array regions{made};
  const OpId batched = builder_->create_op(*module_.op(op).def, operands, module_.op(op).attrs, types, regions);
  if (is_given) {
    batch_given_derivative(module_, op, batched, {.axes = axes_, .operands = sets, .results = of_results});
  }
  map_results(op, batched, of_results);
}

// ---- side effects --------------------------------------------------------------------------------------------------

// A call counts as the ops of its function.
void BatchWalk::check_no_effect(OpId id) const {
  const OpView op(module_, id);
  // Ops on the rows of all devices replace it, which have no effect. In a vmap, all devices run the op.
  if (find_device_op(op.def()) != nullptr) return;
  for (const RegionId region : op.regions()) {
    for (const OpId inner : module_.region(region).ops) check_no_effect(inner);
  }
  const Traits& traits = op.def().traits;
  const bool marks = traits.sharding_group || traits.data_flow_edge;
  const bool calls = is_inlined(module_, id) || is_composite(op.def());
  if (!op.def().has_side_effect(op) || marks || calls) return;
  fail<UnsupportedError>(op.name(), str("an op with a side effect must run for all examples in a ", masked_by_),
                         "a condition that differs between them", "move it out of the region, or out of sw.vmap");
}

}  // namespace shardwise
