// SPDX-License-Identifier: Apache-2.0
//
// How often each op of a module runs in one run of it:
//
//   %0 = scan … 36 trips { call @layer }       body: 36, exact
//   func @layer { … case %i {…} {…} }          @layer: 36, exact; each branch: 36 times 1/2, kind kBranch
//   %1 = while … { … }  without a counter      body: 1 times 16, kind kAssumed; condition: 1 times 17
//
// `count` is exact where the program states it: trips times calls. It counts a branch as if it ran each time, and one trip
// of a loop that does not count. `factor` is what is expected of each counted execution. Prices multiply by both; a
// ledger shows the count, and its kind as "at most" (kBranch) or "per trip" (kAssumed).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// The trips of a loop that does not count: enough for a transfer before it to be worth more than one in it.
inline constexpr int64_t kAssumedTrips = 16;

// Users declare these attributes of an op: the trips of a loop that does not count, and how often each branch of
// an op runs, as weights: [3, 1] is 3/4 and 1/4.
inline constexpr std::string_view kTripsAttr = "shardwise.trips", kWeightsAttr = "shardwise.weights";

// In lowest terms, and not negative.
struct Fraction {
  int64_t numerator = 1, denominator = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// In order of weakness: what is inside both a branch and a loop that does not count is kAssumed.
enum class CountKind : uint8_t { kExact, kBranch, kAssumed };

struct Executions {
  int64_t count = 1;  // saturates (base/quantity.h)
  Fraction factor;
  CountKind kind = CountKind::kExact;

  // A quantity of one execution, for all expected ones: rounded up, saturated.
  int64_t times(int64_t quantity) const;
  // These executions of a call, and those of another call.
  Executions& operator+=(const Executions& other);
  friend bool operator==(const Executions&, const Executions&) = default;
};

// Throws ShardingError for recursive functions (ops/control/call_graph.h).
class ModuleExecutions {
 public:
  explicit ModuleExecutions(const Module& module);

  const Executions& of(OpId op) const { return of_region(module_.op(op).parent); }
  // A combiner has the executions of the op that applies it to elements.
  const Executions& of_region(RegionId region) const { return regions_[region.index]; }
  // A count of 0 for a function that main does not reach.
  const Executions& of_function(size_t function) const { return functions_[function]; }

 private:
  void add_region(RegionId region, const Executions& executions);

  const Module& module_;
  std::vector<Executions> functions_;  // by function
  std::vector<Executions> regions_;    // by region
};

// The trips of a loop: as it counts, as the user declares, or else assumed.
int64_t expected_trips(const OpView& loop);

// The executions of a region of an op, where the op has those of `outside`: times the trips of a loop, or the share of a
// branch.
Executions executions_inside(const OpView& op, size_t region, const Executions& outside);

}  // namespace shardwise
