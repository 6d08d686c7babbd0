// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/placement.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/mesh/tiling.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using testing::message_of;

MeshPtr mesh_of(std::vector<MeshAxis> axes, Dims device_ids = {}) {
  return std::make_shared<const Mesh>("mesh", std::move(axes), std::move(device_ids));
}

const MeshPtr kMesh = mesh_of({{"x", 4}, {"y", 2}});

Placement parsed(std::string_view text) {
  SdyCursor cursor(text);
  cursor.subject = "placement text";
  Placement placement = parse_placement(cursor, [](std::string_view name) { return name == "mesh" ? kMesh : nullptr; });
  cursor.expect_end();
  return placement;
}

Placement placed(std::string_view sharding, DimSpan shape) {
  return placement_of(parse_short_sharding(sharding, kMesh), shape);
}

// The example of the header.
TEST(Placement, SeventeenRowsOnFourByTwoDevices) {
  const Dims shape{17};
  const Placement fine = placed(R"([{"x", "y"}])", shape);
  EXPECT_EQ(text(fine), R"(#shardwise.placement<@mesh, [{"x", "y"}: 3]>)");
  const Placement coarse = placed(R"([{"x"}])", shape);
  EXPECT_EQ(text(coarse), R"(#shardwise.placement<@mesh, [{"x"}: 5]>)");
  EXPECT_TRUE(coarse.has_default_blocks(shape));
  const Placement gathered = parsed(R"(<@mesh, [{"x"}: 6]>)");
  EXPECT_FALSE(gathered.has_default_blocks(shape));
  EXPECT_NE(gathered, coarse);
  EXPECT_EQ(sharding_of(gathered), sharding_of(coarse));
  // The shards along x are those along x and y, in pairs.
  for (int64_t device = 0; device < 8; ++device) {
    const int64_t first = device / 2 * 2;
    const LocalSlice whole = slice_of(sharding_of(gathered), shape, device, gathered.local_shape());
    const LocalSlice a = slice_of(sharding_of(fine), shape, first);
    const LocalSlice b = slice_of(sharding_of(fine), shape, first + 1);
    EXPECT_EQ(whole.start, a.start);
    EXPECT_EQ(whole.size[0], a.size[0] + b.size[0]);
  }
}

TEST(Placement, DropsWhatOnlyAnnotationsKnow) {
  const Dims shape{8, 6, 4};
  const Placement placement = placed(R"([{"x":(1)2, ?}p1, {}, {?}], replicated={"x":(2)2}, unreduced={"y"})", shape);
  EXPECT_EQ(text(placement), R"(#shardwise.placement<@mesh, [{"x":(1)2}: 4, {}: 6, {}: 4], unreduced={"y"}>)");
  EXPECT_EQ(short_text(sharding_of(placement)), R"([{"x":(1)2}, {}, {}], unreduced={"y"})");
  EXPECT_EQ(placement.local_shape(), (Dims{4, 6, 4}));
  EXPECT_EQ(placement.shard_count(0), 2);
  EXPECT_EQ(placement.dim_axes(), (std::vector<AxisList>{{{0, 1, 2}}, {}, {}}));
}

TEST(Placement, OfOneDeviceIsWhole) {
  const MeshPtr one = mesh_of({}, {3});
  const TensorSharding sharding{.mesh = one, .dims = {}, .replicated = {}, .unreduced = {}};
  EXPECT_EQ(placement_of(sharding, Dims{5, 2}), replicated_placement(one, Dims{5, 2}));
}

TEST(Placement, TextIsReadBack) {
  for (const std::string_view one : {R"(#shardwise.placement<@mesh, []>)", R"(#shardwise.placement<@mesh, [{}: 0]>)",
                                     R"(#shardwise.placement<@mesh, [{"y", "x":(2)2}: 6, {}: 4]>)",
                                     R"(#shardwise.placement<@mesh, [{}: 1], unreduced=max{"x", "y"}>)",
                                     R"(#shardwise.placement<@mesh, [{}: 1], unreduced=owned{"x"}>)",
                                     R"(#shardwise.placement<mesh<["a"=2]>, [{}: 6], unreduced={"a"}>)"}) {
    EXPECT_EQ(text(parsed(one)), one);
  }
  EXPECT_EQ(parsed(R"(<@mesh, [{}: 1], unreduced=sum{"x"}>)"), parsed(R"(<@mesh, [{}: 1], unreduced={"x"}>)"));
}

TEST(Placement, TextErrorsHaveAPlace) {
  EXPECT_EQ(message_of<ParseError>([] { parsed(R"(<@mesh, [{"x"}]>)"); }),
            "1:15: placement text: expected ':' before the block of a dim, got \"]\"");
  EXPECT_EQ(message_of<ParseError>([] { parsed(R"(<@other, []>)"); }),
            "1:2: placement text: a mesh must be declared, got @other; declare it, or write mesh<[...]>");
}

TEST(Placement, EqualPlacementsHaveEqualHashes) {
  const std::vector<Placement> all{
      parsed(R"(<@mesh, [{"x"}: 5]>)"),
      parsed(R"(<@mesh, [{"x"}: 6]>)"),
      parsed(R"(<@mesh, [{"y"}: 5]>)"),
      parsed(R"(<@mesh, [{"x"}: 5], unreduced={"y"}>)"),
      parsed(R"(<@mesh, [{"x"}: 5], unreduced=max{"y"}>)"),
      parsed(R"(<@mesh, [{"x"}: 5], unreduced=owned{"y"}>)"),
      parsed(R"(<@mesh, [{"x"}: 5, {}: 5]>)"),
      parsed(R"(<mesh<["x"=4, "y"=2]>, [{"x"}: 5]>)"),
  };
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < all.size(); ++b) {
      EXPECT_EQ(all[a] == all[b], a == b);
      EXPECT_EQ(hash_value(all[a]) == hash_value(all[b]), a == b);
    }
    EXPECT_EQ(hash_value(Placement(all[a])), hash_value(all[a]));
  }
}

TEST(Placement, OnlySumsAreOwned) {
  Placement placement = parsed(R"(<@mesh, [{}: 17], unreduced=owned{"x"}>)");
  EXPECT_EQ(placement.reducer, Reducer::kSum);
  EXPECT_EQ(message_of<ShardingError>([&] { verify(placement, Dims{17}); }), "no error");
  placement.reducer = Reducer::kMax;
  EXPECT_EQ(message_of<ShardingError>([&] { verify(placement, Dims{17}); }),
            "placement: an owned value must be an unreduced sum, got max; leave out that it is owned");
}

TEST(Placement, IsVerifiedAgainstTheShape) {
  EXPECT_EQ(message_of<ShardingError>([] { verify(parsed(R"(<@mesh, [{"x"}: 6]>)"), Dims{17}); }), "no error");
  EXPECT_EQ(message_of<ShardingError>([] { verify(parsed(R"(<@mesh, [{"x"}: 4]>)"), Dims{17}); }),
            "sharding: 4 blocks must cover dim 0 of size 17, got blocks of 4; use at least 5");
  EXPECT_EQ(
      message_of<ShardingError>([] { verify(parsed(R"(<@mesh, [{"x"}: 5], unreduced={"x"}>)"), Dims{17}); }),
      R"(sharding: an axis must be used once, got "x" again in unreduced; use another axis, or split this one into sub-axes)");
}

}  // namespace
}  // namespace shardwise
