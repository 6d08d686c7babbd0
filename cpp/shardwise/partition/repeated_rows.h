// SPDX-License-Identifier: Apache-2.0
//
// Scans behind the peak that read rows of stacks, where the rows are computed again:
//
//   %ys, %zs, %h = scan %ws, %h0 {…}            %zs, %h = scan %ws, %h0 {…}
//   … = scan %ys, %zs, %dy {                    … = scan %zs, %ws, %dy {
//   ^bb0(%y, %z, %g):                     ->    ^bb0(%z, %w, %g):
//     … %y …                                      %y = tanh (dot %z, %w) {shardwise.again = 1 : i64}
//   }                                             … %y … }
//
// Rows that are kept instead become outputs of the first scan. A stack that nothing reads any more goes.
#pragma once

#include <unordered_set>

#include "shardwise/choice/memory/peak_values.h"
#include "shardwise/ir/module.h"
#include "shardwise/partition/late_copies.h"

namespace shardwise {

// One region around the peak.
struct RepeatedRows {
  Module& module;
  Rewrite& rewrite;
  const LiveBlock& block;
  const PeakValues& peak;
  const Saved& saved;
  const PeakLevel& here;
};

// `repeated`: the values of the region itself that are computed again, by `outside`. Returns the copies in the bodies.
CopiedOps write_repeated_rows(const RepeatedRows& rows, const std::unordered_set<ValueId>& repeated,
                              LateCopies& outside);

}  // namespace shardwise
