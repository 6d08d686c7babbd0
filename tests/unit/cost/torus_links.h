// SPDX-License-Identifier: Apache-2.0
//
// Tori whose links can be counted, for tests of times.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/cost/collective_time.h"

namespace shardwise {

inline AxisList axes_named(const Mesh& mesh, std::string_view names) {
  AxisList axes;
  for (const char axis : names) axes.push_back(full_axis(mesh, *mesh.find_axis(std::string(1, axis))));
  return axes;
}

inline CollectiveTime time_of(const Hardware& hardware, std::vector<MeshAxis> axes, std::string_view names,
                              TransferKind kind, int64_t bytes) {
  const Mesh mesh("mesh", std::move(axes));
  return collective_time(kind, bytes, DeviceTiers(mesh, hardware).cut(axes_named(mesh, names)), hardware);
}

// A torus of units with one link each way between neighbors, of one byte in a picosecond.
class Links {
 public:
  Links(Dims shape, bool closes) : shape_(std::move(shape)), closes_(closes) {}

  int64_t count() const { return element_count(shape_); }
  int64_t at(int64_t unit, size_t dim) const { return unit / stride(dim) % shape_[dim]; }
  int64_t moved(int64_t unit, size_t dim, int64_t to) const { return unit + (to - at(unit, dim)) * stride(dim); }
  // The neighbor on one side, if there is a link; two units on a ring have one link.
  std::optional<int64_t> next(int64_t unit, size_t dim, int64_t side) const {
    const int64_t to = at(unit, dim) + side, size = shape_[dim];
    if (to >= 0 && to < size) return moved(unit, dim, to);
    return closes_ && size > 2 ? std::optional(moved(unit, dim, (to + size) % size)) : std::nullopt;
  }
  const Dims& shape() const { return shape_; }

 private:
  int64_t stride(size_t dim) const {
    int64_t stride = 1;
    for (size_t d = dim + 1; d < shape_.size(); ++d) stride *= shape_[d];
    return stride;
  }
  Dims shape_;
  bool closes_;
};

inline Hardware torus_of(const Links& links, bool closes) {
  Hardware hardware = *default_hardware();
  hardware.hash = 0;
  hardware.tiers = {{.name = "torus",
                     .topology = Topology::kTorus,
                     .size = links.count(),
                     .bandwidth = 1'000'000'000'000,
                     .shape = links.shape(),
                     .wrap_multiple = closes ? 1 : 0}};
  return hardware;
}

// The groups of a mesh over some of its axes.
inline std::map<int64_t, std::vector<int64_t>> groups_of(const Mesh& mesh, const AxisList& axes) {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    int64_t rest = device;
    for (const AxisRef& ref : axes) {
      const int64_t step = mesh.axis_stride(ref.axis);
      rest -= device / step % ref.size * step;
    }
    groups[rest].push_back(device);
  }
  return groups;
}

inline constexpr int64_t kShard = 1'000'000;

}  // namespace shardwise
