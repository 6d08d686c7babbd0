// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/compute_sharding.h"

#include <algorithm>

#include "shardwise/mesh/digits.h"
#include "shardwise/ops/partitioning/addends.h"
#include "shardwise/ops/partitioning/linearity.h"
#include "shardwise/ops/partitioning/owned_rows.h"

namespace shardwise {

bool has_range(const ShardingRule& rule, FactorId factor) {
  for (size_t i = 0; rule.has_ranges() && i < rule.operand_count(); ++i) {
    for (size_t d = 0; d < rule.ndim(i); ++d) {
      // A dim with a range has one factor.
      if (rule.dim(i, d)[0] == factor && rule.range(i, d) != nullptr) return true;
    }
  }
  return false;
}

namespace {

bool in_all_results(const ShardingRule& rule, FactorId factor) {
  for (size_t t = rule.operand_count(); t < rule.tensor_count(); ++t) {
    if (!rule.has_factor(t, factor)) return false;
  }
  return true;
}

// For a rule of pairs, the pair of each factor; otherwise all factors are in one.
std::vector<size_t> pairs_of_factors(const ShardingRule& rule) {
  std::vector<size_t> pairs(rule.factors().size(), 0);
  if (!rule.has_independent_pairs()) return pairs;
  rule.for_each_dim([&](size_t t, size_t, std::span<const FactorId> factors) {
    // Tensor t is operand t, or the result of the same number.
    for (const FactorId id : factors) pairs[id] = t % rule.operand_count();
  });
  return pairs;
}

bool in_an_operand(const ShardingRule& rule, FactorId factor) {
  for (size_t t = 0; t < rule.operand_count(); ++t) {
    if (rule.has_factor(t, factor)) return true;
  }
  return false;
}

// Whether the factor is in all results that are computed from its operands.
bool in_its_results(const ShardingRule& rule, const std::vector<size_t>& pairs, FactorId factor) {
  return rule.has_independent_pairs() ? rule.has_factor(rule.result_tensor(pairs[factor]), factor)
                                      : in_all_results(rule, factor);
}

// Elements of an operand's own factors reappear along a result's own factors (3x2 reshaped to 2x3). Then no part of the
// result is a tile of the operand. A broadcast, in contrast, only adds factors.
bool operands_lose_factors(const ShardingRule& rule, const std::vector<size_t>& pairs) {
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    const Factor& factor = rule.factors()[f];
    const bool lost = in_an_operand(rule, id) && !in_its_results(rule, pairs, id);
    if (factor.kind == FactorKind::kPassThrough && factor.size > 1 && lost) return true;
  }
  return false;
}

bool leaves_pending(const Factor& factor) {
  return factor.kind == FactorKind::kReduction && factor.reducer != Reducer::kNone;
}

bool is_usable(const ShardingRule& rule, const std::vector<size_t>& pairs, FactorId id) {
  switch (rule.factors()[id].kind) {
    // Each device reduces its part, and the result is unreduced over the axes of the factor.
    case FactorKind::kReduction: return true;
    case FactorKind::kPassThrough:
      // A broadcast: every device holds the data for its part of the new dim.
      if (!in_an_operand(rule, id)) return !operands_lose_factors(rule, pairs);
      return in_its_results(rule, pairs, id);
    case FactorKind::kPermutation: return has_range(rule, id);  // as far as it stays local
    case FactorKind::kNeedReplication: break;
  }
  return false;
}

// The dims of a tensor that have only this factor.
template <class Visit>
void for_dims_of(const ShardingRule& rule, size_t tensor, FactorId factor, Visit&& visit) {
  for (size_t d = 0; d < rule.ndim(tensor); ++d) {
    if (rule.dim(tensor, d).size() == 1 && rule.dim(tensor, d)[0] == factor) visit(d);
  }
}

// Whether dim by dim the factors are the same: those of a convolution's operand and result are in other orders.
bool have_same_factors(const ShardingRule& rule, size_t tensor, size_t other) {
  bool same = rule.ndim(tensor) == rule.ndim(other);
  for (size_t d = 0; same && d < rule.ndim(tensor); ++d) {
    same = std::ranges::equal(rule.dim(tensor, d), rule.dim(other, d));
  }
  return same;
}

void respect_compound_dims(const ShardingRule& rule, std::vector<AxisList>& factors) {
  // Clearing a factor may leave another dim with an incomplete factor before others, so this repeats to a fixed point.
  for (bool changed = true; changed;) {
    changed = false;
    rule.for_each_dim([&](size_t, size_t, std::span<const FactorId> dim) {
      bool full = true;
      for (const FactorId id : dim) {
        if (!full && !factors[id].empty()) {
          factors[id].clear();
          changed = true;
        }
        full = full && product(factors[id]) == rule.factors()[id].size;
      }
    });
  }
}

// Axes that tiles cannot have are dropped, and reductions over the others are left.
void finish(const ShardingRule& rule, ComputeSharding& chosen) {
  respect_compound_dims(rule, chosen.factors);
  for (size_t f = 0; f < chosen.factors.size(); ++f) {
    if (leaves_pending(rule.factors()[f])) append(chosen.reduced, chosen.factors[f]);
  }
  chosen.reduced = sort_and_merge(chosen.reduced);
  if (chosen.reduced.empty() && chosen.passed.empty()) chosen.reducer = Reducer::kNone;
}

// The first of the tensors that have the same axes along the same factors: the others lead to the same candidates. There
// are few, while a concatenate may have thousands of operands.
std::vector<size_t> different_tensors(const FactorProjection& projection) {
  const ShardingRule& rule = projection.rule();
  const auto axes_of = [&](size_t tensor, size_t factor) {
    const FactorSharding* found = projection.find(tensor, static_cast<FactorId>(factor));
    return found == nullptr ? AxisSpan() : AxisSpan(found->axes);
  };
  const auto are_alike = [&](size_t a, size_t b) {
    for (size_t f = 0; f < rule.factors().size(); ++f) {
      if (!std::ranges::equal(axes_of(a, f), axes_of(b, f))) return false;
    }
    return true;
  };
  std::vector<size_t> found;
  for (size_t t = 0; t < rule.tensor_count(); ++t) {
    if (std::ranges::none_of(found, [&](size_t other) { return are_alike(other, t); })) found.push_back(t);
  }
  return found;
}

}  // namespace

bool stays_local(const OpView& op, const ShardingRule& rule, FactorId factor, int64_t shards) {
  // ProgramPlacements::of gives the tensors of ops default blocks.
  const auto blocks = [shards](int64_t size) { return Blocks{size, ceil_div(size, shards)}; };
  bool local = true;
  for (size_t r = 0; r < op.result_count(); ++r) {
    for_dims_of(rule, rule.result_tensor(r), factor, [&](size_t result_dim) {
      const Blocks result = blocks(op.result_type(r).shape[result_dim]);
      for (size_t i = 0; i < op.operand_count(); ++i) {
        for_dims_of(rule, i, factor, [&](size_t dim) {
          const Range* range = rule.range(i, dim);
          const Range identity;
          local = local &&
                  (range == nullptr ? identity : *range).stays_local(blocks(op.operand_type(i).shape[dim]), result);
        });
      }
    });
  }
  return local;
}

std::vector<AxisList> ComputeSharding::dims(const ShardingRule& rule, size_t tensor) const {
  return method != nullptr ? tensors[tensor] : dims_by_rule(rule, tensor, factors);
}

double ComputeSharding::local_work(const OpView& op, const ShardingRule& rule) const {
  double work = 1;
  // The factors of a slice have the operand's sizes, but the work of a slice is the size of its result.
  if (op.def().traits.movement) {
    const std::vector<AxisList> axes = dims(rule, rule.result_tensor(0));
    const Dims& shape = op.result_type().shape;
    for (size_t d = 0; d < shape.size(); ++d) work *= static_cast<double>(ceil_div(shape[d], product(axes[d])));
    return work;
  }
  for (size_t f = 0; f < factors.size(); ++f) {
    work *= static_cast<double>(std::max<int64_t>(1, ceil_div(rule.factors()[f].size, product(factors[f]))));
  }
  return work;
}

ComputeShardings::ComputeShardings(const OpView& op, const ShardingRule& rule)
    : op_(op),
      rule_(rule),
      pairs_(pairs_of_factors(rule)),
      usable_(rule.factors().size()),
      compound_(rule.factors().size()) {
  for (size_t f = 0; f < usable_.size(); ++f) usable_[f] = is_usable(rule, pairs_, static_cast<FactorId>(f));
  for (const Method& method : op.def().methods) {
    methods_.push_back(method.factors(op, rule));
    if (method.placements == nullptr) continue;
    // The rule leaves such a factor unsharded, even if its kind allows sharding.
    for (const FactorId id : methods_.back()) usable_[id] = false;
  }
  for (size_t m = 0; m < methods_.size(); ++m) {
    if (op.def().methods[m].placements == nullptr) continue;
    if (usable_by_methods_.empty() && !methods_[m].empty()) usable_by_methods_ = usable_;
    for (const FactorId id : methods_[m]) usable_by_methods_[id] = true;
  }
  rule.for_each_dim([&](size_t, size_t, std::span<const FactorId> factors) {
    for (const FactorId id : factors) compound_[id] = compound_[id] || factors.size() > 1;
  });
}

void ComputeShardings::add(const FactorProjection& projection, std::span<const Placement* const> placements,
                           const AxisList& passed, Reducer passed_reducer) {
  const Request request{projection, passed, passed_reducer};
  const std::vector<size_t> leaders = different_tensors(projection);
  std::vector<size_t> order;
  for (const size_t leader : leaders) {
    order.assign(1, leader);
    for (size_t t = 0; t < rule_.tensor_count(); ++t) {
      if (t != leader) order.push_back(t);
    }
    add(request, order);
  }
  // Using fewer axes can save a reshard, at the price of more work per device.
  for (const size_t leader : leaders) add(request, std::span(&leader, 1));
  add_where_they_are(placements, passed, passed_reducer);
}

void ComputeShardings::add_assigned(const std::vector<AxisList>& factors, const AxisList& passed,
                                    Reducer passed_reducer) {
  keep(assigned(factors, passed, passed_reducer, usable_));
  if (usable_by_methods_.empty()) return;
  const ComputeSharding chosen = assigned(factors, passed, passed_reducer, usable_by_methods_);
  if (needs_method(chosen)) add_by_methods(chosen);
}

void ComputeShardings::add(const Request& request, std::span<const size_t> order) {
  keep(choose(request, order, usable_));
  if (usable_by_methods_.empty()) return;
  const ComputeSharding chosen = choose(request, order, usable_by_methods_);
  if (needs_method(chosen)) add_by_methods(chosen);
}

namespace {

// Whether a method keeps each factor sharded that has axes: its own ones, or those of the rule. One may be another method's.
bool keeps_all(const std::vector<FactorId>& own, const std::vector<bool>& usable, const ComputeSharding& chosen) {
  for (size_t f = 0; f < chosen.factors.size(); ++f) {
    const bool is_own = std::ranges::find(own, static_cast<FactorId>(f)) != own.end();
    if (!chosen.factors[f].empty() && !usable[f] && !is_own) return false;
  }
  return true;
}

size_t hash_of(const ComputeSharding& candidate) {
  size_t hash = std::hash<const Method*>{}(candidate.method);
  for (const AxisList& axes : candidate.factors) hash = hash_combine(hash, hash_value(AxisSpan(axes)));
  for (const std::vector<AxisList>& dims : candidate.tensors) {
    for (const AxisList& axes : dims) hash = hash_combine(hash, hash_value(AxisSpan(axes)));
  }
  return hash;
}

}  // namespace

void ComputeShardings::keep(ComputeSharding candidate) {
  candidate.mesh = mesh_;
  const size_t hash = hash_of(candidate);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (hashes_[i] == hash && candidates_[i] == candidate) return;
  }
  candidates_.push_back(std::move(candidate));
  hashes_.push_back(hash);
}

bool ComputeShardings::needs_method(const ComputeSharding& chosen) const {
  const auto is_sharded = [&](FactorId id) { return !chosen.factors[id].empty(); };
  for (size_t m = 0; m < methods_.size(); ++m) {
    if (op_.def().methods[m].placements == nullptr) continue;
    if (std::ranges::any_of(methods_[m], is_sharded)) return true;
  }
  return false;
}

bool ComputeShardings::is_sharded_along(const std::vector<std::vector<AxisList>>& tensors,
                                        const std::vector<FactorId>& factors) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (size_t d = 0; d < tensors[t].size(); ++d) {
      const FactorId factor = rule_.dim(t, d)[0];
      if (!tensors[t][d].empty() && std::ranges::find(factors, factor) != factors.end()) return true;
    }
  }
  return false;
}

namespace {

std::vector<AxisList> suited_result(const Method& method, const OpView& op, const ShardingRule& rule,
                                    std::span<const AxisList> operand) {
  return method.result == nullptr ? std::vector<AxisList>{} : method.result(op, rule, operand);
}

}  // namespace

void ComputeShardings::add_where_they_are(std::span<const Placement* const> placements, const AxisList& passed,
                                          Reducer passed_reducer) {
  for (size_t m = 0; m < methods_.size(); ++m) {
    const Method& method = op_.def().methods[m];
    if (method.placements != nullptr || methods_[m].empty()) continue;
    std::vector<std::vector<AxisList>> tensors(rule_.tensor_count());
    for (size_t t = 0; t < tensors.size(); ++t) {
      tensors[t].resize(rule_.ndim(t));
      for (size_t d = 0; placements[t] != nullptr && d < tensors[t].size(); ++d) {
        // Another tensor may be sharded along an axis over which the op passes a reduction on.
        tensors[t][d] = truncate_at_overlap(placements[t]->dims[d].axes, passed);
      }
    }
    // Nothing would be exchanged: the rule does the same.
    if (!is_sharded_along(tensors, methods_[m])) continue;
    // The results are made together, so they have one placement: that of a result, or of the first operand.
    for (size_t from = rule_.operand_count(); from <= tensors.size(); ++from) {
      std::vector<std::vector<AxisList>> placed = tensors;
      const size_t model = from < tensors.size() ? from : 0;
      for (size_t t = rule_.operand_count(); t < placed.size(); ++t) {
        if (have_same_factors(rule_, t, model)) placed[t] = tensors[model];
      }
      add_placed(method, std::move(placed), passed, passed_reducer);
    }
    std::vector<AxisList>& result = tensors[rule_.result_tensor(0)] = suited_result(method, op_, rule_, tensors[0]);
    if (!result.empty()) add_placed(method, std::move(tensors), passed, passed_reducer);
  }
}

// A factor has the axes that it has in the result: they share the work.
void ComputeShardings::add_placed(const Method& method, std::vector<std::vector<AxisList>> tensors,
                                  const AxisList& passed, Reducer passed_reducer) {
  ComputeSharding candidate{.factors = std::vector<AxisList>(usable_.size()),
                            .passed = passed,
                            .reducer = passed.empty() ? Reducer::kNone : passed_reducer,
                            .reduced = {},
                            .method = &method,
                            .tensors = std::move(tensors)};
  const size_t result = rule_.result_tensor(0);
  for (size_t d = 0; d < rule_.ndim(result); ++d) {
    if (rule_.dim(result, d).size() == 1) candidate.factors[rule_.dim(result, d)[0]] = candidate.tensors[result][d];
  }
  keep(std::move(candidate));
}

void ComputeShardings::add_by_methods(const ComputeSharding& chosen) {
  std::vector<OpPlacement> found;
  for (size_t m = 0; m < methods_.size(); ++m) {
    const Method& method = op_.def().methods[m];
    if (method.placements == nullptr || !keeps_all(methods_[m], usable_, chosen)) continue;
    found.clear();
    method.placements(op_, rule_, chosen.factors, found);
    for (OpPlacement& placement : found) {
      // All pending reductions of a value must have the same reducer.
      const bool reduces = !placement.unreduced.empty();
      if (reduces && !chosen.passed.empty() && placement.reducer != chosen.reducer) continue;
      ComputeSharding candidate = chosen;
      candidate.method = &method;
      candidate.tensors = std::move(placement.tensors);
      candidate.reduced = std::move(placement.unreduced);
      if (chosen.passed.empty()) candidate.reducer = reduces ? placement.reducer : Reducer::kNone;
      keep(std::move(candidate));
    }
  }
}

// The axes that an op's factors use so far, by pair.
std::vector<AxisList> ComputeShardings::nothing_used(const AxisList& passed) const {
  return std::vector<AxisList>(rule_.has_independent_pairs() ? rule_.operand_count() : 1, passed);
}

ComputeSharding ComputeShardings::choose(const Request& request, std::span<const size_t> order,
                                         const std::vector<bool>& usable) const {
  ComputeSharding chosen{.factors = std::vector<AxisList>(usable_.size()),
                         .passed = request.passed,
                         .reducer = request.reducer,
                         .reduced = {}};
  std::vector<AxisList> used = nothing_used(request.passed);
  for (const size_t tensor : order) {
    for (size_t f = 0; f < usable.size(); ++f) {
      const FactorSharding* wanted = request.projection.find(tensor, static_cast<FactorId>(f));
      if (usable[f] && wanted != nullptr) take_axes(chosen, used, static_cast<FactorId>(f), wanted->axes);
    }
  }
  finish(rule_, chosen);
  return chosen;
}

ComputeSharding ComputeShardings::assigned(const std::vector<AxisList>& factors, const AxisList& passed,
                                           Reducer passed_reducer, const std::vector<bool>& usable) const {
  ComputeSharding chosen{
      .factors = std::vector<AxisList>(usable_.size()), .passed = passed, .reducer = passed_reducer, .reduced = {}};
  std::vector<AxisList> used = nothing_used(passed);
  for (size_t f = 0; f < usable.size(); ++f) {
    if (usable[f]) take_axes(chosen, used, static_cast<FactorId>(f), factors[f]);
  }
  finish(rule_, chosen);
  return chosen;
}

// Gives a factor as many of the axes as it may have, if it has none yet.
void ComputeShardings::take_axes(ComputeSharding& chosen, std::vector<AxisList>& used, FactorId id,
                                 const AxisList& wanted) const {
  if (wanted.empty() || !chosen.factors[id].empty()) return;
  const Factor& factor = rule_.factors()[id];
  if (leaves_pending(factor)) {
    // All pending reductions of a value must have the same reducer.
    if (chosen.reducer != Reducer::kNone && chosen.reducer != factor.reducer) return;
    chosen.reducer = factor.reducer;
  }
  // An axis can shard only one factor of an op: otherwise devices would hold only the diagonal tiles.
  AxisList axes = truncate_at_overlap(wanted, used[pairs_[id]]);
  if (compound_[id]) axes = dividing_prefix(axes, factor.size);
  // A permutation factor that only a method shards is not usable by the rule; the method reads what its range needs.
  const bool moves = factor.kind == FactorKind::kPermutation && usable_[id];
  if (moves && !stays_local(op_, rule_, id, product(axes))) return;
  append(used[pairs_[id]], axes);
  chosen.factors[id] = std::move(axes);
}

namespace {

// Whether one device has each element of the results.
bool leaves_owned(const OpView& op, const ComputeSharding& compute, const Pending& pending) {
  if (compute.reducer != Reducer::kSum) return false;
  const bool is_of_owners =
      op.def().traits.movement && compute.has_own_partition() && compute.method->name == kOwnedRows;
  if (compute.passed.empty()) return is_of_owners && !compute.reduced.empty();
  return only_copies(op.def()) && pending.owned == pending.operands;
}

}  // namespace

Pending pending_of(const OpView& op, const ProgramLinearity& linearity, std::span<const Placement* const> operands) {
  const auto is_unreduced = [](const Placement* placement) {
    return placement != nullptr && !placement->unreduced.empty();
  };
  if (std::ranges::none_of(operands, is_unreduced)) return {};  // most ops
  Pending pending;
  pending.operands.assign(op.operand_count(), false);
  pending.owned.assign(op.operand_count(), false);
  size_t count = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!is_unreduced(operands[i])) continue;
    const bool is_other = pending.axes != operands[i]->unreduced || pending.reducer != operands[i]->reducer ||
                          pending.mesh != operands[i]->mesh;
    // One reduction must complete the result, so all pending operands need the same axes, reducer and mesh.
    if (count > 0 && is_other) return {};
    pending.mesh = operands[i]->mesh;
    pending.axes = operands[i]->unreduced;
    pending.reducer = operands[i]->reducer;
    pending.operands[i] = true;
    pending.owned[i] = operands[i]->is_owned;
    ++count;
  }
  const OpLinearity passing = linearity.of(op.id(), pending.reducer);
  const bool has_owned = std::ranges::find(pending.owned, true) != pending.owned.end();
  const bool mixes_owned = passing.copies_inexact && has_owned && pending.owned != pending.operands;
  return passing.passes(pending.operands) && !mixes_owned ? pending : Pending{};
}

PlacementId operand_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                              const ComputeSharding& compute, const Pending& pending, size_t i) {
  const bool passes = !compute.passed.empty() && pending.operands[i];
  return placements.of(op.module().value(op.operand(i)).type, compute.dims(rule, i),
                       passes ? compute.passed : AxisList{}, compute.reducer, compute.mesh, passes && pending.owned[i]);
}

PlacementId result_placement(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                             const ComputeSharding& compute, const Pending& pending, size_t i) {
  AxisList unreduced = compute.passed;
  unreduced.insert(unreduced.end(), compute.reduced.begin(), compute.reduced.end());
  return placements.of(op.module().value(op.result(i)).type, compute.dims(rule, rule.result_tensor(i)),
                       sort_and_merge(unreduced), compute.reducer, compute.mesh, leaves_owned(op, compute, pending));
}

TypeId type_made(const ProgramPlacements& placements, const OpView& op, size_t i, PlacementId made) {
  const TypeId type = op.module().value(op.result(i)).type;
  const Placement* placement = placements.find(made);
  if (placement == nullptr || placement->unreduced.empty() || placement->reducer != Reducer::kSum) return type;
  const DType dtype = addend_dtype(op, i);
  return dtype == op.result_type(i).dtype ? type : op.module().context().tensor(dtype, op.result_type(i).shape);
}

}  // namespace shardwise
