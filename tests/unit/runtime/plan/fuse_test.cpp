// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/fuse.h"

#include "runtime/local_text.h"
#include "shardwise/runtime/plan/plan.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

// For each chain of a program: its ops, and how many shards it computes. %a: 2x4 on each device; %b: 8x4, whose rows are
// sharded along x = 4.
std::vector<std::pair<int64_t, int64_t>> chains_of(std::string_view first) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}});
  const AxisList x{full_axis(*mesh, 0)};
  const std::string text = str(R"(func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.exponential )",
                               first, R"( : tensor<2x4xf32>
      %1 = stablehlo.add %0, %b : tensor<2x4xf32>
      %2 = stablehlo.negate %1 : tensor<2x4xf32>
      return %2 : tensor<2x4xf32>
    })");
  const Placed rows{{8, 4}, {x, {}}};
  const LocalText program(mesh, text, {{{2, 4}, {{}, {}}}, rows}, {rows});
  std::vector<std::pair<int64_t, int64_t>> chains;
  for (const Step& step : make_plan(program.module(), *mesh, {}).main.steps) {
    const auto* chain = std::get_if<FusedChain>(&step.work);
    if (chain != nullptr) chains.emplace_back(chain->ops, product(step.axes));
  }
  return chains;
}

TEST(Fuse, OpsOnOneShardEachAreOneChain) {
  EXPECT_EQ(chains_of("%b"), (std::vector<std::pair<int64_t, int64_t>>{{3, 4}}));
}

TEST(Fuse, WhatAllDevicesHaveIsComputedOnce) {
  EXPECT_EQ(chains_of("%a"), (std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 4}}));
}

}  // namespace
}  // namespace shardwise
