// SPDX-License-Identifier: Apache-2.0
//
// The table of refusals (ir/refusals.h), and its sentences in errors:
//
//   refused_because(*refusal_of("stablehlo.infeed"))
//   // "can be read, propagated and printed, but not run, because it exchanges data with the host …"
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/refusals.h"

namespace shardwise {

// Refusals under a condition. The op checks the condition in OpDef::verify_runnable.
namespace refusals {

constexpr Refusal under(std::string_view condition, std::string_view name, std::string_view reason,
                        std::string_view way_out) {
  return {name, reason, way_out, Refusal::When::kCompiled, condition};
}
inline constexpr std::string_view kSizes = "sizes decide how a program is partitioned";
inline constexpr std::string_view kUndefined = "the specification does not define it";
inline constexpr std::string_view kParts = "compute with the real and imaginary parts";

inline constexpr Refusal kUnknownTarget =
    under("of an unknown target", "stablehlo.custom_call", "its function is not in the text",
          "define it with sw.register_custom_call");
inline constexpr Refusal kRngInLoop =
    under("in a loop, or in a function that stays a call", "stablehlo.rng", "it would draw the same numbers each time",
          "use stablehlo.rng_bit_generator, whose state can be a carry or an argument");
inline constexpr Refusal kComplexRemainder = under("of complex numbers", "stablehlo.remainder", kUndefined, kParts);
inline constexpr Refusal kComplexBessel = under("of complex numbers", "chlo.bessel_i1e", kUndefined, kParts);
inline constexpr Refusal kNextAfter =
    under("of floats of 6 bits", "chlo.next_after", "no integer has 6 bits", "convert them first");
inline constexpr Refusal kDynamicConv =
    under("of amounts that the program computes", "stablehlo.dynamic_conv", kSizes, "use constants");
inline constexpr Refusal kDynamicPad =
    under("of amounts that the program computes", "stablehlo.dynamic_pad", kSizes, "use constants");
inline constexpr Refusal kDynamicSlice = under("of bounds that the program computes", "stablehlo.real_dynamic_slice",
                                               kSizes, "use stablehlo.dynamic_slice, or constants");
inline constexpr Refusal kSetDimensionSize =
    under("to another size", "stablehlo.set_dimension_size", kSizes, "use stablehlo.slice, or a mask");

}  // namespace refusals

std::span<const Refusal> refusal_table();

std::string refused_because(const Refusal& refusal);  // what must hold, in an error

// Registers the refused targets of custom calls: their definitions raise the error when the program is compiled.
void register_refused_calls();

}  // namespace shardwise
