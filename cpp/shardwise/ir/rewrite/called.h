// SPDX-License-Identifier: Apache-2.0
//
// The functions that calls run (Regions::kCall):
//
//   %0 = call @norm(%x)          callee_of → "norm"          any_executed visits the call, and the ops of @norm
//   func.func private @norm …
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

const std::string& callee_of(const Module& module, OpId call);     // the name of the function
const Function* find_callee(const Module& module, OpId call);      // null in a module that is not verified
const Function& called_function(const Module& module, OpId call);  // of a verified module

// Whether `holds` is true of the op, of an op in its regions, or of one in the functions that these call, directly or
// not. Each function is visited once, however many calls it has.
template <class Holds>
bool any_executed(const Module& module, OpId id, Holds&& holds) {
  if (holds(id)) return true;
  if (module.regions(id).empty() && !module.op(id).def->is_call()) return false;
  std::vector<RegionId> waiting;  // a list, because calls may nest deeper than the stack allows
  std::unordered_set<RegionId> called;
  const auto enter = [&](OpId op) {
    waiting.insert(waiting.end(), module.regions(op).begin(), module.regions(op).end());
    if (!module.op(op).def->is_call()) return;
    const Function* function = find_callee(module, op);
    if (function != nullptr && called.insert(function->body).second) waiting.push_back(function->body);
  };
  enter(id);
  while (!waiting.empty()) {
    const RegionId region = waiting.back();
    waiting.pop_back();
    for (const OpId op : module.region(region).ops) {
      if (holds(op)) return true;
      enter(op);
    }
  }
  return false;
}

}  // namespace shardwise
