// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/gradient_sums.h"

#include <algorithm>
#include <utility>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/same_op.h"

namespace shardwise {
namespace {

bool is_sum(const Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  if (!op) return false;
  const OpDef& def = *module.op(op).def;
  return def.traits.commutative && def.linear.kind == Linear::kJoint &&
         (def.linear.reducers & reducer_bit(Reducer::kSum)) != 0 && module.op(op).operand_count == 2;
}

class Joiner {
 public:
  explicit Joiner(UpdateGraph& graph) : graph_(graph), module_(graph.module()), rewrite_(module_) {}

  bool run() {
    std::vector<ValueId> roots;
    for (const UpdateGroup& group : graph_.groups()) {
      if (group.gradients.size() < 2) continue;
      for (const ValueId gradient : group.gradients) {
        const ValueId root = root_of(gradient);
        if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
      }
    }
    bool changed = false;
    for (const ValueId root : roots) changed = join(root) || changed;
    return changed;
  }

 private:
  // The last sum that the value is a term of.
  ValueId root_of(ValueId value) const {
    while (const auto use = only_use(module_, value)) {
      if (!use->op || module_.op(use->op).result_count != 1 || !is_sum(module_, module_.result(use->op))) break;
      value = module_.result(use->op);
    }
    return value;
  }

  void add_terms(ValueId value, ValueId root, std::vector<ValueId>& terms) const {
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId next = open.back();
      open.pop_back();
      const bool is_inner = is_sum(module_, next) && (next == root || only_use(module_, next)) && has_state(next);
      if (!is_inner) {
        terms.push_back(next);
        continue;
      }
      const std::span<const ValueId> operands = module_.operands(module_.value(next).op);
      open.insert(open.end(), operands.rbegin(), operands.rend());
    }
  }

  // A sum of gradients alone is one term.
  bool has_state(ValueId value) const { return graph_.depends(value); }

  bool join(ValueId root) {
    if (!is_sum(module_, root) || !has_state(root)) return false;
    std::vector<ValueId> terms;
    add_terms(root, root, terms);
    const auto states = std::ranges::stable_partition(terms, [&](ValueId term) { return !is_state(term); });
    const size_t gradients = terms.size() - states.size();
    if (gradients < 2) return false;
    const OpId op = module_.value(root).op;
    const ValueId joined = rewrite_.insert(rewrite_.before(op), module_.op(op).loc, [&](Builder& builder) {
      ValueId sum = terms[0];
      for (size_t i = 1; i < terms.size(); ++i) {
        const ValueId operands[] = {sum, terms[i]};
        sum = module_.result(create_again(builder, OpView(module_, op), operands, attrs_of(OpView(module_, op))));
      }
      return sum;
    });
    rewrite_.hand_over(root, joined);
    return true;
  }

  bool is_state(ValueId term) const { return graph_.depends(term) || graph_.group_of(term).has_value(); }

  UpdateGraph& graph_;
  Module& module_;
  Rewrite rewrite_;
};

}  // namespace

bool join_gradient_sums(UpdateGraph& graph) { return Joiner(graph).run(); }

}  // namespace shardwise
