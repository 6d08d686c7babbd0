// SPDX-License-Identifier: Apache-2.0
//
// The senders of an exchange whose tiles nest, as a map of digits. Each of its steps is one permutation of the devices,
// so engines without a symbolic exchange can run it as permutes.
//
//   x=4, y=4   [{"x"}] -> [{"y"}]       one step: the sender's x is the receiver's y, its y is the receiver's x
//   x=4        [{"x"}] -> [{}]          4 steps: in step k, the sender's x is the receiver's x + k, modulo 4
//   x=4, y=2   [{"x"}] -> [{"y"}]       2 steps: the major half of the sender's x is the receiver's y; its minor half
//                                       is the receiver's minor half + k; its y is the receiver's major half
//
// A digit that shards the operand, and that another digit of the result takes over, leads from one digit to the other.
// These links form chains and cycles. At the end of a chain, the sender has the place that the receiver has at its
// front. A device that holds what it needs thus sends it to itself.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

struct DigitMove {
  enum class Kind : uint8_t { kTakenOver, kReplicated, kGathered };  // the sender's digits, as the operand uses them
  Kind kind = Kind::kTakenOver;
  // The sender's place along the one is the receiver's along the other; gathered: plus a step. Each is one digit, or
  // several whose sizes agree only together: 2·3 and 3·2.
  AxisList sender = {}, receiver = {};
};

// Digits that it does not name are equal.
using DigitMap = std::vector<DigitMove>;

// Returns none if the map has several operands or meshes, if it moves or cuts rows, if tiles do not nest, or if axes
// are cut in ways that no single split has.
std::optional<DigitMap> digit_map_of(const ExchangeMap& map);

// Tables, for exporters: the logical index of the sender of each device, by step.
std::vector<std::vector<int64_t>> sender_steps(const DigitMap& map, const Mesh& mesh);

}  // namespace shardwise
