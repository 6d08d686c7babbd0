// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/optimize_collectives.h"

#include <gtest/gtest.h>

#include "shardwise/partition/assign.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/plan_reshards.h"
#include "support/program_texts.h"

namespace shardwise {
namespace {

using testing::ops_of;
using testing::program_of;

TEST(OptimizeCollectives, EqualCollectivesBecomeOneWhateverTheirCause) {
  PassContext context;
  Module module = program_of(
      R"("x"=4)", "%arg0: tensor<2xf32>", "tensor<8xf32>",
      R"(%0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "operand 0 of tanh"}> : (tensor<2xf32>) -> tensor<8xf32>
                                  %1 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "operand 1 of add"}> : (tensor<2xf32>) -> tensor<8xf32>
                                  %2 = stablehlo.tanh %0 : tensor<8xf32>
                                  %3 = stablehlo.tanh %1 : tensor<8xf32>
                                  %4 = stablehlo.add %2, %3 : tensor<8xf32>
                                  return %4 : tensor<8xf32>)");
  module = optimize_collectives(std::move(module), context);
  EXPECT_EQ(
      ops_of(module),
      R"(%0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "operand 0 of tanh"}> : (tensor<2xf32>) -> tensor<8xf32>
%1 = stablehlo.tanh %0 : tensor<8xf32>
%2 = stablehlo.add %1, %1 : tensor<8xf32>
)");
  EXPECT_EQ(context.counters.get("optimize_collectives.merged"), 2);
}

// One row in two shards, and the same bits as a whole row: the second device may read only the latter.
TEST(OptimizeCollectives, ShardsWithPaddingAreNotMergedWithWholeValues) {
  PassContext context;
  Module module = program_of(R"("x"=2)", "%arg0: tensor<f32>", "tensor<1xf32>, tensor<1xf32>",
                             R"(%0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1xf32>
                                  %1 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1xf32>
                                  return %0, %1 : tensor<1xf32>, tensor<1xf32>)");
  const std::vector<ValueId> results = module.region(module.main().body).results;
  const TypeId type = module.value(results[0]).type;
  const Placement whole = replicated_placement(module.meshes[0], Dims{1});
  Placement sharded = whole;
  sharded.dims[0].axes = {{0, 1, 2}};
  module.set_part(results[0], {type, module.context().intern(sharded), {Padding::Kind::kGarbage, {}}});
  module.set_part(results[1], {type, module.context().intern(whole), {}});
  module = optimize_collectives(std::move(module), context);
  EXPECT_EQ(context.counters.get("optimize_collectives.merged"), 0);
  EXPECT_EQ(module.region(module.main().body).ops.size(), 2u);
}

}  // namespace
}  // namespace shardwise
