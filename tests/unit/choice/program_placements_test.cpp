// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/program_placements.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

std::string placement_text(const ProgramPlacements& placements, PlacementId id) {
  return id ? text(*placements.find(id)) : "none";
}

TEST(ProgramPlacements, ValuesThatDevicesHoldAlikeHaveOneId) {
  const Module module = parse_program(R"(
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%arg0: tensor<17x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y"}>},
                %arg1: tensor<17x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}], unreduced=max{"y"}>},
                %arg2: tensor<17x4xf32>) -> tensor<17x4xf32> {
  return %arg0 : tensor<17x4xf32>
}
)");
  const auto& arguments = module.region(module.main().body).arguments;
  ProgramPlacements placements(module);
  const PlacementId first = placements.declared(arguments[0]);
  EXPECT_EQ(placement_text(placements, first), R"(#shardwise.placement<@mesh, [{"x"}: 5, {}: 4]>)");
  EXPECT_EQ(placements.declared(arguments[1]), first);
  EXPECT_EQ(
      placement_text(placements, placements.of(module.value(arguments[1]).sharding, module.value(arguments[1]).type)),
      R"(#shardwise.placement<@mesh, [{"x"}: 5, {}: 4], unreduced=max{"y"}>)");
  const PlacementId whole = placements.declared(arguments[2]);
  EXPECT_EQ(placement_text(placements, whole), "#shardwise.placement<@mesh, [{}: 17, {}: 4]>");
  EXPECT_EQ(placements.replicated(module.value(arguments[2]).type), whole);
  EXPECT_EQ(placements.of(module.value(arguments[0]).type, {{{0, 1, 4}}, {}}, {}, Reducer::kSum), first);
  EXPECT_EQ(bare_text(module.context().sharding(placements.sharding(first))), R"(<@mesh, [{"x"}, {}]>)");
}

TEST(ProgramPlacements, APartWinsOverASharding) {
  Module module = parse_program(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %arg1: tensor<17xf32>) -> tensor<17xf32> {
  return %arg0 : tensor<17xf32>
}
)");
  const std::vector<ValueId> arguments = module.region(module.main().body).arguments;
  const ValueId sharded = arguments[0], whole = arguments[1];
  ProgramPlacements placements(module);
  EXPECT_EQ(placement_text(placements, placements.at(sharded)), R"(#shardwise.placement<@mesh, [{"x"}: 5]>)");
  EXPECT_EQ(placement_text(placements, placements.at(whole)), "#shardwise.placement<@mesh, [{}: 17]>");
  EXPECT_FALSE(placement_of_value(module, sharded));  // before the assigned stage
  module.stage = Stage::kAssigned;
  EXPECT_EQ(placement_of_value(module, sharded), *placements.find(placements.at(sharded)));
  EXPECT_FALSE(placement_of_value(module, whole));
  const Placement rounded = placement_of(module.context().sharding(module.value(sharded).sharding), Dims{17}, Dims{8});
  module.set_part(sharded, {.type = {}, .placement = module.context().intern(rounded), .padding = {}});
  EXPECT_EQ(*placements.find(placements.at(sharded)), rounded);
  EXPECT_EQ(placement_of_value(module, sharded), rounded);
}

TEST(ProgramPlacements, AProgramWithoutAMeshHasNone) {
  const Module module =
      parse_program("func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n  return %arg0 : tensor<4xf32>\n}\n");
  ProgramPlacements placements(module);
  const ValueId argument = module.region(module.main().body).arguments[0];
  EXPECT_EQ(placements.mesh(), nullptr);
  EXPECT_FALSE(placements.declared(argument));
  EXPECT_FALSE(placements.sharding({}));
  EXPECT_EQ(placements.find({}), nullptr);
}

}  // namespace
}  // namespace shardwise
