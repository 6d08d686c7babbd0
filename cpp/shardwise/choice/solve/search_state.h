// SPDX-License-Identifier: Apache-2.0
//
// Picks of a problem (core_problem.h) that change one by one, with what each other option would cost and the memory that is
// used at each time.
//
//   SearchState state(problem, picks);
//   state.change(node, option)      what the cost would be more or less
//   state.move(node, option);
//   state.undo(mark)                back to state.mark(): moves are kept
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardwise/choice/solve/core_problem.h"
#include "shardwise/choice/solve/range_maximum.h"

namespace shardwise {

// A change that is less is rounding.
inline constexpr double kLeastGain = 1e-6;

class SearchState {
 public:
  SearchState(const CoreProblem& problem, std::vector<uint32_t> picks);

  const std::vector<uint32_t>& picks() const { return picks_; }
  uint32_t pick(size_t node) const { return picks_[node]; }
  double cost() const { return cost_; }
  double change(size_t node, size_t option) const { return costs_[node][option] - costs_[node][picks_[node]]; }
  // By option of the node: its own cost and that of its edges to where its neighbours are.
  const std::vector<double>& costs(size_t node) const { return costs_[node]; }
  bool is_within_limit() const { return used_.largest() <= problem_.limit(); }
  bool is_possible() const { return cost_ < problem_.forbidden(); }
  // Whether the memory stays within the limit, if it is there now.
  bool fits(size_t node, size_t option);

  void move(size_t node, size_t option);
  size_t mark() const { return moves_.size(); }
  void undo(size_t mark);

  // Single moves that cost less and fit, until there are none.
  void descend(const std::vector<size_t>& nodes);
  // Moves that use less memory where there is too little, those that cost least per byte first.
  bool repair();

 private:
  struct Way {
    double price = 0;  // cost per byte
    size_t node = 0;
    uint32_t option = 0;
  };
  void use(size_t node, size_t from, size_t to);
  std::vector<Way> ways_to_less() const;

  const CoreProblem& problem_;
  std::vector<uint32_t> picks_;
  std::vector<std::vector<double>> costs_;
  double cost_ = 0;
  RangeMaximum used_;
  std::vector<std::pair<size_t, uint32_t>> moves_;  // node, the option before
};

}  // namespace shardwise
