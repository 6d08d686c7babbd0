// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/op_candidates.h"

#include <algorithm>
#include <utility>

#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

// Enough assignments to find kMost different candidates among; more would make the time of an op depend on its axes.
constexpr int64_t kMostAssignments = 4096;
constexpr int64_t kMostCounted = int64_t{1} << 40;  // of those that are left out

// An axis, cut where any tensor cuts it, and the factors that it may shard.
struct Piece {
  AxisRef axis;
  std::vector<FactorId> factors;  // its own of propagation first, if there is one
};

class Assignments {
 public:
  Assignments(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
              const std::vector<TensorPlacements>& tensors, const Pending& pending, const MeshPtr& mesh)
      : placements_(placements),
        op_(op),
        rule_(rule),
        tensors_(tensors),
        pending_(pending),
        mesh_(mesh),
        shardings_(op, rule) {
    shardings_.set_mesh(mesh);
    read_pieces();
  }

  // By the number of axes that are elsewhere than propagation has them.
  std::vector<ComputeSharding> run(int64_t& left_out) {
    add_all({}, Reducer::kNone);
    if (!pending_.axes.empty() && (mesh_ == nullptr || mesh_ == pending_.mesh)) {
      add_all(pending_.axes, pending_.reducer);
    }
    left_out += left_out_;
    return shardings_.candidates();
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
        if (const Placement* placement = on_mesh(id)) append(all, placement->axes());
      }
    }
    AxisList cut;
    for (const AxisRef& axis : all) {
      // Sub-axes that no single split of the axis has: the first one stays.
      const auto parts = cut_at(std::span(&axis, 1), all);
      for (const AxisRef& part : parts ? *parts : AxisList{axis}) {
        if (!overlaps(cut, part)) cut.push_back(part);
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

  void add_all(const AxisList& passed, Reducer reducer) {
    std::vector<size_t> free;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (!overlaps(passed, pieces_[p].axis)) free.push_back(p);
    }
    add_in_place(passed, reducer);
    int64_t all = 1;
    for (const size_t piece : free) {
      const auto options = static_cast<int64_t>(pieces_[piece].factors.size()) + 1;
      all = std::min(kMostCounted, all * options);
    }
    const int64_t before = std::exchange(assignments_, 0);
    // Nearest first: one more axis each time is elsewhere than propagation has it.
    for (size_t moved = 0; moved <= free.size(); ++moved) {
      std::vector<size_t> options(pieces_.size(), 0);
      add_moved(free, 0, moved, options, passed, reducer);
    }
    left_out_ += all - assignments_;
    assignments_ += before;
  }

  // All assignments in which `moved` of the free pieces from `at` on are elsewhere.
  void add_moved(const std::vector<size_t>& free, size_t at, size_t moved, std::vector<size_t>& options,
                 const AxisList& passed, Reducer reducer) {
    if (assignments_ == kMostAssignments) return;
    if (at == free.size()) {
      if (moved == 0) add(free, options, passed, reducer);
      return;
    }
    const size_t piece = free[at];
    if (moved < free.size() - at) add_moved(free, at + 1, moved, options, passed, reducer);
    // The last option is none.
    for (size_t option = 1; moved > 0 && option <= pieces_[piece].factors.size(); ++option) {
      options[piece] = option;
      add_moved(free, at + 1, moved - 1, options, passed, reducer);
    }
    options[piece] = 0;
  }

  void add(const std::vector<size_t>& free, const std::vector<size_t>& options, const AxisList& passed,
           Reducer reducer) {
    ++assignments_;
    std::vector<AxisList> factors(rule_.factors().size());
    for (const size_t piece : free) {
      const auto& [axis, usable] = pieces_[piece];
      if (options[piece] < usable.size()) factors[usable[options[piece]]].push_back(axis);
    }
    for (size_t f = 0; f < factors.size(); ++f) order(factors[f], static_cast<FactorId>(f));
    shardings_.add_assigned(factors, passed, reducer);
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

  // Methods that move nothing: each tensor in each of its placements, the others as propagation has them.
  void add_in_place(const AxisList& passed, Reducer reducer) {
    std::vector<const Placement*> placed(tensors_.size(), nullptr);
    for (size_t t = 0; t < tensors_.size(); ++t) placed[t] = tensors_[t].empty() ? nullptr : on_mesh(tensors_[t][0]);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Placement* declared = placed[t];
      for (const PlacementId id : tensors_[t]) {
        placed[t] = on_mesh(id);
        shardings_.add_where_they_are(placed, passed, reducer);
      }
      placed[t] = declared;
    }
  }

  const ProgramPlacements& placements_;
  OpView op_;
  const ShardingRule& rule_;
  const std::vector<TensorPlacements>& tensors_;
  const Pending& pending_;
  MeshPtr mesh_;
  ComputeShardings shardings_;
  std::vector<AxisList> declared_;  // by factor
  std::vector<Piece> pieces_;
  int64_t assignments_ = 0, left_out_ = 0;
};

// The meshes on which the op may be computed: null for that of the program, if there is one only.
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

// Whether another candidate takes and makes all tensors in the same placements by the same method, and works no more.
bool is_dominated(const Candidate& candidate, const std::vector<Candidate>& others) {
  return std::ranges::any_of(others, [&](const Candidate& other) {
    return other.choice.method == candidate.choice.method && other.choice.operands == candidate.choice.operands &&
           other.choice.results == candidate.choice.results && other.work <= candidate.work;
  });
}

}  // namespace

CandidateSet op_candidates(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                           const std::vector<TensorPlacements>& tensors, const Pending& pending) {
  CandidateSet set;
  for (const MeshPtr& mesh : meshes_of(placements, tensors)) {
    Assignments assignments(placements, op, rule, tensors, pending, mesh);
    for (const ComputeSharding& compute : assignments.run(set.left_out)) {
      Candidate candidate = candidate_of(placements, op, rule, compute, pending);
      if (is_dominated(candidate, set.candidates)) continue;
      if (set.candidates.size() == CandidateSet::kMost) {
        ++set.left_out;
      } else {
        set.candidates.push_back(std::move(candidate));
      }
    }
  }
  return set;
}

}  // namespace shardwise
