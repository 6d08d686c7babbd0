// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/refusals.h"

#include <algorithm>
#include <array>

namespace shardwise {
namespace {

constexpr std::string_view kBetweenShards = "it exchanges the shards of a manual region or of a program of one device";
constexpr std::string_view kDiffers = "its result differs between devices, as in a manual region";
constexpr std::string_view kWholeArrays = "write the function on whole arrays: shardwise adds the collectives";
constexpr std::string_view kTokens = "tokens order ops that have effects, and those are refused";
constexpr std::string_view kNoEffects = "leave out the ops that have effects";
constexpr std::string_view kHost = "it exchanges data with the host while the program runs";
constexpr std::string_view kChannel = "it exchanges data with another program while it runs";

// One reason and way out for each op that can be read, propagated and printed, but not run: errors and the op pages
// show them.
constexpr std::array kRefusals{
    Refusal{"sdy.manual_computation", "its region computes on the shards of each device", kNoManualRegion},
    Refusal{"stablehlo.after_all", kTokens, kNoEffects},
    Refusal{"stablehlo.all_gather", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.all_reduce", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.all_to_all", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.collective_broadcast", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.collective_permute", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.create_token", kTokens, kNoEffects},
    Refusal{"stablehlo.cross-replica-sum", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.infeed", kHost, "pass the data as arguments"},
    Refusal{"stablehlo.outfeed", kHost, "return the data as results"},
    Refusal{"stablehlo.partition_id", kDiffers, kWholeArrays},
    Refusal{"stablehlo.recv", kChannel, "pass the data as arguments"},
    Refusal{"stablehlo.reduce_scatter", kBetweenShards, kWholeArrays},
    Refusal{"stablehlo.replica_id", kDiffers, kWholeArrays},
    Refusal{"stablehlo.send", kChannel, "return the data as results"},
};

}  // namespace

const Refusal* refusal_of(std::string_view op) {
  const auto* found = std::ranges::find(kRefusals, op, &Refusal::op);
  return found == kRefusals.end() ? nullptr : found;
}

}  // namespace shardwise
