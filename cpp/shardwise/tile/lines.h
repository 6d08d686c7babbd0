// SPDX-License-Identifier: Apache-2.0
//
// Kernels over contiguous items that are no tile programs: reductions of lines and rows, searches, and random words.
// They are chosen with the tile table, by the CPU.
//
//   line_kernels().fold_line[kMax][int(DType::kF32)](&total, items, 1024)      // total is a key: see Keys below
//
// This header is included by translation units compiled for AVX2 and AVX-512, so it contains plain data only (table.h).
#pragma once

#include <stdint.h>

#include "shardwise/tile/fourier.h"

namespace shardwise {

inline constexpr int kLineDTypeCount = 13;  // numbered like DType: bool i8 … f64
inline constexpr int kFoldCount = 6;
enum FoldCode { kFoldSum, kFoldProduct, kFoldAnd, kFoldOr, kFoldMax, kFoldMin };

// Folds keep totals in the items' type. Totals of the maximum and minimum of floats are integers instead, the keys of
// ops/shared/reduce_operations.h: signed integers with the order of the floats, the largest (or smallest) one for NaN.
//
// A fold of rows combines total[i] with row 0, then row 1, …: `stride` bytes lie between rows.
using FoldRows = void (*)(void* totals, const void* rows, int64_t stride, int64_t count, int64_t width);
// A fold of a line combines items in any order.
using FoldLine = void (*)(void* total, const void* items, int64_t count);
// The first of `count` items that equals *value; `count` if none does.
using FindEqual = int64_t (*)(const void* items, int64_t count, const void* value);

inline constexpr int64_t kRandomLanes = 16;  // blocks of a random generator that one call computes
// The two words of blocks counter, counter + 1, …: words[word][block].
using ThreeFry = void (*)(uint64_t key, uint64_t counter, uint32_t (*words)[kRandomLanes]);
// The four words of blocks, whose counters are words[0 .. 3][block] before the call.
using Philox = void (*)(uint64_t key, uint32_t (*words)[kRandomLanes]);

struct LineTable {
  FoldRows fold_rows[kFoldCount][kLineDTypeCount];  // null: not defined
  FoldLine fold_line[kFoldCount][kLineDTypeCount];  // null also where the order matters
  FindEqual find_equal[kLineDTypeCount];
  ThreeFry three_fry;
  Philox philox;
  FourierTable fourier_f32, fourier_f64;
};

const LineTable& line_kernels();  // of this CPU

}  // namespace shardwise
