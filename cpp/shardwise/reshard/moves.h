// SPDX-License-Identifier: Apache-2.0
//
// Placements in digits, and the moves that lead from one to the next: what search.h searches over.
//
//   [{"x", "y"}, {}] -> [{"x"}, {"y"}] on x=4, y=2:   digits 0 = "x", 1 = "y";   dims {0 1}, {} -> {0}, {1}
//
// A digit is a piece of an axis that both placements use whole or not at all. Digits that are at the same position at
// the front of a dim in both are frozen: no move changes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/mesh/digits.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

// Axes are cut where a placement cuts them (kGiven), and also where the current shards of a dim end inside an axis that
// the dim needs (kAligned). Neither depends on the size of the axes.
enum class Cuts : uint8_t { kGiven, kAligned };
// Returns none when the two placements cut an axis in ways that no single split has, or in too many digits.
std::optional<Digits> digits_of(const Placement& from, const Placement& to, Cuts cuts);

struct TileState {
  std::vector<DigitList> dims;
  DigitList unreduced;  // ascending
  Dims blocks;
  bool permuted = false;  // one permute is enough for any path
  std::string key() const;
};

struct TileMove {
  ReshardMove kind = ReshardMove::kSlice;
  std::vector<DigitList> dim_digits;  // slice, all-gather, reduce-scatter
  DigitList digits;                   // all-reduce, all-to-all
  size_t from_dim = 0, to_dim = 0;    // all-to-all
  TileState after;
  double bytes = 0;
};

// Generates all useful moves from a state.
class MoveGenerator {
 public:
  MoveGenerator(const Digits& digits, const ReshardProblem& problem, TileState target, std::vector<size_t> frozen)
      : digits_(digits), problem_(problem), target_(std::move(target)), frozen_(std::move(frozen)) {}

  std::vector<TileMove> moves(const TileState& state) const;
  const TileState& target() const { return target_; }
  double tile_bytes(const Dims& blocks) const;

 private:
  std::optional<int64_t> sliced_block(const TileState& state, size_t dim, int64_t parts) const;
  int64_t gathered_block(const TileState& state, size_t dim, int64_t parts) const;
  double padded_bytes(const TileState& state, const std::vector<DigitList>& split, const Dims& blocks) const;
  DigitList unused_wanted(const TileState& state) const;
  DigitList reducible(const TileState& state) const;

  void add_slices(const TileState& state, std::vector<TileMove>& moves) const;
  void add_gathers(const TileState& state, std::vector<TileMove>& moves) const;
  void add_gather(const TileState& state, const std::vector<size_t>& lengths, std::vector<TileMove>& moves) const;
  void add_all_to_alls(const TileState& state, std::vector<TileMove>& moves) const;
  void add_reductions(const TileState& state, std::vector<TileMove>& moves) const;
  void add_reduce_scatter(const TileState& state, std::vector<DigitList> scatter, std::vector<TileMove>& moves) const;
  void add_permutes(const TileState& state, std::vector<TileMove>& moves) const;
  void fill_dim(const TileState& state, size_t dim, std::vector<DigitList>& dims, DigitList& pool, int64_t left,
                std::vector<TileMove>& moves) const;
  void add_refill(const TileState& state, std::vector<TileMove>& moves) const;
  void add_permute(const TileState& state, std::vector<DigitList> dims, std::vector<TileMove>& moves) const;

  const Digits& digits_;
  const ReshardProblem& problem_;
  TileState target_;
  std::vector<size_t> frozen_;  // digits at the front of each dim that stay
};

}  // namespace shardwise
