// SPDX-License-Identifier: Apache-2.0
//
// The functions that calls run (Regions::kCall):
//
//   %0 = call @norm(%x)          callee_of → "norm"          AnyExecuted visits the call, and the ops of @norm
//   func.func private @norm …
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {

const std::string& callee_of(const Module& module, OpId call);     // the name of the function
const Function& called_function(const Module& module, OpId call);  // of a verified module

// Whether `holds` is true of an op, of one in its regions, or of one in the functions that these call, directly or not.
// Each region and each function is walked once, however many questions are asked. Meanwhile a pass may remove ops of
// which `holds` is false, and move regions to other ops.
template <class Holds>
class AnyExecuted {
 public:
  AnyExecuted(const Module& module, Holds holds) : module_(module), holds_(std::move(holds)) {}

  bool operator()(OpId id) {
    ++visits_;
    if (holds_(id) || (module_.op(id).def->is_call() && holds_in_callee(id))) return true;
    for (const RegionId region : module_.regions(id)) {
      if (holds_in(region)) return true;
    }
    return false;
  }

  int64_t visits() const { return visits_; }  // of ops, by the questions and by the walks

 private:
  enum class Answer : uint8_t { kUnknown, kNo, kYes };

  bool holds_in(RegionId region) {
    if (region.index >= regions_.size()) regions_.resize(module_.region_count());
    if (regions_[region.index] == Answer::kUnknown) {
      bool found = false;
      for (const OpId op : module_.region(region).ops) found = found || (*this)(op);
      regions_[region.index] = found ? Answer::kYes : Answer::kNo;
    }
    return regions_[region.index] == Answer::kYes;
  }

  // False for a function that does not exist, in a module that is not verified.
  bool holds_in_callee(OpId call) {
    if (functions_.empty()) find_functions();
    const auto function = indices_.find(callee_of(module_, call));
    return function != indices_.end() && functions_[function->second];
  }

  // From the functions that have such an op to their callers: calls may nest deeper than the stack allows, and a module
  // that is not verified may have functions that call themselves.
  void find_functions() {
    const std::vector<Function>& functions = module_.functions;
    for (size_t f = 0; f < functions.size(); ++f) indices_.emplace(functions[f].name, f);
    functions_.resize(functions.size());
    std::vector<std::vector<size_t>> callers(functions.size());
    std::vector<size_t> found;
    const auto add = [&](size_t f) {
      if (functions_[f]) return;
      functions_[f] = true;
      found.push_back(f);
    };
    for (size_t f = 0; f < functions.size(); ++f) {
      walk(module_, functions[f].body, [&](OpId op) {
        ++visits_;
        if (holds_(op)) add(f);
        if (!module_.op(op).def->is_call()) return;
        if (const auto callee = indices_.find(callee_of(module_, op)); callee != indices_.end()) {
          callers[callee->second].push_back(f);
        }
      });
    }
    while (!found.empty()) {
      const size_t f = found.back();
      found.pop_back();
      for (const size_t caller : callers[f]) add(caller);
    }
  }

  const Module& module_;
  Holds holds_;
  std::vector<Answer> regions_;                      // by region
  std::vector<bool> functions_;                      // by function
  std::unordered_map<std::string, size_t> indices_;  // of functions, by name
  int64_t visits_ = 0;
};

}  // namespace shardwise
