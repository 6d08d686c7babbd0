// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_price.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

// Of float32 on data=2, model=8: a node holds the 8 devices along "model".
std::string price_text(Dims shape, std::string_view from, std::string_view to) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"data", 2}, {"model", 8}});
  const ReshardProblem problem{.shape = shape,
                               .item_size = 4,
                               .from = placement_of(parse_short_sharding(from, mesh), shape),
                               .to = placement_of(parse_short_sharding(to, mesh), shape)};
  const ReshardPlan plan = plan_reshard(problem);
  std::string text;
  for (const ReshardStep& step : plan.steps) text += std::string(move_name(step.move)) + " ";
  return text + to_text(price_of(plan, problem, *default_hardware()));
}

TEST(PlanPrice, OfAPermuteIsAmongTheAxesThatItMoves) {
  // a tile of 4 * 4 * 4 * 4 B at 450 GB/s; "data" stays
  EXPECT_EQ(price_text({8, 8, 8}, R"([{"data"}, {"model":(1)2}, {"model":(4)2}])",
                       R"([{"data"}, {"model":(4)2}, {"model":(1)2}])"),
            "collective_permute 569 ps, 256 B, 1 round");
}

TEST(PlanPrice, OfAnExchangeIsAmongTheAxesThatItMoves) {
  // 60 columns: the device that has [56, 60) lacks 26 of [30, 60); 26 * 4 * 4 B at 450 GB/s
  EXPECT_EQ(price_text({8, 60}, R"([{"data"}, {"model"}])", R"([{"data"}, {"model":(1)2}])"),
            "exchange 925 ps, 416 B, 1 round");
}

TEST(PlanPrice, OfAReductionIsOfTheTileThatIsReduced) {
  // 8 * 60 * 4 B, of which 1/8 stays: 1680 B at 450 GB/s
  EXPECT_EQ(price_text({8, 60}, R"([{}, {}], unreduced={"model"})", R"([{"model"}, {}])"),
            "reduce_scatter 3.73 ns, 1.64 KiB, 1 round");
}

// The device whose part is the one element receives 7 addends, and the others receive the sum: 28 B, as in the ledger.
TEST(PlanPrice, OfAReductionOfFewerElementsThanDevicesIsThatOfTheLargestPart) {
  EXPECT_EQ(price_text({1}, R"([{}], unreduced={"model"})", "[{}]"), "all_reduce 18 ps, 28 B, 2 rounds");
}

}  // namespace
}  // namespace shardwise
