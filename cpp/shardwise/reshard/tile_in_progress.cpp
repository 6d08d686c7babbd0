// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/tile_in_progress.h"

#include <algorithm>

#include "shardwise/cost/collective_cost.h"

namespace shardwise {
namespace {

bool has(const DigitList& list, Digit digit) { return std::ranges::find(list, digit) != list.end(); }

}  // namespace

TileInProgress::TileInProgress(const ReshardProblem& problem, const Digits& digits)
    : problem_(problem), digits_(digits), sliced_(problem.from.dims.size()), blocks_(problem.from.local_shape()) {
  for (const DimPlacement& dim : problem.from.dims) now_.push_back(digits.encode(dim.axes));
  for (const DimPlacement& dim : problem.to.dims) wanted_.push_back(digits.encode(dim.axes));
  unreduced_ = digits.encode(problem.from.unreduced);
  const DigitList kept = digits.encode(problem.to.unreduced);
  for (const Digit digit : unreduced_) {
    if (!has(kept, digit)) pending_.push_back(digit);
  }
}

bool TileInProgress::is_unused(Digit digit) const {
  return !has(unreduced_, digit) && std::ranges::none_of(now_, [&](const DigitList& dim) { return has(dim, digit); });
}

bool TileInProgress::is_at_target() const {
  return now_ == wanted_ && pending_.empty() && blocks_ == problem_.to.local_shape();
}

bool TileInProgress::continues(size_t dim) const {
  const DigitList &now = now_[dim], &wanted = wanted_[dim];
  return wanted.size() >= now.size() && std::equal(now.begin(), now.end(), wanted.begin());
}

std::optional<int64_t> TileInProgress::sliced_block(size_t dim, const DigitList& digits) const {
  const int64_t parts = digits_.count(digits);
  // A whole dim may get padding. Blocks of a sharded dim must be divided evenly, or rows would change their device.
  if (digits_.count(now_[dim]) == 1) return ceil_div(problem_.shape[dim], parts);
  if (blocks_[dim] % parts != 0) return std::nullopt;
  return blocks_[dim] / parts;
}

// A dim that becomes whole is trimmed to its size.
int64_t TileInProgress::gathered_block(size_t dim, int64_t parts) const {
  if (digits_.count(now_[dim]) == parts) return problem_.shape[dim];
  return std::min(blocks_[dim] * parts, problem_.shape[dim]);
}

double TileInProgress::tile_bytes(const Dims& blocks) const {
  return static_cast<double>(problem_.item_size) * static_cast<double>(element_count(blocks));
}

Placement TileInProgress::placement() const {
  DigitList unreduced = unreduced_;
  // Mesh order, in which placements list unreduced axes; digits are numbered in it.
  std::ranges::sort(unreduced);
  Placement placement{.mesh = problem_.to.mesh, .dims = {}, .unreduced = digits_.decode(unreduced)};
  for (size_t d = 0; d < now_.size(); ++d) placement.dims.push_back({digits_.decode(now_[d]), blocks_[d]});
  if (!placement.unreduced.empty()) placement.reducer = problem_.from.reducer;
  return placement;
}

void TileInProgress::add(ReshardStep step, double bytes) { add(std::move(step), bytes, bytes); }

void TileInProgress::add(ReshardStep step, double bytes, double mean_bytes) {
  step.after = placement();
  step.bytes = bytes;
  step.mean_bytes = mean_bytes;
  add_step(plan_, std::move(step));
}

void TileInProgress::finish_slice() {
  // Slices are collected until another step needs them, so that those of several dims become one step.
  if (std::ranges::all_of(sliced_, &DigitList::empty)) return;
  ReshardStep step;
  for (DigitList& digits : sliced_) {
    step.dim_axes.push_back(digits_.decode(digits));
    digits.clear();
  }
  add(std::move(step), 0);
}

bool TileInProgress::slice(size_t dim, const DigitList& digits) {
  if (digits.empty()) return true;
  const auto block = sliced_block(dim, digits);
  if (!block) return false;
  blocks_[dim] = *block;
  now_[dim].insert(now_[dim].end(), digits.begin(), digits.end());
  sliced_[dim].insert(sliced_[dim].end(), digits.begin(), digits.end());
  return true;
}

void TileInProgress::gather(const std::vector<size_t>& kept) {
  finish_slice();
  const double before = tile_bytes(blocks_);
  ReshardStep step;
  step.move = ReshardMove::kAllGather;
  int64_t group = 1;
  for (size_t d = 0; d < now_.size(); ++d) {
    const DigitList gathered(now_[d].begin() + static_cast<std::ptrdiff_t>(kept[d]), now_[d].end());
    const int64_t parts = digits_.count(gathered);
    step.dim_axes.push_back(digits_.decode(gathered));
    if (gathered.empty()) continue;
    blocks_[d] = gathered_block(d, parts);
    now_[d].resize(kept[d]);
    group *= parts;
  }
  add(std::move(step), all_gather_bytes(before, group));
}

bool TileInProgress::reduce_scatter(const std::vector<DigitList>& scattered) {
  finish_slice();
  Dims blocks = blocks_, padded = blocks_;
  int64_t group = 1;
  for (size_t d = 0; d < now_.size(); ++d) {
    if (scattered[d].empty()) continue;
    const auto block = sliced_block(d, scattered[d]);
    if (!block) return false;
    const int64_t parts = digits_.count(scattered[d]);
    blocks[d] = *block;
    // A reduce-scatter sends equal parts, padding included: 10 rows in 4 parts are sent as 12.
    padded[d] = *block * parts;
    group *= parts;
  }
  ReshardStep step;
  step.move = ReshardMove::kReduceScatter;
  for (size_t d = 0; d < now_.size(); ++d) {
    step.dim_axes.push_back(digits_.decode(scattered[d]));
    for (const Digit digit : scattered[d]) {
      now_[d].push_back(digit);
      erase(unreduced_, digit);
      erase(pending_, digit);
    }
  }
  blocks_ = std::move(blocks);
  add(std::move(step), reduce_scatter_bytes(tile_bytes(padded), group));
  return true;
}

bool TileInProgress::all_to_all(const std::vector<std::pair<size_t, size_t>>& moves,
                                const std::vector<DigitList>& moved) {
  finish_slice();
  Dims blocks = blocks_, padded = blocks_;
  int64_t group = 1;
  ReshardStep step;
  step.move = ReshardMove::kAllToAll;
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto [from, to] = moves[i];
    const int64_t parts = digits_.count(moved[i]);
    const auto block = sliced_block(to, moved[i]);
    if (!block) return false;
    blocks[from] = gathered_block(from, parts);
    blocks[to] = *block;
    padded[to] = *block * parts;
    group *= parts;
    step.dim_moves.push_back({digits_.decode(moved[i]), static_cast<int64_t>(from), static_cast<int64_t>(to)});
  }
  for (size_t i = 0; i < moves.size(); ++i) {
    DigitList &from = now_[moves[i].first], &to = now_[moves[i].second];
    from.resize(from.size() - moved[i].size());
    to.insert(to.end(), moved[i].begin(), moved[i].end());
  }
  // Shardy's all_to_all lists its source dims in ascending order.
  std::ranges::sort(step.dim_moves, {}, &AllToAllMove::from_dim);
  blocks_ = std::move(blocks);
  add(std::move(step), all_to_all_bytes(tile_bytes(padded), group));
  return true;
}

void TileInProgress::permute() {
  finish_slice();
  // Each dim has as many shards as it wants, so blocks stay, and only the devices that hold them change.
  now_ = wanted_;
  ReshardStep step;
  step.move = ReshardMove::kPermute;
  add(std::move(step), tile_bytes(blocks_));
}

void TileInProgress::all_reduce() {
  finish_slice();
  if (pending_.empty()) return;
  ReshardStep step;
  step.move = ReshardMove::kAllReduce;
  step.reduced = digits_.decode(pending_);
  const int64_t group = digits_.count(pending_);
  for (const Digit digit : pending_) erase(unreduced_, digit);
  pending_.clear();
  const double tile = tile_bytes(blocks_);
  add(std::move(step), all_reduce_bytes(tile, group, problem_.item_size), mean_all_reduce_bytes(tile, group));
}

ReshardPlan TileInProgress::take() {
  finish_slice();
  return std::move(plan_);
}

}  // namespace shardwise
