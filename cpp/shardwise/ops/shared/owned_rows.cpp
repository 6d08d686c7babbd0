// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/owned_rows.h"

namespace shardwise {

bool reads_owned_rows(const OpView& op) {
  const auto* method = op.attrs().find<std::string>(kMethodAttr);
  // A scatter has a method of the same name, but it adds to rows.
  return op.def().traits.movement && method != nullptr && *method == kOwnedRows;
}

}  // namespace shardwise
