// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of random maps on coordinate-valued tensors, compared element by element with what the map means, and their
// bytes with a count of the elements that each device lacks.
#include "shardwise/runtime/exchange.h"

#include <gtest/gtest.h>

#include "runtime/processes.h"
#include "runtime/simulator.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

constexpr int64_t kNobody = -1000;   // what no operand has
constexpr int64_t kPadding = -2000;  // must never be read

// The number of the element of operand `k` at these global indices.
int64_t element(size_t k, DimSpan index) {
  int64_t number = static_cast<int64_t>(k) + 1;
  for (const int64_t i : index) number = number * 100 + i;
  return number;
}

std::vector<AxisList> deal(Random& random, const AxisList& axes, size_t ndim) {
  std::vector<AxisList> dims(ndim);
  for (const AxisRef& axis : axes) {
    dims[static_cast<size_t>(below(random, static_cast<int64_t>(ndim)))].push_back(axis);
  }
  return dims;
}

int64_t some_block(Random& random, int64_t size, const AxisList& axes) {
  return std::max<int64_t>(1, ceil_div(size, product(axes)) + (below(random, 4) == 0 ? below(random, 3) : 0));
}

ExchangeSource random_source(Random& random, const ExchangeTarget& to, const AxisList& axes, bool moves) {
  ExchangeSource from{.axes = axes, .size = below(random, 20)};
  if (!moves) from.size = to.size;
  from.block = some_block(random, from.size, axes);
  if (!moves) return from;
  constexpr int64_t kScales[] = {1, 1, 1, -1, 2, 3, -2, 4};
  from.scale = kScales[below(random, 8)];
  from.holes = below(random, 3) == 0 ? 1 + below(random, 4) : 1;
  from.offset = below(random, 30) - 10 + (from.scale < 0 ? from.size : 0);
  return from;
}

struct ExchangeCase {
  MeshPtr mesh;
  ExchangeMap map;
};

// Several operands have disjoint ranges of dim 0.
ExchangeCase random_exchange(Random& random) {
  ExchangeCase c{random_mesh(random), {}};
  const AxisList digits = random_digits(random, *c.mesh);
  const size_t ndim = 1 + static_cast<size_t>(below(random, 2));
  for (const AxisList& axes : deal(random, some_of(random, digits), ndim)) {
    ExchangeTarget to{.axes = axes, .size = below(random, 24)};
    to.step = some_block(random, to.size, axes);
    to.rows = below(random, 3) == 0 ? to.step + below(random, 4) : to.step;
    c.map.to.push_back(to);
  }
  const int64_t operands = 1 + below(random, 2);
  const int64_t border = below(random, c.map.to[0].size + 1);
  // Now and then the operands are sharded along other sub-axes, which no digits have in common with the result's.
  const AxisList others = below(random, 3) == 0 ? random_digits(random, *c.mesh) : digits;
  for (int64_t k = 0; k < operands; ++k) {
    const auto dims = deal(random, some_of(random, others), ndim);
    auto& from = c.map.from.emplace_back();
    for (size_t d = 0; d < ndim; ++d) {
      from.push_back(random_source(random, c.map.to[d], dims[d], below(random, 4) != 0));
    }
    if (operands == 2) (k == 0 ? from[0].end : from[0].begin) = border;
  }
  return c;
}

// The shards of operand `k`; along other axes than its own, devices hold the same.
Shards operand_of(const ExchangeCase& c, size_t k, bool everywhere) {
  AxisList axes;
  for (const ExchangeSource& from : c.map.from[k]) axes.insert(axes.end(), from.axes.begin(), from.axes.end());
  axes = sorted(axes);
  if (everywhere) {
    axes.clear();
    for (int axis = 0; axis < c.mesh->ndim(); ++axis) axes.push_back(full_axis(*c.mesh, axis));
  }
  Dims local;
  for (const ExchangeSource& from : c.map.from[k]) local.push_back(from.block);
  std::vector<NdArray> list;
  for (int64_t p = 0; p < product(axes); ++p) {
    NdArray shard = NdArray::empty(DType::kI64, local);
    Dims index(local.size(), 0);
    int64_t flat = 0;
    do {
      if (element_count(local) == 0) break;
      Dims global;
      bool real = true;
      for (size_t d = 0; d < local.size(); ++d) {
        const ExchangeSource& from = c.map.from[k][d];
        global.push_back(position_along(from.axes, axes, p) * from.block + index[d]);
        real = real && global[d] < from.size;
      }
      store_at(shard, flat++, Scalar::of_int(DType::kI64, real ? element(k, global) : kPadding));
    } while (next_index(index, local));
    list.push_back(shard);
  }
  return {axes, std::move(list)};
}

// The indices of operand `k` that result index `t` reads; none where it reads nothing.
std::optional<Dims> read_by(const ExchangeMap& map, size_t k, DimSpan t) {
  Dims found;
  for (size_t d = 0; d < t.size(); ++d) {
    const ExchangeSource& from = map.from[k][d];
    const int64_t numerator = from.scale * t[d] + from.offset;
    if (t[d] < from.begin || t[d] >= from.end || numerator % from.holes != 0) return std::nullopt;
    found.push_back(numerator / from.holes);
    if (found.back() < 0 || found.back() >= from.size) return std::nullopt;
  }
  return found;
}

struct Truth {
  int64_t received = 0;  // the maximum over devices
  bool is_right = true;
};

Truth compare(const ExchangeCase& c, const Shards& result, int64_t outside) {
  const Mesh& mesh = *c.mesh;
  Truth truth;
  Dims shape;
  for (const ExchangeTarget& to : c.map.to) shape.push_back(to.rows);
  EXPECT_EQ(result.local_shape(), shape);
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    const NdArray tile = result[shard_index(mesh, result.axes(), device)].contiguous();
    int64_t received = 0, flat = -1;
    Dims index(shape.size(), 0);
    do {
      ++flat;
      Dims t;
      bool real = true;
      for (size_t d = 0; d < shape.size(); ++d) {
        t.push_back(shard_index(mesh, c.map.to[d].axes, device) * c.map.to[d].step + index[d]);
        real = real && t[d] < c.map.to[d].size;
      }
      if (!real || element_count(shape) == 0) continue;
      int64_t wanted = outside;
      for (size_t k = 0; k < c.map.from.size(); ++k) {
        const auto source = read_by(c.map, k, t);
        if (!source) continue;
        wanted = element(k, *source);
        bool is_here = true;
        for (size_t d = 0; d < shape.size(); ++d) {
          const ExchangeSource& from = c.map.from[k][d];
          is_here = is_here && (*source)[d] / from.block == shard_index(mesh, from.axes, device);
        }
        received += is_here ? 0 : 1;
      }
      truth.is_right = truth.is_right && tile.scalar_at(flat).integer == wanted;
    } while (next_index(index, shape));
    truth.received = std::max(truth.received, received);
  }
  return truth;
}

TEST(Exchange, RandomMapsMoveTheRightElementsAndNoMore) {
  Random random(7);
  const Shards fill(NdArray::full(DType::kI64, {}, Scalar::of_int(DType::kI64, kNobody)));
  int64_t moved = 0;
  for (int round = 0; round < 300; ++round) {
    const ExchangeCase c = random_exchange(random);
    const bool everywhere = below(random, 3) == 0, has_fill = below(random, 2) == 0;
    std::vector<Shards> operands;
    for (size_t k = 0; k < c.map.from.size(); ++k) operands.push_back(operand_of(c, k, everywhere));
    const Shards result = VirtualCommunicator().exchange(operands, has_fill ? &fill : nullptr, c.map, nullptr);
    const Truth truth = compare(c, result, has_fill ? kNobody : 0);
    const ExchangeCost cost = exchange_cost(c.map);
    ASSERT_TRUE(truth.is_right) << round;
    ASSERT_TRUE(cost.exact) << round;
    ASSERT_EQ(cost.elements, static_cast<double>(truth.received)) << round;
    moved += truth.received > 0 ? 1 : 0;
  }
  EXPECT_GT(moved, 80);
}

// Each process gets what the virtual mesh computes for its devices, whichever digits are pinned.
TEST(Exchange, ProcessesGetTheTilesOfTheirDevices) {
  Random random(8);
  for (int round = 0; round < 60; ++round) {
    const ExchangeCase c = random_exchange(random);
    std::vector<Shards> operands;
    for (size_t k = 0; k < c.map.from.size(); ++k) operands.push_back(operand_of(c, k, round % 3 == 0));
    const Shards expected = VirtualCommunicator().exchange(operands, nullptr, c.map, nullptr);
    const auto digits = Digits::covering(c.map.axes());
    if (!digits) continue;
    AxisList all = digits->axes(digits->touched(c.map.axes()));
    AxisList pinned = some_of(random, all);
    while (product(pinned) > 12) pinned.pop_back();
    run_in_processes(pinned, [&](const DeviceSet& devices, DeviceCommunicator& communicator) {
      std::vector<Shards> owned;
      for (const Shards& operand : operands) owned.push_back(devices.owned(operand));
      const Shards actual = communicator.exchange(owned, nullptr, c.map, nullptr);
      const AxisList grid = sorted(devices.free(all));
      for (int64_t i = 0; i < product(grid); ++i) {
        NdArray wanted = expected[devices.position_along(expected.axes(), grid, i)];
        NdArray tile = actual[devices.position_along(actual.axes(), grid, i)];
        for (size_t d = 0; d < c.map.to.size(); ++d) {  // without padding
          const int64_t rows = real_rows(c.map.to[d], devices.position_along(c.map.to[d].axes, grid, i));
          wanted = wanted.sliced(static_cast<int64_t>(d), 0, rows);
          tile = tile.sliced(static_cast<int64_t>(d), 0, rows);
        }
        EXPECT_TRUE(same_elements(tile, wanted));
      }
    });
    if (HasFailure()) FAIL() << round;
  }
}

MeshPtr line(int64_t devices) { return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", devices}}); }

TEST(Exchange, EvenTilesInReverseAreViews) {
  const MeshPtr mesh = line(4);
  const AxisList x{full_axis(*mesh, 0)};
  const NdArray rows = NdArray::full(DType::kF32, {4, 2, 3}, Scalar::of_float(DType::kF32, 1));
  const ExchangeMap map{
      .to = {{x, 2, 2, 8}, {{}, 3, 3, 3}},
      .from = {{{.axes = x, .block = 2, .size = 8, .scale = -1, .offset = 7}, {.axes = {}, .block = 3, .size = 3}}}};
  const Shards operand(x, rows);
  const Shards result = VirtualCommunicator().exchange({&operand, 1}, nullptr, map, nullptr);
  EXPECT_TRUE(result.is_stacked());
  EXPECT_EQ(result.stacked().owner(), rows.owner());
}

TEST(ExchangeCost, OnLargeMeshesStridesAreExact) {
  const MeshPtr mesh = line(1 << 20);
  const AxisList x{full_axis(*mesh, 0)};
  ExchangeMap map{.to = {{x, 8, 8, 8 << 20}}, .from = {{{.axes = x, .block = 8, .size = 8 << 20, .offset = 3}}}};
  EXPECT_TRUE(exchange_cost(map).exact);
  EXPECT_EQ(exchange_cost(map).elements, 3);
  map.from[0][0].scale = 2;
  EXPECT_TRUE(exchange_cost(map).exact);
  EXPECT_EQ(exchange_cost(map).elements, 8);
  // Tile 0 has the rows 3, 5 and 7 of its 8.
  map.to[0] = {x, 8, 8, 8};
  EXPECT_EQ(exchange_cost(map).elements, 5);
}

TEST(ExchangeCost, OnLargeMeshesSeveralOperandsAlongOtherAxesHaveAnUpperBound) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 1 << 10}, {"y", 1 << 10}});
  const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
  const ExchangeMap map{.to = {{x, 8, 8, 8 << 10}},
                        .from = {{{.axes = y, .block = 4, .size = 4 << 10, .end = 4 << 10}},
                                 {{.axes = y, .block = 4, .size = 4 << 10, .offset = -(4 << 10), .begin = 4 << 10}}}};
  EXPECT_FALSE(exchange_cost(map).exact);
  EXPECT_EQ(exchange_cost(map).elements, 16);
}

}  // namespace
}  // namespace shardwise
