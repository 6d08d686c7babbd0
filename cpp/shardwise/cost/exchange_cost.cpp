// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/exchange_cost.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "shardwise/cost/independent_dims.h"
#include "shardwise/cost/mesh_pair.h"
#include "shardwise/cost/tile_overlap.h"
#include "shardwise/cost/turning_points.h"

namespace shardwise {
namespace {

// In some of the dims: the elements of an operand that a device needs, and those of them that it holds.
struct Share {
  int64_t needed = 1, held = 1;
  friend auto operator<=>(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;  // by operand

// Dims whose axes are of the same mesh axes: their coordinates depend on each other.
std::vector<std::vector<size_t>> independent_groups(const ExchangeMap& map) {
  std::vector<std::set<int32_t>> used(map.to.size());  // by dim
  for (size_t d = 0; d < map.to.size(); ++d) {
    for (const AxisRef& axis : map.to[d].axes) used[d].insert(axis.axis);
    for (const auto& operand : map.from) {
      for (const AxisRef& axis : operand[d].axes) used[d].insert(axis.axis);
    }
  }
  return independent_dims(map.to.size(), [&](size_t a, size_t b) {
    return std::ranges::any_of(used[a], [&](int32_t axis) { return used[b].contains(axis); });
  });
}

AxisList axes_of(const ExchangeMap& map, const std::vector<size_t>& dims) {
  AxisList axes;
  for (const size_t d : dims) {
    append(axes, map.to[d].axes);
    for (const auto& operand : map.from) append(axes, operand[d].axes);
  }
  return axes;
}

// `at(axes)` is the position of a device along axes.
template <class At>
Shares shares_at(const ExchangeMap& map, std::span<const size_t> dims, At&& at) {
  Shares shares(map.from.size());
  for (const size_t d : dims) {
    const int64_t tile = at(map.to[d].axes);
    for (size_t k = 0; k < shares.size(); ++k) {
      const ExchangeSource& from = map.from[k][d];
      shares[k].needed *= rows_needed(map.to[d], from, tile);
      shares[k].held *= piece_between(map.to[d], from, tile, at(from.axes)).count;
    }
  }
  return shares;
}

// No tile has more, and nothing of it is on the device that needs it.
Shares most_shares(const ExchangeMap& map, const std::vector<size_t>& dims) {
  Shares shares(map.from.size());
  for (const size_t d : dims) {
    for (size_t k = 0; k < shares.size(); ++k) {
      const ExchangeSource& from = map.from[k][d];
      shares[k].needed *= std::min({map.to[d].rows, from.size, map.to[d].size});
      shares[k].held = 0;
    }
  }
  return shares;
}

std::set<Shares> shares_of(const ExchangeMap& map, const std::vector<size_t>& dims, int64_t most_positions,
                           bool& exact) {
  // Most devices have the same shares: a set keeps the few that differ, and the combinations below stay few.
  std::set<Shares> found;
  if (const auto points = dims.size() == 1 ? turning_points(map, dims[0]) : std::nullopt) {
    for (const int64_t point : *points) {
      found.insert(shares_at(map, dims, [&](AxisSpan axes) { return axes.empty() ? 0 : point; }));
    }
    return found;
  }
  Coordinates device(axes_of(map, dims));
  const int64_t positions = product(device.grid());
  if (positions > most_positions) {
    exact = false;
    return {most_shares(map, dims)};
  }
  for (int64_t i = 0; i < positions; ++i) {
    device.set_grid(i);
    found.insert(shares_at(map, dims, [&](AxisSpan axes) { return device.at(axes); }));
  }
  return found;
}

constexpr int64_t kMostDevicesAcrossMeshes = 65'536;

// The most elements of one operand that a device receives.
int64_t most_across_meshes(const ExchangeMap& map, size_t operand) {
  const std::shared_ptr<const MeshPairPositions> positions = positions_of_mesh_pair(map, operand);
  std::vector<Shares> shares;  // by dim and pair of positions
  for (size_t d = 0; d < map.to.size(); ++d) {
    Shares& of_dim = shares.emplace_back();
    const ExchangeSource& from = map.from[operand][d];
    for (const auto& [tile, shard] : positions->dims[d]) {
      of_dim.push_back({rows_needed(map.to[d], from, tile), piece_between(map.to[d], from, tile, shard).count});
    }
  }
  if (shares.empty()) return 0;
  int64_t most = 0;
  for (size_t at = 0; at < positions->devices.size(); at += shares.size()) {
    Share device;
    for (size_t d = 0; d < shares.size(); ++d) {
      const Share& own = shares[d][positions->devices[at + d]];
      device.needed *= own.needed;
      device.held *= own.held;
    }
    most = std::max(most, device.needed - device.held);
  }
  return most;
}

ExchangeCost cost_across_meshes(const ExchangeMap& map) {
  const int64_t devices = map.to_mesh->device_count();
  if (devices > kMostDevicesAcrossMeshes) {
    double tile = 1;
    for (const ExchangeTarget& to : map.to) tile *= static_cast<double>(to.rows);
    return {.elements = tile, .exact = false};
  }
  if (map.from.size() == 1) return {.elements = static_cast<double>(most_across_meshes(map, 0)), .exact = true};
  int64_t most = 0;
  for (int64_t i = 0; i < devices; ++i) most = std::max(most, received_across_meshes(map, i));
  return {.elements = static_cast<double>(most), .exact = true};
}

}  // namespace

ExchangeCost exchange_cost(const ExchangeMap& map, int64_t most_positions) {
  if (map.is_across_meshes()) return cost_across_meshes(map);
  // First, because its work does not grow with the mesh.
  if (const auto elements = elements_received(map)) return {.elements = *elements};
  ExchangeCost cost;
  std::set<Shares> all{Shares(map.from.size())};
  for (const std::vector<size_t>& dims : independent_groups(map)) {
    std::set<Shares> more = shares_of(map, dims, most_positions, cost.exact);
    if (static_cast<int64_t>(all.size() * more.size()) > most_positions) {
      cost.exact = false;
      more = {most_shares(map, dims)};
    }
    // Groups have no axis in common, so every share of one occurs together with every share of the others.
    std::set<Shares> combined;
    for (const Shares& some : all) {
      for (const Shares& others : more) {
        Shares both = some;
        for (size_t k = 0; k < both.size(); ++k) {
          both[k].needed *= others[k].needed;
          both[k].held *= others[k].held;
        }
        combined.insert(std::move(both));
      }
    }
    all = std::move(combined);
  }
  for (const Shares& device : all) {
    double elements = 0;
    for (const Share& share : device) {
      // The operands have disjoint ranges of the result, so the device receives the sum of their parts.
      elements += static_cast<double>(share.needed) - static_cast<double>(share.held);
    }
    cost.elements = std::max(cost.elements, elements);
  }
  return cost;
}

double elements_at(const ExchangeMap& map, const Coordinates& device) {
  const auto at = [&](AxisSpan axes) { return device.at(axes); };
  return static_cast<double>(received_at(map, at, at));
}

double most_elements(std::span<const ExchangeMap> maps, int64_t most_positions) {
  AxisList axes;
  for (const ExchangeMap& map : maps) append(axes, map.axes());
  Coordinates device(axes);
  const int64_t positions = product(device.grid());
  double most = 0;
  const auto visit = [&] {
    double elements = 0;
    for (const ExchangeMap& map : maps) elements += elements_at(map, device);
    most = std::max(most, elements);
  };
  if (const auto points = maps.size() > 1 ? turning_points(maps) : std::nullopt) {
    for (const int64_t position : points->positions) {
      device.set(points->axes, position);
      visit();
    }
    return most;
  }
  // The sum of the maxima is a bound: the device that receives most may be another one in each exchange.
  if (maps.size() == 1 || positions > most_positions) {
    for (const ExchangeMap& map : maps) most += exchange_cost(map).elements;
    return most;
  }
  for (int64_t i = 0; i < positions; ++i) {
    device.set_grid(i);
    visit();
  }
  return most;
}

}  // namespace shardwise
