// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/op_writer.h"

#include "shardwise/base/text.h"
#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/emission/local_partition_context.h"
#include "shardwise/ops/partitioning/addends.h"
#include "shardwise/transforms/gradient/name_gradients.h"

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

}  // namespace

void OpWriter::add(const OpView& op, const OpChoice& choice) {
  const std::vector<ValueId> operands = operands_of(op, choice);
  const Cause cause = cause_of_results(op, choice);
  const LocId loc = cause.kind == Cause::kNone ? LocId{} : loc_of_gradient(op, choice);
  const bool is_wide = has_wide_addends(placements_, op, choice);
  const OpId made =
      is_wide ? create_with_wide_addends(builder_, op, operands) : copy_.op(op.id(), builder_.region(), operands);
  if (!op.def().methods.empty()) write_method(made, choice);
  for (size_t i = 0; i < op.result_count(); ++i) {
    const ValueId result = target().result(made, static_cast<uint32_t>(i));
    if (is_wide) {
      add_narrowed(op, i, result, choice.results[i], cause);
    } else {
      values_.add(op.result(i), result, choice.results[i], cause, loc);
    }
  }
}

// `localize` reads the method's name, since placements alone may fit several methods. A text may have named another one.
void OpWriter::write_method(OpId made, const OpChoice& choice) {
  if (choice.has_own_partition()) return target().set_attribute(made, kMethodAttr, std::string(choice.method->name));
  if (target().attrs(made).find(kMethodAttr) == nullptr) return;
  Attrs attrs = target().attrs(made);
  attrs.erase(kMethodAttr);
  target().op(made).attrs = target().context().intern(attrs);
}

std::vector<ValueId> OpWriter::operands_of(const OpView& op, const OpChoice& choice) {
  std::vector<ValueId> operands;
  operands.reserve(op.operand_count());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const PlacementId need = choice.operands[i];
    operands.push_back(values_.get(op.operand(i), need, cause_of_operand(op, i, need)));
  }
  return operands;
}

// Two reductions, passed on and its own, are completed together; the report names its own.
Cause OpWriter::cause_of_results(const OpView& op, const OpChoice& choice) {
  const Placement* made = op.result_count() == 0 ? nullptr : placements_.find(choice.results[0]);
  if (made == nullptr || made->unreduced.empty()) return {};
  Cause cause;
  AxisList passed;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Placement* taken = placements_.find(choice.operands[i]);
    if (taken == nullptr || taken->unreduced.empty()) continue;
    passed = taken->unreduced;
    cause = values_.pending_cause(op.operand(i));
  }
  if (difference(made->unreduced, passed).empty()) return cause;
  return choice.method_reduces ? method_cause(*choice.method, op) : Cause{.kind = Cause::kReduction, .of = op.name()};
}

// A gradient that an update passes on as addends keeps its name: 0.9 * m + g is reduced as the gradient.
LocId OpWriter::loc_of_gradient(const OpView& op, const OpChoice& choice) {
  Context& context = target().context();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Placement* taken = placements_.find(choice.operands[i]);
    if (taken == nullptr || taken->unreduced.empty()) continue;
    const std::string name = context.name_of(values_.pending_loc(op.operand(i)));
    if (is_gradient_name(name)) return context.named_location(name, context.without_names(op.loc()));
  }
  return {};
}

// Reduces the sum where propagation wants the result.
void OpWriter::add_narrowed(const OpView& op, size_t i, ValueId sum, PlacementId placement, const Cause& cause) {
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

Cause OpWriter::cause_of_operand(const OpView& op, size_t i, PlacementId need) {
  Cause cause = operand_cause(op, i);
  const ShardingRule& rule = sharding_rule(op);
  const Placement* home = rule.has_ranges() ? placements_.find(values_.home(op.operand(i), need)) : nullptr;
  if (home != nullptr) cause.detail = range_cause(op, rule, i, *home, *placements_.find(need));
  return cause;
}

OpId OpWriter::create(const OpView& op, std::span<const ValueId> operands, std::span<const RegionId> regions) {
  const Operation& source = op.module().op(op.id());
  builder_.set_loc(op.loc(), source.origin);
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(source_type(op, op.result(i)));
  return builder_.create_op(op.def(), operands, source.attrs, types, regions);
}

}  // namespace shardwise
