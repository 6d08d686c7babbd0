// SPDX-License-Identifier: Apache-2.0
//
// All ways to share the work of one op that its tensors suggest, whatever the ops around it do:
//
//   dot_general ([i, k], [k, j])->([i, j])     x [{}, {"t"}]  w [{"t"}, {}]  result [{}, {}]
//
//   k: "t"     the operands are there already, the result is unreduced
//   i: "t"     rows: x moves, w is gathered, no work is repeated
//   j: "t"     columns
//   none       both are gathered, and each device computes the whole product
//
// The axes are those that the tensors have in one of the given placements, also where they are to be reduced. Each of them goes
// to one usable factor of the rule, or to none, also to factors that no tensor has there. Methods add theirs. It is a pure
// function: the set depends on nothing that was chosen before.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/choice/candidates/candidate.h"

namespace shardwise {

// The placements that a tensor may be taken from or brought to; that of propagation first.
using TensorPlacements = std::vector<PlacementId>;

// The meshes on which an op of these tensors may be computed: null for that of the program, if there is one only; otherwise
// that of the program, and those of the tensors that are split.
std::vector<MeshPtr> meshes_of(const ProgramPlacements& placements, const std::vector<TensorPlacements>& tensors);

struct CandidateSet {
  static constexpr size_t kMost = 256;

  std::vector<Candidate> candidates;  // different ones; those nearest to propagation first
  // Assignments of axes that were not tried, or whose candidates are more than kMost: the farthest.
  int64_t left_out = 0;
};

// `tensors`: operands, then results. `pending`: the reduction that the operands could pass on, or none.
CandidateSet op_candidates(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                           const std::vector<TensorPlacements>& tensors, const Pending& pending);

}  // namespace shardwise
