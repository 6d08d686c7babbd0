// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/split_constants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/graph_copy.h"
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
    std::vector<uint32_t> uses(module_.value_count());
    for (const Function& function : module_.functions) count_uses(function.body, uses);
    std::unordered_set<OpId> unused;
    for (const Function& function : module_.functions) find_unused(function.body, uses, unused);
    if (unused.empty()) return count_;
    for (const Function& function : module_.functions) remove(function.body, unused);
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
    if (!keeps_constants(id)) return Kind::kOrdinary;
    const Traits& traits = module_.op(id).def->traits;
    const auto operands = module_.operands(id);
    if (std::ranges::all_of(operands, [&](ValueId operand) { return is_constant(operand); })) return Kind::kConstant;
    const bool expands = traits.constant_preserving && traits.precedence == Precedence::kBackwardFirst;
    return expands && is_scalar(operands[0]) ? Kind::kExpansion : Kind::kOrdinary;
  }

  // Whether the op computes a constant from constants or from no operands.
  bool keeps_constants(OpId id) const {
    const Traits& traits = module_.op(id).def->traits;
    if (traits.side_effect) return false;
    const auto regions = static_cast<const Module&>(module_).regions(id);
    if (!regions.empty()) {
      return traits.constant_preserving && std::ranges::all_of(regions, [&](RegionId region) {
               return std::ranges::all_of(module_.region(region).ops, [&](OpId op) { return keeps_constants(op); });
             });
    }
    return traits.constant_like ||
           (module_.op(id).operand_count != 0 && (traits.constant_preserving || traits.elementwise));
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
      for (size_t r = 0; r < module_.regions(id).size(); ++r) {
        split_region(module_.regions(id)[r]);
        if (kind(id) == Kind::kConstant) place_copies(module_.regions(id)[r]);  // copies of the op need them
      }
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

  // Claims an op and its operands for one use. Returns false when another use has claimed any of them.
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
  // Whether copying its user copies the value, too: tensors that are constants or expansions themselves.
  bool is_copied(ValueId value) const {
    const OpId op = module_.value(value).op;
    return op && kinds_[op.index] != Kind::kOrdinary && !is_scalar(value);
  }

  // Created beside the original, whatever region contains the use.
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
    if (static_cast<int64_t>(module_.op_count()) > most_ops_) {
      ShardingError error(error_message("propagate",
                                        str("copies of constants must come to at most ", kMaxCopiedOps, " ops"), "more",
                                        "make the constants smaller, or arguments"));
      error.at(module_.context().location_text(op.loc));
      throw error;
    }
    std::vector<TypeId> types;
    for (uint32_t i = 0; i < op.result_count; ++i) types.push_back(module_.value(module_.result(id, i)).type);
    std::vector<RegionId> regions;
    for (uint32_t i = 0; i < op.region_count; ++i) {
      regions.push_back(GraphCopy(module_, module_).region(module_.regions(id)[i]));
    }
    const OpId made = module_.append_op(op.parent, *op.def, operands, op.attrs, types, op.loc, regions);
    module_.region(op.parent).ops.pop_back();  // place_copies inserts it at its position
    return made;
  }

  void place_copies(RegionId region) {
    std::vector<OpId> ops;
    for (const OpId id : module_.region(region).ops) {
      ops.push_back(id);
      if (const auto made = copies_.extract(id)) ops.insert(ops.end(), made.mapped().begin(), made.mapped().end());
      for (size_t r = 0; r < module_.regions(id).size(); ++r) place_copies(module_.regions(id)[r]);
    }
    module_.region(region).ops = std::move(ops);
  }

  bool is_group(OpId id) const { return module_.op(id).def->traits.sharding_group; }

  void count_uses(RegionId region, std::vector<uint32_t>& uses) const {
    for (const ValueId result : module_.region(region).results) ++uses[result.index];
    for (const OpId id : module_.region(region).ops) {
      if (is_group(id)) continue;
      for (const ValueId operand : static_cast<const Module&>(module_).operands(id)) ++uses[operand.index];
      for (const RegionId inner : module_.regions(id)) count_uses(inner, uses);
    }
  }

  // From the last op to the first, so that whole chains are removed.
  void find_unused(RegionId region, std::vector<uint32_t>& uses, std::unordered_set<OpId>& unused) {
    const std::vector<OpId>& ops = module_.region(region).ops;
    for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
      for (const RegionId inner : module_.regions(*id)) find_unused(inner, uses, unused);
      if (is_group(*id) || kind(*id) == Kind::kOrdinary) continue;
      bool is_used = false;
      for (uint32_t i = 0; i < module_.op(*id).result_count; ++i) {
        is_used = is_used || uses[module_.result(*id, i).index] != 0;
      }
      if (is_used) continue;
      unused.insert(*id);
      for (const ValueId operand : module_.operands(*id)) --uses[operand.index];
    }
  }

  // Also removes their sharding_group ops, which may be in other regions.
  void remove(RegionId region, const std::unordered_set<OpId>& unused) {
    std::vector<OpId>& ops = module_.region(region).ops;
    std::erase_if(
        ops, [&](OpId id) { return unused.contains(is_group(id) ? module_.value(module_.operands(id)[0]).op : id); });
    for (const OpId id : ops) {
      for (const RegionId inner : module_.regions(id)) remove(inner, unused);
    }
  }

  Module& module_;
  std::vector<Kind> kinds_;                                // by op
  std::vector<bool> taken_;                                // by op: some use owns it
  std::unordered_map<OpId, std::vector<OpId>> copies_;     // by original, in the order of their users; not yet placed
  std::unordered_map<ValueId, std::vector<OpId>> groups_;  // sharding_group ops by member
  int64_t count_ = 0;
  int64_t most_ops_ = static_cast<int64_t>(module_.op_count()) + kMaxCopiedOps;
};

}  // namespace

int64_t split_constants(Module& module) { return ConstantSplitter(module).run(); }

}  // namespace shardwise
