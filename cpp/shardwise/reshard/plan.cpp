// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/error.h"
#include "shardwise/cost/collective_cost.h"
#include "shardwise/reshard/across_meshes.h"
#include "shardwise/reshard/common_digits.h"
#include "shardwise/reshard/movement.h"
#include "shardwise/reshard/plan_price.h"
#include "shardwise/reshard/tile_in_progress.h"

namespace shardwise {
namespace {

bool fits(const ReshardProblem& problem, const ReshardPlan& plan) {
  const double limit = std::max(problem.tile_bytes(problem.from), problem.tile_bytes(problem.to));
  return std::ranges::all_of(plan.steps,
                             [&](const ReshardStep& step) { return problem.tile_bytes(step.after) <= limit; });
}

// Whether input and output of no step are more than those of one exchange: the tiles before and after.
bool fits_as_exchange(const ReshardProblem& problem, const ReshardPlan& plan) {
  double before = problem.tile_bytes(problem.from);
  const double limit = before + problem.tile_bytes(problem.to);
  for (const ReshardStep& step : plan.steps) {
    const double after = problem.tile_bytes(step.after);
    if (before + after > limit) return false;
    before = after;
  }
  return true;
}

// No movement from `before` sends less: the first device needs its whole tile, and holds no more of it than tiles of these
// sizes can share.
double least_bytes_of_movement(const ReshardProblem& problem, const Placement& before) {
  double needed = static_cast<double>(problem.item_size), held = needed;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    const int64_t from = before.dims[d].block, to = problem.to.dims[d].block;
    needed *= static_cast<double>(to);
    held *= static_cast<double>(std::min(from, to));
  }
  return needed - held;
}

ReshardPlan plan_movement(const ReshardProblem& problem) {
  ReshardPlan named = gather_and_slice(problem);
  // Only slices, or nothing: no other plan sends less.
  if (named.collective_count() == 0) return named;
  const double least = least_bytes_of_movement(problem, problem.from);
  std::optional<ReshardPlan> exchange;  // made only where the bound does not say that it sends no less
  const auto exchange_sends_less = [&](double bytes) {
    if (bytes <= least) return false;
    if (!exchange) exchange = one_exchange(problem);
    return exchange->bytes < bytes;
  };
  const auto keeps_name = [&](const ReshardPlan& plan) {
    return plan.collective_count() <= 1 && fits(problem, plan) && fits_as_exchange(problem, plan) &&
           !exchange_sends_less(plan.bytes);
  };
  // A lone all-gather: one_named_collective would find the same plan.
  if (named.steps.size() == 1 && keeps_name(named)) return named;
  if (auto other = one_named_collective(problem); other && keeps_name(*other)) return std::move(*other);
  if (keeps_name(named)) return named;
  return exchange ? std::move(*exchange) : one_exchange(problem);
}

// ---- reductions ----------------------------------------------------------------------------------------------------

// The pending digits that a reduce-scatter leaves in dims; the others are all-reduced.
enum class Scatter : uint8_t { kNothing, kWhereItContinues, kInItsDim, kAll, kElsewhere };

// Whether a reduce-scatter may pad a dim that its digits do not divide. It may where the moves of a plan are pinned.
enum class Pads : uint8_t { kNo, kYes };

// Adds a digit to the first of the dims that it divides. Returns false if there is none.
bool scatter_on(const TileInProgress& tile, Digit digit, std::span<const size_t> dims, Pads pads,
                std::vector<DigitList>& scattered) {
  for (const size_t d : dims) {
    scattered[d].push_back(digit);
    if (pads == Pads::kYes || tile.divides(d, scattered[d])) return true;
    // The digit would make the dim uneven; maybe the next dim takes it.
    scattered[d].pop_back();
  }
  return false;
}

// The pending digits that each dim gets. With kAll, those that the target does not want in a dim that they divide go to
// `rest`, or to any other dim; with kElsewhere, all of them do.
std::vector<DigitList> scattered_digits(const TileInProgress& tile, Scatter scatter, Pads pads, size_t rest) {
  std::vector<DigitList> scattered(tile.ndim());
  if (scatter == Scatter::kNothing) return scattered;
  DigitList left = tile.pending();
  for (size_t d = 0; scatter != Scatter::kElsewhere && d < tile.ndim(); ++d) {
    const DigitList& wanted = tile.wanted(d);
    // If the dim wants the pending digits next, it is at its target after the reduce-scatter, and no movement follows.
    const bool continues = tile.continues(d);
    if (scatter == Scatter::kWhereItContinues) {
      for (size_t i = tile.now(d).size(); continues && i < wanted.size() && tile.is_pending(wanted[i]); ++i) {
        scattered[d].push_back(wanted[i]);
      }
      continue;
    }
    for (const Digit digit : wanted) {
      if (tile.is_pending(digit) && scatter_on(tile, digit, {&d, 1}, pads, scattered)) erase(left, digit);
    }
  }
  if (scatter != Scatter::kAll && scatter != Scatter::kElsewhere) return scattered;
  std::vector<size_t> dims{rest};
  for (size_t d = 0; d < tile.ndim(); ++d) {
    if (d != rest) dims.push_back(d);
  }
  for (const Digit digit : left) scatter_on(tile, digit, dims, pads, scattered);
  return scattered;
}

// The placement after slices and a reduction, and the steps to it.
struct Reduced {
  ReshardPlan plan;
  Placement after;
};

// The movement that is left.
ReshardProblem rest_of(const ReshardProblem& problem, const Reduced& reduced) {
  return {.shape = problem.shape, .item_size = problem.item_size, .from = reduced.after, .to = problem.to};
}

// Slices come first: they send nothing, and the reduction is of a smaller tile.
TileInProgress sliced_tile(const ReshardProblem& problem, const Digits& digits) {
  TileInProgress tile(problem, digits);
  for (size_t d = 0; d < tile.ndim(); ++d) {
    if (!tile.continues(d)) continue;
    const DigitList& wanted = tile.wanted(d);
    size_t next = tile.now(d).size();
    while (next < wanted.size() && tile.is_unused(wanted[next]) && tile.slice(d, {wanted[next]})) ++next;
  }
  return tile;
}

std::optional<Reduced> reduced_by(TileInProgress tile, const std::vector<DigitList>& scattered) {
  if (!std::ranges::all_of(scattered, &DigitList::empty) && !tile.reduce_scatter(scattered)) return std::nullopt;
  tile.all_reduce();
  Placement after = tile.placement();
  return Reduced{tile.take(), std::move(after)};
}

// The digits of both placements; pending ones are also cut where a part of them divides a dim.
std::optional<Digits> digits_to_scatter(const ReshardProblem& problem) {
  auto digits = digits_of(problem.from, problem.to, Cuts::kAligned);
  if (!digits) return std::nullopt;
  for (const AxisRef& axis : difference(problem.from.unreduced, problem.to.unreduced)) {
    for (const Digit digit : digits->encode({&axis, 1})) {
      // A pending axis of 8 and blocks of 6 rows: the digit (1)2 of the axis divides them, so it can be scattered by
      // itself.
      const AxisRef ref = (*digits)[digit];
      for (const DimPlacement& dim : problem.from.dims)
        digits->cut_inside(ref.axis, ref.pre * std::gcd(dim.block, ref.size));
    }
  }
  return digits->size() <= Digits::kMost ? std::move(digits) : std::nullopt;
}

Reduced all_reduce_first(const ReshardProblem& problem) {
  ReshardStep step;
  step.move = ReshardMove::kAllReduce;
  step.reduced = difference(problem.from.unreduced, problem.to.unreduced);
  step.after = problem.from;
  step.after.mesh = problem.to.mesh;
  step.after.unreduced = problem.to.unreduced;
  step.after.reducer = problem.to.reducer;
  step.bytes = all_reduce_bytes(problem.tile_bytes(problem.from), product(step.reduced), problem.item_size);
  step.mean_bytes = mean_all_reduce_bytes(problem.tile_bytes(problem.from), product(step.reduced));
  Reduced reduced{.plan = {}, .after = step.after};
  add_step(reduced.plan, std::move(step));
  return reduced;
}

// All ways to reduce that are tried; an all-reduce first.
std::vector<Reduced> reductions(const ReshardProblem& problem, Pads pads) {
  check_internal(difference(problem.to.unreduced, problem.from.unreduced).empty(),
                 "a reshard cannot make a value unreduced");
  std::vector<Reduced> found{all_reduce_first(problem)};
  if (found[0].after == problem.to) return found;  // nothing cheaper is known
  const auto digits = digits_to_scatter(problem);
  if (!digits) return found;
  const TileInProgress sliced = sliced_tile(problem, *digits);
  std::vector<std::vector<DigitList>> tried;
  const auto add = [&](Scatter scatter, size_t rest = 0) {
    std::vector<DigitList> scattered = scattered_digits(sliced, scatter, pads, rest);
    if (std::ranges::find(tried, scattered) != tried.end()) return;
    if (auto reduced = reduced_by(sliced, scattered)) found.push_back(std::move(*reduced));
    tried.push_back(std::move(scattered));
  };
  // Unlike all_reduce_first, this slices before the all-reduce.
  add(Scatter::kNothing);
  add(Scatter::kWhereItContinues);
  add(Scatter::kInItsDim);
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    add(Scatter::kAll, d);
    add(Scatter::kElsewhere, d);
  }
  return found;
}

ReshardPlan joined(ReshardPlan first, ReshardPlan then) {
  for (ReshardStep& step : then.steps) add_step(first, std::move(step));
  return first;
}

ReshardPlan reduction_that_sends_least(const ReshardProblem& problem, std::span<const Reduced> reductions) {
  std::optional<ReshardPlan> best;
  std::vector<std::pair<Placement, double>> tried;  // where reductions lead to, at which cost
  for (const Reduced& reduced : reductions) {
    const double cost = reduced.plan.cost;
    // Movement only adds to the cost, and costs the same from the same placement.
    const auto is_no_better = [&](const auto& known) { return known.second <= cost && known.first == reduced.after; };
    const double least = cost + least_bytes_of_movement(problem, reduced.after);
    if (best && (least >= best->cost || std::ranges::any_of(tried, is_no_better))) continue;
    ReshardPlan plan = joined(reduced.plan, plan_movement(rest_of(problem, reduced)));
    const bool is_cheaper = best && plan.cost < best->cost;
    if (is_cheaper && !fits(problem, plan)) continue;
    tried.emplace_back(reduced.after, cost);
    // The first plan reduces in place, so it is kept even if no plan fits the memory.
    if (!best || is_cheaper) best = std::move(plan);
  }
  return std::move(*best);
}

// On links of several speeds, a sum in stages may be faster, though it sends more: devices that are close to each other
// add first, and gather afterwards what the target does not split.
ReshardPlan plan_reduction(const ReshardProblem& problem, const Hardware* hardware) {
  const std::vector<Reduced> ways = reductions(problem, Pads::kNo);
  ReshardPlan best = reduction_that_sends_least(problem, ways);
  // The price of one collective has stages already.
  if (hardware == nullptr || best.collective_count() <= 1) return best;
  int64_t least = price_of(best, problem, *hardware).ps;
  // Each tier of a collective is rounded up, twice in an all-reduce: less than that is no gain.
  const auto gains = [&](const ReshardPlan& plan, int64_t ps) {
    const size_t roundings = 2 * hardware->tiers.size() * (plan.steps.size() + best.steps.size());
    return ps + static_cast<int64_t>(roundings) < least;
  };
  for (const Reduced& reduced : ways) {
    if (!gains(reduced.plan, price_of(reduced.plan, problem, *hardware).ps)) continue;
    ReshardPlan plan = joined(reduced.plan, gather_and_slice(rest_of(problem, reduced)));
    const int64_t ps = price_of(plan, problem, *hardware).ps;
    if (!gains(plan, ps) || !fits(problem, plan)) continue;
    best = std::move(plan);
    least = ps;
  }
  return best;
}

// ---- plans of given moves ------------------------------------------------------------------------------------------

bool has_moves(const ReshardPlan& plan, std::span<const std::string> moves) {
  return std::ranges::equal(plan.steps, moves, {}, [](const ReshardStep& step) { return move_name(step.move); });
}

std::vector<ReshardPlan> movements(const ReshardProblem& problem) {
  std::vector<ReshardPlan> plans = named_collectives(problem);
  plans.push_back(gather_and_slice(problem));
  plans.push_back(one_exchange(problem));
  if (problem.from.dims == problem.to.dims) plans.emplace_back();
  return plans;
}

}  // namespace

ReshardPlan plan_reshard(const ReshardProblem& problem, const Hardware* hardware) {
  const auto plan_on_one_mesh = [&](const ReshardProblem& part) { return plan_reshard(part, hardware); };
  if (is_across_meshes(problem)) {
    const std::vector<ReshardPlan> plans = plans_across_meshes(problem, plan_on_one_mesh);
    return *std::ranges::min_element(plans, {}, &ReshardPlan::cost);
  }
  return problem.from.unreduced == problem.to.unreduced ? plan_movement(problem) : plan_reduction(problem, hardware);
}

std::optional<ReshardPlan> plan_with_moves(const ReshardProblem& problem, std::span<const std::string> moves) {
  std::optional<ReshardPlan> best;
  const auto add = [&](ReshardPlan plan) {
    if (has_moves(plan, moves) && (!best || plan.cost < best->cost)) best = std::move(plan);
  };
  if (is_across_meshes(problem)) {
    const auto plan_on_one_mesh = [](const ReshardProblem& part) { return plan_reshard(part); };
    for (ReshardPlan& plan : plans_across_meshes(problem, plan_on_one_mesh)) add(std::move(plan));
    return best;
  }
  // The pinned moves are mostly those of the best plan. Only otherwise are all other plans made.
  add(plan_reshard(problem));
  if (best) return best;
  if (problem.from.unreduced == problem.to.unreduced) {
    for (ReshardPlan& plan : movements(problem)) add(std::move(plan));
    return best;
  }
  for (const Pads pads : {Pads::kNo, Pads::kYes}) {
    for (const Reduced& reduced : reductions(problem, pads)) {
      for (ReshardPlan& plan : movements(rest_of(problem, reduced))) add(joined(reduced.plan, std::move(plan)));
    }
    // Padding is the last resort: the moves may come from a mesh whose digits divided the dim.
    if (best) break;
  }
  return best;
}

}  // namespace shardwise
