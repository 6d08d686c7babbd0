// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/manual_regions.h"

#include <set>
#include <string>
#include <unordered_map>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/transforms/batch/batch_walk.h"
#include "shardwise/transforms/batch/cotangent_sums.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

bool is_manual(const Module& module, OpId op) { return module.op(op).def->regions == Regions::kManual; }

class ManualExpander {
 public:
  explicit ManualExpander(Module& module) : module_(module), rewrite_(module) {
    for (const Function& function : module.functions) bodies_.emplace(function.name, function.body);
  }

  void run() {
    reach(module_.main().name);
    while (!waiting_.empty()) {
      const RegionId body = waiting_.back();
      waiting_.pop_back();
      visit(body);
      rewrite_.commit();
    }
  }

 private:
  // A function that is called only in manual computations is one of their shards, and is inlined there.
  void reach(const std::string& function) {
    if (reached_.insert(function).second) waiting_.push_back(bodies_.at(function));
  }

  void visit(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;
    for (const OpId id : ops) {
      if (is_manual(module_, id)) {
        replace(id);
        continue;
      }
      if (is_call(module_, id)) reach(callee_of(module_, id));
      const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
      for (const RegionId body : inner) visit(body);
    }
  }

  void replace(OpId id) {
    const std::vector<ValueId> results =
        rewrite_.insert(rewrite_.before(id), module_.op(id).loc,
                        [&](Builder& builder) { return append_manual_region(builder, OpView(module_, id)); });
    for (uint32_t i = 0; i < results.size(); ++i) {
      Value& made = module_.value(results[i]);
      if (made.op && !made.origin) made.origin = module_.value(module_.result(id, i)).origin;
    }
    rewrite_.replace(id, results);
  }

  Module& module_;
  Rewrite rewrite_;
  std::unordered_map<std::string, RegionId> bodies_;
  std::set<std::string> reached_;
  std::vector<RegionId> waiting_;
};

}  // namespace

void expand_manual_regions(Module& module) {
  std::set<std::string> called;
  bool is_needed = false;
  walk(module, [&](OpId id) {
    is_needed = is_needed || is_manual(module, id);
    if (is_call(module, id)) called.insert(callee_of(module, id));
  });
  if (!is_needed) return;
  const CallGraph within_limits(module);  // throws before anything is copied
  ManualExpander(module).run();
  drop_uncalled(module, called);
}

std::vector<ValueId> append_manual_region(Builder& builder, const OpView& op) {
  const OpId id = op.id();
  const LocId loc = builder.loc();
  sum_cotangents(builder.module(), id);
  BatchWalk walk(builder, BatchAxes());
  walk.visit(id);
  builder.set_loc(loc, builder.origin());
  std::vector<ValueId> results;
  for (uint32_t i = 0; i < builder.module().op(id).result_count; ++i) {
    results.push_back(walk.image(builder.module().result(id, i)));
  }
  return results;
}

std::vector<ValueId> append_expansion(Builder& builder, const OpView& op, std::string_view what) {
  if (is_inlined(op.module(), op.id())) return append_inlined(builder, op);
  if (op.def().regions == Regions::kManual) return append_manual_region(builder, op);
  std::vector<ValueId> results = append_decomposition(builder, op);
  if (results.empty() && op.result_count() != 0) refuse_to_decompose(op, what);
  return results;
}

}  // namespace shardwise
