// SPDX-License-Identifier: Apache-2.0
//
// The time and the memory that a windowed product takes, beside the products and the collective that it replaces, on some hardware:
//
//   bf16 (4096, 8192) @ (8192, 28672), of which each of 8 devices has 3584 columns, on h100_sxm
//     products   the product alone                                     1.95 ms
//     gathered   all_gather, then the product                          2.87 ms
//     loop       in each trip the longer of a permute and a product    2.06 ms
//
// Both are estimated like a whole program (analysis/step_estimate.h): what a loop adds, such as reading the other operand in
// each trip, is in its time. The ring is the one that takes less.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "shardwise/cost/hardware.h"
#include "shardwise/emission/windowed_dot.h"

namespace shardwise {

struct WindowedTime {
  int64_t products_ps = 0, gathered_ps = 0, loop_ps = 0;  // "gathered": the collective and the products, or the reverse
  int64_t gathered_bytes = 0, loop_bytes = 0;             // the peaks of their memory
  Ring ring = Ring::kOneWay;
};

class WindowedTimes {
 public:
  // Both must outlive it.
  WindowedTimes(const Module& local, const Hardware& hardware) : local_(local), hardware_(hardware) {}
  // Equal windows are timed once.
  const WindowedTime& of(const WindowedDot& dot);

 private:
  WindowedTime timed(const WindowedDot& dot) const;
  Module loop(const WindowedDot& dot, Ring ring) const;
  Module products(const WindowedDot& dot, bool with_collective) const;

  const Module& local_;
  const Hardware& hardware_;
  std::map<std::vector<uint64_t>, WindowedTime> known_;
};

}  // namespace shardwise
