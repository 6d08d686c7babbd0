// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/collective_time.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cost/torus_links.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr TransferKind kKinds[] = {TransferKind::kAllGather, TransferKind::kReduceScatter, TransferKind::kAllReduce,
                                   TransferKind::kAllToAll,  TransferKind::kShift,         TransferKind::kPermute,
                                   TransferKind::kExchange,  TransferKind::kChain};

double microseconds(int64_t ps) { return static_cast<double>(ps) / 1e6; }

// ---- the scaling book ----------------------------------------------------------------------------------------------

// The TPU v5e of the book's question, whose axis of 4 it first takes for a ring.
Hardware closed_v5e() {
  Hardware hardware = *builtin_hardware("tpu_v5e");
  hardware.tiers[0].wrap_length = 0;
  return hardware;
}
// DGX SuperPod: 32 nodes under a leaf, 4 leaves under a spine, full bisection.
Hardware super_pod() {
  Hardware hardware = *builtin_hardware("h100_sxm");
  Tier leaf = hardware.tiers[1];
  leaf.size = 32;
  hardware.tiers.insert(hardware.tiers.begin() + 1, leaf);
  return hardware;
}

struct BookRow {
  std::string what;
  Hardware hardware;
  std::vector<MeshAxis> axes;
  std::string over;
  TransferKind kind;
  int64_t bytes;          // of the operand on one device
  double book, exact;     // microseconds without latency: what the book prints, and its formula with (n - 1) / n
  bool overlaps = false;  // the book counts the slowest tier only
};

std::vector<BookRow> book_rows() {
  const Hardware v5e = *builtin_hardware("tpu_v5e"), v4 = *builtin_hardware("tpu_v4");
  const Hardware h100 = *builtin_hardware("h100_sxm");
  using enum TransferKind;
  const std::vector<MeshAxis> grid{{"x", 8}, {"y", 4}}, cube{{"x", 4}, {"y", 4}, {"z", 4}};
  const double whole = 536'870'912;  // 512 MiB
  return {
      {"v5e 8x4, [2048, 8192] bf16 over y, a ring", closed_v5e(), grid, "y", kAllGather, 1 << 23, 377, 279.6},
      {"v5e 8x4, the same, a line", v5e, grid, "y", kAllGather, 1 << 23, 560, 559.2},
      {"v4 4x4x4, [1024, 4096/4] over x", v4, cube, "x", kAllGather, 1 << 19, 23, 17.48},
      {"v4 4x4x4, [1024, 4096] over x and y", v4, cube, "xy", kAllGather, 1 << 19, 46, 43.7},
      {"v4 4x4x4, sum of [1024, 4096] over z", v4, cube, "z", kAllReduce, 1 << 23, 190, 139.8},
      {"v5e 16x16, all-to-all of 32 MiB over y", v5e, {{"x", 16}, {"y", 16}}, "y", kAllToAll, 1 << 21, 93.2, 93.2},
      {"H100, 512 MiB in a node", h100, {{"x", 8}}, "x", kAllGather, 1 << 26, 1040, 1043.9},
      {"H100, [1024, 16384] bf16 in a node", h100, {{"x", 8}}, "x", kAllGather, 1 << 22, 75, 65.2},
      {"H100, 512 MiB in two nodes", h100, {{"x", 16}}, "x", kAllGather, 1 << 25, whole / 514e3, 1043.9, true},
      {"H100, 512 MiB in 32 nodes", super_pod(), {{"x", 256}}, "x", kAllGather, 1 << 21, whole / 413e3, 1300.2, true},
      {"H100, 512 MiB in 128 nodes", super_pod(), {{"x", 1024}}, "x", kAllGather, 1 << 19, whole / 413e3, 1300.2, true},
      {"H100, [8192, 32768] over 32 nodes, 8 inside",
       h100,
       {{"x", 32}, {"y", 8}},
       "x",
       kAllGather,
       1 << 21,
       1300.2,
       1300.2},
      {"H100, all-to-all of 512 MiB in a node", h100, {{"x", 8}}, "x", kAllToAll, 1 << 26, whole / 8 / 450e3, 130.5},
      {"H100, all-to-all of 512 MiB in two nodes", h100, {{"x", 16}}, "x", kAllToAll, 1 << 25, 335.5, 335.5, true},
  };
}

TEST(ScalingBook, AnswersAreExactRings) {
  for (const BookRow& row : book_rows()) {
    CollectiveTime time = time_of(row.hardware, row.axes, row.over, row.kind, row.bytes);
    time.latency_ps = 0;
    const double ours = microseconds(row.overlaps ? time.overlap() : time.total());
    EXPECT_NEAR(ours / row.exact, 1, 0.001) << row.what;
    // Where the book leaves (n - 1) / n out, it is above by n / (n - 1) of a small group.
    EXPECT_GE(row.book / ours, 0.98) << row.what;
    EXPECT_LE(row.book / ours, 4.0 / 3 * 1.02) << row.what;
    RecordProperty(row.what, float_text(ours));
  }
}

// One tier after the other, which an estimate takes, is above the book's slowest tier.
TEST(ScalingBook, TiersOneAfterTheOtherTakeTheirSum) {
  const CollectiveTime time =
      time_of(*builtin_hardware("h100_sxm"), {{"x", 16}}, "x", TransferKind::kAllGather, 1 << 25);
  ASSERT_EQ(time.tiers.size(), 2u);
  EXPECT_EQ(time.tiers[0].bytes, int64_t{448} << 20);
  EXPECT_EQ(time.tiers[1].bytes, int64_t{32} << 20);
  EXPECT_NEAR(microseconds(time.tiers[0].ps), 1043.9, 0.1);
  EXPECT_NEAR(microseconds(time.tiers[1].ps), 671.1, 0.1);
  EXPECT_EQ(time.total(), time.tiers[0].ps + time.tiers[1].ps + time.latency_ps);
}

TEST(ScalingBook, LatencyIsThatOfTheHops) {
  const std::vector<MeshAxis> cube{{"x", 4}, {"y", 4}, {"z", 4}};
  const auto latency = [&](std::string_view hardware, const std::vector<MeshAxis>& axes, std::string_view over,
                           TransferKind kind) {
    return microseconds(time_of(*builtin_hardware(hardware), axes, over, kind, 0).latency_ps);
  };
  EXPECT_EQ(latency("tpu_v4", cube, "x", TransferKind::kAllGather), 2);   // half a ring of 4
  EXPECT_EQ(latency("tpu_v4", cube, "xy", TransferKind::kAllGather), 4);  // the book's T_min sum |X| / 2
  EXPECT_EQ(latency("tpu_v4", cube, "z", TransferKind::kAllReduce), 4);
  EXPECT_EQ(latency("tpu_v5e", {{"x", 8}, {"y", 4}}, "y", TransferKind::kAllGather), 3);  // a line
  EXPECT_EQ(latency("tpu_v5e", {{"x", 4}, {"y", 4}}, "xy", TransferKind::kPermute), 6);   // corner to corner
  EXPECT_NEAR(latency("h100_sxm", {{"x", 8}}, "x", TransferKind::kAllGather), 3 * 0.6, 1e-9);
  EXPECT_NEAR(latency("h100_sxm", {{"x", 32}}, "x", TransferKind::kAllGather), 3 * 0.6 + 2 * 2.7, 1e-9);
  EXPECT_NEAR(latency("h100_sxm", {{"x", 8}}, "x", TransferKind::kAllToAll), 0.6, 1e-9);
  EXPECT_EQ(latency("default", {{"x", 64}}, "x", TransferKind::kAllReduce), 0);
}

// GShard, section 5.2: from 16 to 2048 partitions an all-to-all becomes 9 times as slow, from 128 to 2048 3.75 times,
// whatever its size; an all-reduce stays as it is.
TEST(GShard, AllToAllGrowsWithTheSideOfTheTorus) {
  for (const char* name : {"tpu_v3", "tpu_v3_50"}) {
    Hardware v3 = *builtin_hardware(name);
    v3.tiers[1].latency_ps = 0;
    const auto time = [&](TransferKind kind, int64_t cores, int64_t bytes) {
      return static_cast<double>(time_of(v3, {{"x", cores}}, "x", kind, bytes).total());
    };
    for (const int64_t bytes : {8 << 20, 32 << 20}) {
      const double growth = time(TransferKind::kAllToAll, 2048, bytes) / time(TransferKind::kAllToAll, 16, bytes);
      EXPECT_GT(growth, 7) << name;
      EXPECT_LT(growth, 11.5) << name;
      const double dispatch = time(TransferKind::kAllToAll, 2048, bytes) / time(TransferKind::kAllToAll, 128, bytes);
      EXPECT_GT(dispatch, 3.4) << name;
      EXPECT_LT(dispatch, 4.3) << name;
      EXPECT_LT(time(TransferKind::kAllReduce, 2048, bytes) / time(TransferKind::kAllReduce, 64, bytes), 1.3) << name;
    }
  }
}

// ---- against counting on links ---------------------------------------------------------------------------------------

// The best time of an all-gather of shards of 1 on any network (Edmonds): each set of units must receive what the others
// hold, over the links into the set.
double best_gather(const Links& links) {
  const int64_t count = links.count();
  double most = 0;
  for (int64_t set = 1; set + 1 < int64_t{1} << count; ++set) {
    int64_t into = 0, outside = 0;
    for (int64_t unit = 0; unit < count; ++unit) {
      if (set >> unit & 1) continue;
      ++outside;
      for (size_t dim = 0; dim < links.shape().size(); ++dim) {
        for (const int64_t side : {-1, 1}) {
          const auto to = links.next(unit, dim, side);
          into += to && (set >> *to & 1) ? 1 : 0;
        }
      }
    }
    most = std::max(most, static_cast<double>(outside) / static_cast<double>(into));
  }
  return most;
}

std::vector<MeshAxis> axes_of(const Dims& shape) {
  std::vector<MeshAxis> axes;
  for (size_t d = 0; d < shape.size(); ++d) axes.push_back({std::string(1, static_cast<char>('a' + d)), shape[d]});
  return axes;
}

TEST(AllGather, OnATorusIsTheBestOfAllAlgorithms) {
  for (const Dims& shape : {Dims{4}, {5}, {8}, {2}, {2, 2}, {3, 4}, {4, 4}, {2, 8}, {5, 3}, {2, 3, 2}, {14}}) {
    for (const bool closes : {false, true}) {
      const Links links(shape, closes);
      const std::string names = std::string("abc").substr(0, shape.size());
      const CollectiveTime time =
          time_of(torus_of(links, closes), axes_of(shape), names, TransferKind::kAllGather, kShard);
      EXPECT_NEAR(static_cast<double>(time.total()) / kShard, best_gather(links), 1e-5) << str(shape) << closes;
    }
  }
}

// The bytes that each link carries, if all messages take the shortest way, dim by dim, and half of them each way of two.
class Traffic {
 public:
  explicit Traffic(const Links& links) : links_(links) {}

  void send(int64_t from, int64_t to, double bytes) {
    for (size_t dim = 0; dim < links_.shape().size(); ++dim) {
      send_along(from, dim, links_.at(to, dim), bytes);
      from = links_.moved(from, dim, links_.at(to, dim));
    }
  }
  double most() const {
    double most = 0;
    for (const auto& [link, bytes] : loads_) most = std::max(most, bytes);
    return most;
  }

 private:
  void send_along(int64_t from, size_t dim, int64_t to, double bytes) {
    const auto up = steps(from, dim, to, 1), down = steps(from, dim, to, -1);
    if (up == down) {
      walk(from, dim, 1, up, bytes / 2);
      walk(from, dim, -1, down, bytes / 2);
    } else {
      walk(from, dim, up < down ? 1 : -1, std::min(up, down), bytes);
    }
  }
  // Links to the coordinate on one side; too many if it does not lead there.
  int64_t steps(int64_t from, size_t dim, int64_t to, int64_t side) const {
    int64_t count = 0;
    for (std::optional<int64_t> at = from; links_.at(*at, dim) != to; ++count) {
      at = links_.next(*at, dim, side);
      if (!at) return 1'000'000;
    }
    return count;
  }
  void walk(int64_t from, size_t dim, int64_t side, int64_t count, double bytes) {
    for (; count > 0; --count) {
      loads_[{from, static_cast<int64_t>(dim) * side * 2 + side}] += bytes;
      from = *links_.next(from, dim, side);
    }
  }

  const Links& links_;
  std::map<std::pair<int64_t, int64_t>, double> loads_;
};

TEST(AllToAll, OnATorusLoadsTheBusiestLink) {
  struct Case {
    Dims shape;
    std::vector<MeshAxis> axes;
    std::string over;
  };
  const Case cases[] = {
      {{4}, {{"x", 4}}, "x"},
      {{5}, {{"x", 5}}, "x"},
      {{2}, {{"x", 2}}, "x"},
      {{9}, {{"x", 9}}, "x"},
      {{4, 6}, {{"x", 4}, {"y", 6}}, "xy"},
      {{4, 6}, {{"x", 4}, {"y", 6}}, "x"},
      {{3, 4, 2}, {{"x", 3}, {"y", 4}, {"z", 2}}, "xyz"},
      {{3, 4, 2}, {{"x", 3}, {"y", 4}, {"z", 2}}, "xz"},
      {{12}, {{"x", 4}, {"y", 3}}, "x"},  // members 3 apart
      {{12}, {{"x", 4}, {"y", 3}}, "y"},  // neighbors, a line
      {{8}, {{"x", 2}, {"y", 4}}, "x"},   // opposite ends
      {{4, 8}, {{"x", 4}, {"y", 2}, {"z", 4}}, "xy"},
  };
  for (const Case& each : cases) {
    for (const bool closes : {false, true}) {
      const Links links(each.shape, closes);
      const Mesh mesh("mesh", each.axes);
      const AxisList axes = axes_named(mesh, each.over);
      Traffic traffic(links);
      for (const auto& [first, members] : groups_of(mesh, axes)) {
        for (const int64_t from : members) {
          for (const int64_t to : members) {
            traffic.send(from, to, static_cast<double>(kShard) / static_cast<double>(members.size()));
          }
        }
      }
      const CollectiveTime time =
          time_of(torus_of(links, closes), each.axes, each.over, TransferKind::kAllToAll, kShard);
      EXPECT_NEAR(static_cast<double>(time.total()) / traffic.most(), 1, 1e-5)
          << str(each.shape) << each.over << closes;
    }
  }
}

// Each member's shard passes each link of its way once, to both sides; the farthest of an even ring gets two halves.
double gather_by_steps(const Links& links, int64_t spacing, int64_t members, bool goes_around) {
  std::map<std::pair<int64_t, int64_t>, double> loads;
  for (int64_t group = 0; group < spacing; ++group) {
    for (int64_t m = 0; m < members; ++m) {
      for (const int64_t side : {-1, 1}) {
        const double reach =
            goes_around ? static_cast<double>(members - 1) / 2 : static_cast<double>(side > 0 ? members - 1 - m : m);
        int64_t at = group + m * spacing;
        for (double left = reach; left > 0; left -= 1) {
          for (int64_t step = 0; step < spacing; ++step) {
            loads[{at, side}] += std::min(1.0, left);
            at = *links.next(at, 0, side);
          }
        }
      }
    }
  }
  double most = 0;
  for (const auto& [link, load] : loads) most = std::max(most, load);
  return most;
}

TEST(AllGather, OfAlternatingGroupsSharesLinks) {
  for (const int64_t spacing : {1, 2, 3}) {
    for (const int64_t members : {2, 3, 4, 5}) {
      for (const bool closes : {false, true}) {
        const Links links({spacing * members}, closes);
        const bool goes_around = closes && spacing * members > 2;
        const CollectiveTime time =
            time_of(torus_of(links, closes), {{"x", members}, {"y", spacing}}, "x", TransferKind::kAllGather, kShard);
        EXPECT_NEAR(static_cast<double>(time.total()) / kShard, gather_by_steps(links, spacing, members, goes_around),
                    1e-5)
            << spacing << " " << members << closes;
      }
    }
  }
}

// Device by device: which shards it holds after each tier.
TEST(AllGather, OverTiersMovesEachShardOnce) {
  for (const auto& [nodes, inside] : {std::pair<int64_t, int64_t>{2, 8}, {3, 8}, {4, 4}, {8, 2}}) {
    const int64_t devices = nodes * inside;
    std::vector<std::set<int64_t>> held;
    for (int64_t device = 0; device < devices; ++device) held.push_back({device});
    // Phase 1: from the same place of other nodes; phase 2: from the same node.
    int64_t received[2] = {0, 0};
    for (const int phase : {0, 1}) {
      std::vector<std::set<int64_t>> now = held;
      for (int64_t to = 0; to < devices; ++to) {
        for (int64_t from = 0; from < devices; ++from) {
          const bool sends = phase == 0 ? from % inside == to % inside : from / inside == to / inside;
          if (sends)
            now[static_cast<size_t>(to)].insert(held[static_cast<size_t>(from)].begin(),
                                                held[static_cast<size_t>(from)].end());
        }
      }
      received[phase] = static_cast<int64_t>(now[0].size() - held[0].size());
      held = now;
    }
    EXPECT_EQ(held[0].size(), static_cast<size_t>(devices));
    Hardware hardware = *builtin_hardware("h100_sxm");
    hardware.tiers[0].size = inside;
    for (const auto& [kind, bytes] :
         {std::pair{TransferKind::kAllGather, kShard}, {TransferKind::kReduceScatter, kShard * devices}}) {
      const CollectiveTime time = time_of(hardware, {{"x", devices}}, "x", kind, bytes);
      EXPECT_EQ(time.tiers[1].bytes, received[0] * kShard);
      EXPECT_EQ(time.tiers[0].bytes, received[1] * kShard);
    }
  }
}

// ---- properties ------------------------------------------------------------------------------------------------------

std::vector<MeshAxis> random_axes(std::mt19937_64& random) {
  std::vector<MeshAxis> axes;
  for (const char* name : {"x", "y", "z"}) axes.push_back({name, static_cast<int64_t>(1 + random() % 20)});
  return axes;
}

TEST(CollectiveTime, IsMonotoneInBytesAndBandwidth) {
  std::mt19937_64 random(3);
  const std::vector<std::string> names = builtin_hardware_names();
  for (int round = 0; round < 3'000; ++round) {
    Hardware hardware = *builtin_hardware(names[random() % names.size()]);
    if (round % 3 == 0) {
      for (Tier& tier : hardware.tiers) tier.efficiency.points = {{1, 10'000}, {1 << 20, 300'000}, {1 << 28, 900'000}};
    }
    const Mesh mesh("mesh", random_axes(random));
    AxisList axes;
    for (int axis = 0; axis < 3; ++axis) {
      if (random() % 2 == 0) axes.push_back(full_axis(mesh, axis));
    }
    const TierCut cut = DeviceTiers(mesh, hardware).cut(axes);
    Hardware faster = hardware;
    Tier& tier = faster.tiers[random() % faster.tiers.size()];
    tier.bandwidth += static_cast<int64_t>(random() % 1'000'000'000'000);
    const auto bytes = static_cast<int64_t>(random() >> (1 + random() % 63));
    const auto more = static_cast<int64_t>(random() >> (1 + random() % 63));
    for (const TransferKind kind : kKinds) {
      const int64_t time = collective_time(kind, bytes, cut, hardware).total();
      ASSERT_GE(time, 0);
      ASSERT_LE(time, collective_time(kind, saturated_sum(bytes, more), cut, hardware).total());
      ASSERT_GE(time, collective_time(kind, bytes, cut, faster).total());
      ASSERT_GE(time, collective_time(kind, bytes, cut, hardware).overlap());
    }
  }
}

// More devices of a torus may have more links: two in each dim, where one of two devices has one.
int64_t most_links(const Hardware& hardware) {
  int64_t links = 1;
  for (const Tier& tier : hardware.tiers) {
    if (tier.topology == Topology::kRing) links = std::max<int64_t>(links, 2);
    if (tier.topology == Topology::kTorus) links = std::max(links, 2 * static_cast<int64_t>(tier.shape.size()));
  }
  return links;
}

// Twice as many devices hold as much each, or share the same whole.
TEST(CollectiveTime, IsMonotoneInDevices) {
  for (const std::string& name : builtin_hardware_names()) {
    const Hardware& hardware = *builtin_hardware(name);
    for (const TransferKind kind : kKinds) {
      int64_t before = 0;
      for (int64_t devices = 1; devices <= 2048; devices *= 2) {
        const int64_t bytes = kind == TransferKind::kAllGather ? (1 << 30) / devices : 1 << 30;
        const int64_t time = time_of(hardware, {{"x", devices}}, "x", kind, bytes).total();
        ASSERT_GE(time * most_links(hardware), before) << name << " " << static_cast<int>(kind) << " " << devices;
        before = time;
      }
    }
  }
}

TEST(CollectiveTime, SaturatesForTheLargestSizes) {
  const Mesh mesh("mesh", {{"x", int64_t{1} << 31}, {"y", int64_t{1} << 31}});
  for (const std::string& name : builtin_hardware_names()) {
    for (const TransferKind kind : kKinds) {
      for (const int64_t bytes : {int64_t{0}, int64_t{1}, kSaturated, std::numeric_limits<int64_t>::max()}) {
        const Price price = collective_price(kind, mesh, all_axes(mesh), bytes, 4, *builtin_hardware(name));
        EXPECT_GE(price.ps, 0);
        EXPECT_LE(price.ps, kSaturated);
        EXPECT_LE(price.bytes, kSaturated);
      }
    }
  }
}

TEST(CollectivePrice, HasTimeBytesAndRounds) {
  const Mesh mesh("mesh", {{"x", 2}, {"y", 4}});
  const AxisList y{full_axis(mesh, 1)};
  const auto price = [&](TransferKind kind) {
    return collective_price(kind, mesh, y, 450'000, 4, *default_hardware());
  };
  EXPECT_EQ(price(TransferKind::kAllGather), (Price{3'000'000, 1'350'000, 1}));
  EXPECT_EQ(price(TransferKind::kReduceScatter), (Price{750'000, 337'500, 1}));
  EXPECT_EQ(price(TransferKind::kAllReduce), (Price{1'500'000, 675'000, 2}));
  EXPECT_EQ(price(TransferKind::kAllToAll), (Price{750'000, 337'500, 1}));
  EXPECT_EQ(price(TransferKind::kShift), (Price{1'000'000, 450'000, 1}));
  EXPECT_EQ(price(TransferKind::kPermute), (Price{1'000'000, 450'000, 1}));
  EXPECT_EQ(price(TransferKind::kExchange), (Price{1'000'000, 450'000, 1}));
  EXPECT_EQ(price(TransferKind::kChain), (Price{3'000'000, 450'000, 3}));
  EXPECT_EQ(collective_price(TransferKind::kAllGather, mesh, {}, 450'000, 4, *default_hardware()), Price{});
}

TEST(CollectivePrice, TakesAsLongForAMillionDevicesWithIds) {
  Dims ids;
  for (int64_t i = 0; i < 1 << 20; ++i) ids.push_back((i % 1024) * 1024 + i / 1024);
  const Mesh mesh("mesh", {{"x", 1024}, {"y", 1024}}, ids);
  const AxisList y{full_axis(mesh, 1)};
  const Price first = collective_price(TransferKind::kAllGather, mesh, y, 1 << 20, 4, *default_hardware());
  // A million calls that read the ids would take an hour.
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(collective_price(TransferKind::kAllGather, mesh, y, 1 << 20, 4, *default_hardware()), first);
  }
}

}  // namespace
}  // namespace shardwise
