// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/sharded_array.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {
namespace {

constexpr int64_t kShardGrainBytes = int64_t{1} << 17;

// The part of the global array at position `index` along `axes`.
LocalSlice slice_at(const Placement& placement, DimSpan shape, AxisSpan axes, int64_t index) {
  LocalSlice slice;
  for (size_t d = 0; d < shape.size(); ++d) {
    const DimPlacement& dim = placement.dims[d];
    // 17 rows in blocks of 5: shard 3 has rows 15 and 16, and shards after it begin at 17, with no row.
    slice.start.push_back(std::min(position_along(dim.axes, axes, index) * dim.block, shape[d]));
    slice.size.push_back(std::min(dim.block, shape[d] - slice.start[d]));
  }
  return slice;
}

NdArray part_of(NdArray array, const LocalSlice& slice) {
  for (size_t d = 0; d < slice.size.size(); ++d) {
    array = array.sliced(static_cast<int64_t>(d), slice.start[d], slice.size[d]);
  }
  return array;
}

NdArray without_padding(const NdArray& shard, const Dims& shape) {
  return part_of(shard, {Dims(shape.size(), 0), shape});
}

// The slice as a whole block: a view, if it is one, else a padded copy.
NdArray block_of(const NdArray& array, const LocalSlice& slice, const Dims& blocks, PaddingFill fill) {
  NdArray part = part_of(array, slice);
  if (slice.size == blocks) return part;
  const DType dtype = array.dtype();
  NdArray copy = pooled_empty(dtype, blocks);
  if (leaves_out(copy.nbytes())) return copy;
  const Scalar padding = fill == PaddingFill::kPoison ? poison_value(dtype) : Scalar::of_int(dtype, 0);
  // The whole block, then the part over it: the padding of several dims is no rectangle.
  copy.copy_from(NdArray::full(dtype, blocks, padding));
  without_padding(copy, slice.size).copy_from(part);
  return copy;
}

// No shard has padding.
bool is_even(const Placement& placement, DimSpan shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (placement.dims[d].block * placement.shard_count(d) != shape[d]) return false;
  }
  return true;
}

// The padded global array as a view of the stack, if the shards are adjacent.
std::optional<NdArray> whole_view(const Shards& shards, const Placement& placement) {
  if (!shards.is_stacked()) return std::nullopt;
  const std::vector<AxisList> dims = placement.dim_axes();
  const AxisList all = joined(dims);
  // A dim may be sharded along {"x":(1)2} and another along the rest of x: each piece must be a dim of its own here.
  auto labels = cut_at(all, all);
  if (!labels) return std::nullopt;
  std::sort(labels->begin(), labels->end());
  const Shards split = shards.along(*labels);
  if (!split.is_stacked()) return std::nullopt;
  std::vector<size_t> order;
  std::vector<size_t> groups;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto pieces = cut_at(dims[d], all);
    if (!pieces) return std::nullopt;
    for (const AxisRef& axis : *pieces) order.push_back(position_of(*labels, axis));
    order.push_back(labels->size() + d);
    groups.push_back(pieces->size() + 1);
  }
  // The dims [x=4, 2, 3] merge to {8, 3}; there is no view if something else is between the shards.
  return merged_view(reorder_dims(split.stacked(), order), groups);
}

}  // namespace

AxisList varying_axes(const Placement& placement) {
  AxisList axes = placement.axes();
  // Nothing varies along an axis of size 1.
  erase_if(axes, [](const AxisRef& axis) { return axis.size == 1; });
  return sort_and_merge(axes);
}

ArrayLayoutPtr array_layout(TensorSharding sharding, DimSpan shape, DimSpan blocks) {
  Placement placement = placement_of(sharding, shape, blocks);
  return std::make_shared<const ArrayLayout>(ArrayLayout{std::move(sharding), std::move(placement)});
}

ShardedArray::ShardedArray(DType dtype, Dims shape, ArrayLayoutPtr layout, Shards shards, DeviceSet devices)
    : dtype_(dtype),
      shape_(std::move(shape)),
      layout_(std::move(layout)),
      shards_(std::move(shards)),
      devices_(std::move(devices)) {
  if (shards_.dtype() != dtype_ ||
      !std::ranges::equal(shards_.local_shape(), placement().dims, {}, {}, &DimPlacement::block)) {
    fail<ShapeError>("sharded array", "every shard must be a block of the array",
                     str(shards_.dtype(), shards_.local_shape(), " for ", dtype_, placement().local_shape()),
                     "give all shards the block's shape and the array's dtype");
  }
}

LocalSlice ShardedArray::slice(int64_t device) const {
  return slice_of(sharding(), shape_, mesh().logical_index(device), placement().local_shape());
}

Shards ShardedArray::owned_by(const DeviceSet& devices) const {
  if (devices == devices_) return shards_;
  if (!devices_.is_all()) {
    fail<ShardingError>("sharded array", "the shards must be on the devices that run the program",
                        "shards of the devices of other ranks", "gather it first: np.asarray(x)");
  }
  return devices.owned(shards_);
}

NdArray ShardedArray::padded_shard(int64_t device) const {
  const int64_t index = mesh().logical_index(device);
  check_internal(devices_.owns(mesh(), index), "sharded array: a device that this process owns");
  return shards_[shard_index(mesh(), shards_.axes(), index)];
}

NdArray ShardedArray::shard(int64_t device) const { return without_padding(padded_shard(device), slice(device).size); }

ShardedArray scatter(const NdArray& array, const TensorSharding& sharding, DimSpan blocks, PaddingFill fill) {
  sharding.mesh->expect_runnable("array");
  const Dims local = local_shape(sharding, array.shape(), blocks);
  const ArrayLayoutPtr layout = array_layout(sharding, array.shape(), local);
  const Placement& placement = layout->placement;
  AxisList axes = varying_axes(placement);
  // All blocks are full, so that each is a part of the user's array, and nothing is copied.
  if (placement.unreduced.empty() && is_even(placement, array.shape())) {
    Shards shards = own_parts(Shards(array), placement.dim_axes()).along(axes);
    return {array.dtype(), array.shape(), layout, std::move(shards)};
  }
  const NdArray neutral = placement.unreduced.empty()
                              ? NdArray()
                              : NdArray::full(array.dtype(), local, neutral_element(placement.reducer, array.dtype()));
  std::vector<NdArray> list;
  for (int64_t i = 0; i < product(axes); ++i) {
    // The value must count once in the pending reduction, so only the first device of each group gets it.
    if (position_along(placement.unreduced, axes, i) != 0) {
      list.push_back(neutral);
      continue;
    }
    list.push_back(block_of(array, slice_at(placement, array.shape(), axes, i), local, fill));
  }
  Shards shards(std::move(axes), std::move(list));
  return {array.dtype(), array.shape(), layout, std::move(shards)};
}

ShardedArray scatter(const NdArray& array, const Placement& placement, PaddingFill fill) {
  return scatter(array, sharding_of(placement), placement.local_shape(), fill);
}

NdArray gather(const ShardedArray& array) {
  check_internal(array.devices().is_all(), "gather: the shards of all devices");
  const Placement& placement = array.placement();
  Shards shards = array.shards().along(varying_axes(placement));
  if (!placement.unreduced.empty()) {
    shards = VirtualCommunicator().all_reduce(shards, placement.unreduced, placement.reducer);
  }
  // Padding is at the end of a dim only, so that cutting it off is a view, too.
  if (const auto view = whole_view(shards, placement)) return without_padding(*view, array.shape());
  NdArray result = pooled_empty(array.dtype(), array.shape());
  const int64_t count = shards.count();
  const int64_t bytes = std::max<int64_t>(1, result.nbytes() / count);
  parallel_for(count, ceil_div(kShardGrainBytes, bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const LocalSlice slice = slice_at(placement, array.shape(), shards.axes(), i);
      copy_parallel(part_of(result, slice), without_padding(shards[i], slice.size));
    }
  });
  return result;
}

NdArray gather(const ShardedArray& array, DeviceCommunicator& communicator) {
  const Placement& placement = array.placement();
  Shards shards = array.shards().along(array.devices().free(varying_axes(placement)));
  if (!placement.unreduced.empty()) {
    shards = communicator.all_reduce(shards, placement.unreduced, placement.reducer);
  }
  // Whole blocks travel, padding included, which is cut off below.
  shards = communicator.all_gather(shards, placement.dim_axes());
  return without_padding(shards[0], array.shape());
}

namespace {

// The rows of one dim that a process holds: for each of its shards, where its rows begin in the part, and how many.
std::vector<std::pair<int64_t, int64_t>> own_rows(AxisSpan axes, AxisSpan own, const DeviceSet& devices, int64_t block,
                                                  int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  int64_t begin = 0;
  for (int64_t i = 0; i < product(own); ++i) {
    const int64_t start = std::min(devices.position_along(axes, own, i) * block, size);
    rows.emplace_back(begin, std::min(block, size - start));
    begin += rows.back().second;
  }
  return rows;
}

}  // namespace

ShardedArray from_own_part(const NdArray& part, const Dims& shape, const TensorSharding& sharding,
                           const DeviceSet& devices) {
  const ArrayLayoutPtr layout = array_layout(sharding, shape);
  const Placement& placement = layout->placement;
  const Dims blocks = placement.local_shape();
  std::vector<AxisList> own = placement.dim_axes();
  std::vector<std::vector<std::pair<int64_t, int64_t>>> rows;
  Dims expected;
  for (size_t d = 0; d < shape.size(); ++d) {
    const AxisList axes = std::exchange(own[d], devices.free(own[d]));
    rows.push_back(own_rows(axes, own[d], devices, blocks[d], shape[d]));
    expected.push_back(rows.back().back().first + rows.back().back().second);
  }
  if (part.shape() != expected) {
    fail<ShapeError>("device_put", str("the part of this rank must have the shape ", expected, " of an array ", shape),
                     str(part.shape()), "give the rows of this rank's devices");
  }
  AxisList axes = devices.free(varying_axes(placement));
  std::vector<NdArray> list;
  for (int64_t i = 0; i < product(axes); ++i) {
    LocalSlice slice;
    for (size_t d = 0; d < shape.size(); ++d) {
      // Rows in the part, not in the global array: a process at y=1 has rows 1, 3, 5 and 7 side by side.
      const auto& [start, size] = rows[d][static_cast<size_t>(position_along(own[d], axes, i))];
      slice.start.push_back(start);
      slice.size.push_back(size);
    }
    list.push_back(block_of(part, slice, blocks, PaddingFill::kZero));
  }
  return {part.dtype(), shape, layout, Shards(std::move(axes), std::move(list)), devices};
}

}  // namespace shardwise
