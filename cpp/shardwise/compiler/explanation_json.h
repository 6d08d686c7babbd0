// SPDX-License-Identifier: Apache-2.0
//
// The answers of `why` as one JSON document, from which Python makes text, `rich` and HTML. A path is the index of its
// last step, -1 for none; each step has the path before it:
//
//   {"paths": [{"before": -1, "name": "stablehlo.tanh", "from": "operand 0 dim 0", "to": "result 0 dim 0", …}],
//    "values": [{"name": "h", "sharding": "[{\"data\"}, {}]", "axes": [{"axis": "\"data\"", "path": 0, …}], …}]}
#pragma once

#include <span>
#include <string>

#include "shardwise/compiler/driver.h"
#include "shardwise/compiler/value_queries.h"

namespace shardwise {

// Explains a unit with the snapshots `global` and `propagated`. A value without a name of its own gets that of its
// NamedValue.
std::string explanations_json(const CompileUnit& unit, std::span<const NamedValue> values, bool with_counterfactuals);

// Shardy's sdy.propagation_edges: a list with a row for each edge. `from` and `to` are numbers of values, 0 for a
// result of main.
std::string edges_json(const CompileUnit& unit);

}  // namespace shardwise
