// SPDX-License-Identifier: Apache-2.0
//
// A tile on its way from one placement to another, and the plan so far. Placements are lists of digits
// (common_digits.h).
#pragma once

#include <algorithm>

#include "shardwise/mesh/digits.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

class TileInProgress {
 public:
  // Both placements of the problem must be lists of whole digits.
  TileInProgress(const ReshardProblem& problem, const Digits& digits);

  size_t ndim() const { return now_.size(); }
  const DigitList& now(size_t dim) const { return now_[dim]; }
  const DigitList& wanted(size_t dim) const { return wanted_[dim]; }
  // In no dim, and with no pending reduction.
  bool is_unused(Digit digit) const;
  // Has a reduction that the target completes.
  bool is_pending(Digit digit) const { return std::ranges::find(pending_, digit) != pending_.end(); }
  const DigitList& pending() const { return pending_; }
  int64_t count(const DigitList& digits) const { return digits_.count(digits); }
  bool is_at_target() const;
  bool continues(size_t dim) const;                          // what the dim has is the front of what it wants
  bool divides(size_t dim, const DigitList& digits) const {  // into parts without padding
    return blocks_[dim] % digits_.count(digits) == 0;
  }

  void gather(const std::vector<size_t>& kept);  // the first digits of each dim stay
  void permute();                                // to the target, which has equal blocks
  void all_reduce();                             // all that is pending
  // Each of these returns false if the blocks do not allow it: then the tile is of no more use.
  bool slice(size_t dim, const DigitList& digits);                      // consecutive slices of all dims are one step
  bool reduce_scatter(const std::vector<DigitList>& scattered);         // pending digits, to the end of dims
  bool all_to_all(const std::vector<std::pair<size_t, size_t>>& moves,  // from dim, to dim
                  const std::vector<DigitList>& moved);                 // the last digits of the first

  ReshardPlan take();  // the plan
  Placement placement() const;

 private:
  std::optional<int64_t> sliced_block(size_t dim, const DigitList& digits) const;
  int64_t gathered_block(size_t dim, int64_t parts) const;
  double tile_bytes(const Dims& blocks) const;
  void finish_slice();
  void add(ReshardStep step, double bytes);
  void add(ReshardStep step, double bytes, double mean_bytes);

  const ReshardProblem& problem_;
  const Digits& digits_;
  std::vector<DigitList> now_, wanted_, sliced_;
  DigitList unreduced_, pending_;
  Dims blocks_;
  ReshardPlan plan_;
};

}  // namespace shardwise
