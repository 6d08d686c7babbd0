// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/called.h"

#include <algorithm>

#include "shardwise/base/error.h"

namespace shardwise {

const std::string& callee_of(const Module& module, OpId call) { return module.attrs(call).get<Symbol>("callee").name; }

const Function& called_function(const Module& module, OpId call) {
  const auto found = std::ranges::find(module.functions, callee_of(module, call), &Function::name);
  check_internal(found != module.functions.end(), "a call was verified");
  return *found;
}

}  // namespace shardwise
