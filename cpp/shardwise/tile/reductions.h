// SPDX-License-Identifier: Apache-2.0
//
// Kernels of reductions that are no folds in any order (lines.h): where the best item is, and sums in a fixed order.
// They are chosen with the tile table, by the CPU.
//
//   const float best = 3;
//   reduction_kernels().find_extreme[kFindMax][int(DType::kF32)](items, 1000, &best)     // 1000 if all are below 3
//
// This header is included by translation units compiled for AVX2 and AVX-512, so it contains plain data only (table.h).
#pragma once

#include <stdint.h>

#include "shardwise/tile/lines.h"

namespace shardwise {

enum { kFindMax, kFindMin };

inline constexpr int64_t kMostSearched = 2048;
// Where the first NaN of at most kMostSearched items is; without one, where the first of the best items is. `count` if
// *bound, which is no NaN, is better than all items. Zeros of either sign are equal.
using FindExtreme = int64_t (*)(const void* items, int64_t count, const void* bound);

inline constexpr int64_t kChunkItems = 128, kChunkLanes = 16;
// The totals of `chunks` adjacent chunks of kChunkItems items. Item i of a chunk is combined with lane i % kChunkLanes,
// in order; then lane k with lane k + 8, k + 4, k + 2, k + 1.
using FoldChunks = void (*)(const void* items, int64_t chunks, void* totals);

struct ReductionTable {
  FindExtreme find_extreme[2][kLineDTypeCount];         // null: not defined
  FoldChunks fold_chunks[kFoldCount][kLineDTypeCount];  // null: not defined
};

const ReductionTable& reduction_kernels();  // of this CPU

// One function per instruction set, as those of table.h.
const ReductionTable* reduction_table_baseline();
const ReductionTable* reduction_table_scalar_fma();
const ReductionTable* reduction_table_avx2();
const ReductionTable* reduction_table_avx512();
const ReductionTable* reduction_table_neon();

}  // namespace shardwise
