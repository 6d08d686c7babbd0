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
  explicit ConstantSplitter(Module& module) : module_(module), kinds_(module.op_count()), taken_(module.op_count()) {}

  int64_t run() {
    for (size_t f = 0; f < module_.functions.size(); ++f) split_region(module_.functions[f].body);
    return copies_;
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
    const bool moves_one = traits.movement && operands.size() == 1;
    if (!moves_one && !traits.elementwise && !traits.constant_like) return Kind::kOrdinary;
    if (std::ranges::all_of(operands, [&](ValueId operand) { return is_constant(operand); })) return Kind::kConstant;
    return moves_one && is_scalar(operands[0]) ? Kind::kExpansion : Kind::kOrdinary;
  }

  // The ops of a region are appended again in order, with copies before the ops that use them.
  void split_region(RegionId region) {
    std::vector<OpId> ops;
    ops.swap(module_.region(region).ops);
    for (OpId id : ops) {
      kind(id) = classify(id);
      if (kind(id) == Kind::kOrdinary) {
        for (uint32_t i = 0; i < module_.op(id).operand_count; ++i) {
          const ValueId own = own_copy(module_.operands(id)[i], region);
          module_.operands(id)[i] = own;
        }
      }
      module_.region(region).ops.push_back(id);
      for (size_t r = 0; r < module_.regions(id).size(); ++r) split_region(module_.regions(id)[r]);
    }
    for (size_t i = 0; i < module_.region(region).results.size(); ++i) {
      const ValueId own = own_copy(module_.region(region).results[i], region);
      module_.region(region).results[i] = own;
    }
  }

  ValueId own_copy(ValueId value, RegionId region) {
    const OpId op = module_.value(value).op;
    if (!op || kind(op) == Kind::kOrdinary || is_scalar(value)) return value;
    if (take(op)) return value;
    std::unordered_map<OpId, OpId> copied;
    return ValueId{module_.op(copy(op, region, copied)).first_result + module_.value(value).index};
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

  OpId copy(OpId id, RegionId region, std::unordered_map<OpId, OpId>& copied) {
    if (auto it = copied.find(id); it != copied.end()) return it->second;
    const auto original = module_.operands(id);
    std::vector<ValueId> operands(original.begin(), original.end());
    for (ValueId& operand : operands) {
      if (!is_copied(operand)) continue;
      const uint32_t index = module_.value(operand).index;
      operand = module_.result(copy(module_.value(operand).op, region, copied), index);
    }
    const Operation op = module_.op(id);
    std::vector<TypeId> types;
    for (uint32_t i = 0; i < op.result_count; ++i) types.push_back(module_.value(module_.result(id, i)).type);
    const OpId made = module_.append_op(region, *op.def, operands, op.attrs, types, op.loc);
    for (uint32_t i = 0; i < op.result_count; ++i) {
      module_.value(module_.result(made, i)).sharding = module_.value(module_.result(id, i)).sharding;
    }
    kinds_.resize(module_.op_count());
    taken_.resize(module_.op_count());
    kind(made) = kind(id);
    taken_[made.index] = true;
    ++copies_;
    copied.emplace(id, made);
    return made;
  }

  Module& module_;
  std::vector<Kind> kinds_;  // by op
  std::vector<bool> taken_;  // by op: some use owns it
  int64_t copies_ = 0;
};

}  // namespace

int64_t split_constants(Module& module) { return ConstantSplitter(module).run(); }

}  // namespace shardwise
