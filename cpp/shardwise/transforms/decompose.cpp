// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/decompose.h"

#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

class Decomposer {
 public:
  Decomposer(Module& module, OpFilter is_chosen) : module_(module), rewrite_(module), is_chosen_(is_chosen) {}

  int64_t run() {
    for (size_t f = 0; f < module_.functions.size(); ++f) visit(module_.functions[f].body);
    return count_;
  }

 private:
  void visit(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;
    for (const OpId op : ops) visit(op);
  }

  void visit(OpId id) {
    if (is_chosen_(*module_.op(id).def) && replace(id)) return;
    for (size_t r = 0; r < module_.op(id).region_count; ++r) visit(module_.regions(id)[r]);
  }

  bool replace(OpId id) {
    const auto first = static_cast<uint32_t>(module_.op_count());
    const auto known_values = static_cast<uint32_t>(module_.value_count());
    std::vector<ValueId> results = rewrite_.insert(rewrite_.before(id), module_.op(id).loc, [&](Builder& builder) {
      return append_decomposition(builder, OpView(module_, id));
    });
    if (results.empty()) return false;
    const RegionId parent = module_.op(id).parent;
    for (uint32_t i = 0; i < results.size(); ++i) {
      const ValueId result = module_.result(id, i);
      // A decomposition may return an operand, one value twice, or a value that it annotates itself.
      if (results[i].index >= known_values && !module_.value(results[i]).sharding) {
        rewrite_.hand_over(result, results[i]);
      } else {
        results[i] = annotated_as(result, results[i]);
      }
    }
    rewrite_.replace(id, results);
    ++count_;
    // Regions of the new ops are visited by the same call.
    for (uint32_t made = first, end = static_cast<uint32_t>(module_.op_count()); made < end; ++made) {
      if (module_.op(OpId{made}).parent == parent) visit(OpId{made});
    }
    return true;
  }

  // `by`, with a constraint if the user annotated `result` otherwise. Propagated shardings are no annotations.
  ValueId annotated_as(ValueId result, ValueId by) {
    const ShardingId annotation = module_.stage == Stage::kGlobal ? module_.value(result).sharding : ShardingId{};
    if (annotation == module_.value(by).sharding) return by;
    const OpId op = module_.value(result).op;
    return rewrite_.insert(rewrite_.before(op), module_.op(op).loc,
                           [&](Builder& builder) { return append_constraint(builder, by, annotation); });
  }

  Module& module_;
  Rewrite rewrite_;
  OpFilter is_chosen_;
  int64_t count_ = 0;
};

}  // namespace

int64_t decompose_ops(Module& module, OpFilter is_chosen) { return Decomposer(module, is_chosen).run(); }

}  // namespace shardwise
