// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/candidate_lists.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/choice/candidates/op_candidates.h"

namespace shardwise {
namespace {

// Moving an axis between the factors of such an op moves all of its tensors alike.
bool all_tensors_have_all_factors(const ShardingRule& rule) {
  for (size_t t = 0; t < rule.tensor_count(); ++t) {
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      if (!rule.has_factor(t, static_cast<FactorId>(f))) return false;
    }
  }
  return true;
}

bool is_among(std::span<const Candidate> candidates, const Candidate& candidate) {
  return std::ranges::any_of(candidates, [&](const Candidate& other) {
    return other.choice.method == candidate.choice.method && other.choice.operands == candidate.choice.operands &&
           other.choice.results == candidate.choice.results;
  });
}

}  // namespace

// All that candidates and their costs depend on. A rule stands for the op's definition, attributes and types.
const CostKey& CandidateLists::key(const OpView& op, const ShardingRule& rule, const Pending& pending,
                                   const TensorPlaces& places, CandidateScope scope) {
  CostKey& key = key_;
  key.clear();
  key.push_back(reinterpret_cast<uintptr_t>(&rule));
  key.push_back((pending.axes.empty() ? 0 : 1) + (places.is_requested ? 2 : 0) +
                (scope == CandidateScope::kAll ? 4 : 0) + (costs_.are_times() ? 8 : 0));
  for (const std::vector<PlacementId>* tensors : {&places.declared, &places.current}) {
    for (const PlacementId id : *tensors) key.push_back(id.index);
  }
  for (const std::vector<bool>* flags : {&places.is_constant, &places.is_used}) {
    for (const bool flag : *flags) key.push_back(flag ? 1 : 0);
  }
  costs_.append_to_key(op, rule, key);
  return key;
}

const CandidateList& CandidateLists::of(const OpView& op, const ShardingRule& rule, const Pending& pending,
                                        const TensorPlaces& places, CandidateScope scope) {
  std::unique_ptr<const CandidateList>& list = lists_[key(op, rule, pending, places, scope)];
  if (list == nullptr) list = std::make_unique<const CandidateList>(made(op, rule, pending, places, scope));
  return *list;
}

CandidateList CandidateLists::made(const OpView& op, const ShardingRule& rule, const Pending& pending,
                                   const TensorPlaces& places, CandidateScope scope) {
  std::vector<TensorPlacements> tensors;
  for (size_t t = 0; t < places.declared.size(); ++t) {
    tensors.push_back({places.declared[t]});
    if (places.current[t] != places.declared[t]) tensors.back().push_back(places.current[t]);
  }
  CandidateList list;
  for (const ComputeSharding& compute : suggested(op, rule, pending, places, meshes_of(placements_, tensors))) {
    list.candidates.push_back(candidate_of(placements_, op, rule, compute, pending));
  }
  const bool takes_all = scope == CandidateScope::kAll || places.is_requested;
  if (takes_all && !all_tensors_have_all_factors(rule)) {
    const size_t known = list.candidates.size();
    for (Candidate& candidate : op_candidates(placements_, op, rule, tensors, pending).candidates) {
      if (!is_among(std::span(list.candidates).first(known), candidate)) {
        list.candidates.push_back(std::move(candidate));
      }
    }
  }
  add_compute(op, rule, places, list);
  return list;
}

std::vector<ComputeSharding> CandidateLists::suggested(const OpView& op, const ShardingRule& rule,
                                                       const Pending& pending, const TensorPlaces& places,
                                                       std::span<const MeshPtr> meshes) {
  ComputeShardings shardings(op, rule);
  for (const MeshPtr& mesh : meshes) {
    shardings.set_mesh(mesh);
    // The operands where propagation has them, their pending reductions completed.
    project(places.declared, mesh, rule);
    shardings.add(projection_, tensors_, {}, Reducer::kNone);
    // Computing where the operands currently are may save a reshard.
    if (places.current != places.declared) {
      project(places.current, mesh, rule);
      shardings.add(projection_, tensors_, {}, Reducer::kNone);
    }
    // A reduction stays pending only on the mesh of its axes.
    if (pending.axes.empty() || (mesh != nullptr && mesh != pending.mesh)) continue;
    shardings.add(projection_, tensors_, pending.axes, pending.reducer);
  }
  return shardings.candidates();
}

void CandidateLists::project(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule) {
  tensors_.clear();
  for (const PlacementId id : tensors) {
    const Placement* placement = placements_.find(id);
    const bool is_elsewhere = mesh != nullptr && placement != nullptr && placement->mesh != mesh;
    tensors_.push_back(is_elsewhere ? nullptr : placement);
  }
  projection_.project(rule, tensors_);
}

void CandidateLists::add_compute(const OpView& op, const ShardingRule& rule, const TensorPlaces& places,
                                 CandidateList& list) {
  std::vector<bool> is_moved(op.operand_count());
  for (const Candidate& candidate : list.candidates) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      is_moved[i] = !places.is_constant[i] && candidate.choice.operands[i] != places.current[i];
    }
    list.compute.push_back(costs_.compute({op, rule, candidate.choice, is_moved, places.is_used}));
  }
}

}  // namespace shardwise
