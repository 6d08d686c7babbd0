// SPDX-License-Identifier: Apache-2.0
//
// The values of the bodies of scans as nodes of PeakValues, each as the stack of its rows.
#pragma once

#include <cstdint>

#include "shardwise/choice/memory/aligned_scans.h"
#include "shardwise/choice/memory/saved_nodes.h"

namespace shardwise {

class SavedRows {
 public:
  SavedRows(SavedNodes& nodes, uint32_t level) : nodes_(nodes), level_(level) {}

  void add_scan(const LiveStep& scan);
  // The rows that the scans of a block read at step `at` or later. A stack that is read as a whole, too, is there anyway.
  void need(const LiveBlock& block, size_t at, const WholeReads& reads);

 private:
  PeakLevel& here() const { return nodes_.found.levels[level_]; }
  uint32_t add_row(OpId scan, ValueId value, int64_t trips, SavedValue how);
  void add_input(OpId scan, const LoopParts::Input& input, int64_t trips);
  void add_step(OpId scan, const LoopParts& parts, const LiveStep& step, int64_t trips);
  uint32_t node_of(const LoopParts& parts, ValueId value) const;

  SavedNodes& nodes_;
  const uint32_t level_;
};

}  // namespace shardwise
