// SPDX-License-Identifier: Apache-2.0
//
// Which function calls which:
//
//   func.func @main { call @f; call @g }      reached()         @main, @f, @g
//   func.func @f { call @g }                  calls(@main)      the two calls in @main
//   func.func @g { … }                        callees_first()   @g, @f, @main
//
// Functions are indices of Module::functions. Nested calls can make a short text arbitrarily large: a program that
// would exceed kMaxExpandedOps ops with its calls expanded, or nest deeper than kMaxCallDepth with its regions, is
// rejected.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

inline constexpr int64_t kMaxExpandedOps = int64_t{1} << 24;
inline constexpr int kMaxCallDepth = 256;

class CallGraph {
 public:
  // Throws ShardingError for a recursive function, and beyond the limits. The ops of calls must stay.
  explicit CallGraph(const Module& module);

  // Main, and the functions that it calls, directly or not. A function comes before those that it calls.
  const std::vector<size_t>& reached() const { return reached_; }
  const std::vector<size_t>& callees_first() const { return callees_first_; }  // all functions
  std::span<const OpId> calls(size_t function) const { return calls_[function]; }
  size_t callee(OpId call) const;

 private:
  struct Size {
    int64_t ops = 0;
    int depth = 0;  // of regions and calls inside
  };
  Size size_of(size_t function, RegionId region, int depth);
  Size size_of_call(OpId call, int depth);
  void visit(size_t function, int depth);

  const Module& module_;
  std::unordered_map<std::string, size_t> indices_;  // by name
  std::vector<std::vector<OpId>> calls_;             // by function, in the order of the program
  std::vector<size_t> reached_, callees_first_;
  std::unordered_map<size_t, Size> sizes_;  // by function
  std::unordered_set<size_t> open_;         // functions that are being counted
};

// As empty_copy (graph_copy.h), with all functions that are reached, in the order of the source.
Module empty_copy(const Module& source, const CallGraph& calls);

}  // namespace shardwise
