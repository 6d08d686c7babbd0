// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/placement/placed_type.h"

namespace shardwise {
namespace {

const AxisList kNoAxes;

}  // namespace

TypeId local_type(Context& context, PlacedType placed) {
  if (!placed.placement) return placed.type;
  return context.tensor(context.type(placed.type).dtype, context.placement(placed.placement).local_shape());
}

LayoutView::LayoutView(const Context& context, PlacedType placed)
    : shape_(&context.type(placed.type).shape),
      placement_(placed.placement ? &context.placement(placed.placement) : nullptr) {}

DimLayout LayoutView::dim(size_t d) const {
  return {.size = (*shape_)[d], .axes = axes(d), .shards = product(axes(d)), .block = block(d)};
}

std::vector<DimLayout> LayoutView::dims() const {
  std::vector<DimLayout> dims;
  dims.reserve(ndim());
  for (size_t d = 0; d < ndim(); ++d) dims.push_back(dim(d));
  return dims;
}

const AxisList& LayoutView::axes(size_t d) const { return placement_ == nullptr ? kNoAxes : placement_->dims[d].axes; }

int64_t LayoutView::block(size_t d) const { return placement_ == nullptr ? (*shape_)[d] : placement_->dims[d].block; }

Dims LayoutView::local_shape() const { return placement_ == nullptr ? *shape_ : placement_->local_shape(); }

bool LayoutView::is_uneven() const {
  for (size_t d = 0; d < ndim(); ++d) {
    if (dim(d).uneven()) return true;
  }
  return false;
}

const AxisList& LayoutView::unreduced() const { return placement_ == nullptr ? kNoAxes : placement_->unreduced; }

bool LayoutView::is_owned() const { return placement_ != nullptr && placement_->is_owned; }

Reducer LayoutView::reducer() const { return placement_ == nullptr ? Reducer::kNone : placement_->reducer; }

}  // namespace shardwise
