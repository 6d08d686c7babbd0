// SPDX-License-Identifier: Apache-2.0
//
// Programs of a few ops, with the cost and time of one of them, on hardware whose rates are easy to divide by:
//
//   const Timed product("%r = stablehlo.dot_general %a, %b, …", "%a: tensor<4x8xf32>, %b: tensor<8x16xf32>", "tensor<4x16xf32>");
//   product.cost.matrix      // of the op that makes %r
#pragma once

#include <string>

#include "shardwise/analysis/op_time.h"
#include "support/program_text.h"

namespace shardwise::testing {

// In picoseconds: a byte takes 1; a thousand flops of a bf16 product take 1, of f32 2, of int8 half of 1; a hundred
// operations on elements take 1, ten functions 1. A launch takes 1000.
inline Hardware round_hardware() {
  Hardware hardware{.name = "round",
                    .description = {},
                    .peaks = {},
                    .efficiency = {},
                    .memory_efficiency = {},
                    .tiers = {},
                    .json = {}};
  hardware.peaks[0] = {{"i8", 2'000'000'000'000'000}, {"bf16", 1'000'000'000'000'000}, {"f32", 500'000'000'000'000}};
  hardware.peaks[1] = {{"f32", 100'000'000'000'000}};
  hardware.peaks[2] = {{"f32", 10'000'000'000'000}};
  hardware.memory_bandwidth = 1'000'000'000'000;
  hardware.launch_ps = 1000;
  return hardware;
}

inline std::string main_text(const std::string& body, const std::string& arguments, const std::string& results) {
  return "func.func @main(" + arguments + ") -> (" + results + ") {\n" + body + "\nreturn %r : " + results + "\n}\n";
}

struct Timed {
  Module module;
  OpId op;  // that makes %r
  OpCost cost;
  OpTime time;

  Timed(const std::string& body, const std::string& arguments, const std::string& result)
      : module(parse_program(main_text(body, arguments, result))),
        op(module.value(module.region(module.main().body).results[0]).op),
        cost(own_cost(OpView(module, op))),
        time(op_time(OpView(module, op), round_hardware())) {}
};

}  // namespace shardwise::testing
