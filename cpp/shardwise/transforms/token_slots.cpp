// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/token_slots.h"

#include <algorithm>

#include "shardwise/base/dims.h"
#include "shardwise/ops/control/tokens.h"
#include "shardwise/transforms/decompose.h"

namespace shardwise {

void empty_tokens(Module& module) {
  const auto is_token = [&](ValueId value) { return module.type(value).dtype == DType::kToken; };
  const Region& body = module.region(module.main().body);
  // The check of programs to run names these values.
  if (std::ranges::any_of(body.arguments, is_token) || std::ranges::any_of(body.results, is_token)) return;
  const TypeId empty = module.context().tensor(DType::kBool, Dims{0});
  bool found = false;
  for (uint32_t i = 1; i < module.value_count(); ++i) {
    if (!is_token(ValueId{i})) continue;
    module.value(ValueId{i}).type = empty;
    found = true;
  }
  if (found) decompose_ops(module, makes_token);
}

}  // namespace shardwise
