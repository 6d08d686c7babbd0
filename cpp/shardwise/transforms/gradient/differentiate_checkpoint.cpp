// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <unordered_set>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/reverse_walk.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

// Whether the gradient of a checkpoint may keep the results of an op.
class SavePolicy {
 public:
  SavePolicy(const Module& module, OpId checkpoint) : module_(module) {
    const Attrs& attrs = module.attrs(checkpoint);
    const std::string& kind = attrs.get<std::string>(kPolicyAttr);
    if (const auto* parts = attrs.find<AttrArray>(kPoliciesAttr)) {
      for (const Attribute& part : *parts) {
        const auto& word = std::get<std::string>(part.base());
        if (word.starts_with('=')) {
          parts_.back().names.emplace_back(word.substr(1));
        } else {
          parts_.push_back({.kind = word, .names = {}});
        }
      }
      return;
    }
    const auto* names = attrs.find<AttrArray>(kSavedNamesAttr);
    parts_.push_back({.kind = kind, .names = names == nullptr ? AttrArray() : *names});
  }

  bool saves(OpId op) const {
    return std::ranges::any_of(parts_, [&](const Part& part) { return saves(part, op); });
  }

 private:
  struct Part {
    std::string kind;
    AttrArray names;
  };

  bool saves(const Part& part, OpId op) const {
    if (part.kind == "dots") return is_product(op);
    if (part.kind == "dots without batch dims") return is_product(op) && is_unbatched_dot(op);
    const std::string name = module_.context().name_of(module_.op(op).loc);
    const bool is_listed = !name.empty() && std::ranges::find(part.names, Attribute(name)) != part.names.end();
    if (part.kind == "names") return is_listed;
    if (part.kind == "other names") return !name.empty() && !is_listed;
    return part.kind == "all but names" && !is_listed;
  }

  // Linear in each operand but not elementwise: matrix products and convolutions, as JAX's dots_saveable has them.
  bool is_product(OpId op) const {
    const OpDef& def = *module_.op(op).def;
    return def.linear.kind == Linear::kEach && !def.traits.elementwise;
  }

  bool is_unbatched_dot(OpId op) const {
    return module_.attrs(op).find("dot_dimension_numbers") != nullptr &&
           dot_dims(module_.attrs(op)).lhs_batching.empty();
  }

  const Module& module_;
  std::vector<Part> parts_;
};

// Those that do not, such as a mask, are computed once.
void mark_those_that_read(Module& module, std::span<const ValueId> values, std::span<const OpId> ops) {
  std::unordered_set<ValueId> depend(values.begin(), values.end());
  for (const OpId op : ops) {
    if (!reads_any(module, op, [&](ValueId value) { return depend.contains(value); })) continue;
    for (const ValueId result : results_of(module, op)) depend.insert(result);
    mark_again(module, op);
  }
}

}  // namespace

bool is_checkpoint(const Module& module, OpId op) {
  return module.op(op).def->region_gradient == RegionGradient::kComputedAgain;
}

// The region runs in place of the op. Behind the cotangents it runs again, on operands that a barrier hides.
void differentiate_checkpoint(ReverseWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const Region body = module.region(module.regions(id)[0]);
  const std::vector<ValueId> operands(module.operands(id).begin(), module.operands(id).end());
  const SavePolicy policy(module, id);

  walk.put_in_place_of(id, [&](Builder& at) { return append_inlined(at, OpView(module, id)); });
  const std::vector<OpId>& first_ops = walk.ops_in_place_of(id);

  // In a region of its own, because append_vjp differentiates all ops of the builder's region.
  Builder again(module, module.add_region(), builder.loc());
  GraphCopy copy(module, module);
  std::vector<ValueId> hidden, wrt;
  for (size_t i = 0; i < operands.size(); ++i) {
    // If there were no barrier, cse would merge the second run with the first one and keep its values alive.
    hidden.push_back(create_optimization_barrier(builder, operands[i]));
    copy.map(body.arguments[i], hidden.back());
    if (walk.is_active(operands[i])) wrt.push_back(hidden.back());
  }
  const std::vector<OpId> again_ops = copy.ops(module.regions(id)[0], again.region());
  mark_those_that_read(module, hidden, again_ops);
  std::vector<ValueId> outputs, cotangents;
  for (uint32_t i = 0; i < body.results.size(); ++i) {
    outputs.push_back(copy(body.results[i]));
    cotangents.push_back(walk.cotangent_of_result(module.result(id, i)));
  }
  const Gradients gradients = append_vjp_without_zeros(again, outputs, cotangents, wrt);

  Redirection saved(module);
  for (size_t i = 0; i < first_ops.size(); ++i) {
    if (!policy.saves(first_ops[i])) continue;
    for (uint32_t r = 0; r < module.op(first_ops[i]).result_count; ++r) {
      // Both are copies of the same ops in the same order. The second op is read by nothing then, and dce removes it.
      saved.add(module.result(again_ops[i], r), module.result(first_ops[i], r));
    }
  }
  const std::vector<OpId> moved = module.region(again.region()).ops;
  module.region(again.region()).ops.clear();
  for (const OpId op : moved) {
    saved.apply(op);
    module.op(op).parent = builder.region();
    module.region(builder.region()).ops.push_back(op);
  }
  size_t next = 0;
  for (const ValueId operand : operands) {
    if (!walk.is_active(operand)) continue;
    if (const ValueId gradient = gradients.values[next++]) walk.accumulate(operand, saved(gradient));
  }
}

}  // namespace shardwise
