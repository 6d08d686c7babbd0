// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/ops/slicing/dynamic_slicing.h"
#include "shardwise/ops/slicing/slicing.h"

namespace shardwise {
namespace {

const Dims& dims_attr(const KernelContext& context, std::string_view name) {
  return context.op().attrs().get<IntArray>(name);
}

void fill(const NdArray& array, const NdArray& scalar) {
  array.copy_from(restrided(scalar, array.shape(), Dims(array.shape().size(), 0)));
}

// Which elements of an operand dim survive the padding, and where they stand in the result.
struct KeptRange {
  int64_t first = 0, count = 0, position = 0;
};

KeptRange kept_range(int64_t size, int64_t low, int64_t step, int64_t result_size) {
  KeptRange kept;
  kept.first = low < 0 ? ceil_div(-low, step) : 0;
  kept.position = low + kept.first * step;
  const int64_t room = kept.position < result_size ? ceil_div(result_size - kept.position, step) : 0;
  kept.count = std::max<int64_t>(std::min(size - kept.first, room), 0);
  return kept;
}

// Start indices of all dims, each clamped so that the slice lies inside.
Dims clamped_starts(const KernelContext& context, size_t first, DimSpan whole, DimSpan part) {
  Dims starts;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    const Scalar index = context.operand(first + dim).scalar_at(0);
    const int64_t bound = whole[dim] - part[dim];
    if (is_unsigned_integer(index.dtype)) {
      starts.push_back(static_cast<int64_t>(std::min(index.natural, static_cast<uint64_t>(bound))));
    } else {
      starts.push_back(std::clamp<int64_t>(index.integer, 0, bound));
    }
  }
  return starts;
}

}  // namespace

void kernel_slice(KernelContext& context) {
  context.set_result(0, region(context.operand(0), dims_attr(context, "start_indices"),
                               context.op().result_type().shape, dims_attr(context, "strides")));
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

void kernel_pad(KernelContext& context) {
  pad_into(context, context.allocate_result(), context.operand(0), context.operand(1),
           dims_attr(context, "edge_padding_low"), dims_attr(context, "interior_padding"));
}

void kernel_concatenate(KernelContext& context) {
  const int64_t dim = context.op().attrs().get_int("dimension");
  const NdArray result = context.allocate_result();
  int64_t start = 0;
  for (size_t i = 0; i < context.op().operand_count(); ++i) {
    const NdArray& operand = context.operand(i);
    const int64_t size = operand.shape()[static_cast<size_t>(dim)];
    copy_array(context, result.sliced(dim, start, size), operand);
    start += size;
  }
}

void kernel_dynamic_slice(KernelContext& context) {
  const NdArray& operand = context.operand(0);
  const Dims& sizes = context.op().result_type().shape;
  context.set_result(0, region(operand, clamped_starts(context, 1, operand.shape(), sizes), sizes));
}

void kernel_dynamic_update_slice(KernelContext& context) {
  const NdArray& operand = context.operand(0);
  const NdArray& update = context.operand(1);
  if (equal(operand.shape(), update.shape())) return context.set_result(0, update);
  const Dims starts = clamped_starts(context, 2, operand.shape(), update.shape());
  const NdArray result = context.allocate_result();
  copy_array(context, result, operand);
  copy_array(context, region(result, starts, update.shape()), update);
}

}  // namespace shardwise
