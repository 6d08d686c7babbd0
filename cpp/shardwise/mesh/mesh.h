// SPDX-License-Identifier: Apache-2.0
//
// Mesh: named axes over devices, major axis first.
//
// A device has a *logical index*, its row-major position in the grid of axes, and an *id*, its physical name. Without
// device ids, the two are equal:
//
//   Mesh m("mesh", {{"x", 2}, {"y", 3}}, {5, 4, 3, 2, 1, 0});
//   m.device_count()      // 6
//   m.device_at(1)        // 4: the device at x=0, y=1
//   m.logical_index(4)    // 1
//   m.text()              // <["x"=2, "y"=3], device_ids=[5, 4, 3, 2, 1, 0]>
//
// Two meshes without axes have a special meaning. The *empty* mesh `<[]>` is a placeholder, compatible with every mesh.
// The *maximal* mesh `<[], device_ids=[3]>` means "the whole tensor on device 3".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/base/dims.h"

namespace shardwise {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

class Mesh {
 public:
  // Throws MeshError unless sizes >= 1, ids >= 0, names differ, a mesh without axes has at most one id, and the ids of
  // a mesh with axes (if given) are a permutation of 0 .. device_count-1. The ids 0, 1, 2, … are dropped. An inline
  // mesh has no name.
  Mesh(std::string symbol_name, std::vector<MeshAxis> axes, Dims device_ids = {});

  const std::string& name() const { return name_; }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  int ndim() const { return static_cast<int>(axes_.size()); }
  int64_t axis_size(int axis) const { return axes_[static_cast<size_t>(axis)].size; }
  const std::string& axis_name(int axis) const { return axes_[static_cast<size_t>(axis)].name; }
  std::optional<int> find_axis(std::string_view name) const;

  int64_t device_count() const { return device_count_; }                   // 1 without axes
  const Dims& device_ids() const { return order_ ? order_->ids : kIota; }  // empty: id = logical index
  // The same, for who keeps them: copies of a mesh share millions of ids, and are equal without a look at them. Null: none.
  std::shared_ptr<const Dims> shared_device_ids() const {
    return order_ ? std::shared_ptr<const Dims>(order_, &order_->ids) : nullptr;
  }
  // A run keeps the shards of all devices in one process. Throws MeshError, naming `operation`, for more devices.
  static constexpr int64_t kMostDevicesToRun = int64_t{1} << 20;
  void expect_runnable(std::string_view operation) const;
  bool is_maximal() const { return axes_.empty() && !device_ids().empty(); }
  bool is_empty() const { return axes_.empty() && device_ids().empty(); }

  int64_t device_at(int64_t logical_index) const;  // MeshError outside 0 .. device_count-1
  int64_t logical_index(int64_t device) const;     // MeshError for an id that is not in the mesh
  // Row-major stride of an axis in the logical index: coordinate = index / stride % axis_size.
  int64_t axis_stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }

  // Compares names, too, because a program prints them. `same_devices` compares what a program does.
  friend bool operator==(const Mesh& a, const Mesh& b);
  bool same_devices(const Mesh& other) const;         // equal except for the name
  bool same_ignoring_order(const Mesh& other) const;  // the same axes (or both maximal), any ids

  std::string text() const;       // MLIR: <["x"=2, "y"=4], device_ids=[...]>
  std::string reference() const;  // "@name", or "mesh<...>" for an inline mesh
  size_t hash() const { return hash_; }

 private:
  struct Order {
    Dims ids;
    Dims logical_indices;  // their inverse
  };
  static const Dims kIota;  // empty

  void verify_axes() const;
  void verify(DimSpan device_ids) const;
  void order(Dims device_ids);

  std::string name_;
  std::vector<MeshAxis> axes_;
  Dims strides_;
  std::shared_ptr<const Order> order_;  // null for the ids 0, 1, 2, …
  int64_t device_count_ = 1;
  size_t hash_ = 0;
};

using MeshPtr = std::shared_ptr<const Mesh>;

// True when both are null, the same object, or equal.
bool equal(const MeshPtr& a, const MeshPtr& b);

// `name` in double quotes, escaped as in MLIR: `\\`, and `\XX` (hex) for quotes and bytes that are not printable ASCII,
// so any bytes make a valid text. The second function returns `@name`, quoted where MLIR requires it.
std::string quote(std::string_view name);
std::string symbol_text(std::string_view name);

// Mixes `value` into the running hash `seed`.
inline size_t hash_combine(size_t seed, size_t value) {
  return seed ^ (value + size_t{0x9e3779b97f4a7c15ULL} + (seed << 6) + (seed >> 2));
}

}  // namespace shardwise
