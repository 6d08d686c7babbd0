// SPDX-License-Identifier: Apache-2.0
//
// The leading dim of batched values: rows along the examples of a vmap, or along the manual axes of a mesh.
//
//   manual axes x=2, y=4        a value that differs along    has the type         row
//   and tensor<8xf32> inside    {x, y}                        tensor<8x8xf32>      4 · x + y
//                               {y}                           tensor<4x8xf32>      y
//                               {}                            tensor<8xf32>        the same on all devices
//
// An AxisSet says along which axes a value differs. A value has rows along these alone, so that what is equal on all
// devices stays one value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

using AxisSet = uint64_t;  // bit i: axis i of BatchAxes

class BatchAxes {
 public:
  BatchAxes() = default;  // none: a program of one device
  static BatchAxes of_examples(int64_t size);
  // Examples that collectives in the function name, by the one axis of a mesh that no program has.
  static BatchAxes of_examples(const MeshPtr& named);
  // These axes, and more that an inner manual computation takes. Refs of size 1 are left out.
  BatchAxes with(const MeshPtr& mesh, const AxisList& inner) const;

  bool are_examples() const { return are_examples_; }
  const MeshPtr& mesh() const { return mesh_; }  // null for examples without a name, and without axes
  size_t count() const { return sizes_.size(); }
  int64_t size(size_t axis) const { return sizes_[axis]; }
  const AxisRef& ref(size_t axis) const { return refs_[axis]; }
  int64_t stride_in_mesh(size_t axis) const;  // in the logical index of a device
  AxisSet all() const { return count() == kMost ? ~AxisSet{0} : (AxisSet{1} << count()) - 1; }

  // The axes of the program's mesh that shard the rows of annotated values.
  const std::vector<std::string>& mesh_axes() const { return mesh_axes_; }
  void set_mesh_axes(std::vector<std::string> names) { mesh_axes_ = std::move(names); }

  std::vector<size_t> members(AxisSet set) const;  // ascending
  Dims sizes(AxisSet set) const;                   // of the members
  int64_t rows(AxisSet set) const;                 // their product; 1 for the empty set
  Dims with_rows(AxisSet set, DimSpan row) const;  // the shape of a value whose rows have the shape `row`
  AxisSet inside(const AxisRef& ref) const;        // those that are digits of the ref
  AxisList refs(AxisSet set) const;                // in order, merged

 private:
  static constexpr size_t kMost = 64;
  Dims sizes_;
  AxisList refs_;  // one per size; empty for examples
  MeshPtr mesh_;
  std::vector<std::string> mesh_axes_;
  bool are_examples_ = false;
};

inline bool has_axis(AxisSet set, size_t axis) { return (set >> axis & 1) != 0; }
inline bool is_subset(AxisSet inner, AxisSet outer) { return (inner & ~outer) == 0; }

// The shape without the leading dim.
Dims shape_of_row(const Module& module, ValueId value, AxisSet set);
// The value with rows along more axes, along which it is equal.
ValueId repeat_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet from, AxisSet to);
// The value with rows along fewer axes: the first row along the others.
ValueId take_first_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet from, AxisSet to);

}  // namespace shardwise
