// SPDX-License-Identifier: Apache-2.0
//
// The variables of an assignment, as ResolvedSource::variable has them:
//
//   h = f(x)        "h"          targets {"h"}            whole "h"
//   g = h = f(x)    "g = h"      targets {"g"}, {"h"}     whole "g"
//   a, b = f(x)     "a, b"       targets {"a", "b"}       whole "": no variable holds the result of the call
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

// A name for each leaf that a target unpacks.
std::vector<std::vector<std::string>> assigned_targets(std::string_view assigned);

// The first variable that holds the whole result, or "".
std::string assigned_whole(std::string_view assigned);

}  // namespace shardwise
