// SPDX-License-Identifier: Apache-2.0
//
// The best options of some nodes together, all others as they are. One node after another is eliminated: for each combination
// of its neighbours' options its best one is noted, and what that costs becomes an edge among them. A node for which this
// would be too many numbers is left as it is.
//
//   a - b - c - d, all but d:   a for each of b's options, b for each of c's, c for d as it is; then back
//
// Source: Bertelè, Brioschi, "Nonserial Dynamic Programming", 1972.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/choice/solve/core_problem.h"
#include "shardwise/choice/solve/random_numbers.h"

namespace shardwise {

class Elimination {
 public:
  explicit Elimination(const CoreProblem& problem) : problem_(problem), number_(problem.size(), kOutside) {}

  struct Region {
    std::vector<size_t> nodes;
    std::vector<std::vector<double>> costs;  // of each node, with its edges to nodes outside
  };
  // The options of the region's nodes. `most_cells` bounds the numbers of one step.
  std::vector<uint32_t> best(const Region& region, const std::vector<uint32_t>& picks, double most_cells,
                             RandomNumbers& random);
  bool is_exact() const { return is_exact_; }  // no node was left as it was
  size_t cells() const { return cells_; }      // that were looked at

 private:
  static constexpr size_t kOutside = SIZE_MAX;
  // A cost over the options of several nodes (numbers in the region); the last one varies fastest.
  struct Table {
    std::vector<size_t> nodes;
    std::vector<double> costs;
  };
  struct Step {
    size_t node = 0;
    std::vector<size_t> neighbours;  // that are eliminated later
    std::vector<uint32_t> best;      // by their options
  };

  void number(const Region& region);
  void order(double most_cells, RandomNumbers& random);
  void eliminate(size_t at, const Region& region, const std::vector<uint32_t>& picks);
  void add(std::span<const double> costs, const std::vector<size_t>& over, const std::vector<size_t>& nodes,
           size_t count, std::vector<double>& sum) const;
  size_t options(size_t node) const { return options_[node]; }

  const CoreProblem& problem_;
  std::vector<size_t> number_;  // by node of the problem, while a region is at hand
  std::vector<size_t> options_;
  std::vector<std::vector<size_t>> neighbours_;  // sorted, that are not eliminated
  std::vector<bool> is_left_as_it_is_;
  std::vector<size_t> position_;  // in the order
  std::vector<Step> steps_;
  std::vector<std::vector<Table>> tables_;  // by the node of each that is eliminated first
  bool is_exact_ = true;
  size_t cells_ = 0;
};

}  // namespace shardwise
