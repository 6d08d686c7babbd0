// SPDX-License-Identifier: Apache-2.0
//
// The ops that have neither a kernel nor a decomposition: a program with one is read, propagated and printed, and
// refused when it is compiled. Each states its reason, for the documentation, and what to do instead, for the error.
//
//   refusal_of("stablehlo.infeed")->way_out      "pass the data as arguments"
#pragma once

#include <string_view>

namespace shardwise {

struct Refusal {
  std::string_view op, reason, way_out;
};

const Refusal* refusal_of(std::string_view op);  // null for other ops

inline constexpr std::string_view kNoManualRegion =
    "write the function on whole arrays, and annotate them with sw.shard";

}  // namespace shardwise
