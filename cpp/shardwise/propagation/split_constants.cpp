// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/split_constants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

enum class Kind : uint8_t { kOrdinary, kConstant, kExpansion };

class ConstantSplitter {
 public:
  explicit ConstantSplitter(Module& module)
      : module_(module), rewrite_(module), kinds_(module.op_count()), taken_(module.op_count()) {
    for (uint32_t i = 1; i < module.op_count(); ++i) {
      if (module.op(OpId{i}).def->traits.sharding_group) groups_[module.operands(OpId{i})[0]].push_back(OpId{i});
    }
  }

  int64_t run() {
    for (size_t f = 0; f < module_.functions.size(); ++f) split_region(module_.functions[f].body);
    rewrite_.commit();
    remove_unused();
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
    const auto operands = module_.operands(id);
    // Also without operands: a constant, or an iota.
    if (std::ranges::all_of(operands, [&](ValueId operand) { return is_constant(operand); })) return Kind::kConstant;
    // A broadcast of a scalar, which may be computed: its result is as cheap to make again as a constant.
    const bool expands = shardy_[*module_.op(id).def].precedence == Precedence::kBackwardFirst;
    return expands && is_scalar(operands[0]) ? Kind::kExpansion : Kind::kOrdinary;
  }

  // Whether the op computes a constant from constants or from no operands.
  bool keeps_constants(OpId id) const {
    const OpDef& def = *module_.op(id).def;
    const Traits& traits = def.traits;
    if (traits.side_effect) return false;
    const auto regions = static_cast<const Module&>(module_).regions(id);
    if (!regions.empty()) {
      return shardy_[def].keeps_constants && std::ranges::all_of(regions, [&](RegionId region) {
               return std::ranges::all_of(module_.region(region).ops, [&](OpId op) { return keeps_constants(op); });
             });
    }
    return traits.constant_like ||
           (module_.op(id).operand_count != 0 && (traits.elementwise || shardy_[def].keeps_constants));
  }

  void split_region(RegionId region) {
    const auto own = [&](ValueId value) { return own_copy(value); };
    const std::vector<OpId> ops = module_.region(region).ops;
    for (OpId id : ops) {
      if (module_.op(id).def->traits.sharding_group) continue;
      kind(id) = classify(id);
      if (kind(id) == Kind::kOrdinary) map_operands(module_, id, own);
      for (size_t r = 0; r < module_.regions(id).size(); ++r) {
        split_region(module_.regions(id)[r]);
        if (kind(id) == Kind::kConstant) rewrite_.commit(module_.regions(id)[r]);  // copies of the op need them
      }
    }
    map_results(module_, region, own);
  }

  ValueId own_copy(ValueId value) {
    const OpId op = module_.value(value).op;
    if (!op || kind(op) == Kind::kOrdinary || is_scalar(value)) return value;
    // The first use keeps the original: a constant with one use is not copied.
    if (take(op)) return value;
    std::unordered_map<OpId, OpId> copied;
    return ValueId{module_.op(copy(op, copied)).first_result + module_.value(value).index};
  }

  // Claims an op and its operands for one use. Returns false when another use has claimed any of them.
  bool take(OpId id) {
    std::vector<OpId> parts{id};
    std::unordered_set<OpId> seen{id};
    for (size_t i = 0; i < parts.size(); ++i) {
      // An entire chain is copied, or its parts would tie its uses together.
      if (taken_[parts[i].index]) return false;
      for (ValueId operand : module_.operands(parts[i])) {
        const OpId op = module_.value(operand).op;
        if (is_copied(operand) && seen.insert(op).second) parts.push_back(op);
      }
    }
    // Only now: a chain that is refused must not claim any part.
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
    const OpId made = insert_copy(id, id, operands);
    kinds_.resize(module_.op_count());
    taken_.resize(module_.op_count());
    kind(made) = kind(id);
    taken_[made.index] = true;
    copied.emplace(id, made);
    ++count_;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const auto groups = groups_.find(module_.result(id, i));
      if (groups == groups_.end()) continue;
      const ValueId member = module_.result(made, i);
      for (const OpId group : groups->second) insert_copy(group, id, std::span(&member, 1));
    }
    return made;
  }

  // Inserts the copy after `original` and after earlier copies, so that copies keep the order of their users.
  OpId insert_copy(OpId id, OpId original, std::span<const ValueId> operands) {
    const LocId loc = module_.op(id).loc;
    if (static_cast<int64_t>(module_.op_count()) > most_ops_) {
      fail_at<ShardingError>(
          module_, loc,
          error_message("propagate", str("copies of constants must come to at most ", kMaxCopiedOps, " ops"), "more",
                        "make the constants smaller, or arguments"));
    }
    OpId& last = last_copy_.try_emplace(original, original).first->second;
    last = rewrite_.insert(rewrite_.after(last), loc, [&](Builder& builder) {
      return GraphCopy(module_, module_).op(id, builder.region(), operands);
    });
    return last;
  }

  bool is_group(OpId id) const { return module_.op(id).def->traits.sharding_group; }

  // Visits ops from last to first, so that entire chains are removed, with their groups.
  void remove_unused() {
    std::vector<OpId> constants;
    walk(module_, [&](OpId id) {
      if (!is_group(id) && kind(id) != Kind::kOrdinary) constants.push_back(id);
    });
    for (auto id = constants.rbegin(); id != constants.rend(); ++id) {
      std::vector<OpId> groups;
      if (!is_in_groups_alone(*id, groups)) continue;
      for (const OpId group : groups) rewrite_.erase(group);
      rewrite_.erase(*id);
    }
  }

  bool is_in_groups_alone(OpId id, std::vector<OpId>& groups) {
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      for (const Use use : module_.uses(module_.result(id, i))) {
        if (!use.op || !is_group(use.op)) return false;
        groups.push_back(use.op);
      }
    }
    return true;
  }

  Module& module_;
  const ShardyOps& shardy_ = ShardyOps::table();
  Rewrite rewrite_;
  std::vector<Kind> kinds_;                                // by op
  std::vector<bool> taken_;                                // by op: some use owns it
  std::unordered_map<OpId, OpId> last_copy_;               // by original; copies are in the order of their users
  std::unordered_map<ValueId, std::vector<OpId>> groups_;  // sharding_group ops by member
  int64_t count_ = 0;
  int64_t most_ops_ = static_cast<int64_t>(module_.op_count()) + kMaxCopiedOps;
};

}  // namespace

void split_constants(Module& module, PassContext& context) {
  context.counters.add("propagate.copies", ConstantSplitter(module).run());
}

}  // namespace shardwise
