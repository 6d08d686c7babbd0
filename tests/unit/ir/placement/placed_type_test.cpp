// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/placement/placed_type.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

const MeshPtr kLine = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}}, Dims{});

PlacedType placed(Context& context, std::string_view text, const Dims& shape) {
  SdyCursor cursor(text);
  const Placement placement = parse_placement(cursor, [](std::string_view) { return kLine; });
  return {context.tensor(DType::kF32, shape), context.intern(placement)};
}

// The example of the header.
TEST(LayoutView, SeventeenRowsOnFourDevices) {
  Context context;
  const PlacedType type = placed(context, R"(<@mesh, [{"x"}: 5, {}: 4]>)", {17, 4});
  const LayoutView layout(context, type);
  EXPECT_EQ(layout.ndim(), 2u);
  EXPECT_EQ(layout.dim(0), (DimLayout{.size = 17, .axes = {full_axis(*kLine, 0)}, .shards = 4, .block = 5}));
  EXPECT_EQ(layout.dim(1), (DimLayout{.size = 4, .axes = {}, .shards = 1, .block = 4}));
  EXPECT_EQ(layout.dims(), (std::vector{layout.dim(0), layout.dim(1)}));
  EXPECT_EQ(layout.local_shape(), (Dims{5, 4}));
  EXPECT_TRUE(layout.is_uneven());
  EXPECT_TRUE(layout.unreduced().empty());
  EXPECT_EQ(layout.reducer(), Reducer::kNone);
  EXPECT_EQ(context.type(local_type(context, type)).text(), "tensor<5x4xf32>");
}

TEST(LayoutView, BlocksThatAreTooLargeArePadded) {
  Context context;
  EXPECT_FALSE(LayoutView(context, placed(context, R"(<@mesh, [{"x"}: 4]>)", {16})).is_uneven());
  EXPECT_TRUE(LayoutView(context, placed(context, R"(<@mesh, [{"x"}: 5]>)", {16})).is_uneven());
}

TEST(LayoutView, AddendsHaveTheirReducer) {
  Context context;
  const LayoutView layout(context, placed(context, R"(<@mesh, [{"x"}: 2], unreduced=max{"y"}>)", {8}));
  EXPECT_EQ(layout.unreduced(), AxisList{full_axis(*kLine, 1)});
  EXPECT_EQ(layout.reducer(), Reducer::kMax);
}

TEST(LayoutView, OwnedElementsAreThoseOfASum) {
  Context context;
  const LayoutView layout(context, placed(context, R"(<@mesh, [{"x"}: 2], unreduced=owned{"y"}>)", {8}));
  EXPECT_TRUE(layout.is_owned());
  EXPECT_EQ(layout.reducer(), Reducer::kSum);
  EXPECT_FALSE(LayoutView(context, placed(context, R"(<@mesh, [{"x"}: 2], unreduced={"y"}>)", {8})).is_owned());
}

TEST(LayoutView, WithoutAPlacementAValueIsWhole) {
  Context context;
  const PlacedType type{.type = context.tensor(DType::kF32, Dims{17, 4})};
  const LayoutView layout(context, type);
  EXPECT_EQ(layout.dim(0), (DimLayout{.size = 17, .axes = {}, .shards = 1, .block = 17}));
  EXPECT_EQ(layout.local_shape(), (Dims{17, 4}));
  EXPECT_FALSE(layout.is_uneven());
  EXPECT_TRUE(layout.axes(1).empty());
  EXPECT_EQ(local_type(context, type), type.type);
}

}  // namespace
}  // namespace shardwise
