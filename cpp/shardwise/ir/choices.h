// SPDX-License-Identifier: Apache-2.0
//
// How a program is partitioned, as text without sizes: read from one compilation, pinned in another, also on a mesh whose
// axes have other sizes.
//
//   stablehlo.dot_general   [{"x"}, {}]  [{}, {"y"}]  ->  [{"x"}, {"y"}]
//   stablehlo.slice         by exchange: [{"x"}]      ->  [{"x"}]
//   reshards, in program order: {all_gather}, {}, {reduce_scatter, exchange}
#pragma once

#include <string>
#include <vector>

namespace shardwise {

struct ChosenOp {
  std::string op;
  std::string method;  // "" by the rule
  std::vector<std::string> operands, results;
  friend bool operator==(const ChosenOp&, const ChosenOp&) = default;
};

struct Choices {
  std::vector<ChosenOp> ops;                    // those that `assign` chooses alone, in its order
  std::vector<std::vector<std::string>> plans;  // of reshards
};

}  // namespace shardwise
