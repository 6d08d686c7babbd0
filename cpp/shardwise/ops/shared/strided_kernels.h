// SPDX-License-Identifier: Apache-2.0
//
// What kernels share: another view of the same memory, copies and conversions that use the pool.
//
//   NdArray rows = restrided(x, {3}, {x.strides()[0]});      // the first column of x
//   NdArray wide = converted(context, half, DType::kF32);    // itself when it has that dtype already
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/tile/program.h"

namespace shardwise {

ParallelFor pool_of(KernelContext& context);  // its parallel_for, which must not outlive it

// `offset` in bytes; ignored when the view is empty, so that its address stays inside the buffer.
NdArray restrided(const NdArray& array, Dims shape, Dims strides, int64_t offset = 0);
NdArray permuted(const NdArray& array, DimSpan permutation);
// The region of `array` that starts at `start`, has `shape`, and takes every step-th index.
NdArray region(const NdArray& array, DimSpan start, Dims shape, DimSpan step = {});

void copy_array(KernelContext& context, const NdArray& to, const NdArray& from);
NdArray contiguous_array(KernelContext& context, const NdArray& array);
NdArray converted(KernelContext& context, const NdArray& array, DType dtype);
void convert_into(KernelContext& context, const NdArray& to, const NdArray& from);

// The dims as one dim with one stride, where they nest: {4, 6} with {24, 4} is 24 with 4. Dims of size 1 do not count;
// no stride means that nothing is strided over (size 1 or 0 elements): then it is `item_size`.
std::optional<int64_t> merged_stride(DimSpan shape, DimSpan strides, int64_t item_size);
// Strides of the same elements under another shape, if any: views instead of copies.
std::optional<Dims> reshaped_strides(const NdArray& array, DimSpan shape);

}  // namespace shardwise
