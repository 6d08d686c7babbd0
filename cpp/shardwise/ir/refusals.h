// SPDX-License-Identifier: Apache-2.0
//
// The ops, targets and types that shardwise refuses, each with a reason and a fix. Errors and the page "Refused
// programs" print them.
//
//   refusal_of("stablehlo.infeed")->way_out      "pass the data as arguments"
//   refusal_of("stablehlo.async_start")          an op that no text may hold: the parser's error
//
// ir/ is below ops/, so the registry installs its table here once (ops/shared/refusals.cpp), as it does with the ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardwise {

struct Refusal {
  // When the error is raised. What is refused when a program is compiled can be read, propagated and printed.
  enum class When : uint8_t { kRead, kCompiled };
  std::string_view name;  // an op, the @target of a custom call, or a type
  std::string_view reason, way_out;
  When when = When::kCompiled;
  std::string_view condition = {};  // "of complex numbers"; empty: always refused
};

const Refusal* refusal_of(std::string_view name);  // null for what is not refused, or only on a condition
std::span<const Refusal> all_refusals();           // in the order of the page
std::string advice(const Refusal& refusal);        // "use floats, because no kernel computes with scales"
void install_refusals(std::span<const Refusal> refusals);

}  // namespace shardwise
