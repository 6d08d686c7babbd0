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
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/greedy/walked_program.h"

namespace shardwise {

struct OptionList {
  std::vector<OpChoice> choices;                // the known one first; each can be computed
  std::vector<Cost> costs;                      // of one run, by option
  std::vector<int64_t> works;                   // operations of one run, by option
  std::vector<std::vector<PlacementId>> homes;  // where its results are then: by result, by option
};

class OpOptions {
 public:
  explicit OpOptions(const WalkedProgram& program) : program_(program) {}

  // Where the tensors of an op may be.
  struct Places {
    std::vector<std::vector<PlacementId>>
        operands;  // of each, at most kMostPlaces; where it is in the known choice first
    std::vector<std::vector<PlacementId>> results;  // where each is wanted (wanted_placements.h)
    std::vector<bool> is_constant;                  // by operand
    std::vector<bool> is_used;                      // by result
  };
  static constexpr size_t kMostPlaces = 6, kMostOptions = 20;

  const OptionList& of(const OpView& op, const OpChoice& known, const Function& function, const Places& places);

  // Where an op that is computed like this leaves a result: a wide sum is reduced at once.
  static PlacementId home(ProgramPlacements& placements, const OpView& op, const OpChoice& choice, size_t result);

 private:
  const CostKey& key(const OpView& op, const OpChoice& known, const TensorPlaces& tensors, const Places& places);
  void add(const OpView& op, const TensorPlaces& places, std::vector<OpChoice>& options);
  void add_at_wanted(const OpView& op, std::span<const PlacementId> wanted, TensorPlaces tensors,
                     std::vector<OpChoice>& options);
  void add_costs_and_homes(const OpView& op, const Places& places, OptionList& list);

  const WalkedProgram& program_;
  std::unordered_map<CostKey, std::unique_ptr<const OptionList>, HashOfCostKey> known_;
  CostKey key_;
};

}  // namespace shardwise
