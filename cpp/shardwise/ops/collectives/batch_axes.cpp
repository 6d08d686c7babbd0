// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/batch_axes.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// The leading dim as one dim per axis.
ValueId split_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet set) {
  return build_reshape(builder, value, joined(axes.sizes(set), shape_of_row(builder.module(), value, set)));
}

}  // namespace

BatchAxes BatchAxes::of_examples(int64_t size) {
  BatchAxes axes;
  axes.sizes_ = {size};
  axes.are_examples_ = true;
  return axes;
}

BatchAxes BatchAxes::of_examples(const MeshPtr& named) {
  const AxisRef axis = full_axis(*named, 0);
  BatchAxes axes = of_examples(axis.size);
  axes.refs_ = {axis};
  axes.mesh_ = named;
  return axes;
}

BatchAxes BatchAxes::with(const MeshPtr& mesh, const AxisList& inner) const {
  BatchAxes axes = *this;
  if (mesh != nullptr) axes.mesh_ = mesh;
  for (const AxisRef& ref : inner) {
    if (ref.size == 1) continue;
    axes.refs_.push_back(ref);
    axes.sizes_.push_back(ref.size);
  }
  if (axes.count() > kMost) {
    fail<MeshError>("sdy.manual_computation", str("there must be at most ", kMost, " manual axes"), str(axes.count()));
  }
  return axes;
}

std::vector<size_t> BatchAxes::members(AxisSet set) const {
  std::vector<size_t> found;
  for (size_t axis = 0; axis < count(); ++axis) {
    if (has_axis(set, axis)) found.push_back(axis);
  }
  return found;
}

Dims BatchAxes::sizes(AxisSet set) const {
  Dims sizes;
  for (const size_t axis : members(set)) sizes.push_back(size(axis));
  return sizes;
}

int64_t BatchAxes::rows(AxisSet set) const { return element_count(sizes(set)); }

Dims BatchAxes::with_rows(AxisSet set, DimSpan row) const {
  return set == 0 ? to_dims(row) : with_leading(rows(set), row);
}

int64_t BatchAxes::stride_in_mesh(size_t axis) const {
  const AxisRef& ref = refs_[axis];
  return mesh_->axis_stride(ref.axis) * (mesh_->axis_size(ref.axis) / ref.next());
}

AxisSet BatchAxes::inside(const AxisRef& ref) const {
  AxisSet set = 0;
  for (size_t axis = 0; axis < refs_.size(); ++axis) {
    if (contains(ref, refs_[axis])) set |= AxisSet{1} << axis;
  }
  return set;
}

AxisList BatchAxes::refs(AxisSet set) const {
  AxisList list;
  for (const size_t axis : members(set)) append_merged(list, refs_[axis]);
  return list;
}

Dims shape_of_row(const Module& module, ValueId value, AxisSet set) {
  Dims shape = module.type(value).shape;
  if (set != 0) shape.erase(shape.begin());
  return shape;
}

ValueId repeat_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet from, AxisSet to) {
  check_internal(is_subset(from, to), "rows are repeated along more axes");
  if (from == to) return value;
  const Dims row = shape_of_row(builder.module(), value, from);
  Dims places;
  const std::vector<size_t> wanted = axes.members(to);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (has_axis(from, wanted[i])) places.push_back(static_cast<int64_t>(i));
  }
  // All rows are equal: no dim has to be split first.
  if (from == 0) {
    return build_broadcast(builder, value, axes.with_rows(to, row), identity_dims(std::ssize(row), 1));
  }
  const Dims dims = joined(places, identity_dims(std::ssize(row), std::ssize(wanted)));
  const ValueId apart = split_rows(builder, axes, value, from);
  const ValueId repeated = build_broadcast(builder, apart, joined(axes.sizes(to), row), dims);
  return build_reshape(builder, repeated, axes.with_rows(to, row));
}

ValueId take_first_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet from, AxisSet to) {
  check_internal(is_subset(to, from), "the first rows are along fewer axes");
  if (from == to) return value;
  const Dims row = shape_of_row(builder.module(), value, from);
  const ValueId apart = split_rows(builder, axes, value, from);
  Dims limit = builder.module().type(apart).shape;
  const std::vector<size_t> known = axes.members(from);
  for (size_t i = 0; i < known.size(); ++i) {
    if (!has_axis(to, known[i])) limit[i] = 1;
  }
  const ValueId first = build_slice(builder, apart, Dims(limit.size(), 0), limit);
  return build_reshape(builder, first, axes.with_rows(to, row));
}

}  // namespace shardwise
