// SPDX-License-Identifier: Apache-2.0
//
// One map in place of two or more:
//
//   pad by 1, then [2:66]                  composed    offset -1, then 2       ->  offset 1 of the value that is padded
//   64 rows and one more, then [1:65]      composed    offsets 0 and -64       ->  offsets 1 and -63 of the two values
//   rows [i - 1, i + 8) and [i, i + 9)     hull        offsets -1 and 0        ->  10 rows from offset -1
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

// How `outer` reads its operand `k` where `inner` reads its operands.
struct ComposedRead {
  size_t operand = 0;  // of `inner`
  std::vector<ExchangeSource> from;
};
// Operands that `outer` reads nothing of are left out, except for the last one. The fill of `inner` remains fill. Returns none
// if the composition is not an ExchangeMap.
std::optional<std::vector<ComposedRead>> composed_reads(const ExchangeMap& outer, size_t k, const ExchangeMap& inner);

// Whether no element of the result is the fill. False where that is not clear.
bool needs_no_fill(const ExchangeMap& map);

// Tiles that hold those of several maps of one operand, at distances that are the same on all devices.
struct Hull {
  struct Part {
    Dims starts, limits, strides;  // in a tile of the hull
  };
  ExchangeMap map;
  std::vector<Part> parts;  // by map
};
std::optional<Hull> hull_of(std::span<const ExchangeMap> maps);

}  // namespace shardwise
