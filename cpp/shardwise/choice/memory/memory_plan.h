// SPDX-License-Identifier: Apache-2.0
//
// `rematerialize` lists here what the program computes again to stay within its memory limit (PassContext::memory):
//
//   limit 80 GB: peak 112 GiB -> 73 GiB
//     gathered again   w1       1.5 GiB   +3.1 ms     line 12
//     computed again   h        24 GiB    +9.0 ms     line 14
//     windowed         y         7 GiB    +0.2 ms     line 15
//     row by row       ws        35 GiB   +90 ms      line 9
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shardwise/ir/ids.h"

namespace shardwise {

enum class Repeated : uint8_t {
  kAgain,
  kWindowed,  // a product in a loop, of which no device has the whole operand or the unreduced result
  kInTrips,   // a stack, of which each scan makes a row in the trip that reads it
};

std::string_view name(Repeated how);  // "computed again", "windowed", "row by row"

struct RepeatedRow {
  LocId loc;
  std::string_view op;  // its name
  TypeId type;          // global
  bool is_transfer = false;
  Repeated how = Repeated::kAgain;
  int64_t bytes = 0;  // less at the peak: of all trips, of a scan's rows. Negative: kept in its place
  int64_t ps = 0;     // more of one run
};

// A kind of value that stays alive at a peak. Other engines, such as JAX, can recognize its op and type.
struct KeptValue {
  std::string_view op;
  TypeId type;  // global
  friend bool operator==(const KeptValue&, const KeptValue&) = default;
};

struct MemoryPlan {
  int64_t limit_bytes = 0;
  int64_t before_bytes = 0, after_bytes = 0;  // the peaks
  std::vector<RepeatedRow> rows = {};
  std::vector<KeptValue> kept = {};  // each once; some values of a kind may be in `rows`
};

}  // namespace shardwise
