// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/shards.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

bool same_form(const NdArray& a, const NdArray& b) {
  // The same owner, because a view keeps one buffer alive, and addresses in different ones may look regular by chance.
  return a.shape() == b.shape() && a.strides() == b.strides() && a.owner() == b.owner();
}

// Builds the stack of a list of views. Returns false unless addresses are affine in the coordinates.
bool try_stack(AxisSpan axes, const std::vector<NdArray>& list, NdArray& stack) {
  const NdArray& base = list.front();
  const Dims grid = sizes_of(axes);
  // For x=2, y=3 the list index of (1, 0) is 3, that of (0, 1) is 1.
  const Dims step = row_major_strides(grid, 1);  // of the list index
  Dims strides;
  for (size_t a = 0; a < grid.size(); ++a) {
    // The second shard along each axis gives its stride; all others are checked against it.
    strides.push_back(grid[a] == 1 ? 0 : list[static_cast<size_t>(step[a])].data() - base.data());
  }
  Dims index(grid.size(), 0);
  for (const NdArray& shard : list) {
    if (!same_form(shard, base)) return false;
    int64_t offset = 0;
    for (size_t a = 0; a < grid.size(); ++a) offset += index[a] * strides[a];
    // Each one is checked: shards 0, 1, 3, 2 of an array have a regular first step only.
    if (shard.data() - base.data() != offset) return false;
    next_index(index, grid);
  }
  stack = NdArray(base.dtype(), concatenated(grid, base.shape()), concatenated(std::move(strides), base.strides()),
                  base.data(), base.owner());
  return true;
}

}  // namespace

Shards shards_along(const AxisList& axes, const NdArray& array) {
  AxisList sorted = in_mesh_order(axes);
  NdArray ordered = reorder_axes(array, axes, sorted);
  return {std::move(sorted), std::move(ordered)};
}

Shards own_parts(const Shards& operand, std::span<const AxisList> scatter) {
  AxisList axes = in_mesh_order(joined(operand.axes(), joined(scatter)));
  NdArray parts = parts_of(operand.stack(), operand.axes(), scatter, axes);
  return {std::move(axes), std::move(parts)};
}

int64_t position_along(AxisSpan axes, AxisSpan grid, int64_t index) {
  Dims coordinates(grid.size());
  for (size_t i = grid.size(); i-- > 0;) {
    coordinates[i] = index % grid[i].size;
    index /= grid[i].size;
  }
  // For x = 8, grid {(1)2, (2)4} at {1, 1} is coordinate 1 * 4 + 1 = 5 of x, and along (2)2 that is 5 / 2 % 2 = 0.
  int64_t position = 0;
  for (const AxisRef& wanted : axes) {
    // Any common multiple will do as the axis size: the digits after the last cut are 0.
    int64_t axis_size = wanted.next();
    for (const AxisRef& known : grid) {
      if (known.axis == wanted.axis) axis_size = std::lcm(axis_size, known.next());
    }
    int64_t coordinate = 0;
    for (size_t i = 0; i < grid.size(); ++i) {
      if (grid[i].axis == wanted.axis) coordinate += coordinates[i] * (axis_size / grid[i].next());
    }
    position = position * wanted.size + coordinate / (axis_size / wanted.next()) % wanted.size;
  }
  return position;
}

Shards::Shards(AxisList axes, std::vector<NdArray> list) : axes_(std::move(axes)) {
  check_internal(static_cast<int64_t>(list.size()) == product(axes_), "Shards: one array per position");
  if (!try_stack(axes_, list, stacked_)) list_ = std::move(list);
}

Dims Shards::local_shape() const {
  if (!is_stacked()) return list_.front().shape();
  return {stacked_.shape().begin() + static_cast<std::ptrdiff_t>(axes_.size()), stacked_.shape().end()};
}

NdArray Shards::operator[](int64_t index) const {
  if (!is_stacked()) return list_[static_cast<size_t>(index)];
  if (axes_.empty()) return stacked_;
  const auto lead = static_cast<std::ptrdiff_t>(axes_.size());
  int64_t offset = 0;
  for (size_t a = axes_.size(); a-- > 0;) {
    offset += index % axes_[a].size * stacked_.strides()[a];
    index /= axes_[a].size;
  }
  Dims shape(stacked_.shape().begin() + lead, stacked_.shape().end());
  Dims strides(stacked_.strides().begin() + lead, stacked_.strides().end());
  return {stacked_.dtype(), std::move(shape), std::move(strides), stacked_.data() + offset, stacked_.owner()};
}

NdArray Shards::stack() const {
  if (is_stacked()) return stacked_;
  const Shards copy(axes_, pooled_empty(dtype(), concatenated(sizes_of(axes_), local_shape())));
  for (int64_t i = 0; i < count(); ++i) copy_parallel(copy[i], (*this)[i]);
  return copy.stacked_;
}

Shards Shards::along(AxisSpan axes) const {
  if (std::equal(axes.begin(), axes.end(), axes_.begin(), axes_.end())) return *this;
  NdArray view;
  // A view needs no list with one entry per device, and it is a stack again.
  if (is_stacked() && along_by_view(axes, view)) return {{axes.begin(), axes.end()}, std::move(view)};
  return along_by_index(axes);
}

bool Shards::along_by_view(AxisSpan axes, NdArray& view) const {
  const auto cut_axes = cut_at(axes_, axes);
  if (!cut_axes) return false;
  const AxisList& have = *cut_axes;
  const auto cut_wanted = cut_at(axes, have);
  if (!cut_wanted) return false;
  const AxisList& want = *cut_wanted;
  view = stacked_;
  for (size_t i = axes_.size(), end = have.size(); i-- > 0;) {  // split the dims at the borders of the new axes
    Dims sizes;
    size_t begin = end;
    while (begin > 0 && have[begin - 1].axis == axes_[i].axis && have[begin - 1].pre >= axes_[i].pre) {
      sizes.insert(sizes.begin(), have[--begin].size);
    }
    view = split_dim(view, i, sizes);
    end = begin;
  }
  size_t at = 0;
  for (const AxisRef& piece : have) {  // select coordinate 0 of removed axes
    const bool stays = std::find(want.begin(), want.end(), piece) != want.end();
    if (stays) {
      ++at;
    } else {
      view = select(view, at, 0);
    }
  }
  for (size_t i = 0; i < want.size(); ++i) {  // repeat along added axes
    if (std::find(have.begin(), have.end(), want[i]) == have.end()) view = insert_dim(view, i, want[i].size);
  }
  for (size_t i = 0, piece = 0; i < axes.size(); ++i) {
    size_t end = i;
    for (; piece < want.size() && want[piece].axis == axes[i].axis && want[piece].next() <= axes[i].next(); ++piece)
      ++end;
    if (end == i + 1) continue;
    auto merged = merge_dims(view, i, end);
    // Pieces of one wanted axis have no single stride: some were there, others were added with stride 0.
    if (!merged) return false;
    view = std::move(*merged);
  }
  return true;
}

Shards Shards::along_by_index(AxisSpan axes) const {
  std::vector<NdArray> list;
  const int64_t wanted = product(axes);
  list.reserve(static_cast<size_t>(wanted));
  for (int64_t i = 0; i < wanted; ++i) list.push_back((*this)[position_along(axes_, axes, i)]);
  return {{axes.begin(), axes.end()}, std::move(list)};
}

}  // namespace shardwise
