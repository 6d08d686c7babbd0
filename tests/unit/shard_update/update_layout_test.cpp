// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/update_layout.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

struct UpdateLayoutCase {
  Dims shape;
  std::string own;  // "": replicated
  std::string wanted;
  int64_t group;
  double padding;
  std::vector<bool> cut = {};
};

UpdateLayout layout_on(std::vector<MeshAxis> axes, const UpdateLayoutCase& row) {
  const auto mesh = std::make_shared<const Mesh>("m", std::move(axes));
  const TensorType type{DType::kF32, row.shape};
  const TensorSharding own =
      row.own.empty() ? TensorSharding::fully_replicated(mesh, type.ndim()) : parse_short_sharding(row.own, mesh);
  return choose_update_layout(type, own, {full_axis(*mesh, 0)}, row.cut);
}

void expect_row(std::vector<MeshAxis> axes, const UpdateLayoutCase& row) {
  SCOPED_TRACE(row.wanted);
  const UpdateLayout layout = layout_on(std::move(axes), row);
  EXPECT_EQ(layout.sharding ? short_text(*layout.sharding) : "whole", row.wanted);
  EXPECT_EQ(layout.group, row.group);
  EXPECT_DOUBLE_EQ(layout.padding, row.padding);
}

TEST(UpdateLayout, TheDimThatPadsLeast) {
  expect_row({{"d", 8}}, {{256, 128}, "", R"([{"d"}, {}])", 8, 1.0});
  expect_row({{"d", 8}}, {{3, 3, 256, 256}, "", R"([{}, {}, {"d"}, {}])", 8, 1.0});
  expect_row({{"d", 10}}, {{3, 3, 256, 256}, "", R"([{}, {}, {"d"}, {}])", 10, 260.0 / 256});
  expect_row({{"d", 8}}, {{17, 40}, "", R"([{}, {"d"}])", 8, 1.0});
}

TEST(UpdateLayout, SeveralDimsInPlaceOfAMerge) {
  expect_row({{"d", 48}}, {{3, 5, 64}, "", R"([{"d":(16)3}, {}, {"d":(1)16}])", 48, 1.0});
  expect_row({{"d", 2048}}, {{1024, 1024}, "", R"([{"d":(1)1024}, {"d":(1024)2}])", 2048, 1.0});
}

TEST(UpdateLayout, LayersThatALoopReadsOneByOneAreNotSplit) {
  const std::vector<bool> layers = {true, false, false};
  expect_row({{"d", 8}}, {{80, 64, 32}, "", R"([{}, {"d"}, {}])", 8, 1.0, layers});
  expect_row({{"d", 8}}, {{80, 9, 32}, "", R"([{}, {}, {"d"}])", 8, 1.0, layers});
  expect_row({{"d", 8}}, {{80, 7, 32}, "", R"([{}, {"d"}, {}])", 8, 8.0 / 7, {true, false, true}});
  // No other dim takes the axis.
  expect_row({{"d", 8}}, {{80, 3, 5}, "", R"([{"d"}, {}, {}])", 8, 1.0, layers});
  expect_row({{"d", 8}}, {{80, 64}, "", R"([{}, {"d"}])", 8, 1.0, {true}});
}

TEST(UpdateLayout, AModelAxisKeepsItsDim) {
  expect_row({{"d", 4}, {"m", 2}}, {{64, 64}, R"([{"m"}, {}])", R"([{"m"}, {"d"}])", 4, 1.0});
  expect_row({{"d", 4}, {"m", 2}}, {{512}, R"([{"m"}])", R"([{"m", "d"}])", 4, 1.0});
}

TEST(UpdateLayout, ASmallerGroupOrNone) {
  expect_row({{"d", 8}}, {{9, 9, 9}, "", R"([{"d":(2)2}, {"d":(4)2}, {}])", 4, 100.0 / 81});
  expect_row({{"d", 2048}}, {{1024}, "", R"([{"d":(32)64}])", 64, 1.0});
  expect_row({{"d", 8}}, {{13}, "", "whole", 1, 1.0});
  expect_row({{"d", 8}}, {{1}, "", "whole", 1, 1.0});
  expect_row({{"d", 8}}, {{0, 64}, "", "whole", 1, 1.0});
  EXPECT_EQ(layout_on({{"d", 8}}, {{13}, "", "", 1, 1}).reason, "it has 52 bytes");
  EXPECT_EQ(layout_on({{"d", 2048}}, {{1024}, "", "", 1, 1}).reason, "a shard of 2048 devices would have 4 bytes");
}

}  // namespace
}  // namespace shardwise
