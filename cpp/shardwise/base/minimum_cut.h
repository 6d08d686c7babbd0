// SPDX-License-Identifier: Apache-2.0
//
// The cheapest way to cut a network between its source and its sink (Dinic's algorithm):
//
//   MinimumCut cut(2);                         source -3-> 0 -1-> 1 -5-> sink
//   cut.add_edge(cut.source(), 0, 3);
//   cut.add_edge(0, 1, 1);
//   cut.add_edge(1, cut.sink(), 5);
//   cut.run()                                  1: the edge from 0 to 1
//   cut.is_on_source_side(0)                   true, and false of 1
//
// Several cuts may be the cheapest. is_on_source_side describes the one with the fewest nodes on the side of the source,
// nodes_that_reach_sink the one with the fewest nodes on the side of the sink. Source: Dinic (1970).
#pragma once

#include <cstdint>
#include <vector>

namespace shardwise {

// A price per byte times bytes, both up to 2^62.
using Capacity = __int128;
inline constexpr Capacity kUncuttable = Capacity{1} << 125;

class MinimumCut {
 public:
  explicit MinimumCut(uint32_t nodes) : first_(nodes + 2, kNone) {}

  uint32_t source() const { return static_cast<uint32_t>(first_.size()) - 2; }
  uint32_t sink() const { return static_cast<uint32_t>(first_.size()) - 1; }
  void add_edge(uint32_t from, uint32_t to, Capacity capacity);  // of at most kUncuttable

  // Once. kUncuttable or more if each cut has an edge of that capacity.
  Capacity run();
  bool is_on_source_side(uint32_t node) const { return level_[node] != kNone; }
  std::vector<bool> nodes_that_reach_sink() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Edge {
    uint32_t to, next;
    Capacity left;
  };
  bool find_levels();
  Capacity push_along_levels();
  Capacity push_along(const std::vector<uint32_t>& path);

  std::vector<uint32_t> first_;  // by node: its first edge
  std::vector<Edge> edges_;      // edge e and its reverse, e ^ 1
  std::vector<uint32_t> level_, current_;
};

}  // namespace shardwise
