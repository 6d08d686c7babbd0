// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/dry_run.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// Row 1 of device 0 and row 2 of device 1 are a slice that nothing is sent for; the other slices send a row.
TEST(DryRuns, SlicesAtDifferentConstantsHaveTheirOwnPrices) {
  const Module module = parse_program(R"(
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %2 = stablehlo.dynamic_slice %arg0, %0, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  %3 = stablehlo.dynamic_slice %arg0, %1, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  return %2, %3 : tensor<2xf32>, tensor<2xf32>
}
)");
  ProgramPlacements placements(module);
  DryRuns runs(module, *default_hardware());
  const auto bytes = [&](size_t position) {
    const OpView op(module, module.region(module.main().body).ops[position]);
    const auto methods = op.def().methods;
    const auto exchange = std::ranges::find(methods, std::string_view("exchange"), &Method::name);
    const AxisList x{full_axis(*placements.mesh(), 0)};
    const TypeId from = module.value(op.operand(0)).type, start = module.value(op.operand(1)).type;
    const std::vector<PlacementId> tensors{placements.of(from, {x}, {}, Reducer::kNone), placements.replicated(start),
                                           placements.of(module.value(op.result()).type, {x}, {}, Reducer::kNone)};
    return runs.cost(op, sharding_rule(op), *exchange, tensors, {true}).bytes;
  };
  EXPECT_GT(bytes(2), 0);
  EXPECT_EQ(bytes(3), 0);
}

// A method of `op` that makes `y`, by `partition`.
Method method_of(void (*partition)(PartitionContext&)) {
  return {.name = "test",
          .factors = [](const OpView&, const ShardingRule&) { return std::vector<FactorId>{}; },
          .placements = nullptr,
          .partition = partition};
}

// A type has fewer than 2^56 elements: no candidate. An op of wrong shapes is a bug of the method.
TEST(DryRuns, OnlyATensorThatIsTooLargeMakesAMethodImpossible) {
  const Module module = parse_program(R"(
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
)");
  DryRuns runs(module, *default_hardware());
  const OpView op(module, module.region(module.main().body).ops.front());
  const std::vector<PlacementId> tensors(2);
  const Method too_large = method_of([](PartitionContext& context) {
    build_pad_along(context.builder(), context.operand(0), 0, 0, 0, int64_t{1} << 56);
  });
  EXPECT_FALSE(runs.cost(op, sharding_rule(op), too_large, tensors, {true}).is_possible);
  const Method wrong =
      method_of([](PartitionContext& context) { build_reshape(context.builder(), context.operand(0), Dims{3}); });
  EXPECT_THROW(runs.cost(op, sharding_rule(op), wrong, tensors, {true}), ShapeError);
}

}  // namespace
}  // namespace shardwise
