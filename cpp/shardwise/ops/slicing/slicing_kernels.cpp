// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/ops/slicing/dynamic_slicing.h"
#include "shardwise/ops/slicing/slicing.h"

namespace shardwise {
namespace {

void fill(const NdArray& array, const NdArray& scalar) {
  array.copy_from(restrided(scalar, array.shape(), Dims(array.shape().size(), 0)));
}

// Which elements of an operand dim survive the padding, and where they stand in the result.
struct KeptRange {
  int64_t first = 0, count = 0, position = 0;
};

KeptRange kept_range(int64_t size, int64_t low, int64_t step, int64_t result_size) {
  KeptRange kept;
  // low -3, step 2: elements 0 and 1 would be at -3 and -1, so element 2 is the first, at 1.
  kept.first = low < 0 ? ceil_div(-low, step) : 0;
  kept.position = low + kept.first * step;
  const int64_t room = kept.position < result_size ? ceil_div(result_size - kept.position, step) : 0;
  kept.count = std::max<int64_t>(std::min(size - kept.first, room), 0);
  return kept;
}

// Start indices of all dims, each clamped so that the slice lies inside.
Dims clamped_starts(KernelContext& context, size_t first, DimSpan whole, DimSpan part) {
  Dims starts;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    starts.push_back(clamped(context.operand(first + dim).scalar_at(0), whole[dim] - part[dim]));
  }
  return starts;
}

}  // namespace

// The limits are those of one shard: a merged dim would be cut short.
std::optional<Kernel> prepare_slice(const OpView& op, const KernelTypes& types) {
  const Dims& start = dims_attr(op, "start_indices");
  const Dims& limit = dims_attr(op, "limit_indices");
  const Dims& strides = dims_attr(op, "strides");
  const Dims& shape = types.results[0].shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != slice_size(start[dim], limit[dim], strides[dim], types.operands[0].shape[dim])) {
      return std::nullopt;
    }
  }
  return [start, shape, strides](KernelContext& context) {
    context.set_result(0, region(context.operand(0), start, shape, strides));
  };
}

void pad_into(KernelContext& context, const NdArray& result, const NdArray& operand, const NdArray& value, DimSpan low,
              DimSpan interior) {
  fill(result, value);
  Dims from, to, count, step;
  for (size_t dim = 0; dim < low.size(); ++dim) {
    step.push_back(interior[dim] + 1);
    const KeptRange kept = kept_range(operand.shape()[dim], low[dim], step[dim], result.shape()[dim]);
    from.push_back(kept.first);
    to.push_back(kept.position);
    count.push_back(kept.count);
  }
  if (element_count(count) == 0) return;
  copy_array(context, region(result, to, count, step), region(operand, from, count));
}

// A merged dim must have no padding.
std::optional<Kernel> prepare_pad(const OpView& op, const KernelTypes& types) {
  const Dims& low = dims_attr(op, "edge_padding_low");
  const Dims& high = dims_attr(op, "edge_padding_high");
  const Dims& interior = dims_attr(op, "interior_padding");
  for (size_t dim = 0; dim < low.size(); ++dim) {
    const int64_t size = types.operands[0].shape[dim], gaps = std::max<int64_t>(size - 1, 0) * interior[dim];
    if (types.results[0].shape[dim] != low[dim] + size + gaps + high[dim]) return std::nullopt;
  }
  return [low, interior](KernelContext& context) {
    pad_into(context, context.allocate_result(), context.operand(0), context.operand(1), low, interior);
  };
}

std::optional<Kernel> prepare_concatenate(const OpView& op, const KernelTypes& types) {
  return [dim = op.attrs().get_int("dimension"), count = types.operands.size()](KernelContext& context) {
    const NdArray result = context.allocate_result();
    int64_t start = 0;
    for (size_t i = 0; i < count; ++i) {
      const NdArray& operand = context.operand(i);
      const int64_t size = operand.shape()[static_cast<size_t>(dim)];
      copy_array(context, result.sliced(dim, start, size), operand);
      start += size;
    }
  };
}

// The sizes are those of one shard, as in a slice.
std::optional<Kernel> prepare_dynamic_slice(const OpView& op, const KernelTypes& types) {
  const Dims& sizes = dims_attr(op, "slice_sizes");
  if (!equal(types.results[0].shape, sizes)) return std::nullopt;
  return [sizes](KernelContext& context) {
    const NdArray& operand = context.operand(0);
    context.set_result(0, region(operand, clamped_starts(context, 1, operand.shape(), sizes), sizes));
  };
}

// A merged dim must be updated whole: elsewhere, starts count from the beginning of one shard.
std::optional<Kernel> prepare_dynamic_update_slice(const OpView& op, const KernelTypes& types) {
  const Dims& whole = op.operand_type(0).shape;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    const bool is_part = whole[dim] != op.operand_type(1).shape[dim];
    if (is_part && types.operands[0].shape[dim] != whole[dim]) return std::nullopt;
  }
  if (equal(types.operands[0].shape, types.operands[1].shape)) {
    return [](KernelContext& context) { context.set_result(0, context.operand(1)); };
  }
  return [](KernelContext& context) {
    const NdArray& update = context.operand(1);
    const Dims starts = clamped_starts(context, 2, context.operand(0).shape(), update.shape());
    const NdArray result = start_result_from(context, 0, 0);
    copy_array(context, region(result, starts, update.shape()), update);
  };
}

}  // namespace shardwise
