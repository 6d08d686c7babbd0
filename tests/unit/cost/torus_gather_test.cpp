// SPDX-License-Identifier: Apache-2.0
//
// Gathers and reductions on tori against the bounds of cuts.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "cost/torus_links.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// The groups of some axes of a mesh on a torus, whose dims the axes divide.
struct TorusGroups {
  Links links;
  bool closes;
  std::vector<MeshAxis> axes;

  static TorusGroups random(std::mt19937_64& random, int64_t most) {
    // By falling size: the order in which a mesh without ids lies on a torus.
    constexpr int64_t kDims[] = {6, 4, 3, 2, 8, 9, 12, 16, 5};
    Dims shape{kDims[random() % 9]};
    while (random() % 3 != 0 && shape.size() < 3) {
      const int64_t dim = kDims[random() % 9];
      if (dim <= shape.back() && element_count(shape) * dim <= most) shape.push_back(dim);
    }
    std::vector<MeshAxis> axes;
    const auto add = [&](int64_t size) {
      if (size > 1) axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size});
    };
    for (int64_t dim : shape) {
      for (int64_t part = 2; part < dim; ++part) {
        if (dim % part != 0 || random() % 2 == 0) continue;
        add(part);
        dim /= part;
      }
      add(dim);
    }
    const bool closes = random() % 2 == 0;
    return {Links(shape, closes), closes, axes};
  }
  Mesh mesh() const { return Mesh("mesh", axes); }
  AxisList some_axes(std::mt19937_64& random) const {
    AxisList list;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (random() % 2 == 0) list.push_back(full_axis(mesh(), static_cast<int>(axis)));
    }
    return list;
  }
  CollectiveTime time(TransferKind kind, const AxisList& list, int64_t bytes) const {
    const Hardware hardware = torus_of(links, closes);
    return collective_time(kind, bytes, DeviceTiers(mesh(), hardware).cut(list), hardware);
  }
};

// Shards of 1 (gather) or sums of 1 (reduction) that must enter each set of units, over the links into the set.
struct CutBounds {
  double gather = 0, reduction = 0;
};

CutBounds cut_bounds(const TorusGroups& torus, const AxisList& axes) {
  const Links& links = torus.links;
  std::vector<int64_t> group_of(static_cast<size_t>(links.count()));
  for (const auto& [first, members] : groups_of(torus.mesh(), axes)) {
    for (const int64_t member : members) group_of[static_cast<size_t>(member)] = first;
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;  // linked
  for (int64_t unit = 0; unit < links.count(); ++unit) {
    for (size_t dim = 0; dim < links.shape().size(); ++dim) {
      for (const int64_t side : {-1, 1}) {
        if (const auto to = links.next(unit, dim, side)) pairs.emplace_back(unit, *to);
      }
    }
  }
  CutBounds most;
  for (int64_t set = 1; set + 1 < int64_t{1} << links.count(); ++set) {
    int64_t into = 0, missing = 0, sums = 0;
    for (const auto& [from, to] : pairs) into += (set >> from & 1) == 0 && (set >> to & 1) != 0 ? 1 : 0;
    std::vector<int64_t> inside(group_of.size()), outside(group_of.size());
    for (int64_t unit = 0; unit < links.count(); ++unit) {
      ++((set >> unit & 1) != 0 ? inside : outside)[static_cast<size_t>(group_of[static_cast<size_t>(unit)])];
    }
    for (size_t group = 0; group < inside.size(); ++group) {
      if (inside[group] == 0 || outside[group] == 0) continue;
      missing += outside[group];
      ++sums;
    }
    most.gather = std::max(most.gather, static_cast<double>(missing) / static_cast<double>(into));
    most.reduction = std::max(most.reduction, static_cast<double>(sums) / static_cast<double>(into));
  }
  return most;
}

TEST(Gather, OfAnyGroupsIsNotBelowTheBoundOfAnyCut) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 1'000; ++round) {
    const TorusGroups torus = TorusGroups::random(random, 12);
    if (torus.links.count() > 12) continue;
    const AxisList axes = torus.some_axes(random);
    const int64_t members = product(axes);
    if (members == 1) continue;
    const CutBounds bounds = cut_bounds(torus, axes);
    const auto shards = [&](TransferKind kind, int64_t bytes) {
      const CollectiveTime time = torus.time(kind, axes, bytes);
      EXPECT_GE(time.total(), time.overlap());
      return static_cast<double>(time.total()) / kShard + 1e-5;
    };
    const std::string what = str(torus.links.shape(), torus.closes, axis_list_text(torus.mesh(), axes));
    EXPECT_GE(shards(TransferKind::kAllGather, kShard), bounds.gather) << what;
    EXPECT_GE(shards(TransferKind::kReduceScatter, kShard * members), bounds.gather) << what;
    EXPECT_GE(shards(TransferKind::kAllReduce, kShard), bounds.reduction) << what;
  }
}

// From the same shard, which a device starts from (gather) or ends with (reduction).
TEST(Gather, OfMoreAxesIsNeverFaster) {
  std::mt19937_64 random(19);
  for (int round = 0; round < 3'000; ++round) {
    const TorusGroups torus = TorusGroups::random(random, 2'000);
    const AxisList more = torus.some_axes(random);
    AxisList axes;
    for (const AxisRef& axis : more) {
      if (random() % 2 == 0) axes.push_back(axis);
    }
    for (const TransferKind kind : {TransferKind::kAllGather, TransferKind::kReduceScatter, TransferKind::kAllReduce}) {
      const bool is_gather = kind == TransferKind::kAllGather;
      const CollectiveTime time = torus.time(kind, axes, is_gather ? kShard : kShard * product(axes));
      const CollectiveTime longer = torus.time(kind, more, is_gather ? kShard : kShard * product(more));
      const std::string what = str(torus.links.shape(), torus.closes, axis_list_text(torus.mesh(), axes), " ",
                                   axis_list_text(torus.mesh(), more));
      ASSERT_LE(time.total(), longer.total()) << what;
      ASSERT_LE(time.latency_ps, longer.latency_ps) << what;
    }
  }
}

// A dim that 16 groups share is slower than all dims together.
TEST(Gather, WaitsForTheSlowestDim) {
  const Links links({32, 2}, false);
  const std::vector<MeshAxis> axes{{"b", 2}, {"c", 16}, {"a", 2}};
  const auto time = [&](TransferKind kind, std::string_view over, int64_t bytes) {
    return time_of(torus_of(links, false), axes, over, kind, bytes);
  };
  EXPECT_EQ(time(TransferKind::kAllGather, "a", kShard).total(), kShard);
  EXPECT_EQ(time(TransferKind::kAllGather, "b", kShard).total(), 16 * kShard);
  EXPECT_EQ(time(TransferKind::kAllGather, "ba", kShard).total(), 16 * kShard);
  EXPECT_EQ(time(TransferKind::kAllGather, "ba", kShard).overlap(), 16 * kShard);
  EXPECT_EQ(time(TransferKind::kReduceScatter, "ba", 4 * kShard).total(), 16 * kShard);
  EXPECT_EQ(time(TransferKind::kAllReduce, "ba", 4 * kShard).total(), 32 * kShard);
}

}  // namespace
}  // namespace shardwise
