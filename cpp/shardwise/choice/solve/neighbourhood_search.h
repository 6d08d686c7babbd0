// SPDX-License-Identifier: Apache-2.0
//
// Makes picks cheaper, never more expensive: again and again a region of the graph is chosen anew as a whole (elimination.h),
// with memory at the prices of the dual bound times a random factor; what then uses too much is mended, and the new picks
// stay if they cost less.
//
//   NeighbourhoodSearch search(problem, dual.prices_before(), state);
//   while (search.cells() < …) search.round();
//   state.picks()
//
// Source: Shaw, "Using constraint programming and local search methods to solve vehicle routing problems", CP 1998
// (large neighbourhoods).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/choice/solve/elimination.h"
#include "shardwise/choice/solve/search_state.h"

namespace shardwise {

class NeighbourhoodSearch {
 public:
  NeighbourhoodSearch(const CoreProblem& problem, std::vector<double> prices_before, SearchState& state);

  bool round();  // whether the picks became cheaper
  size_t cells() const { return elimination_.cells() + other_cells_; }
  bool is_optimal() const { return is_optimal_; }  // of all nodes at once, without a limit

 private:
  void choose_region();
  void price_region(double factor);

  const CoreProblem& problem_;
  const std::vector<double> prices_before_;
  SearchState& state_;
  Elimination elimination_;
  RandomNumbers random_{1};
  std::vector<size_t> all_;
  Elimination::Region region_;
  std::vector<bool> is_in_region_;
  double factor_ = 1;
  size_t rounds_ = 0, other_cells_ = 0;
  bool is_optimal_ = false;
};

}  // namespace shardwise
