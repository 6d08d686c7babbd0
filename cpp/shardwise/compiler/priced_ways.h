// SPDX-License-Identifier: Apache-2.0
//
// Prices a program with one of its ops computed in another way. Each way is pinned, and the choice is made
// again for the whole program:
//
//   priced_ways(traced, options, mesh, pins, {"12"}, 64)
//     12  [{"t"}, {}], [{}, {}] -> [{"t"}, {}]                  1.99 ms
//     12  [{}, {"t"}], [{"t"}, {}] -> [{}, {}], unreduced={"t"}  2.64 ms
//     12  [{}, {}], [{}, {}] -> [{}, {}]                        5.75 ms
//
// The prices are those of `compile` with the same pins, since what follows the choice does not change its price.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/choice/choice_text.h"
#include "shardwise/compiler/driver.h"

namespace shardwise {

struct PricedWay {
  ChosenOp how;
  std::optional<Price> price = {};
  std::string error = {};  // without a price: why the way is impossible
};

// The ways to compute the ops with these keys (choice_key.h), as the partitioner ranks them; at most `most` of each op.
// `pinned`: the entries that stay, or null; one of an op that is asked about is replaced.
std::vector<PricedWay> priced_ways(SharedModule traced, const CompileOptions& options, const MeshPtr& mesh,
                                   const Choices* pinned, std::span<const std::string> asked, size_t most);

}  // namespace shardwise
