// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms of vectors of lines: kernels of lines.h, chosen by the CPU, on tables that ops/linalg makes.
//
// An element of a vector of lines has kFourierBytes bytes of real parts, one per line, then as many of imaginary parts.
// Plain data only (table.h).
#pragma once

#include <stdint.h>

namespace shardwise {

inline constexpr int64_t kFourierBytes = 64;  // of real parts
inline constexpr int64_t kLargestFourierFactor = 31;

// A transform of n elements, which is split by its factors one after the other: 2, 4, and odd numbers.
struct FourierStages {
  int64_t n = 1;
  int64_t count = 0;
  const int64_t* factors = nullptr;
  // Complex numbers. For a stage of factor p and m = rest / p: exp(-2 pi i j / p) for all j < p if p is odd; then
  // exp(-2 pi i q j / (p m)) for all q < m and 0 < j < p if m > 1.
  const void* roots = nullptr;
};

// A transform of one line of rows.n * columns.n elements as a matrix: its columns, a product with `turns`, its rows.
struct FourierLine {
  FourierStages columns, rows;
  const void* turns = nullptr;  // elements of vectors: of each vector of columns, `columns.n`
};

struct FourierTable {
  // `data` and `scratch` have n elements each; the result is in `data`.
  void (*stages)(const FourierStages& plan, void* data, void* scratch);
  // Complex numbers; the inverse multiplies by `scale`. The workspace has fourier_workspace bytes.
  void (*line)(const FourierLine& plan, const void* from, void* to, bool inverse, double scale, void* workspace);
};

inline int64_t fourier_workspace(const FourierLine& plan, int64_t item) {
  const int64_t lanes = kFourierBytes / item, n = plan.columns.n > plan.rows.n ? plan.columns.n : plan.rows.n;
  return 2 * kFourierBytes * ((plan.rows.n + lanes - 1) / lanes * plan.columns.n + 2 * (n + lanes));
}

}  // namespace shardwise
