// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/op_linearity.h"

#include <algorithm>

#include "shardwise/ops/partitioning/linearity.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

constexpr std::array kReducers{Reducer::kSum, Reducer::kProd, Reducer::kMax,
                               Reducer::kMin, Reducer::kAnd,  Reducer::kOr};

// Those that are neutral for a reducer by which the op is joint.
std::vector<OpLinearity::Constant> neutral_constants(const OpView& op, std::span<const Linear> kinds) {
  std::vector<OpLinearity::Constant> constants;
  for (uint32_t i = 0; i < op.operand_count(); ++i) {
    ReducerSet neutral_for = 0;
    for (const Reducer reducer : kReducers) {
      const bool is_joint = kinds[static_cast<size_t>(reducer)] == Linear::kJoint;
      if (is_joint && is_free_addend(op, i, reducer)) neutral_for |= reducer_bit(reducer);
    }
    if (neutral_for != 0) constants.push_back({i, neutral_for});
  }
  return constants;
}

}  // namespace

bool OpLinearity::may_be_pending(size_t operand) const {
  switch (kind) {
    case Linear::kNone:
    case Linear::kDividend: return false;
    case Linear::kFirst: return operand == 0;
    case Linear::kEach: return true;
    case Linear::kJoint: return def->is_joint(operand);
  }
  return false;
}

bool OpLinearity::passes(const std::vector<bool>& pending) const {
  size_t count = 0;
  for (size_t i = 0; i < pending.size(); ++i) {
    if (!pending[i]) continue;
    if (!may_be_pending(i)) return false;
    ++count;
  }
  // %dw · %dw is not linear in %dw.
  return kind == Linear::kJoint ? count > 0 : count == 1;
}

bool OpLinearity::is_free(size_t operand) const {
  const auto found = std::ranges::lower_bound(constants, operand, {}, &Constant::operand);
  return found != constants.end() && found->operand == operand && (found->neutral_for & reducer_bit(reducer)) != 0;
}

ProgramLinearity::ProgramLinearity(const Module& module) : module_(module), rows_(module.op_count()) {
  for (const Function& function : module.functions) add(module, function.body);
}

void ProgramLinearity::add(const Module& module, RegionId region) {
  for (const OpId id : module.region(region).ops) {
    const OpView op(module, id);
    add(op);
    if (op.def().regions == Regions::kCombiner) continue;  // its ops are of single elements
    for (const RegionId inner : op.regions()) add(module, inner);
  }
}

void ProgramLinearity::add(const OpView& op) {
  Row& row = rows_[op.id().index];
  for (const Reducer reducer : kReducers) {
    if (combines_by(op.def(), reducer)) row.combines |= reducer_bit(reducer);
  }
  if (op.result_count() == 0 || (row.combines == 0 && op.def().linear.kind == Linear::kNone)) return;
  row.copies_inexact = only_copies(op.def()) && is_inexact(op.result_type().dtype);
  const ShardingRule& rule = sharding_rule(op);
  for (const Reducer reducer : kReducers) row.kinds[static_cast<size_t>(reducer)] = linear_in(op, rule, reducer);
  auto constants = neutral_constants(op, row.kinds);
  if (!constants.empty()) constants_.emplace(op.id(), std::move(constants));
}

OpLinearity ProgramLinearity::of(OpId op, Reducer reducer) const {
  const Row& row = rows_[op.index];
  OpLinearity found{.kind = row.kinds[static_cast<size_t>(reducer)],
                    .combines = (row.combines & reducer_bit(reducer)) != 0,
                    .copies_inexact = row.copies_inexact,
                    .def = module_.op(op).def,
                    .reducer = reducer};
  const auto constants = constants_.find(op);
  if (constants != constants_.end()) found.constants = constants->second;
  return found;
}

bool ProgramLinearity::is_linear(OpId op) const {
  return std::ranges::any_of(rows_[op.index].kinds, [](Linear kind) { return kind != Linear::kNone; });
}

}  // namespace shardwise
