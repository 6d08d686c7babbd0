// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/mesh_pair.h"

#include <gtest/gtest.h>

#include "shardwise/cost/exchange_cost.h"

namespace shardwise {
namespace {

using Pair = MeshPairPositions::Pair;

// A dim along "x" of x=2, y=3, then along "a" of a=3, b=2; with these ids there.
ExchangeMap changed(Dims ids = {}) {
  const auto main = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}, {"y", 3}});
  const auto other = std::make_shared<const Mesh>("other", std::vector<MeshAxis>{{"a", 3}, {"b", 2}}, std::move(ids));
  ExchangeMap map{.to = {{.axes = {full_axis(*other, 0)}, .rows = 4, .step = 4, .size = 12}},
                  .from = {{{.axes = {full_axis(*main, 0)}, .block = 6, .size = 12}}}};
  map.to_mesh = other;
  map.from_mesh = main;
  return map;
}

TEST(MeshPair, DifferentPositionsAreCounted) {
  const auto found = positions_of_mesh_pair(changed(), 0);
  EXPECT_EQ(found->dims, (std::vector<std::vector<Pair>>{{{0, 0}, {1, 0}, {1, 1}, {2, 1}}}));
  EXPECT_EQ(found->devices, (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(MeshPair, CountsAreKeptForEachPairOfMeshes) {
  const auto found = positions_of_mesh_pair(changed(), 0);
  ExchangeMap larger = changed();
  larger.to[0].rows = larger.to[0].step = 8;
  larger.to[0].size = larger.from[0][0].size = 24;
  larger.from[0][0].block = 12;
  EXPECT_EQ(positions_of_mesh_pair(larger, 0), found);
  EXPECT_NE(positions_of_mesh_pair(changed({1, 0, 2, 3, 4, 5}), 0), found);
}

TEST(MeshPair, TheCostIsThatOfTheDeviceThatLacksMost) {
  EXPECT_EQ(exchange_cost(changed()).elements, 2);
  EXPECT_EQ(exchange_cost(changed({5, 4, 3, 2, 1, 0})).elements, 4);
  for (const ExchangeMap& map : {changed(), changed({5, 4, 3, 2, 1, 0}), changed({3, 0, 5, 1, 4, 2})}) {
    int64_t most = 0;
    for (int64_t device = 0; device < 6; ++device) most = std::max(most, received_across_meshes(map, device));
    EXPECT_EQ(exchange_cost(map).elements, static_cast<double>(most));
  }
}

}  // namespace
}  // namespace shardwise
