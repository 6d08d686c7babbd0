// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/placed_ops.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/partitioning/addends.h"
#include "shardwise/ops/partitioning/owned_rows.h"
#include "shardwise/emission/partition_context.h"

namespace shardwise {
namespace {

TypeId source_type(const OpView& op, ValueId value) { return op.module().value(value).type; }

// Returns why the range of a sharded dim requires it unsharded, or "" if the range is not the reason.
std::string range_cause(const OpView& op, const ShardingRule& rule, size_t i, const Placement& home,
                        const Placement& need) {
  for (size_t d = 0; d < home.dims.size(); ++d) {
    const Range* range = rule.range(i, d);
    if (range == nullptr || home.dims[d].axes.empty() || !need.dims[d].axes.empty()) continue;
    if (!range->is_static()) return str(": the start along dim ", d, " is known only at run time");
    const FactorId factor = rule.dim(i, d)[0];
    // Shards that hold their read ranges move for another reason: the result has another sharding.
    if (stays_local(op, rule, factor, product(home.dims[d].axes))) continue;
    for (size_t e = 0; e < rule.ndim(rule.result_tensor(0)); ++e) {
      if (rule.dim(rule.result_tensor(0), e)[0] != factor) continue;
      const Interval read = range->reads({0, op.result_type().shape[e]}, op.operand_type(i).shape[d]);
      return str(": the range [", read.begin, ", ", read.end, ") crosses shards along dim ", d);
    }
  }
  return {};
}

Cause reduction_cause(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute) {
  if (compute.method != nullptr) {
    for (const FactorId id : compute.method->factors(op, rule)) {
      const AxisList& axes = compute.factors[id];
      if (!axes.empty() && overlaps(axes, compute.reduced)) return method_cause(*compute.method, op);
    }
  }
  return {.kind = Cause::kReduction, .of = op.name()};
}

}  // namespace

void PlacedOps::add_replicated(const OpView& op) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    operands.push_back(
        values_.get(op.operand(i), placements_.replicated(source_type(op, op.operand(i))), operand_cause(op, i)));
  }
  const OpId made = copy_.op(op.id(), builder_.region(), operands);
  for (size_t i = 0; i < op.result_count(); ++i) {
    values_.add(op.result(i), target().result(made, static_cast<uint32_t>(i)),
                placements_.replicated(source_type(op, op.result(i))));
  }
}

void PlacedOps::add_by_rule(const OpView& op, const ShardingRule& rule, const OpChoice& choice) {
  const auto& [compute, pending] = choice;
  std::vector<ValueId> operands;
  operands.reserve(op.operand_count());
  Cause cause;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const PlacementId need = operand_placement(placements_, op, rule, compute, pending, i);
    operands.push_back(values_.get(op.operand(i), need, cause_of_operand(op, rule, i, need)));
    if (!compute.passed.empty() && pending.operands[i]) cause = values_.pending_cause(op.operand(i));
  }
  // Two reductions, passed on and its own, are completed together; the report names its own.
  if (!compute.reduced.empty()) cause = reduction_cause(op, rule, compute);
  const bool makes_addends = !compute.reduced.empty() || !compute.passed.empty();
  const bool is_wide =
      makes_addends && type_made(placements_, op, 0, result_placement(placements_, op, rule, compute, 0)) !=
                           source_type(op, op.result());
  const OpId made =
      is_wide ? create_with_wide_addends(builder_, op, operands) : copy_.op(op.id(), builder_.region(), operands);
  // `localize` reads the method's name, since placements alone may fit several methods.
  if (compute.has_own_partition()) target().set_attribute(made, kMethodAttr, std::string(compute.method->name));
  for (size_t i = 0; i < op.result_count(); ++i) {
    const ValueId result = target().result(made, static_cast<uint32_t>(i));
    const PlacementId placement = result_placement(placements_, op, rule, compute, i);
    if (is_wide) {
      add_narrowed(op, i, result, placement, cause);
    } else {
      values_.add(op.result(i), result, placement, cause);
      if (is_owned(op, choice)) values_.set_owned(op.result(i));
    }
  }
}

bool PlacedOps::is_owned(const OpView& op, const OpChoice& choice) const {
  const auto& [compute, pending] = choice;
  if ((compute.reduced.empty() && compute.passed.empty()) || compute.reducer != Reducer::kSum) return false;
  std::vector<AddendOperand> addends;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const bool passes = !compute.passed.empty() && pending.operands[i];
    addends.push_back({passes, passes && values_.is_owned(op.operand(i))});
  }
  return gives_owned(op.def(), compute.has_own_partition() ? compute.method->name : std::string_view(), addends);
}

// Reduces the sum where propagation wants the result.
void PlacedOps::add_narrowed(const OpView& op, size_t i, ValueId sum, PlacementId placement, const Cause& cause) {
  const PlacementId reduced = placements_.declared(op.result(i));
  target().value(sum).sharding = placements_.sharding(placement);
  const ValueId whole = builder_.create("sdy.reshard", {sum}, cause.attrs());
  target().value(whole).sharding = placements_.sharding(reduced);
  const ValueId narrow = builder_.create("stablehlo.convert", {whole}, {}, {source_type(op, op.result(i))});
  for (const ValueId value : {sum, whole, narrow}) {
    target().value(value).origin = op.module().value(op.result(i)).origin;
  }
  // The sum ends here: a narrow value that stayed unreduced would round its addends.
  values_.add(op.result(i), narrow, reduced);
}

Cause PlacedOps::cause_of_operand(const OpView& op, const ShardingRule& rule, size_t i, PlacementId need) {
  Cause cause = operand_cause(op, i);
  const Placement* home = rule.has_ranges() ? placements_.find(values_.home(op.operand(i), need)) : nullptr;
  if (home != nullptr) cause.detail = range_cause(op, rule, i, *home, *placements_.find(need));
  return cause;
}

OpId PlacedOps::create(const OpView& op, std::span<const ValueId> operands, std::span<const RegionId> regions) {
  const Operation& source = op.module().op(op.id());
  builder_.set_loc(op.loc(), source.origin);
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(source_type(op, op.result(i)));
  return builder_.create_op(op.def(), operands, source.attrs, types, regions);
}

}  // namespace shardwise
