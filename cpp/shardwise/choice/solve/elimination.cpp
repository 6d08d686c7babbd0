// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/elimination.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <ranges>
#include <set>

namespace shardwise {
namespace {

// Counts through the options of several nodes, the last fastest, and tells where the table of others is.
class Odometer {
 public:
  Odometer(std::vector<size_t> sizes, std::vector<size_t> strides)
      : sizes_(std::move(sizes)), strides_(std::move(strides)), digits_(sizes_.size(), 0) {}
  size_t offset() const { return offset_; }
  void next() {
    for (size_t i = sizes_.size(); i-- > 0;) {
      offset_ += strides_[i];
      if (++digits_[i] < sizes_[i]) return;
      offset_ -= strides_[i] * digits_[i];
      digits_[i] = 0;
    }
  }

 private:
  std::vector<size_t> sizes_, strides_, digits_;
  size_t offset_ = 0;
};

void remove(std::vector<size_t>& sorted, size_t value) {
  const auto found = std::ranges::lower_bound(sorted, value);
  if (found != sorted.end() && *found == value) sorted.erase(found);
}

// Where the options of each of `of` move in a table over `in`; 0 for those that it does not have.
std::vector<size_t> strides(const std::vector<size_t>& of, const std::vector<size_t>& in,
                            const std::vector<size_t>& options) {
  std::vector<size_t> strides(of.size(), 0);
  size_t stride = 1;
  for (const size_t node : in | std::views::reverse) {
    const auto found = std::ranges::find(of, node);
    if (found != of.end()) strides[static_cast<size_t>(found - of.begin())] = stride;
    stride *= options[node];
  }
  return strides;
}

}  // namespace

std::vector<uint32_t> Elimination::best(const Region& region, const std::vector<uint32_t>& picks, double most_cells,
                                        RandomNumbers& random) {
  number(region);
  order(most_cells, random);
  for (size_t i = 0; i < steps_.size(); ++i) eliminate(i, region, picks);
  std::vector<uint32_t> best(region.nodes.size());
  for (size_t i = 0; i < best.size(); ++i) best[i] = picks[region.nodes[i]];
  for (const Step& step : steps_ | std::views::reverse) {
    size_t at = 0;
    for (const size_t neighbour : step.neighbours) at = at * options(neighbour) + best[neighbour];
    best[step.node] = step.best[at];
  }
  for (const size_t node : region.nodes) number_[node] = kOutside;
  return best;
}

void Elimination::number(const Region& region) {
  const size_t count = region.nodes.size();
  for (size_t i = 0; i < count; ++i) number_[region.nodes[i]] = i;
  options_.resize(count);
  neighbours_.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    options_[i] = problem_.options(region.nodes[i]);
    for (const auto& [edge, neighbour] : problem_.node(region.nodes[i]).neighbours) {
      if (number_[neighbour] != kOutside) neighbours_[i].push_back(number_[neighbour]);
    }
    std::ranges::sort(neighbours_[i]);
  }
  is_left_as_it_is_.assign(count, false);
  position_.assign(count, SIZE_MAX);
  tables_.assign(count, {});
  steps_.clear();
  is_exact_ = true;
}

// The node with the fewest numbers first, with some chance, so that the same region is left in other ways.
void Elimination::order(double most_cells, RandomNumbers& random) {
  const size_t count = options_.size();
  std::vector<double> noise(count), key(count), logs(count);
  std::set<std::pair<double, size_t>> queue;
  const auto size_of = [&](size_t node) {
    double sum = logs[node];
    for (const size_t neighbour : neighbours_[node]) sum += logs[neighbour];
    return sum;
  };
  const auto requeue = [&](size_t node) {
    queue.erase({key[node], node});
    key[node] = size_of(node) + noise[node];
    queue.emplace(key[node], node);
  };
  for (size_t i = 0; i < count; ++i) logs[i] = std::log(static_cast<double>(options(i)));
  for (size_t i = 0; i < count; ++i) {
    noise[i] = random.uniform();
    requeue(i);
  }
  const double most = std::log(most_cells);
  while (!queue.empty()) {
    const auto [first, node] = *queue.begin();
    if (first - noise[node] > most) {
      // One of the nodes around, better one with many neighbours.
      size_t left = node;
      double heaviest = -1;
      std::vector<size_t> around = neighbours_[node];
      around.push_back(node);
      for (const size_t each : around) {
        const double weight =
            static_cast<double>(neighbours_[each].size()) * logs[each] * (0.2 + 0.8 * random.uniform());
        if (weight > heaviest) heaviest = weight, left = each;
      }
      queue.erase({key[left], left});
      const std::vector<size_t> neighbours = std::exchange(neighbours_[left], {});
      is_left_as_it_is_[left] = true;
      is_exact_ = false;
      for (const size_t each : neighbours) {
        remove(neighbours_[each], left);
        requeue(each);
      }
      continue;
    }
    queue.erase(queue.begin());
    position_[node] = steps_.size();
    cells_ += static_cast<size_t>(std::exp(first - noise[node]));
    Step step{node, std::exchange(neighbours_[node], {}), {}};
    for (const size_t each : step.neighbours) {
      std::vector<size_t> joined;
      std::ranges::set_union(neighbours_[each], step.neighbours, std::back_inserter(joined));
      remove(joined, node);
      remove(joined, each);
      neighbours_[each] = std::move(joined);
    }
    for (const size_t each : step.neighbours) requeue(each);
    steps_.push_back(std::move(step));
  }
}

// Adds costs over some of `nodes` and then the one with `count` options to a sum over all of them.
void Elimination::add(std::span<const double> costs, const std::vector<size_t>& over, const std::vector<size_t>& nodes,
                      size_t count, std::vector<double>& sum) const {
  std::vector<size_t> sizes(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) sizes[i] = options(nodes[i]);
  Odometer at(std::move(sizes), strides(nodes, over, options_));
  for (size_t i = 0; i < sum.size(); i += count, at.next()) {
    const double* const from = costs.data() + at.offset();
    for (size_t k = 0; k < count; ++k) sum[i + k] += from[k];
  }
}

void Elimination::eliminate(size_t at, const Region& region, const std::vector<uint32_t>& picks) {
  Step& step = steps_[at];
  const size_t node = step.node, count = options(node);
  std::vector<double> own = region.costs[node];
  std::vector<std::pair<size_t, std::span<const double>>> edges;  // to nodes that are eliminated later
  for (const auto& [id, outer] : problem_.node(region.nodes[node]).neighbours) {
    const size_t neighbour = number_[outer];
    if (neighbour == kOutside) continue;
    const CoreProblem::Edge& edge = problem_.edges()[id];
    if (is_left_as_it_is_[neighbour]) {
      const std::span<const double> row = edge.row(outer, picks[outer]);
      for (size_t k = 0; k < count; ++k) own[k] += row[k];
    } else if (position_[neighbour] > at) {
      edges.emplace_back(neighbour, edge.a == outer ? edge.costs : edge.flipped);
    }
  }
  size_t combinations = 1;
  for (const size_t neighbour : step.neighbours) combinations *= options(neighbour);
  std::vector<double> sum;
  sum.reserve(combinations * count);
  for (size_t i = 0; i < combinations; ++i) sum.insert(sum.end(), own.begin(), own.end());
  for (const auto& [neighbour, costs] : edges) add(costs, {neighbour, node}, step.neighbours, count, sum);
  for (const Table& table : std::exchange(tables_[node], {}))
    add(table.costs, table.nodes, step.neighbours, count, sum);
  step.best.resize(combinations);
  std::vector<double> least(combinations);
  for (size_t i = 0; i < combinations; ++i) {
    const auto begin = sum.begin() + static_cast<ptrdiff_t>(i * count);
    const auto best = std::min_element(begin, begin + static_cast<ptrdiff_t>(count));
    least[i] = *best;
    step.best[i] = static_cast<uint32_t>(best - begin);
  }
  if (step.neighbours.empty()) return;
  // The node that is eliminated next becomes the last one of the table.
  const size_t next = *std::ranges::min_element(step.neighbours, {}, [&](size_t each) { return position_[each]; });
  Table table{step.neighbours, {}};
  std::erase(table.nodes, next);
  table.nodes.push_back(next);
  if (table.nodes == step.neighbours) {
    table.costs = std::move(least);
  } else {
    table.costs.resize(combinations);
    std::vector<size_t> sizes;
    for (const size_t neighbour : step.neighbours) sizes.push_back(options(neighbour));
    Odometer to(std::move(sizes), strides(step.neighbours, table.nodes, options_));
    for (size_t i = 0; i < combinations; ++i, to.next()) table.costs[to.offset()] = least[i];
  }
  tables_[next].push_back(std::move(table));
}

}  // namespace shardwise
