// SPDX-License-Identifier: Apache-2.0
//
// Shared by kernels: other views of the same memory, and copies and conversions on the thread pool.
//
//   NdArray rows = restrided(x, {3}, {x.strides()[0]});      // the first column of x
//   NdArray wide = converted(context, half, DType::kF32);    // returns `half` itself if it has that dtype
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/tile/program.h"

namespace shardwise {

ParallelFor pool_of(KernelContext& context);  // its parallel_for; must not outlive the context

// `offset` is in bytes. It is ignored for an empty view, so that its address stays inside the buffer.
NdArray restrided(const NdArray& array, Dims shape, Dims strides, int64_t offset = 0);
NdArray permuted(const NdArray& array, DimSpan permutation);
// The region of `array` with the given start, shape and steps.
NdArray region(const NdArray& array, DimSpan start, Dims shape, DimSpan step = {});

// Real and imaginary parts as elements of one more dim, the last.
NdArray parts_of_complex(const NdArray& array);

void copy_array(KernelContext& context, const NdArray& to, const NdArray& from);
// Result `result`, row-major, with the elements of operand `operand`: that operand's own memory where nothing else
// reads it, else a copy.
NdArray start_result_from(KernelContext& context, size_t result, size_t operand);
NdArray contiguous_array(KernelContext& context, const NdArray& array);
NdArray converted(KernelContext& context, const NdArray& array, DType dtype);
void convert_into(KernelContext& context, const NdArray& to, const NdArray& from);

// Merges dims that nest into one with one stride: {4, 6} with {24, 4} is 24 with 4. Dims of size 1 do not count. With
// at most one element, the stride is `item_size`.
std::optional<int64_t> merged_stride(DimSpan shape, DimSpan strides, int64_t item_size);
// Strides of the same elements under another shape, if that needs no copy.
std::optional<Dims> reshaped_strides(const NdArray& array, DimSpan shape);

}  // namespace shardwise
