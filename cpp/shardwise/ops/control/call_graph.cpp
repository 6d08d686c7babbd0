// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/call_graph.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

// A graph is built outside of inference, which adds the location to its own errors.
[[noreturn]] void refuse(const Module& module, OpId call, std::string_view must_hold, const std::string& got,
                         std::string_view way_out) {
  fail_at<ShardingError>(module, module.op(call).loc, error_message("func.call", must_hold, got, way_out));
}

void check_depth(const Module& module, OpId call, int depth) {
  if (depth <= kMaxCallDepth) return;
  refuse(module, call, str("calls and regions must nest at most ", kMaxCallDepth, " deep"), "more",
         "call fewer in a row");
}

}  // namespace

CallGraph::CallGraph(const Module& module) : module_(module), calls_(module.functions.size()) {
  for (size_t f = 0; f < module.functions.size(); ++f) indices_.emplace(module.functions[f].name, f);
  if (module.functions.empty()) return;
  // Main first: then the functions known so far are those that it reaches. The others are counted only for the limits.
  visit(indices_.at(module.main().name), 0);
  // Callees are done before their callers, so the reverse order has callers first.
  reached_.assign(callees_first_.rbegin(), callees_first_.rend());
  for (size_t f = 0; f < module.functions.size(); ++f) {
    if (!sizes_.contains(f)) visit(f, 0);
  }
}

size_t CallGraph::callee(OpId call) const {
  const auto known = indices_.find(callee_of(module_, call));
  check_internal(known != indices_.end(), "a call was verified");
  return known->second;
}

void CallGraph::visit(size_t function, int depth) {
  open_.insert(function);
  const Size size = size_of(function, module_.functions[function].body, depth);
  open_.erase(function);
  sizes_.emplace(function, size);
  callees_first_.push_back(function);
}

CallGraph::Size CallGraph::size_of(size_t function, RegionId region, int depth) {
  Size all;
  const auto add = [&](const Size& inner) {
    all.ops += inner.ops;
    all.depth = std::max(all.depth, inner.depth + 1);
  };
  for (const OpId id : module_.region(region).ops) {
    ++all.ops;
    for (const RegionId inner : module_.regions(id)) add(size_of(function, inner, depth + 1));
    if (is_call(module_, id)) {
      calls_[function].push_back(id);
      add(size_of_call(id, depth));
    }
    // Checked after each op, so that the sum of calls that double at each level never overflows: f1 calls f0 twice, f2
    // calls f1 twice, … Each callee is below the limit itself.
    if (all.ops > kMaxExpandedOps) {
      refuse(module_, id, str("calls must come to at most ", kMaxExpandedOps, " ops in all"), "more",
             "repeat with stablehlo.while");
    }
  }
  return all;
}

CallGraph::Size CallGraph::size_of_call(OpId call, int depth) {
  const size_t called = callee(call);
  if (!sizes_.contains(called)) {
    if (open_.contains(called)) {
      refuse(module_, call, "a function must not call itself", "@" + module_.functions[called].name,
             "use stablehlo.while to repeat something");
    }
    // Before the visit: it bounds the recursion of this walk itself.
    check_depth(module_, call, depth + 1);
    visit(called, depth + 1);
  }
  const Size& known = sizes_.at(called);
  // Again for a callee that was counted at a place less deep.
  check_depth(module_, call, depth + 1 + known.depth);
  return known;
}

Module empty_copy(const Module& source, const CallGraph& calls) {
  Module target = empty_copy(source);
  std::vector<size_t> reached = calls.reached();
  std::ranges::sort(reached);
  target.functions.clear();
  for (const size_t f : reached) {
    target.functions.push_back(source.functions[f]);
    target.functions.back().body = target.add_region();
  }
  return target;
}

}  // namespace shardwise
