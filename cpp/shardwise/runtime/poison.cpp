// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/poison.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/array_view.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// How many rows of a dim's block are real at position `index` along `axes`.
int64_t real_rows(const DimLayout& dim, const DeviceSet& devices, AxisSpan axes, int64_t index) {
  // 17 rows in blocks of 5: position 3 has 17 - 15 = 2 real rows, and position 4, if there is one, none.
  return std::clamp<int64_t>(dim.size - devices.position_along(dim.axes, axes, index) * dim.block, 0, dim.block);
}

int64_t real_rows(const DimLayout& dim, const DeviceOrder& order, const DeviceSet& devices, AxisSpan axes,
                  int64_t index) {
  const int64_t device = order.other_index[static_cast<size_t>(logical_index_of(*order.main, devices, axes, index))];
  return std::clamp<int64_t>(dim.size - shard_index(*order.other, dim.axes, device) * dim.block, 0, dim.block);
}

NdArray with_poison(const NdArray& shard, std::span<const int64_t> real) {
  NdArray copy = pooled_empty(shard.dtype(), shard.shape());
  // A copy, because the array may be a view of an argument or of another value, where these rows are data.
  copy.copy_from(NdArray::full(shard.dtype(), shard.shape(), poison_value(shard.dtype())));
  NdArray to = copy;
  NdArray from = shard;
  for (size_t d = 0; d < real.size(); ++d) {
    to = to.sliced(static_cast<int64_t>(d), 0, real[d]);
    from = from.sliced(static_cast<int64_t>(d), 0, real[d]);
  }
  to.copy_from(from);
  return copy;
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
  const LocalLayout layout = layout_of(module.global_type(value).shape, module.context().placement(part.placement));
  AxisList uneven;
  for (const DimLayout& dim : layout.dims) {
    if (dim.uneven()) uneven.insert(uneven.end(), dim.axes.begin(), dim.axes.end());
  }
  const auto order = plan.orders.find(module.context().placement(part.placement).mesh.get());
  const DeviceOrder* other = order == plan.orders.end() ? nullptr : order->second.get();
  // Devices with and without padding share this array, so rows that are padding on one are data on the other.
  const DigitSet varying = plan.slot_varying[slot];
  const DigitSet needed = other != nullptr ? plan.digits.all() : plan.digits.touched(uneven);
  if (uneven.empty() || (needed & plan.free & ~varying) != 0) return shards;
  const bool is_filled = part.padding.kind == Padding::Kind::kFill;
  std::vector<NdArray> arrays;
  for (int64_t k = 0; k < shards.count(); ++k) {
    std::vector<int64_t> real;
    for (const DimLayout& dim : layout.dims) {
      real.push_back(other != nullptr ? real_rows(dim, *other, devices, shards.axes(), k)
                                      : real_rows(dim, devices, shards.axes(), k));
    }
    if (!is_filled) {
      arrays.push_back(with_poison(shards[k], real));
    } else if (const auto found = other_than(part.padding.fill, shards[k], real)) {
      check_internal(false, str(name_of(module, value), ": the padding of shard ", k, " must be ",
                                text_of(part.padding.fill), ", but holds ", text_of(*found)));
    }
  }
  return is_filled ? std::move(shards) : Shards(shards.axes(), std::move(arrays));
}

}  // namespace shardwise
