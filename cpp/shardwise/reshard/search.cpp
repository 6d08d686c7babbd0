// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/search.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/reshard/moves.h"

namespace shardwise {
namespace {

constexpr size_t kMaxStates = 3000;            // limit of one search; real reshards need far fewer
constexpr size_t kUsualStates = 128;           // initial capacity
constexpr double kSliceShareOfLatency = 1e-3;  // slices send nothing, but fewer are better

bool is_collective(ReshardMove move) { return move != ReshardMove::kSlice; }

double tile_bytes(const ReshardProblem& problem, const Dims& blocks) {
  return static_cast<double>(problem.item_size) * static_cast<double>(element_count(blocks));
}
double tile_bytes(const ReshardProblem& problem, const Placement& placement) {
  return tile_bytes(problem, placement.local_shape());
}

double step_seconds(const Link& link, ReshardMove move, double bytes) {
  return is_collective(move) ? seconds(link, bytes) : link.latency * kSliceShareOfLatency;
}

void add_step(const ReshardProblem& problem, ReshardPlan& plan, ReshardStep step) {
  plan.bytes += step.bytes;
  plan.seconds += step_seconds(problem.link, step.move, step.bytes);
  plan.steps.push_back(std::move(step));
}

size_t collective_count(const ReshardPlan& plan) {
  return static_cast<size_t>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                           [](const ReshardStep& step) { return is_collective(step.move); }));
}

// Whether a search cannot find a better plan: nothing is sent, one gather receives all missing data, or a reduction is
// completed in place, for which nothing cheaper than an all-reduce is known.
bool is_surely_best(const ReshardPlan& plan) {
  if (collective_count(plan) == 0) return true;
  if (plan.steps.size() != 1) return false;
  return plan.steps[0].move == ReshardMove::kAllGather || plan.steps[0].move == ReshardMove::kAllReduce;
}

// ---- the search ----------------------------------------------------------------------------------------------------

struct Node {
  TileMove move;  // the move that reached it; `move.after` is the state
  int parent = -1;
  double cost = 0;
  bool done = false;
};

class Search {
 public:
  Search(const ReshardProblem& problem, const Digits& digits, bool freeze, double memory_limit, double cost_limit)
      : problem_(problem),
        digits_(digits),
        start_(encode(problem.from)),
        moves_(digits, problem, encode(problem.to), frozen(freeze)),
        memory_limit_(memory_limit),
        cost_limit_(cost_limit) {
    nodes_.reserve(kUsualStates);
    index_.reserve(kUsualStates);
    std::vector<Entry> entries;
    entries.reserve(kUsualStates);
    queue_ = Queue({}, std::move(entries));
  }

  // The moves of the cheapest path within the limits; none if there is none.
  std::optional<std::vector<TileMove>> run() {
    reach(TileMove{.kind = ReshardMove::kSlice, .dim_digits = {}, .digits = {}, .after = start_}, -1, 0);
    while (!queue_.empty() && nodes_.size() < kMaxStates) {
      const int current = queue_.top().second;
      queue_.pop();
      // A state that was reached again at lower cost is in the queue twice.
      if (nodes_[static_cast<size_t>(current)].done) continue;
      nodes_[static_cast<size_t>(current)].done = true;
      const TileState state = nodes_[static_cast<size_t>(current)].move.after;
      const double cost = nodes_[static_cast<size_t>(current)].cost;
      if (is_target(state)) return path(current);
      for (TileMove& move : moves_.moves(state)) {
        if (moves_.tile_bytes(move.after.blocks) > memory_limit_) continue;
        const double reached = cost + step_seconds(problem_.link, move.kind, move.bytes);
        if (reached < cost_limit_) reach(std::move(move), current, reached);
      }
    }
    return std::nullopt;
  }
  size_t states() const { return nodes_.size(); }

 private:
  TileState encode(const Placement& placement) const {
    TileState state;
    for (const DimPlacement& dim : placement.dims) state.dims.push_back(digits_.encode(dim.axes));
    state.unreduced = digits_.encode(placement.unreduced);
    std::sort(state.unreduced.begin(), state.unreduced.end());
    state.blocks = placement.local_shape();
    return state;
  }
  std::vector<size_t> frozen(bool freeze) const {
    std::vector<size_t> lengths(start_.dims.size(), 0);
    const TileState target = encode(problem_.to);
    for (size_t d = 0; freeze && d < lengths.size(); ++d) {
      const DigitList &a = start_.dims[d], &b = target.dims[d];
      // Digits that are already in place almost never need to move; without them, the search has far fewer states.
      while (lengths[d] < std::min(a.size(), b.size()) && a[lengths[d]] == b[lengths[d]]) ++lengths[d];
    }
    return lengths;
  }
  bool is_target(const TileState& state) const {
    const TileState& target = moves_.target();
    return state.dims == target.dims && state.unreduced == target.unreduced && state.blocks == target.blocks;
  }
  void reach(TileMove move, int parent, double cost) {
    const auto [it, is_new] = index_.try_emplace(move.after.key(), static_cast<int>(nodes_.size()));
    if (is_new) {
      nodes_.push_back({std::move(move), parent, cost});
    } else {
      Node& node = nodes_[static_cast<size_t>(it->second)];
      if (node.done || node.cost <= cost) return;
      node = {std::move(move), parent, cost};
    }
    queue_.push({cost, it->second});
  }
  std::vector<TileMove> path(int node) const {
    std::vector<TileMove> moves;
    for (; nodes_[static_cast<size_t>(node)].parent >= 0; node = nodes_[static_cast<size_t>(node)].parent) {
      moves.push_back(nodes_[static_cast<size_t>(node)].move);
    }
    std::reverse(moves.begin(), moves.end());
    return moves;
  }

  using Entry = std::pair<double, int>;
  using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>>;
  const ReshardProblem& problem_;
  const Digits& digits_;
  TileState start_;
  MoveGenerator moves_;
  double memory_limit_;
  double cost_limit_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, int> index_;
  Queue queue_;
};

// ---- from digits to axes -------------------------------------------------------------------------------------------

Placement decode(const ReshardProblem& problem, const Digits& digits, const TileState& state) {
  Placement placement{.mesh = problem.to.mesh, .dims = {}, .unreduced = digits.decode(state.unreduced)};
  for (size_t d = 0; d < state.dims.size(); ++d) {
    placement.dims.push_back({digits.decode(state.dims[d]), state.blocks[d]});
  }
  if (!placement.unreduced.empty()) placement.reducer = problem.from.reducer;
  return placement;
}

ReshardStep to_step(const ReshardProblem& problem, const Digits& digits, const TileMove& move) {
  ReshardStep step{.move = move.kind,
                   .dim_axes = {},
                   .reduced = {},
                   .dim_moves = {},
                   .after = decode(problem, digits, move.after),
                   .bytes = move.bytes};
  for (const DigitList& list : move.dim_digits) step.dim_axes.push_back(digits.decode(list));
  if (move.kind == ReshardMove::kAllReduce) step.reduced = digits.decode(move.digits);
  if (move.kind == ReshardMove::kAllToAll) {
    step.dim_moves.push_back(
        {digits.decode(move.digits), static_cast<int64_t>(move.from_dim), static_cast<int64_t>(move.to_dim)});
  }
  return step;
}

// Merges consecutive slices.
bool merge_slices(ReshardStep& last, const ReshardStep& next) {
  if (last.move != ReshardMove::kSlice || next.move != ReshardMove::kSlice) return false;
  for (size_t d = 0; d < last.dim_axes.size(); ++d) append_merged(last.dim_axes[d], next.dim_axes[d]);
  last.after = next.after;
  return true;
}

// Merges all-to-alls over different dims into one over the product of their groups, which sends (n·m - 1)/(n·m) of the
// tile instead of (n - 1)/n + (m - 1)/m.
bool merge_all_to_alls(const ReshardProblem& problem, ReshardStep& last, const ReshardStep& next) {
  if (last.move != ReshardMove::kAllToAll || next.move != ReshardMove::kAllToAll) return false;
  const DimMove& move = next.dim_moves[0];
  int64_t group = product(move.axes);
  for (const DimMove& other : last.dim_moves) {
    for (const int64_t dim : {other.from_dim, other.to_dim}) {
      if (dim == move.from_dim || dim == move.to_dim) return false;
    }
    group *= product(other.axes);
  }
  last.dim_moves.push_back(move);
  std::sort(last.dim_moves.begin(), last.dim_moves.end(),
            [](const DimMove& a, const DimMove& b) { return a.from_dim < b.from_dim; });
  last.after = next.after;
  // Each device has `group` pieces in the end, one of which was its own. So the result before trimming has the size of
  // the padded operand.
  Dims operand = last.after.local_shape();
  for (const DimMove& each : last.dim_moves) operand[static_cast<size_t>(each.to_dim)] *= product(each.axes);
  const double untrimmed = tile_bytes(problem, operand) / static_cast<double>(group);
  last.bytes = std::min(last.bytes + next.bytes, all_to_all_bytes(untrimmed, group));
  return true;
}

ReshardPlan to_plan(const ReshardProblem& problem, const Digits& digits, const std::vector<TileMove>& moves) {
  std::vector<ReshardStep> steps;
  for (const TileMove& move : moves) {
    ReshardStep step = to_step(problem, digits, move);
    if (!steps.empty() && (merge_slices(steps.back(), step) || merge_all_to_alls(problem, steps.back(), step)))
      continue;
    steps.push_back(std::move(step));
  }
  ReshardPlan plan;
  for (ReshardStep& step : steps) add_step(problem, plan, std::move(step));
  return plan;
}

double peak_tile(const ReshardProblem& problem, const ReshardPlan& plan) {
  double peak = 0;
  for (const ReshardStep& step : plan.steps) peak = std::max(peak, tile_bytes(problem, step.after));
  return peak;
}

// Replaces `best` if the search finds a cheaper plan.
void improve(const ReshardProblem& problem, Cuts cuts, bool freeze, double memory_limit, ReshardPlan& best,
             bool& found) {
  const auto digits = digits_of(problem.from, problem.to, cuts);
  if (!digits) return;
  const double cost_limit = found ? best.seconds : std::numeric_limits<double>::infinity();
  Search search(problem, *digits, freeze, memory_limit, cost_limit);
  const auto moves = search.run();
  const int64_t states = best.states + static_cast<int64_t>(search.states());
  if (moves) {
    best = to_plan(problem, *digits, *moves);
    found = true;
  }
  best.states = states;
}

}  // namespace

ReshardPlan gather_and_slice(const ReshardProblem& problem) {
  ReshardPlan plan;
  const size_t ndim = problem.shape.size();
  Placement now = problem.from;
  now.mesh = problem.to.mesh;
  ReshardStep reduce{.move = ReshardMove::kAllReduce, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = {}};
  reduce.reduced = difference(now.unreduced, problem.to.unreduced);
  if (!reduce.reduced.empty()) {
    now.unreduced = problem.to.unreduced;
    now.reducer = problem.to.reducer;
    reduce.bytes = all_reduce_bytes(tile_bytes(problem, now), product(reduce.reduced));
    reduce.after = now;
    add_step(problem, plan, std::move(reduce));
  }

  ReshardStep gather{.move = ReshardMove::kAllGather, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = {}};
  ReshardStep slice{.move = ReshardMove::kSlice, .dim_axes = {}, .reduced = {}, .dim_moves = {}, .after = problem.to};
  const double tile = tile_bytes(problem, now);
  bool gathers = false;
  int64_t gathered = 1;
  int64_t sliced = 0;
  for (size_t d = 0; d < ndim; ++d) {
    const AxisList &from = problem.from.dims[d].axes, &to = problem.to.dims[d].axes;
    AxisList stay = greatest_common_prefix(from, to);
    const auto block_after = [&](const AxisList& kept) {
      const int64_t parts = product(from) / product(kept);
      if (product(kept) == 1) return problem.shape[d];
      return std::min(problem.from.dims[d].block * parts, problem.shape[d]);
    };
    const int64_t new_parts = product(to) / product(stay);
    if (product(stay) > 1 &&
        (block_after(stay) % new_parts != 0 || block_after(stay) / new_parts != problem.to.dims[d].block)) {
      stay.clear();
    }
    gather.dim_axes.push_back(*without_prefix(from, stay));
    slice.dim_axes.push_back(*without_prefix(to, stay));
    if (!gather.dim_axes[d].empty()) now.dims[d].block = block_after(stay);
    gathers = gathers || stay != from;
    now.dims[d].axes = std::move(stay);
    gathered *= product(gather.dim_axes[d]);
    sliced += static_cast<int64_t>(slice.dim_axes[d].size());
  }
  if (gathers) {
    gather.bytes = all_gather_bytes(tile, gathered);
    gather.after = now;
    add_step(problem, plan, std::move(gather));
  }
  if (sliced > 0) add_step(problem, plan, std::move(slice));
  return plan;
}

ReshardPlan search_reshard(const ReshardProblem& problem) {
  check_internal(difference(problem.to.unreduced, problem.from.unreduced).empty(),
                 "a reshard cannot make a value unreduced");
  ReshardPlan fallback = gather_and_slice(problem);
  if (is_surely_best(fallback)) return fallback;

  double limit = std::max(tile_bytes(problem, problem.from), tile_bytes(problem, problem.to));
  if (problem.memory_limit > 0) limit = std::max(limit, static_cast<double>(problem.memory_limit));
  ReshardPlan best = fallback;
  bool found = peak_tile(problem, fallback) <= limit;
  for (const double memory : {limit, std::numeric_limits<double>::infinity()}) {
    improve(problem, Cuts::kGiven, true, memory, best, found);
    // Frozen digits can exclude every path within the memory limit.
    if (!found) improve(problem, Cuts::kGiven, false, memory, best, found);
    // Finer cuts enlarge the search, and a single collective is rarely beaten.
    if (problem.align_axes && (!found || collective_count(best) > 1)) {
      improve(problem, Cuts::kAligned, true, memory, best, found);
    }
    if (found) return best;
    found = true;  // without a memory limit, the fallback is valid, too
  }
  return best;
}

}  // namespace shardwise
