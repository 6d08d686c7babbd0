// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/common_digits.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

MeshPtr mesh_of(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>("mesh", std::move(axes)); }

Placement placed(const MeshPtr& mesh, std::string_view sharding, DimSpan shape) {
  return placement_of(parse_short_sharding(sharding, mesh), shape);
}

std::string digits_text(const Mesh& mesh, const std::optional<Digits>& digits) {
  if (!digits) return "none";
  std::string text;
  for (size_t i = 0; i < digits->size(); ++i) text += (i == 0 ? "" : " ") + axis_text(mesh, (*digits)[i]);
  return text;
}

// 8 shards by y replace 256 by x, and the other way round: x is cut after its first 8 only if that is asked for.
TEST(DigitsOf, CutsWhereAPlacementCutsOrWhereShardsEnd) {
  const MeshPtr mesh = mesh_of({{"x", 256}, {"y", 8}});
  const Dims shape{4096, 4096};
  const Placement from = placed(mesh, R"([{"y"}, {}])", shape), to = placed(mesh, R"([{"x"}, {}])", shape);
  EXPECT_EQ(digits_text(*mesh, digits_of(from, to, Cuts::kGiven)), R"("x" "y")");
  EXPECT_EQ(digits_text(*mesh, digits_of(from, to, Cuts::kAligned)), R"("x":(1)8 "x":(8)32 "y")");
  EXPECT_EQ(digits_text(*mesh, digits_of(to, from, Cuts::kAligned)), R"("x" "y")");
  const Placement half = placed(mesh, R"([{}, {"x":(2)4}])", shape);
  EXPECT_EQ(digits_text(*mesh, digits_of(to, half, Cuts::kGiven)), R"("x":(1)2 "x":(2)4 "x":(8)32)");
  EXPECT_EQ(digits_text(*mesh, digits_of(half, half, Cuts::kGiven)), R"("x":(2)4)");
}

TEST(DigitsOf, IsNothingForCutsThatNoSplitHas) {
  const MeshPtr mesh = mesh_of({{"x", 6}});
  const Dims shape{6};
  EXPECT_EQ(digits_of(placed(mesh, R"([{"x":(1)2}])", shape), placed(mesh, R"([{"x":(1)3}])", shape), Cuts::kGiven),
            std::nullopt);
}

// Every step is a placement of its own: what is still pending keeps its reducer, and a gather keeps its blocks.
TEST(PlanReshard, StepsArePlacements) {
  const MeshPtr mesh = mesh_of({{"x", 4}, {"y", 2}, {"z", 2}});
  const Dims shape{17};
  const Placement from = placed(mesh, R"([{"x", "y"}], unreduced=max{"z"})", shape);
  Placement to = from;
  to.dims[0] = {{full_axis(*mesh, 0)}, 6};
  const ReshardPlan plan = plan_reshard({.shape = shape, .from = from, .to = to});
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].move, ReshardMove::kAllGather);
  EXPECT_EQ(text(plan.steps[0].after), R"(#shardwise.placement<@mesh, [{"x"}: 6], unreduced=max{"z"}>)");
  EXPECT_EQ(plan.steps[0].after, to);
}

}  // namespace
}  // namespace shardwise
