// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/movement.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/cost/collective_cost.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/reshard/common_digits.h"
#include "shardwise/reshard/tile_in_progress.h"

namespace shardwise {

ReshardPlan gather_and_slice(const ReshardProblem& problem) {
  ReshardPlan plan;
  const size_t ndim = problem.shape.size();
  Placement now = problem.from;
  // The meshes have the same devices, and differ in their names at most.
  now.mesh = problem.to.mesh;
  ReshardStep gather{.move = ReshardMove::kAllGather, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = {}};
  ReshardStep slice{.move = ReshardMove::kSlice, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = problem.to};
  const double tile = problem.tile_bytes(now);
  bool gathers = false;
  int64_t gathered = 1;
  int64_t sliced = 0;
  for (size_t d = 0; d < ndim; ++d) {
    const AxisList &from = problem.from.dims[d].axes, &to = problem.to.dims[d].axes;
    // [{"x", "y"}] -> [{"x", "z"}]: "x" stays, "y" is gathered and "z" is sliced.
    AxisList stay = greatest_common_prefix(from, to);
    const auto block_after = [&](const AxisList& kept) {
      const int64_t parts = product(from) / product(kept);
      // A whole dim has no padding. A shard of the kept axes has the blocks of its parts: two blocks of 3 rows make 6.
      if (product(kept) == 1) return problem.shape[d];
      return std::min(problem.from.dims[d].block * parts, problem.shape[d]);
    };
    const int64_t new_parts = product(to) / product(stay);
    // The kept shards can be sliced only if that gives the blocks of the target: 17 rows in blocks of 5 on x=4 have no
    // two equal parts for y=2, so the dim is gathered whole.
    if (product(stay) > 1 &&
        (block_after(stay) % new_parts != 0 || block_after(stay) / new_parts != problem.to.dims[d].block)) {
      stay.clear();
    }
    gather.dim_axes.push_back(*without_prefix(from, stay));
    slice.dim_axes.push_back(*without_prefix(to, stay));
    if (!gather.dim_axes[d].empty()) now.dims[d].block = block_after(stay);
    gathers = gathers || stay != from;
    now.dims[d].axes = std::move(stay);
    gathered *= product(gather.dim_axes[d]);
    sliced += static_cast<int64_t>(slice.dim_axes[d].size());
  }
  if (gathers) {
    gather.bytes = gather.mean_bytes = all_gather_bytes(tile, gathered);
    gather.after = now;
    add_step(plan, std::move(gather));
  }
  if (sliced > 0) add_step(plan, std::move(slice));
  return plan;
}

ExchangeMap exchange_between(const Placement& from, const Placement& to, DimSpan shape) {
  ExchangeMap map{.to = {}, .from = {{}}};
  if (from.mesh != to.mesh && !from.mesh->same_devices(*to.mesh)) {
    map.from_mesh = from.mesh;
    map.to_mesh = to.mesh;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    map.to.push_back({.axes = to.dims[d].axes, .rows = to.dims[d].block, .step = to.dims[d].block, .size = shape[d]});
    map.from[0].push_back({.axes = from.dims[d].axes, .block = from.dims[d].block, .size = shape[d]});
  }
  return map;
}

ReshardPlan one_exchange(const ReshardProblem& problem) {
  check_internal(problem.from.unreduced == problem.to.unreduced, "an exchange reduces nothing");
  constexpr int64_t kMostPositions = 4'096;  // counting takes less than a millisecond
  const ExchangeCost cost = exchange_cost(exchange_between(problem.from, problem.to, problem.shape), kMostPositions);
  ReshardStep step;
  step.move = ReshardMove::kExchange;
  step.after = problem.to;
  step.bytes = step.mean_bytes = cost.elements * static_cast<double>(problem.item_size);
  ReshardPlan plan;
  add_step(plan, std::move(step));
  return plan;
}

// ---- one collective that has a name --------------------------------------------------------------------------------

namespace {

bool begins_with(const DigitList& list, const DigitList& prefix) {
  return list.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

DigitList from(const DigitList& list, size_t first) {
  return {list.begin() + static_cast<std::ptrdiff_t>(first), list.end()};
}

// The digits at the front of `list` that no dim has yet.
DigitList unused_prefix(const TileInProgress& tile, const DigitList& list) {
  return {list.begin(), std::ranges::find_if_not(list, [&](Digit digit) { return tile.is_unused(digit); })};
}

using Plan = std::optional<ReshardPlan>;

Plan finished(TileInProgress& tile) {
  if (!tile.is_at_target()) return std::nullopt;
  return tile.take();
}

Plan by_gather(TileInProgress tile) {
  std::vector<size_t> kept;
  bool gathers = false;
  for (size_t d = 0; d < tile.ndim(); ++d) {
    const DigitList& wanted = tile.wanted(d);
    if (tile.continues(d)) {
      const DigitList rest = from(wanted, tile.now(d).size());
      // Devices along a digit that another dim has, or a pending reduction, hold different data: their slices would not
      // make up the dim.
      if (unused_prefix(tile, rest) != rest || !tile.slice(d, rest)) return std::nullopt;
      kept.push_back(wanted.size());
    } else if (begins_with(tile.now(d), wanted)) {
      kept.push_back(wanted.size());
      gathers = true;
    } else {
      return std::nullopt;
    }
  }
  if (gathers) tile.gather(kept);
  return finished(tile);
}

// A dim that loses its last digits to another one. `after`: digits that follow them there, and are
// sliced off one of the two.
struct Move {
  size_t from = 0, to = 0;
  DigitList moved, after;
};

// Returns none if something else than moves is left to do. Slices what dims get before the moved digits.
std::optional<std::vector<Move>> find_moves(TileInProgress& tile) {
  std::vector<DigitList> lost(tile.ndim());
  std::vector<Move> moves;
  for (size_t d = 0; d < tile.ndim(); ++d) {
    if (tile.continues(d)) continue;
    if (!begins_with(tile.now(d), tile.wanted(d))) return std::nullopt;
    lost[d] = from(tile.now(d), tile.wanted(d).size());
  }
  for (size_t d = 0; d < tile.ndim(); ++d) {
    if (!tile.continues(d)) continue;
    DigitList rest = from(tile.wanted(d), tile.now(d).size());
    const DigitList first = unused_prefix(tile, rest);
    if (!tile.slice(d, first)) return std::nullopt;
    rest = from(rest, first.size());
    if (rest.empty()) continue;
    // The lost digits must follow what the dim has in one piece: [{"x", "y"}, {}] -> [{}, {"y", "x"}] is no all-to-all.
    const auto source = std::ranges::find_if(
        lost, [&](const DigitList& digits) { return !digits.empty() && begins_with(rest, digits); });
    if (source == lost.end()) return std::nullopt;
    Move move{static_cast<size_t>(source - lost.begin()), d, *source, from(rest, source->size())};
    if (unused_prefix(tile, move.after) != move.after) return std::nullopt;
    // Marks the digits as moved: those that stay in `lost` have no dim to go to.
    source->clear();
    moves.push_back(std::move(move));
  }
  const bool is_complete = std::ranges::all_of(lost, &DigitList::empty);
  return is_complete && !moves.empty() ? std::optional(std::move(moves)) : std::nullopt;
}

Plan by_all_to_all(TileInProgress tile) {
  const auto moves = find_moves(tile);
  if (!moves) return std::nullopt;
  std::vector<std::pair<size_t, size_t>> dims;
  std::vector<DigitList> moved;
  for (const Move& move : *moves) {
    dims.emplace_back(move.from, move.to);
    moved.push_back(move.moved);
    // A smaller tile is sent if they are sliced first.
    if (tile.slice(move.from, move.after))
      moved.back().insert(moved.back().end(), move.after.begin(), move.after.end());
  }
  if (!tile.all_to_all(dims, moved)) return std::nullopt;
  for (size_t d = 0; d < tile.ndim(); ++d) {
    // Slices the digits of `after` that could not be sliced before the move.
    if (!tile.continues(d) || !tile.slice(d, from(tile.wanted(d), tile.now(d).size()))) {
      return std::nullopt;
    }
  }
  return finished(tile);
}

// Slices digits that no dim has, until each dim has as many shards as it wants: first its own.
bool slice_to_size(TileInProgress& tile) {
  // [{"x"}, {}] -> [{"y"}, {"x"}]: dim 1 cannot take its own "x", which dim 0 has, so it takes "y". The sizes are right
  // then, and the permute puts each digit in its place.
  for (const bool own : {true, false}) {
    for (size_t d = 0; d < tile.ndim(); ++d) {
      for (size_t giver = 0; giver < tile.ndim(); ++giver) {
        if ((giver == d) != own) continue;
        for (const Digit digit : tile.wanted(giver)) {
          const int64_t more = tile.count(tile.wanted(d)) / tile.count(tile.now(d)), size = tile.count({digit});
          if (more > 1 && more % size == 0 && tile.is_unused(digit) && !tile.slice(d, {digit})) return false;
        }
      }
    }
  }
  return true;
}

Plan by_permute(TileInProgress tile) {
  for (size_t d = 0; d < tile.ndim(); ++d) {
    // A permute keeps the number of shards, and a slice can only multiply it.
    if (tile.count(tile.wanted(d)) % tile.count(tile.now(d)) != 0) return std::nullopt;
  }
  if (!slice_to_size(tile)) return std::nullopt;
  for (size_t d = 0; d < tile.ndim(); ++d) {
    if (tile.count(tile.wanted(d)) != tile.count(tile.now(d))) return std::nullopt;
  }
  if (!tile.is_at_target()) tile.permute();
  return finished(tile);
}

}  // namespace

std::vector<ReshardPlan> named_collectives(const ReshardProblem& problem) {
  const auto digits = digits_of(problem.from, problem.to, Cuts::kGiven);
  if (!digits) return {};
  const TileInProgress start(problem, *digits);
  std::vector<ReshardPlan> plans;
  for (Plan (*const plan)(TileInProgress) : {by_gather, by_all_to_all, by_permute}) {
    if (Plan found = plan(start)) plans.push_back(std::move(*found));
  }
  return plans;
}

std::optional<ReshardPlan> one_named_collective(const ReshardProblem& problem) {
  std::vector<ReshardPlan> plans = named_collectives(problem);
  const auto best = std::ranges::min_element(plans, {}, &ReshardPlan::cost);
  return best == plans.end() ? std::nullopt : std::optional(std::move(*best));
}

}  // namespace shardwise
