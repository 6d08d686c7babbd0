// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/one_named.h"

#include "shardwise/reshard/common_digits.h"
#include "shardwise/reshard/tile_in_progress.h"

namespace shardwise {
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
