// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/device_tiers.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// "nvlink 2, infiniband 4"; a span is size*spacing, with "o" where it closes: "ici 4=[4*1o]".
std::string text_of(const TierCut& cut, const Hardware& hardware) {
  return join(cut, ", ", [&](const TierStage& stage) {
    std::string text = str(hardware.tiers[stage.tier].name, " ", stage.size);
    if (stage.sharers > 1) text += str("/", stage.sharers);
    if (stage.spans.empty()) return text;
    return str(text, "=[",
               join(stage.spans, " ",
                    [](const TorusSpan& span) { return str(span.size, "*", span.spacing, span.closes ? "o" : ""); }),
               "]");
  });
}

std::string cut_text(std::string_view hardware, std::vector<MeshAxis> axes, std::string_view wanted, Dims ids = {}) {
  const Mesh mesh("mesh", std::move(axes), std::move(ids));
  AxisList list;
  for (const char axis : wanted) list.push_back(full_axis(mesh, *mesh.find_axis(std::string(1, axis))));
  const HardwarePtr found = builtin_hardware(hardware);
  return text_of(DeviceTiers(mesh, *found).cut(list), *found);
}

TEST(DeviceTiers, CutsAxesAtTheNode) {
  const std::vector<MeshAxis> axes{{"d", 8}, {"m", 4}};
  EXPECT_EQ(cut_text("h100_sxm", axes, "m"), "nvlink 4");
  EXPECT_EQ(cut_text("h100_sxm", axes, "d"), "nvlink 2, infiniband 4");
  EXPECT_EQ(cut_text("h100_sxm", axes, "dm"), "nvlink 8, infiniband 4");
  EXPECT_EQ(cut_text("h100_sxm", axes, "md"), "nvlink 8, infiniband 4");
  EXPECT_EQ(cut_text("gb200_nvl72", axes, "dm"), "nvlink 32");
}

TEST(DeviceTiers, CutsSubAxes) {
  const Mesh mesh("mesh", {{"x", 64}});
  const HardwarePtr h100 = builtin_hardware("h100_sxm");
  const DeviceTiers tiers(mesh, *h100);
  EXPECT_EQ(text_of(tiers.cut(AxisList{{0, 1, 4}}), *h100), "infiniband 4");
  EXPECT_EQ(text_of(tiers.cut(AxisList{{0, 4, 16}}), *h100), "nvlink 8, infiniband 2");
  EXPECT_EQ(text_of(tiers.cut(AxisList{{0, 16, 4}}), *h100), "nvlink 4");
  EXPECT_EQ(text_of(tiers.cut(AxisList{{0, 8, 2}, {0, 32, 2}}), *h100), "nvlink 4");
  EXPECT_EQ(text_of(tiers.cut(AxisList{}), *h100), "");
}

TEST(DeviceTiers, CountsAsInsideWhatIsInsideForAllGroups) {
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 3}}, "x"), "nvlink 3");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 12}}, "x"), "nvlink 4, infiniband 3");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 17}}, "x"), "infiniband 17");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 4}, {"y", 6}}, "y"), "nvlink 2, infiniband 3");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 4}, {"y", 6}}, "x"), "infiniband 4");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", 6}, {"y", 4}}, "x"), "nvlink 2, infiniband 3");
}

TEST(DeviceTiers, AlignDimsOfASliceWithAxes) {
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 8}, {"y", 4}}, "y"), "ici 4=[4*1]");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 4}, {"y", 8}}, "y"), "ici 8=[8*1]");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 16}, {"y", 16}}, "y"), "ici 16=[16*1o]");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 16}, {"y", 16}}, "xy"), "ici 256=[16*1o 16*1o]");
  EXPECT_EQ(cut_text("tpu_v4", {{"x", 4}, {"y", 4}, {"z", 4}}, "xz"), "ici 16=[4*1o 4*1o]");
  EXPECT_EQ(cut_text("tpu_v5p", {{"d", 8}, {"m", 32}}, "m"), "ici 32=[4*1o 8*1o]");
}

TEST(DeviceTiers, CutsAxesInsideADim) {
  const std::vector<MeshAxis> axes{{"x", 4}, {"y", 4}, {"z", 16}};  // a slice of 16 x 16
  EXPECT_EQ(cut_text("tpu_v5e", axes, "y"), "ici 4=[4*1]");
  EXPECT_EQ(cut_text("tpu_v5e", axes, "x"), "ici 4=[4*4o]");
  EXPECT_EQ(cut_text("tpu_v5e", axes, "xy"), "ici 16=[16*1o]");
  EXPECT_EQ(cut_text("tpu_v5e", axes, "yz"), "ici 64=[16*1o 4*1]");
  // Two parts of one dim.
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 2}, {"y", 4}, {"w", 2}, {"z", 16}}, "xw"), "ici 2=[2*1], ici 2=[2*8o]");
}

TEST(DeviceTiers, OfASliceWithAShortDimHaveNoWraparound) {
  EXPECT_EQ(cut_text("tpu_v4", {{"x", 2}, {"y", 2}, {"z", 4}}, "z"), "ici 4=[4*1]");  // 2 x 2 x 4
  EXPECT_EQ(cut_text("tpu_v5p", {{"x", 2}, {"y", 4}, {"z", 4}}, "z"), "ici 4=[4*1]");
  EXPECT_EQ(cut_text("tpu_v4", {{"x", 4}, {"y", 4}, {"z", 4}}, "z"), "ici 4=[4*1o]");
  EXPECT_EQ(cut_text("tpu_v5p", {{"x", 4}, {"y", 4}, {"z", 8}}, "z"), "ici 8=[8*1o]");
}

TEST(DeviceTiers, SharesTheLinksOfAChip) {
  EXPECT_EQ(cut_text("tpu_v3", {{"x", 16}}, "x"), "chip 2, ici 8/2=[2*1o 4*1o]");
  EXPECT_EQ(cut_text("tpu_v3", {{"x", 8}, {"c", 2}}, "x"), "ici 8/2=[2*1o 4*1o]");
}

TEST(DeviceTiers, GoBeyondAPod) {
  EXPECT_EQ(cut_text("tpu_v5e", {{"p", 2}, {"x", 256}}, "px"), "ici 256=[16*1o 16*1o], dcn 2");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 17}}, "x"), "ici 17=[17*1]");
  EXPECT_EQ(cut_text("h100_sxm", {{"x", int64_t{1} << 40}, {"y", int64_t{1} << 22}}, "x"),
            str("infiniband ", int64_t{1} << 40));
}

TEST(DeviceTiers, FollowDeviceIds) {
  const std::vector<MeshAxis> axes{{"d", 2}, {"m", 8}};
  Dims swapped;  // "m" is major
  for (int64_t d = 0; d < 2; ++d) {
    for (int64_t m = 0; m < 8; ++m) swapped.push_back(m * 2 + d);
  }
  EXPECT_EQ(cut_text("h100_sxm", axes, "m"), "nvlink 8");
  EXPECT_EQ(cut_text("h100_sxm", axes, "m", swapped), "nvlink 4, infiniband 2");
  EXPECT_EQ(cut_text("h100_sxm", axes, "d", swapped), "nvlink 2");
  EXPECT_EQ(cut_text("h100_sxm", axes, "dm", swapped), "nvlink 8, infiniband 2");
  Dims backwards(16);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  EXPECT_EQ(cut_text("h100_sxm", axes, "m", backwards), "nvlink 8");
  // A ring through the first node, another through the second: no fixed distance, but each stays inside.
  EXPECT_EQ(cut_text("h100_sxm", axes, "m", {0, 3, 1, 2, 7, 5, 4, 6, 15, 8, 14, 9, 13, 10, 12, 11}), "nvlink 8");
  EXPECT_EQ(cut_text("h100_sxm", axes, "d", {0, 3, 1, 2, 7, 5, 4, 6, 15, 8, 14, 9, 13, 10, 12, 11}), "infiniband 2");
}

TEST(DeviceTiers, FollowDeviceIdsOnATorus) {
  Dims swapped;
  for (int64_t x = 0; x < 4; ++x) {
    for (int64_t y = 0; y < 8; ++y) swapped.push_back(y * 4 + x);
  }
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 4}, {"y", 8}}, "y", swapped), "ici 8=[8*1]");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 4}, {"y", 8}}, "x", swapped), "ici 4=[4*1]");
  EXPECT_EQ(cut_text("tpu_v5e", {{"x", 4}, {"w", 2}, {"y", 4}}, "w", swapped), "ici 2=[2*4]");
}

TEST(DeviceTiers, AreKept) {
  const HardwarePtr h100 = builtin_hardware("h100_sxm");
  const Mesh mesh("mesh", {{"x", 8}}), same("mesh", {{"x", 8}}), other("mesh", {{"x", 4}});
  EXPECT_EQ(device_tiers(mesh, *h100), device_tiers(same, *h100));
  EXPECT_NE(device_tiers(mesh, *h100), device_tiers(other, *h100));
  EXPECT_NE(device_tiers(mesh, *h100), device_tiers(mesh, *builtin_hardware("h200")));
}

TEST(DeviceTiers, RefuseMoreDevicesThanTheTiersJoin) {
  Hardware node = *builtin_hardware("h100_sxm");
  node.tiers.pop_back();
  EXPECT_NO_THROW(DeviceTiers(Mesh("mesh", {{"x", 8}}), node));
  try {
    DeviceTiers(Mesh("mesh", {{"x", 16}}), node);
    FAIL();
  } catch (const MeshError& error) {
    EXPECT_EQ(
        error.message(),
        "hardware h100_sxm: its tiers of links join at most 8 devices, got 16 devices of @mesh; add a tier without "
        "size to the file");
  }
}

// Device by device: which tier joins two ids, by division alone.
size_t tier_of_pair(int64_t a, int64_t b) { return a / 8 == b / 8 ? 0 : 1; }

// The number of members of a device's group inside its node is what the cut says, or more where nodes are not full.
TEST(DeviceTiers, AgreeWithCountingForRandomOrders) {
  std::mt19937 random(5);
  const HardwarePtr h100 = builtin_hardware("h100_sxm");
  for (int round = 0; round < 300; ++round) {
    std::vector<MeshAxis> axes{{"x", 2}, {"y", 4}, {"z", 2}, {"w", 2}};
    Dims ids(32);
    // A row-major order of the axes in another order.
    std::vector<int> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t i = 0; i < 32; ++i) {
      const int64_t at[] = {i / 16, i / 4 % 4, i / 2 % 2, i % 2};
      int64_t id = 0;
      for (const int axis : order) id = id * axes[static_cast<size_t>(axis)].size + at[axis];
      ids[static_cast<size_t>(i)] = id;
    }
    const Mesh mesh("mesh", axes, ids);
    AxisList wanted;
    for (int axis = 0; axis < 4; ++axis) {
      if (random() % 2 == 0) wanted.push_back(full_axis(mesh, axis));
    }
    int64_t inside = 1, all = 1;
    for (const TierStage& stage : DeviceTiers(mesh, *h100).cut(wanted)) {
      (stage.tier == 0 ? inside : all) *= stage.size;
    }
    EXPECT_EQ(inside * all, product(wanted));
    for (int64_t device = 0; device < 32; ++device) {
      int64_t same = 0;
      for (int64_t other = 0; other < 32; ++other) {
        bool is_member = true;
        for (int axis = 0; axis < 4; ++axis) {
          const int64_t step = mesh.axis_stride(axis), size = mesh.axis_size(axis);
          const bool varies = std::ranges::any_of(wanted, [&](const AxisRef& ref) { return ref.axis == axis; });
          is_member = is_member && (varies || device / step % size == other / step % size);
        }
        same += is_member && tier_of_pair(mesh.device_at(device), mesh.device_at(other)) == 0 ? 1 : 0;
      }
      ASSERT_EQ(same, inside) << round;
    }
  }
}

}  // namespace
}  // namespace shardwise
