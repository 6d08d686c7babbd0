// SPDX-License-Identifier: Apache-2.0
//
// What a user may choose about a compilation: the options of propagation.
#pragma once

#include <cstdint>

namespace shardwise {

// How propagation resolves conflicts between annotations:
//   kBasic       only axes on which all tensors of an op agree propagate
//   kAggressive  each tensor takes the axes that it can, the larger source first; the rest becomes a reshard
enum class Strategy : uint8_t { kBasic, kAggressive };

struct CompileOptions {
  Strategy strategy = Strategy::kAggressive;
  bool conservative = false;      // propagate whole axes only, and nothing along dims whose elements are exchanged
  bool strict_divisible = false;  // shrink shardings of uneven inputs and outputs, as Shardy does
};

}  // namespace shardwise
