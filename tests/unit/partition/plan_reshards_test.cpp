// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/plan_reshards.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/cost/collective_cost.h"
#include "shardwise/mesh/permute_axes.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/reshard/movement.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

constexpr int64_t kGarbage = -1000000;

// The device that differs from `device` only in its coordinates along `axes`, which are those of row-major number
// `index`.
int64_t moved(const Mesh& mesh, int64_t device, const AxisList& axes, int64_t index) {
  for (size_t i = axes.size(); i-- > 0;) {
    const AxisRef& ref = axes[i];
    const int64_t stride = mesh.axis_stride(ref.axis) * (mesh.axis_size(ref.axis) / ref.next());
    device += (index % ref.size - axis_coordinate(mesh, ref, device)) * stride;
    index /= ref.size;
  }
  return device;
}

// A tensor on all devices of a small mesh, each tile an array of numbers.
struct Tiles {
  Dims blocks;
  std::vector<std::vector<int64_t>> data;  // by logical index of the device

  int64_t at(int64_t device, const Dims& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < blocks.size(); ++d) {
      if (index[d] >= blocks[d]) return kGarbage;  // padding that a step would add
      offset = offset * blocks[d] + index[d];
    }
    return data[static_cast<size_t>(device)][static_cast<size_t>(offset)];
  }
};

template <class F>
Tiles make_tiles(const Mesh& mesh, Dims blocks, F element) {
  Tiles tiles{blocks, std::vector<std::vector<int64_t>>(static_cast<size_t>(mesh.device_count()))};
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    if (element_count(blocks) == 0) continue;
    Dims index(blocks.size(), 0);
    do {
      tiles.data[static_cast<size_t>(device)].push_back(element(device, index));
    } while (next_index(index, blocks));
  }
  return tiles;
}

// The addend of element `position` on the device that is number `share` along all axes that were pending at first.
int64_t addend(int64_t position, int64_t share) { return (position + 3) * 17 + share * (position % 5 + 1) * 101; }

// The right tiles of a placement, when the reduction over `first` was pending at first.
Tiles right_tiles(const Mesh& mesh, const Placement& placement, const Dims& shape, const AxisList& first) {
  const AxisList done = difference(first, placement.unreduced);
  return make_tiles(mesh, placement.local_shape(), [&](int64_t device, const Dims& index) {
    int64_t position = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t row = shard_index(mesh, placement.dims[d].axes, device) * placement.dims[d].block + index[d];
      if (row >= shape[d]) return kGarbage;
      position = position * shape[d] + row;
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < product(done); ++i)
      sum += addend(position, shard_index(mesh, first, moved(mesh, device, done, i)));
    return sum;
  });
}

Tiles sum_over(const Mesh& mesh, const Tiles& tiles, const AxisList& axes) {
  return make_tiles(mesh, tiles.blocks, [&](int64_t device, const Dims& index) {
    int64_t sum = 0;
    for (int64_t i = 0; i < product(axes); ++i) {
      const int64_t element = tiles.at(moved(mesh, device, axes, i), index);
      if (element == kGarbage) return kGarbage;
      sum += element;
    }
    return sum;
  });
}

Tiles slice(const Mesh& mesh, const Tiles& tiles, const std::vector<AxisList>& axes, const Dims& blocks) {
  return make_tiles(mesh, blocks, [&](int64_t device, Dims index) {
    for (size_t d = 0; d < index.size(); ++d) index[d] += shard_index(mesh, axes[d], device) * blocks[d];
    return tiles.at(device, index);
  });
}

Tiles gather(const Mesh& mesh, const Tiles& tiles, const std::vector<AxisList>& axes, const Dims& blocks) {
  return make_tiles(mesh, blocks, [&](int64_t device, Dims index) {
    for (size_t d = 0; d < index.size(); ++d) {
      if (axes[d].empty()) continue;
      device = moved(mesh, device, axes[d], index[d] / tiles.blocks[d]);
      index[d] %= tiles.blocks[d];
    }
    return tiles.at(device, index);
  });
}

Tiles all_to_all(const Mesh& mesh, const Tiles& tiles, const AllToAllMove& move, const Dims& final_blocks) {
  const auto from = static_cast<size_t>(move.from_dim), to = static_cast<size_t>(move.to_dim);
  Dims blocks = tiles.blocks;
  blocks[from] = final_blocks[from];
  blocks[to] = final_blocks[to];
  return make_tiles(mesh, blocks, [&](int64_t device, Dims index) {
    index[to] += shard_index(mesh, move.axes, device) * blocks[to];
    device = moved(mesh, device, move.axes, index[from] / tiles.blocks[from]);
    index[from] %= tiles.blocks[from];
    return tiles.at(device, index);
  });
}

Tiles permute(const Mesh& mesh, const Tiles& tiles, const Placement& before, const Placement& after) {
  const PermuteAxes axes = permute_axes(before.dim_axes(), after.dim_axes());
  return make_tiles(mesh, tiles.blocks, [&](int64_t device, const Dims& index) {
    return tiles.at(moved(mesh, device, axes.from, shard_index(mesh, axes.to, device)), index);
  });
}

// Every element from the device that holds it, and is in the same place along all other axes.
Tiles exchange(const Mesh& mesh, const Tiles& tiles, const Placement& before, const Placement& after) {
  return make_tiles(mesh, after.local_shape(), [&](int64_t device, Dims index) {
    const int64_t receiver = device;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t row = shard_index(mesh, after.dims[d].axes, receiver) * after.dims[d].block + index[d];
      const int64_t block = std::max<int64_t>(before.dims[d].block, 1);
      if (row / block >= product(before.dims[d].axes)) return kGarbage;
      device = moved(mesh, device, before.dims[d].axes, row / block);
      index[d] = row % block;
    }
    return tiles.at(device, index);
  });
}

Tiles run_step(const Mesh& mesh, const Tiles& tiles, const Placement& before, const ReshardStep& step) {
  switch (step.move) {
    case ReshardMove::kSlice: return slice(mesh, tiles, step.dim_axes, step.after.local_shape());
    case ReshardMove::kAllGather: return gather(mesh, tiles, step.dim_axes, step.after.local_shape());
    case ReshardMove::kAllReduce: return sum_over(mesh, tiles, step.reduced);
    case ReshardMove::kPermute: return permute(mesh, tiles, before, step.after);
    case ReshardMove::kReduceScatter: {
      AxisList axes;
      for (const AxisList& list : step.dim_axes) axes.insert(axes.end(), list.begin(), list.end());
      return slice(mesh, sum_over(mesh, tiles, axes), step.dim_axes, step.after.local_shape());
    }
    case ReshardMove::kExchange: return exchange(mesh, tiles, before, step.after);
    case ReshardMove::kAllToAll: break;
  }
  Tiles result = tiles;
  for (const AllToAllMove& move : step.dim_moves) result = all_to_all(mesh, result, move, step.after.local_shape());
  return result;
}

::testing::AssertionResult holds(const Tiles& tiles, const Tiles& right) {
  if (tiles.blocks != right.blocks) return ::testing::AssertionFailure() << "other blocks";
  for (size_t device = 0; device < right.data.size(); ++device) {
    for (size_t i = 0; i < right.data[device].size(); ++i) {
      if (right.data[device][i] != kGarbage && tiles.data[device][i] != right.data[device][i]) {
        return ::testing::AssertionFailure() << "device " << device << ", element " << i << ": "
                                             << tiles.data[device][i] << ", not " << right.data[device][i];
      }
    }
  }
  return ::testing::AssertionSuccess();
}

std::string plan_text(const ReshardPlan& plan) {
  std::string text;
  for (const ReshardStep& step : plan.steps) text += (text.empty() ? "" : ", ") + std::string(move_name(step.move));
  return text;
}

struct Case {
  MeshPtr mesh;
  Dims shape;
  TensorSharding from, to;
};

ReshardProblem problem_of(const Case& c) {
  return {.shape = c.shape, .item_size = 4, .from = placement_of(c.from, c.shape), .to = placement_of(c.to, c.shape)};
}

void expect_right(const Case& c, const ReshardPlan& plan) {
  const ReshardProblem problem = problem_of(c);
  Placement now = problem.from;
  Tiles tiles = right_tiles(*c.mesh, now, c.shape, problem.from.unreduced);
  for (const ReshardStep& step : plan.steps) {
    tiles = run_step(*c.mesh, tiles, now, step);
    now = step.after;
    ASSERT_TRUE(holds(tiles, right_tiles(*c.mesh, now, c.shape, problem.from.unreduced)))
        << short_text(c.from) << " -> " << short_text(c.to) << ": " << plan_text(plan) << " at "
        << move_name(step.move);
  }
  EXPECT_EQ(now, problem.to) << short_text(c.from) << " -> " << short_text(c.to);
}

MeshPtr mesh_of(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>("mesh", std::move(axes)); }

ReshardPlan plan_of(const MeshPtr& mesh, Dims shape, std::string_view from, std::string_view to) {
  const Case c{mesh, std::move(shape), parse_short_sharding(from, mesh), parse_short_sharding(to, mesh)};
  ReshardPlan plan = plan_reshard(problem_of(c));
  if (mesh->device_count() <= 64) expect_right(c, plan);
  return plan;
}

// ---- random shardings ----------------------------------------------------------------------------------------------

class RandomCase {
 public:
  explicit RandomCase(unsigned seed) : random_(seed) {}

  Case next() {
    static const MeshPtr meshes[] = {mesh_of({{"x", 4}, {"y", 2}}),
                                     mesh_of({{"x", 8}}),
                                     mesh_of({{"x", 2}, {"y", 2}, {"z", 2}}),
                                     mesh_of({{"x", 3}, {"y", 4}}),
                                     mesh_of({{"x", 6}, {"y", 2}}),
                                     mesh_of({{"x", 12}}),
                                     mesh_of({{"x", 2}, {"one", 1}, {"y", 3}})};
    const MeshPtr& mesh = meshes[pick(7)];
    Case c{mesh, {}, {}, {}};
    const bool even = pick(2) == 0;
    for (int64_t d = 0, ndim = pick(4); d < ndim; ++d) {
      static const int64_t kEven[] = {12, 24, 8, 16};
      static const int64_t kAny[] = {1, 0, 7, 17, 5, 8, 3, 12};
      c.shape.push_back(even ? kEven[pick(3)] : kAny[pick(8)]);
    }
    c.from = sharding(mesh, c.shape.size());
    c.to = sharding(mesh, c.shape.size());
    c.to.unreduced.clear();
    for (const AxisRef& ref : c.from.unreduced) {
      if (pick(4) == 0 && !overlaps(c.to.axes_used(), ref) && can_coexist(c.to.axes_used(), ref))
        c.to.unreduced.push_back(ref);
    }
    if (!c.to.unreduced.empty()) c.to.reducer = Reducer::kSum;
    return c;
  }

 private:
  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }

  TensorSharding sharding(const MeshPtr& mesh, size_t ndim) {
    TensorSharding sharding = TensorSharding::fully_replicated(mesh, static_cast<int64_t>(ndim));
    AxisList digits;
    for (int axis = 0; axis < mesh->ndim(); ++axis) {
      const int64_t size = mesh->axis_size(axis);
      const int64_t cut = size % 2 == 0 && size > 2 && pick(2) == 0 ? (pick(2) == 0 ? 2 : size / 2) : size;
      digits.push_back({axis, 1, cut});
      if (cut < size) digits.push_back({axis, cut, size / cut});
    }
    std::shuffle(digits.begin(), digits.end(), random_);
    for (const AxisRef& digit : digits) {
      const int64_t place = pick(static_cast<int64_t>(ndim) + 2);
      if (place < static_cast<int64_t>(ndim)) append_merged(sharding.dims[static_cast<size_t>(place)].axes, digit);
      if (place == static_cast<int64_t>(ndim) && pick(2) == 0) sharding.unreduced.push_back(digit);
    }
    sharding.unreduced = sort_and_merge(sharding.unreduced);
    if (!sharding.unreduced.empty()) sharding.reducer = Reducer::kSum;
    return sharding;
  }

  std::mt19937 random_;
};

TEST(PlanReshard, TheFallbackIsRightToo) {
  RandomCase random(11);
  int tried = 0;
  for (int i = 0; i < 1000 && !::testing::Test::HasFailure(); ++i) {
    const Case c = random.next();
    if (c.from.unreduced != c.to.unreduced) continue;
    expect_right(c, gather_and_slice(problem_of(c)));
    ++tried;
  }
  EXPECT_GE(tried, 100);
}

// The most elements of a new tile that a device does not hold before.
double lacking(const Case& c) {
  const ReshardProblem problem = problem_of(c);
  const auto first = [&](const Placement& placement, size_t d, int64_t device) {
    return shard_index(*c.mesh, placement.dims[d].axes, device) * placement.dims[d].block;
  };
  double most = 0;
  for (int64_t device = 0; device < c.mesh->device_count(); ++device) {
    double needed = 1, held = 1;
    for (size_t d = 0; d < c.shape.size(); ++d) {
      const int64_t begin = first(problem.to, d, device), old_begin = first(problem.from, d, device);
      const int64_t end = std::min(begin + problem.to.dims[d].block, c.shape[d]);
      const int64_t old_end = std::min(old_begin + problem.from.dims[d].block, c.shape[d]);
      needed *= static_cast<double>(std::max<int64_t>(end - begin, 0));
      held *= static_cast<double>(std::max<int64_t>(std::min(end, old_end) - std::max(begin, old_begin), 0));
    }
    most = std::max(most, needed - held);
  }
  return most;
}

TEST(OneExchange, SendsWhatIsLackingAndNoMore) {
  RandomCase random(5);
  int found = 0;
  for (int i = 0; i < 1500 && !::testing::Test::HasFailure(); ++i) {
    const Case c = random.next();
    if (c.from.unreduced != c.to.unreduced) continue;
    ++found;
    const ReshardPlan plan = one_exchange(problem_of(c));
    expect_right(c, plan);
    EXPECT_EQ(plan.bytes, 4 * lacking(c));
  }
  EXPECT_GT(found, 500);
}

double bytes_of_all_reduce_first(ReshardProblem problem) {
  const AxisList reduced = difference(problem.from.unreduced, problem.to.unreduced);
  const double bytes = mean_all_reduce_bytes(problem.tile_bytes(problem.from), product(reduced));
  problem.from.unreduced = problem.to.unreduced;
  problem.from.reducer = problem.to.reducer;
  return bytes + gather_and_slice(problem).bytes;
}

TEST(PlanReshard, MovesByOneCollectiveAndNeverExceedsTheLargerTile) {
  RandomCase random(6);
  for (int i = 0; i < 1500 && !::testing::Test::HasFailure(); ++i) {
    const Case c = random.next();
    const ReshardProblem problem = problem_of(c);
    const ReshardPlan plan = plan_reshard(problem);
    expect_right(c, plan);
    for (const ReshardStep& step : plan.steps) {
      EXPECT_LE(problem.tile_bytes(step.after),
                std::max(problem.tile_bytes(problem.from), problem.tile_bytes(problem.to)));
    }
    if (c.from.unreduced != c.to.unreduced) {
      EXPECT_LE(plan.mean_bytes, bytes_of_all_reduce_first(problem)) << i;
      EXPECT_LE(plan.collective_count(), 3) << i;
      continue;
    }
    EXPECT_LE(plan.collective_count(), 1) << i;
    EXPECT_EQ(plan.bytes, 4 * lacking(c)) << i;
  }
}

TEST(PlanReshard, MovesAnAxisByAllToAll) {
  const ReshardPlan plan = plan_of(mesh_of({{"x", 8}}), {16, 16}, R"([{"x"}, {}])", R"([{}, {"x"}])");
  EXPECT_EQ(plan_text(plan), "all_to_all");
  EXPECT_EQ(plan.bytes, 16 * 16 * 4 / 8 * 7 / 8);
}

TEST(PlanReshard, ScattersAPendingReduction) {
  const MeshPtr mesh = mesh_of({{"x", 4}, {"y", 2}});
  EXPECT_EQ(plan_text(plan_of(mesh, {16, 16}, R"([{}, {}], unreduced={"x", "y"})", R"([{"x"}, {"y"}])")),
            "reduce_scatter");
  EXPECT_EQ(plan_text(plan_of(mesh, {16, 16}, R"([{}, {}], unreduced={"x", "y"})", R"([{}, {}])")), "all_reduce");
  EXPECT_EQ(plan_text(plan_of(mesh, {16, 16}, R"([{"y"}, {}], unreduced={"x"})", R"([{"y", "x"}, {}])")),
            "reduce_scatter");
}

TEST(PlanReshard, GathersSeveralDimsAtOnce) {
  const ReshardPlan plan = plan_of(mesh_of({{"x", 4}, {"y", 2}}), {16, 16}, R"([{"x"}, {"y"}])", "[{}, {}]");
  EXPECT_EQ(plan_text(plan), "all_gather");
  EXPECT_EQ(plan.bytes, 16 * 16 * 4 / 8 * 7);
}

TEST(PlanReshard, SwapsEqualAxesByOnePermute) {
  const ReshardPlan plan = plan_of(mesh_of({{"x", 2}, {"y", 2}}), {8, 8}, R"([{"x"}, {"y"}])", R"([{"y"}, {"x"}])");
  EXPECT_EQ(plan_text(plan), "collective_permute");
  EXPECT_EQ(plan.bytes, 64);
}

// No device needs what it has: an exchange sends a tile, where an all-to-all and a permute would send more.
TEST(PlanReshard, SwapsAxesTheSameWayOnEveryMesh) {
  for (const auto& [x, y] : {std::pair<int64_t, int64_t>{8, 2}, {256, 8}, {65536, 16}}) {
    const ReshardPlan plan =
        plan_of(mesh_of({{"x", x}, {"y", y}}), {x * y, x * y}, R"([{"x"}, {"y"}])", R"([{"y"}, {"x"}])");
    EXPECT_EQ(plan_text(plan), "exchange") << x;
    EXPECT_EQ(plan.bytes, static_cast<double>(4 * x * y)) << x;
  }
}

TEST(PlanReshard, ReordersTheAxesOfADimByOnePermute) {
  for (const auto& [x, y] : {std::pair<int64_t, int64_t>{4, 2}, {3, 4}, {65536, 16}}) {
    const MeshPtr mesh = mesh_of({{"x", x}, {"y", y}});
    const ReshardPlan plan = plan_of(mesh, {x * y * 12}, R"([{"x", "y"}])", R"([{"y", "x"}])");
    EXPECT_EQ(plan_text(plan), "collective_permute") << x;
    EXPECT_EQ(plan.bytes, 48) << x;
  }
}

// Bytes received by each device: what it lacks. XLA's numbers for the same reshards are 3584, 1792, 128, 192, 528,
// 1120, 192, 1536 and 176.
TEST(PlanReshard, SendsWhatADeviceLacks) {
  const MeshPtr grid = mesh_of({{"x", 4}, {"y", 2}}), cube = mesh_of({{"a", 2}, {"b", 2}, {"c", 2}});
  const MeshPtr wide = mesh_of({{"x", 2}, {"y", 4}});
  EXPECT_EQ(plan_of(grid, {8, 16, 8}, R"([{"y"}, {}, {"x"}])", R"([{}, {"x", "y"}, {}])").bytes, 448);
  EXPECT_EQ(plan_of(cube, {8, 8, 8}, R"([{"a"}, {"b"}, {"c"}])", R"([{"a", "b", "c"}, {}, {}])").bytes, 192);
  EXPECT_EQ(
      plan_of(mesh_of({{"a", 2}, {"b", 2}}), {4, 4, 4, 4}, R"([{"a", "b"}, {}, {}, {}])", R"([{"a"}, {}, {}, {"b"}])")
          .bytes,
      128);
  EXPECT_EQ(plan_of(wide, {16, 16}, R"([{"x"}, {"y"}])", R"([{"y"}, {"x"}])").bytes, 128);
  EXPECT_EQ(plan_of(mesh_of({{"x", 3}, {"y", 4}}), {12, 12}, R"([{"x"}, {"y"}])", R"([{"y"}, {"x"}])").bytes, 48);
  EXPECT_EQ(plan_of(grid, {8, 33}, R"([{}, {"x", "y"}])", R"([{"y"}, {"x"}])").bytes, 112);
  EXPECT_EQ(plan_of(wide, {16, 16}, R"([{"x"}, {"y"}])", R"([{}, {"x", "y"}])").bytes, 128);
  EXPECT_EQ(plan_of(cube, {8, 8, 8}, R"([{"a"}, {}, {"c"}])", R"([{}, {"a", "c"}, {}])").bytes, 384);
  EXPECT_EQ(plan_of(mesh_of({{"x", 2}, {"y", 3}}), {12, 12}, R"([{"x", "y"}, {}])", R"([{}, {"y", "x"}])").bytes, 80);
  EXPECT_EQ(plan_of(wide, {33, 33}, R"([{"x"}, {"y"}])", R"([{"y"}, {"x"}])").bytes, 612);
  EXPECT_EQ(plan_of(mesh_of({{"x", 64}}), {3, 1024}, R"([{"x"}, {}])", "[{}, {}]").bytes, 8192 + 4096);
}

TEST(PlanReshard, WorkDoesNotGrowWithTheMesh) {
  const ReshardPlan small =
      plan_of(mesh_of({{"x", 4}, {"y", 2}}), {64, 64}, R"([{"x"}, {"y"}])", R"([{}, {"y", "x"}])");
  const ReshardPlan large =
      plan_of(mesh_of({{"x", 1024}, {"y", 1024}}), {4096, 1 << 20}, R"([{"x"}, {"y"}])", R"([{}, {"y", "x"}])");
  EXPECT_EQ(plan_text(small), plan_text(large));
  const ReshardPlan cut =
      plan_of(mesh_of({{"x", 1 << 20}}), {1 << 20, 1 << 20}, R"([{"x"}, {}])", R"([{"x":(1)1024}, {"x":(1024)1024}])");
  EXPECT_EQ(plan_text(cut), "all_to_all");
}

}  // namespace
}  // namespace shardwise
