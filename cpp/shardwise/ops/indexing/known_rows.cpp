// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/known_rows.h"

#include <algorithm>
#include <array>
#include <optional>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"

namespace shardwise {
namespace {

constexpr size_t kMostRuns = 8;  // more of them are a table
constexpr int64_t kLargestBlock = 4096;

// start, start + step, …
struct Run {
  int64_t start = 0, step = 1, count = 1;
};

// Stops after one run more than `most`.
std::vector<Run> runs_of(const std::vector<int64_t>& rows, size_t most) {
  std::vector<Run> runs;
  for (size_t i = 0; i < rows.size() && runs.size() <= most;) {
    Run run{.start = rows[i]};
    if (i + 1 < rows.size()) run.step = rows[i + 1] - rows[i];
    // 7, 0, 1, 2: the step to the second row is none of the steps after it.
    const bool is_alone = i + 2 < rows.size() && rows[i + 2] - rows[i + 1] != run.step;
    size_t end = i + 1;
    while (!is_alone && end < rows.size() && rows[end] - rows[end - 1] == run.step) ++end;
    run.count = static_cast<int64_t>(end - i);
    if (run.count == 1) run.step = 1;
    runs.push_back(run);
    i = end;
  }
  return runs;
}

ValueId build_run(Builder& builder, ValueId operand, size_t dim, const Run& run) {
  const int64_t last = run.start + (run.count - 1) * run.step;
  if (run.step > 0) return build_slice_along(builder, operand, dim, run.start, last + 1, run.step);
  if (run.step < 0) {
    const ValueId rows = build_slice_along(builder, operand, dim, last, run.start + 1, -run.step);
    return build_reverse(builder, rows, Dims{static_cast<int64_t>(dim)});
  }
  const ValueId row = build_slice_along(builder, operand, dim, run.start, run.start + 1);
  Dims shape = builder.module().type(row).shape, dims;
  for (size_t d = 0; d < shape.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  shape[dim] = run.count;
  return build_broadcast(builder, row, shape, dims);
}

ValueId build_runs(Builder& builder, ValueId operand, size_t dim, const std::vector<Run>& runs) {
  std::vector<ValueId> parts;
  for (const Run& run : runs) parts.push_back(build_run(builder, operand, dim, run));
  return build_concatenate(builder, parts, static_cast<int64_t>(dim));
}

// Row i of the result is row pattern[i % size] of block i / size; a block of the operand has `rows` rows.
struct Blocks {
  int64_t size = 0, rows = 0;
  std::vector<Run> pattern;
};

std::optional<Blocks> blocks_of(const std::vector<int64_t>& rows, int64_t size) {
  const auto count = std::ssize(rows);
  const auto at = [&](int64_t i) { return rows[static_cast<size_t>(i)]; };
  if (size >= count || count % size != 0) return std::nullopt;
  const int64_t step = at(size) - at(0);
  if (step < 1) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t in_block = at(i % size);
    if (in_block < 0 || in_block >= step || at(i) != i / size * step + in_block) return std::nullopt;
  }
  Blocks blocks{.size = size, .rows = step, .pattern = runs_of({rows.begin(), rows.begin() + size}, kMostRuns)};
  return blocks.pattern.size() > kMostRuns ? std::nullopt : std::optional(blocks);
}

std::optional<Blocks> smallest_blocks(const std::vector<int64_t>& rows) {
  const auto largest = std::min<int64_t>(kLargestBlock, std::ssize(rows) / 2);
  for (int64_t size = 2; size <= largest; ++size) {
    if (auto blocks = blocks_of(rows, size)) return blocks;
  }
  return std::nullopt;
}

ValueId build_blocks(Builder& builder, ValueId operand, size_t dim, const Blocks& blocks, int64_t count) {
  const int64_t blocks_count = count / blocks.size;
  const ValueId rows = build_slice_along(builder, operand, dim, 0, blocks_count * blocks.rows);
  const Dims whole = builder.module().type(rows).shape;
  Dims cut = whole, joined = whole;
  cut[dim] = blocks.rows;
  cut.insert(cut.begin() + static_cast<int64_t>(dim), blocks_count);
  joined[dim] = count;
  const ValueId moved = build_runs(builder, build_reshape(builder, rows, cut), dim + 1, blocks.pattern);
  return build_reshape(builder, moved, joined);
}

}  // namespace

ValueId build_known_rows(Builder& builder, ValueId operand, size_t dim, const std::vector<int64_t>& rows) {
  if (rows.empty()) return {};
  const std::vector<Run> runs = runs_of(rows, kMostRuns);
  // A block of two runs is one as well: 7, 0, …, 6 has no smaller form than its two runs.
  if (runs.size() <= 2) return build_runs(builder, operand, dim, runs);
  const int64_t size = builder.module().type(operand).shape[dim];
  const auto blocks = smallest_blocks(rows);
  // All blocks of the operand are there.
  if (blocks && std::ssize(rows) / blocks->size * blocks->rows <= size) {
    return build_blocks(builder, operand, dim, *blocks, std::ssize(rows));
  }
  return runs.size() <= kMostRuns ? build_runs(builder, operand, dim, runs) : ValueId{};
}

}  // namespace shardwise
