// SPDX-License-Identifier: Apache-2.0
//
// Scans that meet row by row: they have as many trips along the same dim, and one reads rows of what the other makes, in
// whatever direction.
//
//   %ys, %h = scan %xs, %h0 …      10 trips along dim 0          makes the rows of %ys
//   … = scan %ys, %dy …            the same, last row first      reads them, one in each trip: %ys is an aligned input
//
// Any other op that reads %ys reads all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "shardwise/analysis/live_ranges.h"
#include "shardwise/ir/module.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

struct RowCourse {
  int64_t dimension, trips;
  friend bool operator==(const RowCourse&, const RowCourse&) = default;
};
std::optional<RowCourse> row_course(const Module& module, OpId op);  // none if it is no scan
bool makes_stack(const Module& module, OpId scan, ValueId value);    // as an output of rows

// Whether an input gives the row of the trip itself, of a stack that another scan of this course has made.
bool reads_aligned(const Module& module, OpId scan, const LoopParts::Input& input);

// Returns the courses of the scans with aligned inputs among the steps from number `at` on.
std::vector<RowCourse> aligned_courses(const Module& module, const LiveBlock& block, size_t at);

// The homes that step `at` reads, and those that later ones do, other than as aligned inputs.
struct WholeReads {
  std::unordered_set<ValueId> at, late;
};
WholeReads whole_reads(const Module& module, const LiveRanges& ranges, const LiveBlock& block, size_t at);

}  // namespace shardwise
