// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/unused_results.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

// A function after all that call it: its dead ops are gone then, and the calls of other functions among them.
class UnusedResults {
 public:
  explicit UnusedResults(Module& module)
      : module_(module),
        unused_(module, UnusedConstraints::kKeep),
        calls_(module.functions.size()),
        sites_(module.functions.size()),
        used_(module.functions.size()),
        redirection_(module) {}

  int64_t drop() {
    find_calls();
    while (!ready_.empty()) {
      const size_t f = ready_.back();
      ready_.pop_back();
      drop_results_of(f);
      unused_.sweep(module_.functions[f].body);
      note_uses(f);
    }
    // Functions that call each other never become ready, and keep their results.
    if (dropped_ != 0) put_in_place();
    return dropped_;
  }

 private:
  bool has_fixed_results(size_t f) const {
    const Function& function = module_.functions[f];
    return function.is_public() || sites_[f].empty() || function.name == module_.main().name;
  }

  void find_calls() {
    waiting_.resize(module_.functions.size());
    for (size_t f = 0; f < used_.size(); ++f) {
      indices_.emplace(module_.functions[f].name, f);
      used_[f].resize(module_.region(module_.functions[f].body).results.size());
    }
    for (size_t f = 0; f < used_.size(); ++f) {
      for_calls(f, [&](OpId, size_t callee) {
        calls_[f].push_back(callee);
        ++waiting_[callee];
      });
    }
    for (size_t f = 0; f < used_.size(); ++f) {
      if (waiting_[f] == 0) ready_.push_back(f);
    }
  }

  template <class Visit>
  void for_calls(size_t f, Visit&& visit) const {
    walk(module_, module_.functions[f].body, [&](OpId op) {
      if (!is_call(module_, op)) return;
      const auto known = indices_.find(callee_of(module_, op));
      if (known != indices_.end()) visit(op, known->second);
    });
  }

  // The calls that are left. One of them that reads a result keeps it for all: they share the function.
  void note_uses(size_t f) {
    for_calls(f, [&](OpId call, size_t callee) {
      sites_[callee].push_back(call);
      for (uint32_t i = 0; i < used_[callee].size(); ++i) {
        if (unused_.used(module_.result(call, i))) used_[callee][i] = true;
      }
    });
    for (const size_t callee : calls_[f]) {
      if (--waiting_[callee] == 0) ready_.push_back(callee);
    }
  }

  void drop_results_of(size_t f) {
    const auto unused = std::ranges::count(used_[f], false);
    if (has_fixed_results(f) || unused == 0) return;
    // Lists of uses do not know of results that a function loses; a copy has none.
    if (dropped_ == 0) module_ = Module(module_);
    drop_results(f);
    dropped_ += unused;
  }

  template <class T>
  void keep_used(size_t f, std::vector<T>& list) const {
    size_t next = 0;
    std::erase_if(list, [&](const T&) { return !used_[f][next++]; });
  }

  void drop_results(size_t f) {
    Function& function = module_.functions[f];
    keep_used(f, module_.region(function.body).results);
    if (!function.result_shardings.empty()) keep_used(f, function.result_shardings);
    if (!function.result_locs.empty()) keep_used(f, function.result_locs);
    for (const OpId call : sites_[f]) replace(f, call);
  }

  void replace(size_t f, OpId call) {
    std::vector<ValueId> kept;
    for (uint32_t i = 0; i < used_[f].size(); ++i) kept.push_back(module_.result(call, i));
    keep_used(f, kept);
    const std::vector<ValueId> operands(module_.operands(call).begin(), module_.operands(call).end());
    const Operation old = module_.op(call);
    // The builder appends at the end of the region. put_in_place cuts it back to this length and moves the calls up.
    lengths_.try_emplace(old.parent, module_.region(old.parent).ops.size());
    Builder builder(module_, old.parent, old.loc);
    builder.set_loc(old.loc, old.origin);
    const OpId made = create_call(builder, callee_of(module_, call), operands, kept);
    for (uint32_t i = 0; i < kept.size(); ++i) {
      Value& value = module_.value(module_.result(made, i));
      value.sharding = module_.value(kept[i]).sharding;
      value.origin = module_.value(kept[i]).origin;
      redirection_.add(kept[i], module_.result(made, i));
    }
    made_.emplace(call, made);
  }

  void put_in_place() {
    for (const auto& [region, length] : lengths_) {
      std::vector<OpId>& ops = module_.region(region).ops;
      ops.resize(length);
      for (OpId& op : ops) {
        if (const auto made = made_.find(op); made != made_.end()) op = made->second;
      }
    }
    for (const Function& function : module_.functions) {
      Region& body = module_.region(function.body);
      for (const OpId op : body.ops) redirection_.apply(op);
      for (ValueId& result : body.results) result = redirection_(result);
    }
  }

  Module& module_;
  UnusedOps unused_;
  std::unordered_map<std::string, size_t> indices_;  // of functions, by name
  std::vector<std::vector<size_t>> calls_;           // by function: the functions that it calls, one for each call
  std::vector<size_t> waiting_;                      // by function: its calls in functions that are not done
  std::vector<size_t> ready_;                        // functions without such calls
  std::vector<std::vector<OpId>> sites_;             // by function: its calls that are left
  std::vector<std::vector<bool>> used_;              // by function and result
  int64_t dropped_ = 0;
  std::unordered_map<OpId, OpId> made_;           // by call: the one in its place
  std::unordered_map<RegionId, size_t> lengths_;  // of regions with such calls, before they were made
  Redirection redirection_;
};

}  // namespace

int64_t drop_unused_results(Module& module) { return module.functions.size() > 1 ? UnusedResults(module).drop() : 0; }

}  // namespace shardwise
