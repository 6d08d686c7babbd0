// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/split_sums.h"

#include <algorithm>
#include <iterator>

#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

bool is_reshard(const Module& module, OpId op) { return op && module.op(op).def->traits.reshard; }

const Placement* placement_of(ProgramPlacements& placements, const Module& module, ValueId value) {
  return placements.find(placements.of(module.value(value).sharding, module.value(value).type));
}

// Whether `after` has a part of what `before` leaves unreduced, and `between` all of it.
bool is_part_of_sum(const Placement* before, const Placement* between, const Placement* after) {
  if (before == nullptr || between == nullptr || after == nullptr) return false;
  if (before->mesh != between->mesh || before->mesh != after->mesh) return false;
  if (before->unreduced.empty() || !between->unreduced.empty() || !after->unreduced.empty()) return false;
  for (const AxisRef& axis : before->unreduced) {
    if (overlaps(between->axes(), axis) || !overlaps(after->axes(), axis)) return false;
  }
  return true;
}

}  // namespace

void split_sums(Module& assigned) {
  ProgramPlacements placements(assigned);
  Rewrite rewrite(assigned);
  walk(assigned, [&](OpId id) {
    if (!is_reshard(assigned, id)) return;
    const ValueId between = assigned.operands(id)[0];
    const OpId completes = assigned.value(between).op;
    if (!is_reshard(assigned, completes) || std::ranges::distance(assigned.uses(between)) != 1) return;
    if (assigned.op(completes).parent != assigned.op(id).parent) return;
    const ValueId sum = assigned.operands(completes)[0];
    const bool is_part =
        is_part_of_sum(placement_of(placements, assigned, sum), placement_of(placements, assigned, between),
                       placement_of(placements, assigned, assigned.result(id)));
    if (!is_part) return;
    assigned.set_operand(id, 0, sum);
    assigned.op(id).attrs = assigned.op(completes).attrs;  // the cause: the reduction
    assigned.op(id).loc = assigned.op(completes).loc;
    rewrite.erase(completes);
  });
  rewrite.commit();
}

}  // namespace shardwise
