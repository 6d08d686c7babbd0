// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/array_copies.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/base/thread_pool.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

constexpr int64_t kCopyGrainBytes = int64_t{1} << 18;  // for less, waking a thread costs more than it saves

}  // namespace

NdArray empty_in_order(DType dtype, const Dims& shape, std::span<const size_t> order) {
  Dims in_memory;
  for (size_t dim : order) in_memory.push_back(shape[dim]);
  return in_shape_order(pooled_empty(dtype, std::move(in_memory)), order);
}

void copy_parallel(const NdArray& to, const NdArray& from) {
  check_internal(to.shape() == from.shape() && to.dtype() == from.dtype(), "copy_parallel: same shape and dtype");
  const int64_t bytes = to.nbytes();
  // A rehearsal moves only what is small: its large buffers are address space without memory.
  if (leaves_out(bytes)) return;
  if (bytes <= kCopyGrainBytes) {
    to.copy_from(from);
    return;
  }
  // Split the largest dim, so that there are enough pieces for all threads.
  const auto largest = std::max_element(to.shape().begin(), to.shape().end());
  const int64_t dim = largest - to.shape().begin();
  // bytes / *largest is one row. It is not 0 here: an empty array has no more bytes than a grain.
  const int64_t rows = std::max<int64_t>(1, kCopyGrainBytes / (bytes / *largest));
  parallel_for(*largest, rows, [&](int64_t begin, int64_t end) {
    to.sliced(dim, begin, end - begin).copy_from(from.sliced(dim, begin, end - begin));
  });
}

NdArray dense(const NdArray& array) {
  if (array.is_contiguous()) return array;
  NdArray copy = pooled_empty(array.dtype(), array.shape());
  copy_parallel(copy, array);
  return copy;
}

NdArray merge_groups(const NdArray& array, std::span<const size_t> groups) {
  if (auto merged = merged_view(array, groups)) return std::move(*merged);
  return *merged_view(dense(array), groups);  // where every group has a single stride
}

Scalar poison_value(DType dtype) {
  // Integers have no NaN. This pattern is neither 0 nor all ones, which programs often hold.
  constexpr uint64_t kPattern = 0xA5A5A5A5A5A5A5A5ULL;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (is_complex(dtype)) return Scalar::of_complex(dtype, kNan, kNan);
  if (is_float(dtype)) return Scalar::of_float(dtype, kNan);
  if (is_unsigned_integer(dtype)) return Scalar::of_uint(dtype, kPattern);
  return Scalar::of_int(dtype, std::bit_cast<int64_t>(kPattern));
}

}  // namespace shardwise
