// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/transforms/gradient/backward_split.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/joint_body.h"

namespace shardwise {
namespace {

DType index_dtype(int64_t trips) { return trips <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64; }

// ---- rows of stacks ------------------------------------------------------------------------------------------------

ValueId write_row(Builder& builder, ValueId stack, ValueId row, ValueId index) {
  const ValueId update = build_reshape(builder, row, with_leading(1, builder.module().type(row).shape));
  return build_dynamic_update_slice(builder, stack, update, starts_of_row(builder, stack, 0, index));
}

ValueId linear_value(Builder& builder, ValueId trip, LinearInteger integer) {
  const DType dtype = builder.module().type(trip).dtype;
  if (integer.stride != 1) {
    trip = builder.create("stablehlo.multiply", {trip, build_scalar(builder, scalar_of(dtype, integer.stride))});
  }
  if (integer.offset == 0) return trip;
  return builder.create("stablehlo.add", {trip, build_scalar(builder, scalar_of(dtype, integer.offset))});
}

// A while op whose first carry counts down to 0.
OpId create_while_counting_down(Builder& builder, const OpDef& def, const std::vector<ValueId>& operands,
                                RegionId body) {
  Module& module = builder.module();
  Builder condition(module, module.add_region(), builder.loc());
  std::vector<ValueId> arguments;
  for (const ValueId operand : operands) {
    arguments.push_back(module.add_argument(condition.region(), module.value(operand).type, builder.loc()));
  }
  const DType dtype = module.type(operands[0]).dtype;
  // The counter passes below 0 in the end, so index_dtype has no unsigned dtypes.
  const ValueId last = build_scalar(condition, scalar_of(dtype, 0));
  module.region(condition.region()).results = {build_compare(condition, "GE", arguments[0], last)};
  const RegionId regions[] = {condition.region(), body};
  return builder.create_op(def, operands, {}, {}, regions);
}

// ---- the forward loop ----------------------------------------------------------------------------------------------

struct SavedStack {
  ValueId value;       // of the joint region
  ValueId stack;       // its rows
  size_t dim = 0;      // along which they are stacked
  LinearInteger row;   // the index of the one of a trip
  ValueId first = {};  // instead of a row in trip 0, if any
};

// A stack that the loop makes anyway, of which `value` is the row of a trip.
SavedStack known_stack(const RowWrite& output, ValueId value, const std::vector<ValueId>& results, int64_t trips) {
  return {.value = value,
          .stack = results[output.carry],
          .dim = output.course.dim,
          .row = row_of_trip(output.course, trips)};
}

// The values that the backward loop reads.
struct SavedValues {
  std::vector<SavedStack> stacks;
  std::vector<std::pair<ValueId, ValueId>> invariants;  // and what holds them around the loop
};

// The values of the joint region that differ between trips.
std::unordered_set<ValueId> find_varying(const Module& module, const Region& joint) {
  std::unordered_set<ValueId> varying(joint.arguments.begin(), joint.arguments.end());
  for (const OpId op : joint.ops) {
    const auto is_varying = [&](ValueId value) { return varying.contains(value); };
    if (!module.op(op).def->has_side_effect(OpView(module, op)) && !reads_any(module, op, is_varying)) continue;
    for (const ValueId result : results_of(module, op)) varying.insert(result);
  }
  return varying;
}

// A row that the loop stacks anyway costs 1 and its carry 2, so that the cut prefers the row where both would do. One
// stack of the next values serves a carry, too: %h is read before tanh, and the next %h after it. A next value that is
// itself a carry does not count, because its own rows may be shifted.
// An op with an effect runs in each trip, and is never hoisted; dce removes what the body no longer reads after
// hoisting. A counter that exists is taken, because a second one would be one more carry to keep and to partition. Each
// trip writes its row of a stack, so that the zeros which it begins with are never read.
class ForwardLoop {
 public:
  ForwardLoop(ReverseWalk& walk, const OpView& loop, const CountedLoop& counted, const std::vector<RowWrite>& writes,
              JointBody& joint)
      : module_(walk.module()),
        walk_(walk),
        loop_(loop),
        counted_(counted),
        joint_(joint),
        varying_(find_varying(module_, module_.region(joint.region))) {
    for (const RowWrite& output : writes) {
      const OpId write = module_.value(joint.results[output.carry]).op;
      known_stacks_[written_row(module_, write, output.course.dim)] = output;
    }
    for (size_t i = 0; i < loop.operand_count(); ++i) {
      if (!counted.is_invariant[i]) carry_of_[joint.arguments[i]] = i;
    }
  }

  // The cost of a row that the loop stacks anyway is next to nothing.
  int64_t cost_of_saving(ValueId value) const {
    if (known_stacks_.contains(value)) return 1;
    if (const auto carry = carry_of_.find(value); carry != carry_of_.end()) {
      if (known_stacks_.contains(joint_.results[carry->second])) return 2;
    }
    constexpr int64_t kMost = int64_t{1} << 50;  // sums of costs stay below the capacities of a cut
    const int64_t rows = varying_.contains(value) ? counted_.trips : 1;
    // Bounded before the product, which could overflow. An invariant is kept once, not once a trip.
    return std::min(bytes_of(module_, value), kMost / rows) * rows;
  }

  // Puts a loop that saves these values in place of the loop. The joint region becomes its body.
  SavedValues save(const BackwardSplit& split) {
    SavedValues saved;
    if (split.saved.empty()) return saved;
    std::vector<ValueId> stacked, shifted;
    for (const ValueId value : split.saved) {
      if (!varying_.contains(value) || known_stacks_.contains(value)) continue;
      (is_result_stacked(value, split.saved) ? shifted : stacked).push_back(value);
    }
    const std::vector<ValueId> results = walk_.put_in_place_of(loop_.id(), [&](Builder&) {
      saved.invariants = hoist(split);
      return create_loop(split, stacked);
    });
    for (const ValueId value : split.saved) {
      if (const auto found = known_stacks_.find(value); found != known_stacks_.end()) {
        saved.stacks.push_back(known_stack(found->second, value, results, counted_.trips));
      }
    }
    for (size_t i = 0; i < stacked.size(); ++i) {
      const ValueId stack = results[results.size() - stacked.size() + i];
      saved.stacks.push_back({.value = stacked[i], .stack = stack, .row = {.offset = 0, .stride = 1}});
    }
    for (const ValueId value : shifted) saved.stacks.push_back(rows_before(value, saved.stacks, results));
    return saved;
  }

 private:
  // Whether the value is a carry whose next value has a stack, which then holds both.
  bool is_result_stacked(ValueId value, const std::vector<ValueId>& saved) const {
    const auto carry = carry_of_.find(value);
    if (carry == carry_of_.end()) return false;
    const ValueId next = joint_.results[carry->second];
    const bool is_saved = varying_.contains(next) && std::ranges::find(saved, next) != saved.end();
    return (is_saved && !carry_of_.contains(next)) || known_stacks_.contains(next);
  }

  // A carry is the operand of the loop in trip 0, and then the row of the trip before.
  SavedStack rows_before(ValueId value, const std::vector<SavedStack>& saved,
                         const std::vector<ValueId>& results) const {
    const size_t carry = carry_of_.at(value);
    const ValueId next = joint_.results[carry];
    const auto known = known_stacks_.find(next);
    SavedStack rows = known != known_stacks_.end() ? known_stack(known->second, next, results, counted_.trips)
                                                   : *std::ranges::find(saved, next, &SavedStack::value);
    rows.value = value;
    // Trip t reads the row of trip t - 1: at 3 + 2 t for the result, so at 1 + 2 t for the carry.
    rows.row.offset -= rows.row.stride;
    rows.first = loop_.operand(carry);
    return rows;
  }

  // Saved values that are the same in all trips are computed in front of the loop.
  std::vector<std::pair<ValueId, ValueId>> hoist(const BackwardSplit& split) {
    std::vector<ValueId> invariants;
    for (const ValueId value : split.saved) {
      if (!varying_.contains(value)) invariants.push_back(value);
    }
    std::unordered_set<ValueId> needed(invariants.begin(), invariants.end());
    const auto is_needed = [&](ValueId value) { return needed.contains(value); };
    std::vector<OpId> ops;
    for (const OpId op : split.forward | std::views::reverse) {
      if (!any_result(module_, op, is_needed)) continue;
      ops.push_back(op);
      visit_reads(module_, op, [&](ValueId value) { needed.insert(value); });
    }
    GraphCopy copy(module_, module_);
    for (const OpId op : ops | std::views::reverse) copy.op(op, walk_.builder().region());
    Redirection in_body(module_);
    std::vector<std::pair<ValueId, ValueId>> hoisted;
    for (const ValueId value : invariants) {
      hoisted.emplace_back(value, copy(value));
      in_body.add(value, copy(value));
    }
    for (const OpId op : split.forward) in_body.apply(op);
    for (ValueId& result : joint_.results) result = in_body(result);
    return hoisted;
  }

  // Returns the results of the loop by carry, then the stacks.
  std::vector<ValueId> create_loop(const BackwardSplit& split, const std::vector<ValueId>& stacked) {
    Builder& builder = walk_.builder();
    Region& body = module_.region(joint_.region);
    body.ops = split.forward;
    std::vector<ValueId> operands, results;
    std::vector<size_t> position;  // by carry
    for (size_t i = 0; i < loop_.operand_count(); ++i) {
      position.push_back(operands.size());
      if (counted_.is_invariant[i]) continue;
      operands.push_back(loop_.operand(i));
      results.push_back(joint_.results[i]);
    }
    body.arguments.resize(operands.size());  // the first ones

    Builder in_body(module_, joint_.region, loop_.loc());
    const ValueId trip = stacked.empty() ? ValueId{} : trip_number(in_body, operands, results);
    for (const ValueId value : stacked) {
      const TensorType type{module_.type(value).dtype, with_leading(counted_.trips, module_.type(value).shape)};
      const ValueId stack = module_.add_argument(joint_.region, module_.context().intern(type), loop_.loc());
      results.push_back(write_row(in_body, stack, value, trip));
      operands.push_back(build_zeros(builder, type));
    }
    module_.region(joint_.region).results = results;
    const RegionId regions[] = {copy_condition(operands, position), joint_.region};
    const OpId made = builder.create_op(loop_.def(), operands, module_.op(loop_.id()).attrs, {}, regions);

    std::vector<ValueId> by;
    for (size_t i = 0; i < loop_.operand_count(); ++i) {
      by.push_back(counted_.is_invariant[i] ? loop_.operand(i)
                                            : module_.result(made, static_cast<uint32_t>(position[i])));
    }
    for (size_t i = 0; i < stacked.size(); ++i) {
      by.push_back(module_.result(made, static_cast<uint32_t>(operands.size() - stacked.size() + i)));
    }
    return by;
  }

  // 0, 1, 2, …: from a carry that counts, or a new one.
  ValueId trip_number(Builder& in_body, std::vector<ValueId>& operands, std::vector<ValueId>& results) {
    for (size_t i = 0; i < loop_.operand_count(); ++i) {
      const DType dtype = loop_.operand_type(i).dtype;
      const auto& induction = counted_.inductions[i];
      if ((dtype != DType::kI32 && dtype != DType::kI64) || !induction || induction->stride != 1) continue;
      if (induction->offset == 0) return joint_.arguments[i];
      const ValueId start = build_scalar(in_body, scalar_of(dtype, induction->offset));
      return in_body.create("stablehlo.subtract", {joint_.arguments[i], start});
    }
    const DType dtype = index_dtype(counted_.trips);
    operands.push_back(build_scalar(walk_.builder(), scalar_of(dtype, 0)));
    const ValueId trip = module_.add_argument(joint_.region, module_.context().tensor(dtype, {}), loop_.loc());
    const ValueId one = build_scalar(in_body, scalar_of(dtype, 1));
    results.push_back(in_body.create("stablehlo.add", {trip, one}));
    return trip;
  }

  RegionId copy_condition(const std::vector<ValueId>& operands, const std::vector<size_t>& position) {
    const LoopParts parts = loop_parts(loop_);
    const RegionId condition = module_.add_region();
    std::vector<ValueId> arguments;
    for (const ValueId operand : operands) {
      arguments.push_back(module_.add_argument(condition, module_.value(operand).type, loop_.loc()));
    }
    GraphCopy copy(module_, module_);
    for (size_t i = 0; i < parts.carries.size(); ++i) {
      const LoopParts::Carry& carry = parts.carries[i];
      copy.map(carry.tested, carry.is_invariant() ? carry.entry : arguments[position[i]]);
    }
    copy.ops(parts.condition, condition);
    module_.region(condition).results = {copy(parts.predicate)};
    return condition;
  }

  Module& module_;
  ReverseWalk& walk_;
  OpView loop_;
  const CountedLoop& counted_;
  JointBody& joint_;
  std::unordered_set<ValueId> varying_;
  std::unordered_map<ValueId, RowWrite> known_stacks_;  // by row
  std::unordered_map<ValueId, size_t> carry_of_;        // arguments of the joint region
};

// ---- the backward loop ---------------------------------------------------------------------------------------------

class BackwardLoop {
 public:
  BackwardLoop(ReverseWalk& walk, const OpView& loop, const CountedLoop& counted, const JointBody& joint)
      : module_(walk.module()),
        walk_(walk),
        loop_(loop),
        counted_(counted),
        joint_(joint),
        dtype_(index_dtype(counted.trips)) {}

  void append(const std::vector<OpId>& ops, const SavedValues& saved) {
    Builder& builder = walk_.builder();
    // The backward loop runs the trips in reverse: the first carry is the number of the trip, from trips - 1 to 0.
    std::vector<ValueId> operands{build_scalar(builder, scalar_of(dtype_, counted_.trips - 1))};
    for (const CotangentCarry& carry : joint_.cotangents) {
      // Zeros for a carry whose result is not differentiated, and for the sums over the iterations.
      operands.push_back(carry.init ? carry.init : build_zeros(builder, TensorType(module_.type(carry.argument))));
    }
    const OpId made = create_while_counting_down(builder, loop_.def(), operands, build_body(ops, saved));
    for (uint32_t i = 0; i < joint_.cotangents.size(); ++i) {
      walk_.accumulate(joint_.cotangents[i].of, module_.result(made, i + 1));
    }
  }

 private:
  RegionId build_body(const std::vector<OpId>& ops, const SavedValues& saved) {
    const RegionId body = module_.add_region();
    Builder builder(module_, body, loop_.loc());
    const ValueId trip = module_.add_argument(body, module_.context().tensor(dtype_, {}), loop_.loc());
    GraphCopy copy(module_, module_);
    for (const CotangentCarry& carry : joint_.cotangents) {
      copy.map(carry.argument, module_.add_argument(body, module_.value(carry.argument).type, loop_.loc()));
    }
    for (const OutputCotangent& output : joint_.outputs) copy.map(output.argument, output.value);
    for (const auto& [value, outside] : saved.invariants) copy.map(value, outside);
    map_inductions(builder, trip, ops, copy);
    for (const SavedStack& rows : saved.stacks) copy.map(rows.value, saved_row(builder, trip, rows));
    for (const OpId op : ops) copy.op(op, body);

    std::vector<ValueId> results{linear_value(builder, trip, {.offset = -1, .stride = 1})};
    for (const CotangentCarry& carry : joint_.cotangents) results.push_back(copy(carry.next));
    module_.region(body).results = std::move(results);
    return body;
  }

  ValueId saved_row(Builder& builder, ValueId trip, const SavedStack& rows) {
    // In trip 0 a shifted row has the index -1. dynamic_slice clamps it, and the select below discards that row.
    const ValueId index = linear_value(builder, trip, rows.row);
    const ValueId row = build_dynamic_row(builder, rows.stack, rows.dim, index, module_.type(rows.value).shape);
    if (!rows.first) return row;
    const ValueId is_first = build_compare(builder, "EQ", trip, build_scalar(builder, scalar_of(dtype_, 0)));
    return builder.create("stablehlo.select", {is_first, rows.first, row});
  }

  // Carries that grow by a constant, such as the counter of the forward loop, follow from the trip.
  void map_inductions(Builder& builder, ValueId trip, const std::vector<OpId>& ops, GraphCopy& copy) {
    std::unordered_set<ValueId> read;
    for (const CotangentCarry& carry : joint_.cotangents) read.insert(carry.next);
    for (const OpId op : ops) visit_reads(module_, op, [&](ValueId value) { read.insert(value); });
    for (size_t i = 0; i < loop_.operand_count(); ++i) {
      // Only where it is read, so that the loop has no ops that nothing uses.
      if (counted_.is_invariant[i] || !counted_.inductions[i] || !read.contains(joint_.arguments[i])) continue;
      const ValueId converted = build_convert(builder, trip, loop_.operand_type(i).dtype);
      copy.map(joint_.arguments[i], linear_value(builder, converted, *counted_.inductions[i]));
    }
  }

  Module& module_;
  ReverseWalk& walk_;
  OpView loop_;
  const CountedLoop& counted_;
  const JointBody& joint_;
  DType dtype_;
};

[[noreturn]] void refuse_uncounted() {
  fail<UnsupportedError>("grad", "reverse-mode differentiation needs a loop with a constant number of trips",
                         "a loop that runs until its condition fails",
                         "use sw.scan or sw.fori_loop with constant bounds");
}

}  // namespace

void differentiate_loop(ReverseWalk& walk, OpId id) {
  const OpView loop(walk.module(), id);
  const auto counted = counted_loop(loop);
  if (!counted) refuse_uncounted();
  for (size_t i = 0; i < loop.operand_count(); ++i) {
    const ValueId cotangent = walk.cotangent_of_result(loop.result(i));
    // Such a result is the operand itself, so that its cotangent passes by the loop.
    if (cotangent && (counted->is_invariant[i] || counted->trips == 0)) walk.accumulate(loop.operand(i), cotangent);
  }
  if (counted->trips == 0) return;

  const std::vector<RowWrite> writes = find_row_writes(walk.module(), loop, *counted);
  JointBody joint = build_joint_body(walk, loop, *counted, writes);
  if (joint.cotangents.empty()) return;
  ForwardLoop forward(walk, loop, *counted, writes, joint);
  BackwardRegion region{.region = joint.region,
                        .cotangents = {},
                        .wanted = {},
                        .first_made = joint.first_made,
                        .is_available = {},
                        .cost = [&](ValueId value) { return forward.cost_of_saving(value); }};
  region.is_available = [&](ValueId value) {
    const auto carry = std::ranges::find(joint.arguments, value);
    return carry != joint.arguments.end() && counted->inductions[static_cast<size_t>(carry - joint.arguments.begin())];
  };
  for (const CotangentCarry& carry : joint.cotangents) {
    region.cotangents.push_back(carry.argument);
    region.wanted.push_back(carry.next);
  }
  for (const OutputCotangent& output : joint.outputs) region.cotangents.push_back(output.argument);
  const BackwardSplit split = split_backward(walk.module(), region);
  // save() runs before append(): it turns the joint region into the body of the forward loop. The backward ops leave
  // that region but stay in the module, and append() copies them from there.
  BackwardLoop backward(walk, loop, *counted, joint);
  backward.append(split.backward, forward.save(split));
}

}  // namespace shardwise
