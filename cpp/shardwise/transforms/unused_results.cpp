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

// One round: the functions as they are. Fewer results of one may leave more results of those that it calls unused.
class UnusedResults {
 public:
  explicit UnusedResults(Module& module)
      : module_(module), sites_(module.functions.size()), used_(module.functions.size()), redirection_(module) {}

  int64_t drop() {
    find_uses();
    int64_t dropped = 0;
    for (size_t f = 0; f < used_.size(); ++f) {
      if (has_fixed_results(f)) continue;
      const auto unused = std::ranges::count(used_[f], false);
      if (unused == 0) continue;
      // Lists of uses do not know of results that a function loses; a copy has none.
      if (dropped == 0) module_ = Module(module_);
      drop_results(f);
      dropped += unused;
    }
    if (dropped != 0) put_in_place();
    return dropped;
  }

 private:
  bool has_fixed_results(size_t f) const {
    const Function& function = module_.functions[f];
    return function.is_public() || sites_[f].empty() || function.name == module_.main().name;
  }

  void find_uses() {
    std::unordered_map<std::string, size_t> indices;
    for (size_t f = 0; f < used_.size(); ++f) {
      indices.emplace(module_.functions[f].name, f);
      used_[f].resize(module_.region(module_.functions[f].body).results.size());
    }
    std::vector<bool> is_read(module_.value_count());
    const auto read = [&](std::span<const ValueId> values) {
      for (const ValueId value : values) is_read[value.index] = true;
    };
    // Also of results that go in this round, so that what only they read waits for the next one.
    for (const Function& function : module_.functions) read(module_.region(function.body).results);
    walk(module_, [&](OpId op) {
      read(module_.operands(op));
      for (const RegionId region : module_.regions(op)) read(module_.region(region).results);
      if (!is_call(module_, op)) return;
      const auto known = indices.find(callee_of(module_, op));
      if (known != indices.end()) sites_[known->second].push_back(op);
    });
    for (size_t f = 0; f < used_.size(); ++f) {
      for (const OpId call : sites_[f]) {
        for (uint32_t i = 0; i < used_[f].size(); ++i) {
          // One call that reads a result keeps it for all calls: they share the function.
          if (is_read[module_.result(call, i).index]) used_[f][i] = true;
        }
      }
    }
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
  std::vector<std::vector<OpId>> sites_;          // by function: its calls
  std::vector<std::vector<bool>> used_;           // by function and result
  std::unordered_map<OpId, OpId> made_;           // by call: the one in its place
  std::unordered_map<RegionId, size_t> lengths_;  // of regions with such calls, before they were made
  Redirection redirection_;
};

}  // namespace

int64_t drop_unused_results(Module& module) {
  int64_t dropped = 0;
  while (module.functions.size() > 1) {
    const int64_t more = UnusedResults(module).drop();
    if (more == 0) break;
    dropped += more;
    dce(module);
  }
  return dropped;
}

}  // namespace shardwise
