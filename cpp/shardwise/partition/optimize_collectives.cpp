// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/optimize_collectives.h"

#include "shardwise/ir/rewrite/cse.h"
#include "shardwise/ir/rewrite/dce.h"

namespace shardwise {
namespace {

bool same_layout(const LocalLayout& a, const LocalLayout& b) {
  return a.global_type == b.global_type && a.dims == b.dims && a.unreduced == b.unreduced && a.reducer == b.reducer &&
         a.padding == b.padding;
}

}  // namespace

Module optimize_collectives(Module module, PassContext& context) {
  // Values that stand for no global value, such as offsets, may lie behind the end of the table.
  const auto layout_of = [&](ValueId value) -> const LocalLayout& {
    static const LocalLayout none;
    return value.index < context.layouts.size() ? context.layouts[value.index] : none;
  };
  // A value that was annotated, but that all its users took from where it was before, leaves a collective that nobody
  // needs.
  context.counters.add("optimize_collectives.removed", dce(module));
  // Equal bits may be shards of different values, one of them with padding that nobody may read.
  context.counters.add("optimize_collectives.merged", cse(module, [&](ValueId kept, ValueId merged) {
                         return same_layout(layout_of(kept), layout_of(merged));
                       }));
  return module;
}

}  // namespace shardwise
