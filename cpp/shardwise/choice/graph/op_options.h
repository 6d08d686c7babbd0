// SPDX-License-Identifier: Apache-2.0
//
// The options of an op in the graph of a program (program_graph.h): how it was computed in a known choice, and what else its
// operands suggest from any place where they may be.
//
//   dot_general %x, %w     known: k: "t"      %x may be made as [{"t"}, {}]: then i: "t", too
//
// Equal ops whose tensors may be in equal places share a list.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/greedy/candidate_lists.h"
#include "shardwise/choice/greedy/greedy_walk.h"

namespace shardwise {

class OpOptions {
 public:
  explicit OpOptions(const WalkedProgram& program)
      : program_(program), lists_(program.placements, program.costs, CandidateScope::kAll) {}

  // Where the tensors of an op may be.
  struct Places {
    std::vector<std::vector<PlacementId>>
        operands;                      // of each, at most kMostPlaces; where it is in the known choice first
    std::vector<PlacementId> results;  // where the first user has them in the known choice
    std::vector<bool> is_constant;     // by operand
    std::vector<bool> is_used;         // by result
  };
  static constexpr size_t kMostPlaces = 6, kMostOptions = 20;

  // The known one first. Each can be computed.
  std::vector<OpChoice> of(const OpView& op, const OpChoice& known, const Function& function, const Places& places);

 private:
  void add(const OpView& op, const TensorPlaces& places, std::vector<OpChoice>& options);

  const WalkedProgram& program_;
  CandidateLists lists_;
};

}  // namespace shardwise
