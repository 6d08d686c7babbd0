// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/owned_rows.h"

#include "shardwise/ops/partitioning/linearity.h"

namespace shardwise {

bool gives_owned(const OpDef& def, std::string_view method, std::span<const AddendOperand> operands) {
  bool from_owners = def.traits.movement && method == kOwnedRows;
  for (const AddendOperand& operand : operands) {
    if (!operand.is_unreduced) continue;
    if (!operand.is_owned || !only_copies(def)) return false;
    from_owners = true;
  }
  return from_owners;
}

}  // namespace shardwise
