// SPDX-License-Identifier: Apache-2.0
//
// The function that `assign` writes and its open regions, innermost last. The builder appends to the innermost.
//
//   regions.enter(loop, body, {<[{"x"}: 4]>})       the arguments are carries, placed like the results of the loop
//   …
//   regions.leave(loop, body, {<[{"x"}: 4]>})
#pragma once

#include <span>
#include <vector>

#include "shardwise/partition/version_writer.h"

namespace shardwise {

class RegionWriter {
 public:
  RegionWriter(const Module& source, Builder& builder, VersionWriter& values, ProgramPlacements& placements)
      : source_(source), builder_(builder), values_(values), placements_(placements) {}

  // `made` is the function of the assigned program that `source` becomes.
  void enter_function(const Function& source, const Function& made);
  void leave_function(const Function& source, Function& made);

  // A region of an op: that of a loop has carries as arguments, with these placements; a branch has none.
  void enter(RegionId source, std::span<const PlacementId> carries);
  // Returns the region that is made; its results are those of `source`, with these placements.
  RegionId leave(const OpView& op, RegionId source, std::span<const PlacementId> placements);
  RegionId leave_condition(const OpView& op, RegionId source);

 private:
  ValueId copied_argument(ValueId source);
  void add_result(ValueId result, PlacementId placement, const Cause& cause);
  RegionId close();

  const Module& source_;
  Builder& builder_;
  VersionWriter& values_;
  ProgramPlacements& placements_;
  std::vector<Builder> outside_;
};

}  // namespace shardwise
