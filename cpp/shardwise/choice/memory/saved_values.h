// SPDX-License-Identifier: Apache-2.0
//
// Which values to keep until they are needed, and which to compute again: the least time within a number of bytes.
//
//   value     bytes  ps   operands        within 10 bytes:
//   0  x         4   -    -               keep x (4) and y (6), compute h again: 20 ps
//   1  h        16   20   x
//   2  y         6   90   h               needed later: h, y
//
// A value that is needed is kept, or computed again from its operands, which are then needed too. Each is computed again
// at most once. It knows no programs.
//
// For a price per byte the best values are a minimum cut. The cheapest cuts of all prices are the corners of a convex
// hull; what lies between two corners is found by branching, each branch bounded by its own hull.
#pragma once

#include <cstdint>
#include <vector>

namespace shardwise {

struct SavedValue {
  int64_t bytes = 0;  // while it is kept
  int64_t ps = 0;     // to compute it again
  bool is_needed = false;
  bool can_be_kept = true, can_repeat = true;
  std::vector<uint32_t> operands = {};
};
using SavedValues = std::vector<SavedValue>;

struct Saved {
  std::vector<bool> is_kept, is_repeated;  // by value; neither where it is not needed
  int64_t bytes = 0, ps = 0;
};

struct SavedWithin {
  Saved saved;
  bool fits = false;  // otherwise `saved` has the fewest bytes; it is empty if a value can be neither kept nor repeated
  int64_t bound_ps = 0;  // nothing within the bytes takes less time
};
// `branches`: how many cuts of it there may be; with enough of them, saved.ps is bound_ps. `tolerance`: relative, of the
// time that further branches could save.
struct SaveEffort {
  int64_t branches = 2000;
  double tolerance = 0;
};
SavedWithin save_within(const SavedValues& values, int64_t bytes, const SaveEffort& effort = {});

}  // namespace shardwise
