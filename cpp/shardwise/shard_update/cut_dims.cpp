// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/cut_dims.h"

#include <unordered_set>

#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

class CutDims {
 public:
  CutDims(UpdateGraph& graph, ValueId weight)
      : graph_(graph), module_(graph.module()), cut_(module_.type(weight).shape.size()) {
    open_.push_back(weight);
    while (!open_.empty()) {
      const ValueId value = open_.back();
      open_.pop_back();
      for (const Use use : module_.uses(value)) {
        if (use.op && !graph_.is_in_update(use)) visit(use, value);
      }
    }
  }

  std::vector<bool> take() { return std::move(cut_); }

 private:
  void visit(const Use& use, ValueId value) {
    const OpView op(module_, use.op);
    if (op.operand_count() == 1 && is_elementwise(op)) {
      add(op.result());
    } else if (op.def().regions == Regions::kLoop) {
      for (const LoopParts::Carry& carry : loop_parts(op).carries) {
        if (carry.entry == value && carry.is_invariant()) add(carry.argument);
      }
    } else if (module_.op(use.op).parent != graph_.region()) {
      note(op, use.index);
    }
  }

  void add(ValueId value) {
    if (seen_.insert(value).second) open_.push_back(value);
  }

  void note(const OpView& op, size_t operand) {
    const ShardingRule& rule = sharding_rule(op);
    if (rule.empty()) return;
    for (size_t d = 0; d < cut_.size(); ++d) {
      for (const FactorId factor : rule.dim(operand, d)) {
        const FactorKind kind = rule.factors()[factor].kind;
        if (kind == FactorKind::kNeedReplication || kind == FactorKind::kPermutation) cut_[d] = true;
      }
    }
  }

  UpdateGraph& graph_;
  Module& module_;
  std::vector<bool> cut_;
  std::vector<ValueId> open_;
  std::unordered_set<ValueId> seen_;
};

}  // namespace

std::vector<bool> dims_cut_in_loops(UpdateGraph& graph, ValueId weight) { return CutDims(graph, weight).take(); }

}  // namespace shardwise
