// SPDX-License-Identifier: Apache-2.0
//
// A lower bound of the cost of a problem (core_problem.h), and picks that are near it. Two relaxations in turn:
//
//   limit of memory     each time has a price per byte instead, raised where more is used than there is, lowered where less
//   costs of edges      messages between nodes, along the order of nodes and back: each node gets its share of what
//                       its neighbours pay for each of its options
//
//   DualBound dual(problem);
//   while (…) dual.step();       // one pass in each direction, and new prices
//   dual.bound()                 // the best bound so far: no picks within the limit cost less
//   dual.picks()                 // of the last pass: they may use more memory than there is
//
// Sources: Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", PAMI 28 (2006), sequential
// form; Held, Wolfe, Crowder, "Validation of subgradient optimization", Mathematical Programming 6 (1974), steps of prices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shardwise/choice/solve/core_problem.h"

namespace shardwise {

class DualBound {
 public:
  explicit DualBound(const CoreProblem& problem);

  // `best` is the cost of the best picks so far; infinite: none are known.
  void step(double best);
  double bound() const { return bound_; }
  const std::vector<uint32_t>& picks() const { return picks_; }
  size_t steps_without_gain() const { return without_gain_; }
  // The prices of memory of the best bound, summed up to each time.
  const std::vector<double>& prices_before() const { return prices_.best_before; }

 private:
  // The price of a byte at each time, the sum of these prices up to each time, and that sum for the best bound.
  struct Prices {
    std::vector<double> now, before, best_before;
  };
  void set_costs();
  void pass_forward();
  double pass_back();
  double send(size_t edge, bool is_forward, std::span<const double> costs, double share);
  std::vector<double>& into(size_t edge, size_t node) {
    return problem_.edges()[edge].b == node ? forward_[edge] : back_[edge];
  }
  void change_prices(double bound, double best);

  const CoreProblem& problem_;
  std::vector<std::vector<double>> costs_;           // by node, with prices of memory
  std::vector<std::vector<double>> forward_, back_;  // messages to b and to a, by edge
  std::vector<double> shares_;                       // by node
  Prices prices_;
  std::vector<uint32_t> picks_;
  double bound_ = -std::numeric_limits<double>::infinity();
  double step_ = 1;
  size_t without_gain_ = 0;
  std::vector<double> sum_, picked_;  // of the node at hand
};

}  // namespace shardwise
