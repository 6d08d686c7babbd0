// SPDX-License-Identifier: Apache-2.0
// Sums in stages, where the hardware is known.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/reshard/plan.h"
#include "shardwise/reshard/plan_price.h"

namespace shardwise {
namespace {

// A sum of 1024 x 1024 floats that is pending along all axes of the mesh.
ReshardProblem sum_to(std::vector<MeshAxis> axes, const std::string& target) {
  const auto mesh = std::make_shared<const Mesh>("m", std::move(axes));
  const Dims shape{1024, 1024};
  ReshardProblem problem{.shape = shape,
                         .item_size = 4,
                         .from = placement_of(parse_short_sharding("[{}, {}]", mesh), shape),
                         .to = placement_of(parse_short_sharding(target, mesh), shape)};
  for (int axis = 0; axis < mesh->ndim(); ++axis) problem.from.unreduced.push_back(full_axis(*mesh, axis));
  problem.from.reducer = Reducer::kSum;
  return problem;
}

std::vector<std::string> moves_of(const ReshardPlan& plan) {
  std::vector<std::string> moves;
  for (const ReshardStep& step : plan.steps) moves.emplace_back(move_name(step.move));
  return moves;
}

using Moves = std::vector<std::string>;

TEST(PlanStages, NeighborsAddFirst) {
  const Hardware& hardware = *default_hardware();
  const ReshardProblem problem = sum_to({{"node", 4}, {"gpu", 8}}, R"([{"node"}, {}])");
  const ReshardPlan plain = plan_reshard(problem), staged = plan_reshard(problem, &hardware);
  EXPECT_EQ(moves_of(plain), (Moves{"reduce_scatter", "all_reduce"}));
  EXPECT_EQ(moves_of(staged), (Moves{"reduce_scatter", "all_gather"}));
  EXPECT_EQ(staged.bytes, plain.bytes);
  EXPECT_LT(price_of(staged, problem, hardware).ps * 3, price_of(plain, problem, hardware).ps);
}

TEST(PlanStages, OneCollectiveHasTheStagesOfItsTiers) {
  for (const std::string target : {R"([{"node", "gpu"}, {}])", R"([{"gpu"}, {"node"}])"}) {
    const ReshardProblem problem = sum_to({{"node", 4}, {"gpu", 8}}, target);
    EXPECT_EQ(moves_of(plan_reshard(problem, default_hardware().get())), Moves{"reduce_scatter"});
  }
  const ReshardProblem inside = sum_to({{"node", 4}, {"gpu", 8}}, R"([{"gpu"}, {}])");
  EXPECT_EQ(moves_of(plan_reshard(inside, default_hardware().get())), (Moves{"reduce_scatter", "all_reduce"}));
}

TEST(PlanStages, LinksOfOneSpeedTakeTheFewestBytes) {
  const ReshardProblem problem = sum_to({{"node", 2}, {"gpu", 4}}, R"([{"node"}, {}])");
  EXPECT_EQ(moves_of(plan_reshard(problem, default_hardware().get())), moves_of(plan_reshard(problem)));
}

}  // namespace
}  // namespace shardwise
