// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/split_constants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

enum class Kind : uint8_t { kOrdinary, kConstant, kExpansion };

class ConstantSplitter {
 public:
  explicit ConstantSplitter(Module& module) : module_(module), kinds_(module.op_count()), taken_(module.op_count()) {
    for (uint32_t i = 1; i < module.op_count(); ++i) {
      if (module.op(OpId{i}).def->traits.sharding_group) groups_[module.operands(OpId{i})[0]].push_back(OpId{i});
    }
  }

  int64_t run() {
    for (size_t f = 0; f < module_.functions.size(); ++f) split_region(module_.functions[f].body);
    if (!copies_.empty()) {
      for (size_t f = 0; f < module_.functions.size(); ++f) place_copies(module_.functions[f].body);
    }
    return count_;
  }

 private:
  Kind& kind(OpId id) { return kinds_[id.index]; }

  bool is_constant(ValueId value) {
    const OpId op = module_.value(value).op;
    return op && kind(op) == Kind::kConstant;
  }
  bool is_scalar(ValueId value) const { return module_.type(value).shape.empty(); }

  Kind classify(OpId id) {
    const Traits& traits = module_.op(id).def->traits;
    if (traits.side_effect || !module_.regions(id).empty()) return Kind::kOrdinary;
    const auto operands = module_.operands(id);
    if (operands.empty()) return traits.constant_like ? Kind::kConstant : Kind::kOrdinary;
    if (!traits.constant_preserving && !traits.elementwise && !traits.constant_like) return Kind::kOrdinary;
    if (std::ranges::all_of(operands, [&](ValueId operand) { return is_constant(operand); })) return Kind::kConstant;
    const bool expands = traits.constant_preserving && traits.precedence == Precedence::kBackwardFirst;
    return expands && is_scalar(operands[0]) ? Kind::kExpansion : Kind::kOrdinary;
  }

  void split_region(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;
    for (OpId id : ops) {
      if (module_.op(id).def->traits.sharding_group) continue;
      kind(id) = classify(id);
      if (kind(id) == Kind::kOrdinary) {
        for (uint32_t i = 0; i < module_.op(id).operand_count; ++i) {
          const ValueId own = own_copy(module_.operands(id)[i]);
          module_.operands(id)[i] = own;
        }
      }
      for (size_t r = 0; r < module_.regions(id).size(); ++r) split_region(module_.regions(id)[r]);
    }
    for (size_t i = 0; i < module_.region(region).results.size(); ++i) {
      const ValueId own = own_copy(module_.region(region).results[i]);
      module_.region(region).results[i] = own;
    }
  }

  ValueId own_copy(ValueId value) {
    const OpId op = module_.value(value).op;
    if (!op || kind(op) == Kind::kOrdinary || is_scalar(value)) return value;
    if (take(op)) return value;
    std::unordered_map<OpId, OpId> copied;
    return ValueId{module_.op(copy(op, copied)).first_result + module_.value(value).index};
  }

  // Claims an op and what it is made of for one use; false when another use has any of it.
  bool take(OpId id) {
    std::vector<OpId> parts{id};
    std::unordered_set<OpId> seen{id};
    for (size_t i = 0; i < parts.size(); ++i) {
      if (taken_[parts[i].index]) return false;
      for (ValueId operand : module_.operands(parts[i])) {
        const OpId op = module_.value(operand).op;
        if (is_copied(operand) && seen.insert(op).second) parts.push_back(op);
      }
    }
    for (OpId part : parts) taken_[part.index] = true;
    return true;
  }
  // What a copy of its user copies too: tensors that are constants or expansions themselves.
  bool is_copied(ValueId value) const {
    const OpId op = module_.value(value).op;
    return op && kinds_[op.index] != Kind::kOrdinary && !is_scalar(value);
  }

  // Made beside the original, whatever region the use is in.
  OpId copy(OpId id, std::unordered_map<OpId, OpId>& copied) {
    if (auto it = copied.find(id); it != copied.end()) return it->second;
    const auto original = module_.operands(id);
    std::vector<ValueId> operands(original.begin(), original.end());
    for (ValueId& operand : operands) {
      if (!is_copied(operand)) continue;
      const uint32_t index = module_.value(operand).index;
      operand = module_.result(copy(module_.value(operand).op, copied), index);
    }
    const OpId made = append_copy(id, operands);
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      module_.value(module_.result(made, i)).sharding = module_.value(module_.result(id, i)).sharding;
    }
    kinds_.resize(module_.op_count());
    taken_.resize(module_.op_count());
    kind(made) = kind(id);
    taken_[made.index] = true;
    copied.emplace(id, made);
    copies_[id].push_back(made);
    ++count_;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const auto groups = groups_.find(module_.result(id, i));
      if (groups == groups_.end()) continue;
      for (const OpId group : groups->second) copies_[id].push_back(append_copy(group, {module_.result(made, i)}));
    }
    return made;
  }

  OpId append_copy(OpId id, const std::vector<ValueId>& operands) {
    const Operation op = module_.op(id);
    std::vector<TypeId> types;
    for (uint32_t i = 0; i < op.result_count; ++i) types.push_back(module_.value(module_.result(id, i)).type);
    const OpId made = module_.append_op(op.parent, *op.def, operands, op.attrs, types, op.loc);
    module_.region(op.parent).ops.pop_back();  // place_copies puts it where it belongs
    return made;
  }

  void place_copies(RegionId region) {
    std::vector<OpId> ops;
    for (const OpId id : module_.region(region).ops) {
      ops.push_back(id);
      if (const auto it = copies_.find(id); it != copies_.end())
        ops.insert(ops.end(), it->second.begin(), it->second.end());
      for (size_t r = 0; r < module_.regions(id).size(); ++r) place_copies(module_.regions(id)[r]);
    }
    module_.region(region).ops = std::move(ops);
  }

  Module& module_;
  std::vector<Kind> kinds_;                                // by op
  std::vector<bool> taken_;                                // by op: some use owns it
  std::unordered_map<OpId, std::vector<OpId>> copies_;     // by original, in the order of their users
  std::unordered_map<ValueId, std::vector<OpId>> groups_;  // sharding_group ops by member
  int64_t count_ = 0;
};

}  // namespace

int64_t split_constants(Module& module) { return ConstantSplitter(module).run(); }

}  // namespace shardwise
