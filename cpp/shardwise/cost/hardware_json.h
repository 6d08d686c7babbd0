// SPDX-License-Identifier: Apache-2.0
//
// Reads hardware files:
//
//   {
//     "format": "shardwise.hardware", "version": 1,
//     "name": "my_cluster",
//     "base": "h100_sxm",                                  // optional: what this file leaves out is as in that file
//     "sources": {"bench": {"title": "our measurements", "license": "private"}},
//     "memory": {"bandwidth": {"value": 3.1e12, "source": "bench"}},        // or only 3.1e12
//     "tiers": [
//       {"name": "nvlink", "topology": "switch", "size": 8, "bandwidth": 3.7e11, "latency": 2e-6},
//       {"name": "ethernet", "topology": "fat_tree", "bandwidth": 1.25e10,
//        "efficiency": {"interpolation": "linear", "points": [[1048576, 0.3], [268435456, 0.9]]}}
//     ]
//   }
//
// Rates are per second, times are seconds, sizes are bytes or flops. Without a base, `name`, `peak_flops` (matrix and
// vector), `memory` (bandwidth and capacity) and `tiers` must be there; everything else has a default: shares of 1,
// launch and latency 0, no reserved bytes. A "calibration" has constants that were fitted to measured steps; it is only
// checked here, for the reports that use it. docs/hardware.md lists all keys.
#pragma once

#include <cstddef>
#include <string_view>

#include "shardwise/cost/hardware.h"

namespace shardwise {

inline constexpr size_t kMostHardwareBytes = size_t{16} << 20;

// `file` begins each message: "my_cluster.json: tiers[1].bandwidth must be at least 1 per second, got -3". All errors are
// ParseError; without places, they have no line and column.
HardwarePtr hardware_from_json(std::string_view json, std::string_view file, bool has_places = true);

// That of an option: a name of built-in hardware, or JSON. ShardingError for another name.
HardwarePtr hardware_called(std::string_view text);

}  // namespace shardwise
