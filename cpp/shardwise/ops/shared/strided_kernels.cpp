// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/strided_kernels.h"

#include <algorithm>
#include <array>

#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

constexpr int64_t kCopyGrainBytes = 1 << 19;

}  // namespace

ParallelFor pool_of(KernelContext& context) {
  return [&context](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    context.parallel_for(count, grain, body);
  };
}

NdArray restrided(const NdArray& array, Dims shape, Dims strides, int64_t offset) {
  std::byte* data = array.data();
  // The start of an empty region may be past the end of the buffer, where no pointer may be.
  if (element_count(shape) != 0) data += offset;
  return {array.dtype(), std::move(shape), std::move(strides), data, array.owner()};
}

NdArray permuted(const NdArray& array, DimSpan permutation) {
  return restrided(array, sizes_at(array.shape(), permutation), sizes_at(array.strides(), permutation));
}

NdArray region(const NdArray& array, DimSpan start, Dims shape, DimSpan step) {
  Dims strides = array.strides();
  int64_t offset = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    offset += start[dim] * strides[dim];
    if (!step.empty() && shape[dim] > 1) strides[dim] *= step[dim];  // the step of one element may be any number
  }
  return restrided(array, std::move(shape), std::move(strides), offset);
}

NdArray parts_of_complex(const NdArray& array) {
  const DType part = part_of_complex(array.dtype());
  Dims shape = array.shape(), strides = array.strides();
  shape.push_back(2);
  // A complex number is its two parts side by side: one more dim of 2.
  strides.push_back(item_size(part));
  return {part, std::move(shape), std::move(strides), array.data(), array.owner()};
}

// Split along the largest dim of the destination.
void copy_array(KernelContext& context, const NdArray& to, const NdArray& from) {
  if (to.nbytes() < 2 * kCopyGrainBytes) return to.copy_from(from);
  const Dims& shape = to.shape();
  const auto dim = std::max_element(shape.begin(), shape.end()) - shape.begin();
  const int64_t rows = shape[static_cast<size_t>(dim)];
  const int64_t grain = std::max<int64_t>(kCopyGrainBytes * rows / to.nbytes(), 1);
  context.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    to.sliced(dim, begin, end - begin).copy_from(from.sliced(dim, begin, end - begin));
  });
}

NdArray start_result_from(KernelContext& context, size_t result, size_t operand) {
  // Nobody else refers to the buffer: the result is made in place.
  if (const auto taken = context.take_operand(operand); taken && taken->is_contiguous()) {
    context.set_result(result, *taken);
    return *taken;
  }
  const NdArray copy = context.allocate_result(result);
  copy_array(context, copy, context.operand(operand));
  return copy;
}

NdArray contiguous_array(KernelContext& context, const NdArray& array) {
  if (array.is_contiguous()) return array;
  const NdArray copy = NdArray::empty(array.dtype(), array.shape());
  copy_array(context, copy, array);
  return copy;
}

void convert_into(KernelContext& context, const NdArray& to, const NdArray& from) {
  if (to.dtype() == from.dtype()) return copy_array(context, to, from);
  TileBuilder tiles;
  const uint32_t input = tiles.input(from.dtype());
  tiles.output(tiles.emit(TileCode::kConvert, {input}, to.dtype()));
  const TileProgram program = std::move(tiles).build();
  run_tiles(program, std::array{from}, std::array{to}, pool_of(context));
}

NdArray converted(KernelContext& context, const NdArray& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  const NdArray result = NdArray::empty(dtype, array.shape());
  convert_into(context, result, array);
  return result;
}

std::optional<int64_t> merged_stride(DimSpan shape, DimSpan strides, int64_t item_size) {
  std::optional<int64_t> stride;
  int64_t next = 0;  // the stride that the dim before must have
  if (element_count(shape) == 0) return item_size;
  for (size_t dim = shape.size(); dim-- > 0;) {
    // A dim of size 1 is never stepped along, so its stride may be anything.
    if (shape[dim] == 1) continue;
    if (stride && strides[dim] != next) return std::nullopt;
    if (!stride) stride = strides[dim];
    next = strides[dim] * shape[dim];
  }
  return stride.value_or(item_size);
}

// Runs of dims with the same number of elements on both sides are paired; each run of the old shape must be one stride.
std::optional<Dims> reshaped_strides(const NdArray& array, DimSpan shape) {
  const int64_t item = item_size(array.dtype());
  Dims strides = row_major_strides(shape, item);
  if (array.size() == 0) return strides;
  const DimSpan from_shape = array.shape(), from_strides = array.strides();
  size_t from = 0, to = 0;
  while (to < shape.size()) {
    const size_t from_begin = from, to_begin = to;
    int64_t old_count = from < from_shape.size() ? from_shape[from++] : 1;
    int64_t new_count = shape[to++];
    // [2, 6] -> [3, 4]: one run, 12 = 12. [4, 6] -> [2, 2, 6]: two runs, 4 = 2 * 2 and 6 = 6.
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= from_shape[from++];
      } else {
        new_count *= shape[to++];
      }
    }
    const auto stride = merged_stride(from_shape.subspan(from_begin, from - from_begin),
                                      from_strides.subspan(from_begin, from - from_begin), item);
    // No strides can address these elements in the new shape: the reshape must copy.
    if (!stride) return std::nullopt;
    int64_t next = *stride;
    for (size_t dim = to; dim-- > to_begin;) {
      strides[dim] = next;
      next *= shape[dim];
    }
  }
  return strides;
}

}  // namespace shardwise
