// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/called.h"

#include <algorithm>

#include "shardwise/base/error.h"

namespace shardwise {

const std::string& callee_of(const Module& module, OpId call) { return module.attrs(call).get<Symbol>("callee").name; }

const Function* find_callee(const Module& module, OpId call) {
  const auto found = std::ranges::find(module.functions, callee_of(module, call), &Function::name);
  return found == module.functions.end() ? nullptr : &*found;
}

const Function& called_function(const Module& module, OpId call) {
  const Function* function = find_callee(module, call);
  check_internal(function != nullptr, "a call was verified");
  return *function;
}

}  // namespace shardwise
