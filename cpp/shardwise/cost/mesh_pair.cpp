// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/mesh_pair.h"

#include <algorithm>

#include "shardwise/base/recently_used.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

struct Key {
  MeshPtr to_mesh, from_mesh;
  std::vector<AxisList> to, from;  // by dim

  friend bool operator==(const Key& a, const Key& b) {
    return a.to == b.to && a.from == b.from && equal(a.to_mesh, b.to_mesh) && equal(a.from_mesh, b.from_mesh);
  }
};

size_t hash_value(const Key& key) {
  size_t hash = key.to.size();
  for (const AxisList& axes : key.to) hash = hash_combine(hash, hash_value(axes));
  for (const AxisList& axes : key.from) hash = hash_combine(hash, hash_value(axes));
  return hash;
}

// Sorts and drops duplicates; gives the place of each element in the result.
template <class T>
std::vector<uint32_t> numbered(std::vector<T>& elements) {
  std::vector<T> different = elements;
  std::ranges::sort(different);
  different.erase(std::unique(different.begin(), different.end()), different.end());
  std::vector<uint32_t> places;
  places.reserve(elements.size());
  for (const T& element : elements) {
    places.push_back(static_cast<uint32_t>(std::ranges::lower_bound(different, element) - different.begin()));
  }
  elements = std::move(different);
  return places;
}

MeshPairPositions count(const Key& key) {
  MeshPairPositions found;
  const auto devices = static_cast<size_t>(key.to_mesh->device_count());
  std::vector<std::vector<uint32_t>> places;  // by dim and device
  for (size_t d = 0; d < key.to.size(); ++d) {
    std::vector<MeshPairPositions::Pair>& pairs = found.dims.emplace_back();
    pairs.reserve(devices);
    for (int64_t i = 0; i < key.to_mesh->device_count(); ++i) {
      const int64_t other = device_in(*key.to_mesh, *key.from_mesh, i);
      pairs.push_back({shard_index(*key.to_mesh, key.to[d], i), shard_index(*key.from_mesh, key.from[d], other)});
    }
    places.push_back(numbered(pairs));
  }
  // Devices that agree in the dims so far have one number.
  std::vector<uint32_t> number(devices, 0);
  std::vector<size_t> first(1, 0);  // device of each number
  for (const std::vector<uint32_t>& dim : places) {
    std::vector<std::pair<uint32_t, uint32_t>> both;
    both.reserve(devices);
    for (size_t i = 0; i < devices; ++i) both.emplace_back(number[i], dim[i]);
    number = numbered(both);
    first.assign(both.size(), 0);
    for (size_t i = 0; i < devices; ++i) first[number[i]] = i;
  }
  for (const size_t device : first) {
    for (const std::vector<uint32_t>& dim : places) found.devices.push_back(dim[device]);
  }
  return found;
}

}  // namespace

std::shared_ptr<const MeshPairPositions> positions_of_mesh_pair(const ExchangeMap& map, size_t operand) {
  static RecentlyUsed<Key, MeshPairPositions> kept(64);
  Key key{.to_mesh = map.to_mesh, .from_mesh = map.from_mesh, .to = {}, .from = {}};
  for (const ExchangeTarget& to : map.to) key.to.push_back(to.axes);
  for (const ExchangeSource& from : map.from[operand]) key.from.push_back(from.axes);
  if (auto found = kept.find(key)) return found;
  auto counted = std::make_shared<const MeshPairPositions>(count(key));
  kept.keep(key, counted);
  return counted;
}

}  // namespace shardwise
