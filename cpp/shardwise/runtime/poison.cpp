// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/poison.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// How many rows of a dim's block are real on the device at position `index` along `axes`; `order` is null unless the
// dim's axes are of another mesh.
int64_t real_rows(const DimLayout& dim, const DeviceOrder* order, const DeviceSet& devices, AxisSpan axes,
                  int64_t index) {
  int64_t shard = 0;
  if (order == nullptr) {
    shard = devices.position_along(dim.axes, axes, index);
  } else {
    const int64_t device = logical_index_of(*order->main, devices, axes, index);
    shard = shard_index(*order->other, dim.axes, order->other_index[static_cast<size_t>(device)]);
  }
  // 17 rows in blocks of 5: position 3 has 17 - 15 = 2 real rows, and position 4, if there is one, none.
  return std::clamp<int64_t>(dim.size - shard * dim.block, 0, dim.block);
}

// The bytes before the first element of an array and from there to its end.
struct Extent {
  int64_t before = 0, after = 0;
};

Extent extent_of(DimSpan shape, DimSpan strides, int64_t item) {
  Extent extent{0, item};
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t reach = strides[d] * (shape[d] - 1);
    (reach < 0 ? extent.before : extent.after) += std::abs(reach);
  }
  return extent;
}

// The strides of the original, so that kernels read a copy in the same order and by the same code. Elements that share
// memory in `array` (stride 0) get their own: outermost and apart, since kernels treat adjacent items differently.
// Row-major if elements of other strides overlap.
Dims strides_apart(const NdArray& array) {
  const Dims& shape = array.shape();
  const int64_t item = item_size(array.dtype());
  Dims strides = array.strides();
  int64_t extent = item;  // of the dims inside
  const std::vector<size_t> order = memory_order(array);
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = order[i];
    if (strides[d] == 0 || shape[d] <= 1) continue;
    if (std::abs(strides[d]) < extent) return row_major_strides(shape, item);
    extent += std::abs(strides[d]) * (shape[d] - 1);
  }
  for (size_t d = shape.size(); d-- > 0;) {
    if (strides[d] != 0 || shape[d] <= 1) continue;
    strides[d] = extent + item;
    extent = strides[d] * shape[d];
  }
  return strides;
}

NdArray copy_apart(const NdArray& array) {
  if (array.size() == 0) return array;
  Dims strides = strides_apart(array);
  const Extent extent = extent_of(array.shape(), strides, item_size(array.dtype()));
  const NdArray memory = pooled_empty(DType::kU8, {extent.before + extent.after});
  NdArray copy(array.dtype(), array.shape(), std::move(strides), memory.data() + extent.before, memory.owner());
  copy_parallel(copy, array);
  return copy;
}

// Views of one memory that do not overlap stay at their distances: whether steps on them run merged depends on it, and
// a merged sum is another one. Returns false if they overlap.
bool copy_together(std::span<NdArray*> views) {
  const auto extent = [](const NdArray& x) { return extent_of(x.shape(), x.strides(), item_size(x.dtype())); };
  std::ranges::sort(views, {}, [&](const NdArray* x) { return x->data() - extent(*x).before; });
  const std::byte* end = nullptr;
  for (const NdArray* x : views) {
    if (strides_apart(*x) != x->strides() || (end != nullptr && x->data() - extent(*x).before < end)) return false;
    end = x->data() + extent(*x).after;
  }
  const std::byte* begin = views.front()->data() - extent(*views.front()).before;
  const NdArray memory = pooled_empty(DType::kU8, {end - begin});
  for (NdArray* x : views) {
    NdArray copy(x->dtype(), x->shape(), x->strides(), memory.data() + (x->data() - begin), memory.owner());
    copy_parallel(copy, *x);
    *x = std::move(copy);
  }
  return true;
}

Shards copy_apart(const Shards& shards) {
  if (shards.is_stacked()) return {shards.axes(), copy_apart(shards.stacked())};
  std::vector<NdArray> list;
  for (int64_t k = 0; k < shards.count(); ++k) list.push_back(shards[k]);
  std::vector<NdArray*> views;
  for (NdArray& shard : list) views.push_back(&shard);
  if (list.front().size() == 0) return {shards.axes(), std::move(list)};
  std::ranges::sort(views, {}, [](const NdArray* x) { return x->owner().get(); });
  for (auto first = views.begin(); first != views.end();) {
    const auto last =
        std::find_if(first, views.end(), [&](const NdArray* x) { return x->owner() != (*first)->owner(); });
    if (!copy_together({first, last})) {
      for (NdArray* x : std::span(first, last)) *x = copy_apart(*x);
    }
    first = last;
  }
  return {shards.axes(), std::move(list)};
}

void write_poison(NdArray shard, std::span<const int64_t> real) {
  for (size_t d = 0; d < real.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    const NdArray padding = shard.sliced(dim, real[d], shard.shape()[d] - real[d]);
    padding.copy_from(NdArray::full(shard.dtype(), padding.shape(), poison_value(shard.dtype())));
    shard = shard.sliced(dim, 0, real[d]);
  }
}

// An element after the real rows that differs from `fill`; none if all of them hold it.
std::optional<Scalar> other_than(const Scalar& fill, const NdArray& shard, std::span<const int64_t> real) {
  for (size_t d = 0; d < real.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    // The slab after the real rows of each dim; slabs overlap in the corners, which are then read twice.
    const NdArray padding = shard.sliced(dim, real[d], shard.shape()[d] - real[d]).contiguous();
    for (int64_t i = 0; i < padding.size(); ++i) {
      if (const Scalar found = padding.scalar_at(i); found != fill) return found;
    }
  }
  return std::nullopt;
}

std::string text_of(const Scalar& scalar) {
  if (is_complex(scalar.dtype)) return str("(", scalar.real, ", ", scalar.imag, ")");
  if (is_float(scalar.dtype)) return str(scalar.real);
  return is_unsigned_integer(scalar.dtype) ? str(scalar.natural) : str(scalar.integer);
}

std::string name_of(const Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  return op ? std::string(module.op(op).def->name) : "an argument";
}

}  // namespace

Shards poisoned(Shards shards, uint32_t slot, const Module& module, const Plan& plan, const DeviceSet& devices) {
  const ValueId value = plan.slots[slot];
  const GlobalPart& part = module.part(value);
  if (part.padding.kind == Padding::Kind::kNone) return shards;
  const std::vector<DimLayout> dims = LayoutView(module.context(), module.placed_type(value)).dims();
  AxisList uneven;
  for (const DimLayout& dim : dims) {
    if (dim.uneven()) uneven.insert(uneven.end(), dim.axes.begin(), dim.axes.end());
  }
  const auto order = plan.orders.find(module.context().placement(part.placement).mesh.get());
  const DeviceOrder* other = order == plan.orders.end() ? nullptr : order->second.get();
  // Devices with and without padding share this array, so rows that are padding on one are data on the other.
  const DigitSet varying = plan.slot_varying[slot];
  const DigitSet needed = other != nullptr ? plan.digits.all() : plan.digits.touched(uneven);
  if (uneven.empty() || (needed & plan.free & ~varying) != 0) return shards;
  const bool is_filled = part.padding.kind == Padding::Kind::kFill;
  if (!is_filled) shards = copy_apart(shards);
  for (int64_t k = 0; k < shards.count(); ++k) {
    std::vector<int64_t> real;
    for (const DimLayout& dim : dims) real.push_back(real_rows(dim, other, devices, shards.axes(), k));
    if (!is_filled) {
      write_poison(shards[k], real);
    } else if (const auto found = other_than(part.padding.fill, shards[k], real)) {
      check_internal(false, str(name_of(module, value), ": the padding of shard ", k, " must be ",
                                text_of(part.padding.fill), ", but holds ", text_of(*found)));
    }
  }
  return shards;
}

}  // namespace shardwise
