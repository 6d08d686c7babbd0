// SPDX-License-Identifier: Apache-2.0
//
// The candidates that the greedy walk looks at for an op, and what each costs to compute. Equal ops whose tensors are in
// equal places share a list, so that equal layers cost the time of one, and all walks over one program share the lists:
//
//   CandidateLists lists(placements, costs);
//   const CandidateList& list = lists.of(dot, rule, pending, {.declared = …, .current = …, …}, CandidateScope::kAll);
//   list.candidates[0]      // the first that propagation's placements lead to
//   list.compute[0]         // on a device, without what its operands and results move
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/choice/costs.h"
#include "shardwise/choice/greedy/repeated_operands.h"

namespace shardwise {

// Which candidates of an op are looked at: those that propagation and the present places suggest, or also those that move
// axes to factors that no tensor has there (op_candidates.h).
enum class CandidateScope : uint8_t { kSuggested, kAll };

struct CandidateList {
  std::vector<Candidate> candidates;  // different ones; the first of equally good ones is taken
  std::vector<Cost> compute;          // by candidate
};

// Where the tensors of an op are: operands, then results.
struct TensorPlaces {
  std::vector<PlacementId> declared;  // by propagation; of a result, where it is brought to
  std::vector<PlacementId> current;   // so far; of a result and of a constant, as declared
  std::vector<bool> is_constant;      // by operand: made in any placement
  std::vector<bool> is_used;          // by result
  bool is_requested = false;          // a result must be left unreduced as `declared`
  RepeatedOperands repeats;

  void clear() {
    declared.clear(), current.clear();
    is_constant.clear(), is_used.clear();
    is_requested = false;
  }
};

class CandidateLists {
 public:
  CandidateLists(ProgramPlacements& placements, Costs& costs) : placements_(placements), costs_(costs) {}

  // `pending`: what the op could pass on with its operands where they are, or none. The list stays where it is.
  const CandidateList& of(const OpView& op, const ShardingRule& rule, const Pending& pending,
                          const TensorPlaces& places, CandidateScope scope);

 private:
  const CostKey& key(const OpView& op, const ShardingRule& rule, const Pending& pending, const TensorPlaces& places,
                     CandidateScope scope);
  CandidateList made(const OpView& op, const ShardingRule& rule, const Pending& pending, const TensorPlaces& places,
                     CandidateScope scope);
  std::vector<ComputeSharding> suggested(const OpView& op, const ShardingRule& rule, const Pending& pending,
                                         const TensorPlaces& places, std::span<const MeshPtr> meshes);
  // Leaves tensors out that are on another mesh; null: none is.
  void project(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule);
  void add_compute(const OpView& op, const ShardingRule& rule, const TensorPlaces& places, CandidateList& list);

  ProgramPlacements& placements_;
  Costs& costs_;
  std::unordered_map<CostKey, std::unique_ptr<const CandidateList>, HashOfCostKey> lists_;
  CostKey key_;                            // of the op at hand
  FactorProjection projection_;            // of the tensors at hand,
  std::vector<const Placement*> tensors_;  // in these placements
};

}  // namespace shardwise
