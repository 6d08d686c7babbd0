// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/other_mesh.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

MeshPtr mesh(std::vector<MeshAxis> axes, Dims ids = {}) {
  return std::make_shared<const Mesh>("mesh", std::move(axes), std::move(ids));
}

std::string written(const MeshPtr& from, int axis, const MeshPtr& main) {
  const auto axes = on_mesh(*from, full_axis(*from, axis), *main);
  return axes ? axis_list_text(*main, *axes) : "none";
}

TEST(OtherMesh, DigitOrdersAreSubAxes) {
  const MeshPtr grid = mesh({{"x", 4}, {"y", 2}}), other = mesh({{"p", 2}, {"q", 4}});
  EXPECT_EQ(written(other, 0, grid), R"({"x":(1)2})");
  EXPECT_EQ(written(other, 1, grid), R"({"x":(2)2, "y"})");
  const MeshPtr line = mesh({{"d", 8}});
  EXPECT_EQ(written(line, 0, grid), R"({"x", "y"})");
  EXPECT_EQ(written(grid, 1, line), R"({"d":(4)2})");
}

TEST(OtherMesh, PermutedAxesAreSubAxes) {
  const MeshPtr grid = mesh({{"x", 4}, {"y", 2}});
  const MeshPtr turned = mesh({{"a", 2}, {"b", 4}}, {0, 2, 4, 6, 1, 3, 5, 7});  // y, then x
  EXPECT_EQ(written(turned, 0, grid), R"({"y"})");
  EXPECT_EQ(written(turned, 1, grid), R"({"x"})");
  const MeshPtr ids = mesh({{"x", 4}, {"y", 2}}, {3, 1, 4, 0, 7, 5, 2, 6});
  const MeshPtr same_ids = mesh({{"d", 8}}, {3, 1, 4, 0, 7, 5, 2, 6});
  EXPECT_EQ(written(same_ids, 0, ids), R"({"x", "y"})");
}

TEST(OtherMesh, OtherOrdersAreNone) {
  const MeshPtr grid = mesh({{"x", 2}, {"y", 3}}), turned = mesh({{"a", 3}, {"b", 2}});
  EXPECT_EQ(written(turned, 0, grid), "none");
  EXPECT_EQ(written(turned, 1, grid), "none");
  EXPECT_EQ(written(mesh({{"d", 6}}, {5, 4, 3, 2, 1, 0}), 0, grid), "none");
  EXPECT_EQ(written(mesh({{"d", 6}}, {3, 0, 5, 1, 4, 2}), 0, grid), "none");
}

TEST(OtherMesh, EveryListIsWritten) {
  const MeshPtr grid = mesh({{"x", 4}, {"y", 2}}), other = mesh({{"p", 2}, {"q", 4}});
  TensorSharding sharding{.mesh = other,
                          .dims = {{.axes = {{1, 1, 2}}, .open = true, .priority = 1}, {}},
                          .replicated = {{0, 1, 2}},
                          .unreduced = {{1, 2, 2}},
                          .reducer = Reducer::kMax};
  const auto found = on_mesh(sharding, grid);
  ASSERT_TRUE(found);
  EXPECT_EQ(short_text(*found), R"([{"x":(2)2, ?}p1, {}], replicated={"x":(1)2}, unreduced=max{"y"})");
  EXPECT_FALSE(on_mesh(sharding, mesh({{"x", 4}})));
}

TEST(OtherMesh, DevicesHaveAPlaceInEachMesh) {
  const MeshPtr grid = mesh({{"x", 2}, {"y", 3}}), other = mesh({{"u", 6}}, {3, 0, 5, 1, 4, 2});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(grid->device_at(i), other->device_at(device_in(*grid, *other, i)));
    EXPECT_EQ(device_in(*other, *grid, device_in(*grid, *other, i)), i);
  }
  EXPECT_TRUE(are_over_same_devices(*grid, *other));
  EXPECT_FALSE(are_over_same_devices(*grid, *mesh({{"x", 2}})));
  EXPECT_FALSE(are_over_same_devices(*grid, *mesh({})));
}

}  // namespace
}  // namespace shardwise
