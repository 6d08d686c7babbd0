// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/merged_exchanges.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// Each dim of the result is one of the operand: what a reshape moves between dims need not be one exchange with the next.
bool keeps_dims(const Module& module, OpId op) {
  const OpView view(module, op);
  return view.result_count() == 1 && view.operand_count() > 0 &&
         view.operand_type(0).ndim() == view.result_type().ndim();
}

}  // namespace

bool is_exchange(const OpChoice& chosen) { return chosen.method != nullptr && chosen.method->is_movement; }

std::optional<Use> mergeable_use(Module& module, OpId op) {
  if (!keeps_dims(module, op)) return std::nullopt;
  const std::optional<Use> use = only_use(module, module.result(op));
  if (!use || !use->op || module.op(use->op).parent != module.op(op).parent) return std::nullopt;
  return keeps_dims(module, use->op) ? use : std::nullopt;
}

bool is_merged(Module& module, const Choice& choice, OpId op) {
  const OpChoice& made = choice.ops[op.index];
  if (!is_exchange(made)) return false;
  const std::optional<Use> use = mergeable_use(module, op);
  if (!use) return false;
  const OpChoice& read = choice.ops[use->op.index];
  return is_exchange(read) && read.operands[use->index] == made.results[0];
}

}  // namespace shardwise
