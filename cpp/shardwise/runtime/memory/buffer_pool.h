// SPDX-License-Identifier: Apache-2.0
//
// Memory of the executor's arrays, 64-byte-aligned. When its last array is destroyed, it returns to a process-wide
// store, so that the second run of a program uses warm pages only.
//
//   NdArray a = pooled_empty(DType::kF32, {512, 512});   // 1 MiB from the system
//   a = {};                                              // back to the store
//   pooled_empty(DType::kF32, {500, 520});               // the same memory: sizes are rounded up to a few classes
//
// The store keeps at most `buffer_pool_capacity()` bytes; memory beyond that returns to the system. Any thread may
// allocate and free. Under a sanitizer, nothing is kept, so that it detects use after free.
#pragma once

#include "shardwise/base/ndarray.h"

namespace shardwise {

NdArray pooled_empty(DType dtype, Dims shape);  // uninitialised, row-major

int64_t buffer_pool_capacity();
void set_buffer_pool_capacity(int64_t bytes);  // frees memory above the limit
int64_t buffer_pool_bytes();                   // free memory that is kept
int64_t live_buffer_bytes();                   // of the arrays of `pooled_empty` that are alive
int64_t restart_peak_buffer_bytes();           // the most of them since the last call

}  // namespace shardwise
