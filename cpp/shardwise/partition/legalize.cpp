// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/legalize.h"

#include <vector>

#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/propagation/close_shardings.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/decompose.h"

namespace shardwise {
namespace {

// An op with methods becomes the ops that it consists of when it is made local.
bool is_replaced(const OpDef& def) { return is_composed(def) && def.methods.empty(); }

// The ops that it gives to later passes need kernels: an op whose decomposition sets nothing is refused here at the
// latest. A function that nothing calls does not run.
void check_decomposed(const Module& module) {
  const CallGraph calls(module);
  for (const size_t f : calls.reached()) {
    walk(module, module.functions[f].body, [&](OpId id) {
      const OpView op(module, id);
      if (is_replaced(op.def())) located(module, id, [&] { refuse_to_decompose(op, "run"); });
    });
  }
}

}  // namespace

Module legalize(Module module, PassContext& context) {
  const auto first_made = static_cast<uint32_t>(module.value_count());
  const int64_t replaced = decompose_ops(module, is_replaced);
  context.counters.add("legalize.replaced", replaced);
  check_decomposed(module);
  if (replaced == 0) return module;
  std::vector<ValueId> made;  // except for those that stand for a result and have its sharding
  for (uint32_t v = first_made; v < module.value_count(); ++v) {
    if (!module.value(ValueId{v}).sharding) made.push_back(ValueId{v});
  }
  propagate_into(module, context.options, made);
  // After `propagate`, all shardings are closed; those of the new values have to be, too.
  close_shardings(module, made);
  return module;
}

}  // namespace shardwise
