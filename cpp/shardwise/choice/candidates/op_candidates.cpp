// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/op_candidates.h"

#include <algorithm>
#include <utility>

#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

// Enough assignments to find kMost different candidates among; more would make the time of an op depend on its axes.
constexpr int64_t kMostAssignments = 1024;
constexpr int64_t kMostCounted = int64_t{1} << 40;  // of those that are left out

// An axis, cut where any tensor cuts it, and the factors that it may shard.
struct Piece {
  AxisRef axis;
  std::vector<FactorId> factors;  // its own of propagation first, if there is one
};

// The assignments of one mesh, with the pending reduction passed on or not.
class Assignments {
 public:
  Assignments(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
              const std::vector<TensorPlacements>& tensors, const MeshPtr& mesh, AxisList passed, Reducer reducer)
      : placements_(placements),
        rule_(rule),
        tensors_(tensors),
        mesh_(mesh),
        passed_(std::move(passed)),
        reducer_(reducer),
        shardings_(op, rule) {
    shardings_.set_mesh(mesh);
    read_pieces();
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (!overlaps(passed_, pieces_[p].axis)) free_.push_back(p);
    }
  }

  size_t most_moved() const { return free_.size(); }
  int64_t count() const {
    int64_t all = 1;
    for (const size_t piece : free_) {
      all = std::min(kMostCounted, all * (static_cast<int64_t>(pieces_[piece].factors.size()) + 1));
    }
    return all;
  }

  // Calls visit(new candidates) for each assignment in which so many axes are elsewhere than propagation has them. It
  // returns whether to go on.
  template <class Visit>
  void visit(size_t moved, Visit&& visit) {
    if (moved == 0) add_in_place();
    std::vector<size_t> options(pieces_.size(), 0);
    visit_moved(0, moved, options, visit);
  }

 private:
  const Placement* on_mesh(PlacementId id) const {
    const Placement* placement = placements_.find(id);
    const bool is_elsewhere = placement != nullptr && mesh_ != nullptr && placement->mesh != mesh_;
    return is_elsewhere ? nullptr : placement;
  }

  void read_pieces() {
    AxisList all;
    for (const TensorPlacements& tensor : tensors_) {
      for (const PlacementId id : tensor) {
        const Placement* placement = on_mesh(id);
        for (const AxisRef& axis : placement == nullptr ? AxisList() : placement->axes()) {
          if (std::ranges::find(all, axis) == all.end()) all.push_back(axis);
        }
      }
    }
    AxisList cut;
    for (const AxisRef& axis : all) {
      // Two sub-axes that no single split of the axis has cannot be in one placement: the first one stays.
      const auto parts = cut_at(std::span(&axis, 1), all);
      for (const AxisRef& part : parts ? *parts : AxisList{axis}) {
        if (!overlaps(cut, part) && can_coexist(cut, part)) cut.push_back(part);
      }
    }
    std::ranges::sort(cut);
    for (size_t f = 0; f < rule_.factors().size(); ++f) declared_.push_back(declared_axes(static_cast<FactorId>(f)));
    // Each of several independent pairs has all axes for itself.
    const size_t pairs = rule_.has_independent_pairs() ? rule_.operand_count() : 1;
    for (size_t pair = 0; pair < pairs; ++pair) {
      for (const AxisRef& axis : cut) pieces_.push_back({axis, usable_factors(axis, pair)});
    }
  }

  std::vector<FactorId> usable_factors(const AxisRef& axis, size_t pair) const {
    std::vector<FactorId> factors;
    for (size_t f = 0; f < rule_.factors().size(); ++f) {
      const auto id = static_cast<FactorId>(f);
      const bool is_usable = shardings_.may_shard(id) && rule_.factors()[f].size > 1;
      if (is_usable && shardings_.pair_of(id) == pair) factors.push_back(id);
    }
    // Where propagation has it, so that the first assignment is propagation's.
    const auto own = std::ranges::find_if(factors, [&](FactorId id) { return overlaps(declared_[id], axis); });
    if (own != factors.end()) std::rotate(factors.begin(), own, own + 1);
    return factors;
  }

  // The axes of a factor in the first tensor that has some, as propagation placed it.
  AxisList declared_axes(FactorId factor) const {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Placement* placement = tensors_[t].empty() ? nullptr : on_mesh(tensors_[t][0]);
      for (size_t d = 0; placement != nullptr && d < placement->dims.size(); ++d) {
        if (std::ranges::find(rule_.dim(t, d), factor) == rule_.dim(t, d).end()) continue;
        if (!placement->dims[d].axes.empty()) return placement->dims[d].axes;
      }
    }
    return {};
  }

  // All assignments in which `moved` of the free pieces from `at` on are elsewhere.
  template <class Visit>
  bool visit_moved(size_t at, size_t moved, std::vector<size_t>& options, Visit&& visit) {
    if (at == free_.size()) return moved != 0 || visit(added(options));
    const size_t piece = free_[at];
    if (moved < free_.size() - at && !visit_moved(at + 1, moved, options, visit)) return false;
    // The last option is none.
    for (size_t option = 1; moved > 0 && option <= pieces_[piece].factors.size(); ++option) {
      options[piece] = option;
      if (!visit_moved(at + 1, moved - 1, options, visit)) return false;
    }
    options[piece] = 0;
    return true;
  }

  // The candidates that the assignment leads to, without those that came before.
  std::span<const ComputeSharding> added(const std::vector<size_t>& options) {
    std::vector<AxisList> factors(rule_.factors().size());
    for (const size_t piece : free_) {
      const auto& [axis, usable] = pieces_[piece];
      if (options[piece] < usable.size()) factors[usable[options[piece]]].push_back(axis);
    }
    for (size_t f = 0; f < factors.size(); ++f) order(factors[f], static_cast<FactorId>(f));
    shardings_.add_assigned(factors, passed_, reducer_);
    const size_t seen = std::exchange(seen_, shardings_.candidates().size());
    return std::span(shardings_.candidates()).subspan(seen);
  }

  // As propagation orders the axes of the factor; others follow in the order of the mesh.
  void order(AxisList& axes, FactorId factor) const {
    if (axes.size() < 2) return;
    const AxisList& declared = declared_[factor];
    const auto position = [&](const AxisRef& axis) {
      return std::ranges::find_if(declared, [&](const AxisRef& known) { return contains(known, axis); }) -
             declared.begin();
    };
    std::ranges::stable_sort(axes, {}, position);
    AxisList merged;
    append_merged(merged, axes);
    axes = std::move(merged);
  }

  // Methods that move nothing: each tensor in each of its placements, the others as propagation has them. No more than a set
  // may have, because a concatenate may have thousands of operands.
  void add_in_place() {
    std::vector<const Placement*> placed(tensors_.size(), nullptr);
    for (size_t t = 0; t < tensors_.size(); ++t) placed[t] = tensors_[t].empty() ? nullptr : on_mesh(tensors_[t][0]);
    shardings_.add_where_they_are(placed, passed_, reducer_);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Placement* declared = placed[t];
      for (const PlacementId id : tensors_[t]) {
        if (shardings_.candidates().size() >= CandidateSet::kMost) return;
        placed[t] = on_mesh(id);
        if (placed[t] != declared) shardings_.add_where_they_are(placed, passed_, reducer_);
      }
      placed[t] = declared;
    }
  }

  const ProgramPlacements& placements_;
  const ShardingRule& rule_;
  const std::vector<TensorPlacements>& tensors_;
  MeshPtr mesh_;
  AxisList passed_;
  Reducer reducer_;
  ComputeShardings shardings_;
  std::vector<AxisList> declared_;  // by factor
  std::vector<Piece> pieces_;
  std::vector<size_t> free_;  // those that are not passed
  size_t seen_ = 0;
};

class Candidates {
 public:
  // False if it is left out, because there are too many already.
  bool add(Candidate candidate) {
    const OpChoice& choice = candidate.choice;
    const auto known = std::ranges::find_if(set_.candidates, [&](const Candidate& other) {
      return other.choice.method == choice.method && other.choice.operands == choice.operands &&
             other.choice.results == choice.results;
    });
    if (known != set_.candidates.end()) {
      // The same placements: the one that works less dominates.
      if (candidate.work < known->work) *known = std::move(candidate);
      return true;
    }
    if (set_.candidates.size() == CandidateSet::kMost) return false;
    set_.candidates.push_back(std::move(candidate));
    return true;
  }
  CandidateSet take(int64_t left_out) {
    set_.left_out = left_out;
    return std::move(set_);
  }

 private:
  CandidateSet set_;
};

}  // namespace

std::vector<MeshPtr> meshes_of(const ProgramPlacements& placements, const std::vector<TensorPlacements>& tensors) {
  if (!placements.has_several_meshes()) return {nullptr};
  std::vector<MeshPtr> meshes{placements.mesh()};
  for (const TensorPlacements& tensor : tensors) {
    for (const PlacementId id : tensor) {
      const Placement* placement = placements.find(id);
      if (placement == nullptr || placement->is_fully_replicated()) continue;
      if (std::ranges::find(meshes, placement->mesh) == meshes.end()) meshes.push_back(placement->mesh);
    }
  }
  return meshes;
}

CandidateSet op_candidates(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                           const std::vector<TensorPlacements>& tensors, const Pending& pending) {
  std::vector<Assignments> variants;
  for (const MeshPtr& mesh : meshes_of(placements, tensors)) {
    variants.emplace_back(placements, op, rule, tensors, mesh, AxisList{}, Reducer::kNone);
    if (pending.axes.empty() || (mesh != nullptr && mesh != pending.mesh)) continue;
    variants.emplace_back(placements, op, rule, tensors, mesh, pending.axes, pending.reducer);
  }
  size_t most_moved = 0;
  int64_t left = 0;
  for (const Assignments& variant : variants) {
    most_moved = std::max(most_moved, variant.most_moved());
    left += variant.count();
  }
  // Those of all variants that are equally near to propagation come together.
  Candidates candidates;
  int64_t tried = 0;
  for (size_t moved = 0; moved <= most_moved; ++moved) {
    for (Assignments& variant : variants) {
      if (moved > variant.most_moved()) continue;
      variant.visit(moved, [&](std::span<const ComputeSharding> added) {
        bool fits = true;
        for (const ComputeSharding& compute : added) {
          fits = candidates.add(candidate_of(placements, op, rule, compute, pending)) && fits;
        }
        left -= fits ? 1 : 0;
        return ++tried < kMostAssignments;
      });
      if (tried == kMostAssignments) return candidates.take(left);
    }
  }
  return candidates.take(left);
}

}  // namespace shardwise
