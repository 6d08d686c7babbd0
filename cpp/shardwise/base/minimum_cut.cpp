// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/minimum_cut.h"

#include <algorithm>

namespace shardwise {

void MinimumCut::add_edge(uint32_t from, uint32_t to, Capacity capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<uint32_t>(edges_.size()) - 1;
}

// By distance from the source, along edges with capacity left. False if the sink is out of reach.
bool MinimumCut::find_levels() {
  level_.assign(first_.size(), kNone);
  level_[source()] = 0;
  std::vector<uint32_t> queue = {source()};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next) {
      if (edges_[e].left == 0 || level_[edges_[e].to] != kNone) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink()] != kNone;
}

// Augments along paths of a level graph, without recursion: a path may have a million nodes.
Capacity MinimumCut::push_along_levels() {
  Capacity pushed = 0;
  std::vector<uint32_t> path;
  uint32_t node = source();
  while (true) {
    if (node == sink()) {
      pushed += push_along(path);
      if (pushed >= kUncuttable) return kUncuttable;
      // On from the first edge that is full.
      const auto full = std::ranges::find_if(path, [&](uint32_t e) { return edges_[e].left == 0; });
      node = edges_[*full ^ 1].to;
      path.erase(full, path.end());
      continue;
    }
    uint32_t& e = current_[node];
    while (e != kNone && (edges_[e].left == 0 || level_[edges_[e].to] != level_[node] + 1)) e = edges_[e].next;
    if (e != kNone) {
      path.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path.empty()) return pushed;
    // A dead end: the edge to it is not tried again.
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
    current_[node] = edges_[current_[node]].next;
  }
}

Capacity MinimumCut::push_along(const std::vector<uint32_t>& path) {
  Capacity pushed = kUncuttable;
  for (const uint32_t e : path) pushed = std::min(pushed, edges_[e].left);
  if (pushed == kUncuttable) return pushed;
  for (const uint32_t e : path) {
    // An edge that is never cut keeps its capacity, so that sums stay below the limit of the type.
    if (edges_[e].left < kUncuttable) edges_[e].left -= pushed;
    if (edges_[e ^ 1].left < kUncuttable) edges_[e ^ 1].left += pushed;
  }
  return pushed;
}

Capacity MinimumCut::run() {
  Capacity cut = 0;
  while (find_levels()) {
    current_ = first_;
    cut += push_along_levels();
    if (cut >= kUncuttable) return kUncuttable;
  }
  return cut;
}

std::vector<bool> MinimumCut::nodes_that_reach_sink() const {
  std::vector<bool> reaches(first_.size());
  reaches[sink()] = true;
  std::vector<uint32_t> queue = {sink()};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next) {
      // The reverse of an edge to a node is one from there.
      if (edges_[e ^ 1].left == 0 || reaches[edges_[e].to]) continue;
      reaches[edges_[e].to] = true;
      queue.push_back(edges_[e].to);
    }
  }
  return reaches;
}

}  // namespace shardwise
