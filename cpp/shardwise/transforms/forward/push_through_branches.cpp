// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/transforms/forward/differentiate_forward.h"
#include "shardwise/transforms/forward/tangent_regions.h"
#include "shardwise/transforms/forward/tangent_walk.h"

namespace shardwise {

namespace {

// A branch that computes tangents too, and belongs to no op yet.
struct JointBranch {
  RegionId region;
  std::vector<ValueId> results, tangents;
};

}  // namespace

void push_through_branches(TangentWalk& walk, OpId id) {
  Module& module = walk.module();
  Builder& builder = walk.builder();
  const std::vector<RegionId> originals(module.regions(id).begin(), module.regions(id).end());
  const uint32_t count = module.op(id).result_count;
  std::vector<ValueId> wrt, tangents;
  walk.capture(id, wrt, tangents);
  std::vector<JointBranch> joint;
  std::vector<bool> has_tangent(count);
  for (const RegionId original : originals) {
    Builder inner(module, module.add_region(), builder.loc());
    GraphCopy copy(module, module);
    copy.ops(original, inner.region());
    std::vector<ValueId> results;
    for (const ValueId result : std::vector<ValueId>(module.region(original).results)) {
      results.push_back(copy(result));
    }
    Tangents made = append_jvp(inner, results, wrt, tangents);
    for (uint32_t i = 0; i < count; ++i) {
      results[i] = made.replaced(results[i]);
      if (made.values[i]) has_tangent[i] = true;
    }
    joint.push_back({.region = inner.region(), .results = results, .tangents = std::move(made.values)});
  }
  std::vector<RegionId> regions;
  for (const JointBranch& branch : joint) {
    Builder inner(module, branch.region, builder.loc());
    std::vector<ValueId> results = branch.results;
    for (uint32_t i = 0; i < count; ++i) {
      if (has_tangent[i]) results.push_back(tangent_or_zeros(inner, branch.tangents[i], branch.results[i]));
    }
    module.region(branch.region).results = std::move(results);
    regions.push_back(branch.region);
  }
  const ValueId selector = module.operands(id)[0];
  const OpId made = builder.create_op(*module.op(id).def, {&selector, 1}, module.op(id).attrs, {}, regions);
  const std::vector<ValueId> values = list_of_results(module, made);
  std::vector<ValueId> of_results(count);
  size_t next = count;
  for (uint32_t i = 0; i < count; ++i) {
    if (has_tangent[i]) of_results[i] = values[next++];
  }
  walk.put_in_place_of(id, values, of_results);
}

}  // namespace shardwise
