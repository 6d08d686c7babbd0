// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/moves.h"

#include <algorithm>

namespace shardwise {
namespace {

// A state has factorially many permutes and a product of gathers; beyond these limits only the useful ones are tried.
constexpr size_t kMaxGathersPerState = 64;
constexpr size_t kMaxPermutesPerState = 200;
constexpr size_t kMaxDigitsToPermuteFreely = 5;

// Cuts the axes that a dim needs where its current shards end: if 256 shards by x replace 8 by y, x is cut after the
// first 8. (Cutting the other way round as well gains less than a percent, for twice the states.)
void align(const AxisList& to, const AxisList& from, Digits& digits) {
  int64_t shards = 1;  // of the refs before
  for (const AxisRef& ref : to) {
    int64_t border = 1;
    for (const AxisRef& against : from) {
      border *= against.size;
      if (border % shards != 0 || border == shards || shards * ref.size % border != 0 || border == shards * ref.size) {
        continue;
      }
      digits.cut_inside(ref.axis, ref.pre * (border / shards));
    }
    shards *= ref.size;
  }
}

void collect(const Placement& placement, AxisList& refs) {
  for (const DimPlacement& dim : placement.dims) refs.insert(refs.end(), dim.axes.begin(), dim.axes.end());
  refs.insert(refs.end(), placement.unreduced.begin(), placement.unreduced.end());
}

bool has(const DigitList& list, Digit digit) { return std::find(list.begin(), list.end(), digit) != list.end(); }

bool in_dims(const std::vector<DigitList>& dims, Digit digit) {
  return std::any_of(dims.begin(), dims.end(), [&](const DigitList& list) { return has(list, digit); });
}

void erase(DigitList& list, Digit digit) { list.erase(std::find(list.begin(), list.end(), digit)); }

}  // namespace

std::optional<Digits> digits_of(const Placement& from, const Placement& to, Cuts cuts) {
  AxisList used;
  collect(from, used);
  collect(to, used);
  std::optional<Digits> digits = Digits::covering(used);
  if (!digits) return std::nullopt;
  for (size_t d = 0; cuts == Cuts::kAligned && d < from.dims.size(); ++d) {
    align(to.dims[d].axes, from.dims[d].axes, *digits);
  }
  if (digits->size() > Digits::kMost) return std::nullopt;
  return digits;
}

std::string TileState::key() const {
  // Digits are below 64, so the separator 0xff cannot be one of them.
  std::string key(1, permuted ? 'p' : '-');
  for (const DigitList& digits : dims) {
    key.append(digits.begin(), digits.end());
    key.push_back('\xff');
  }
  key.append(unreduced.begin(), unreduced.end());
  for (const int64_t block : blocks) key.append(reinterpret_cast<const char*>(&block), sizeof block);
  return key;
}

double MoveGenerator::tile_bytes(const Dims& blocks) const {
  double bytes = static_cast<double>(problem_.item_size);
  for (const int64_t block : blocks) bytes *= static_cast<double>(block);
  return bytes;
}

std::vector<TileMove> MoveGenerator::moves(const TileState& state) const {
  std::vector<TileMove> moves;
  add_slices(state, moves);
  add_gathers(state, moves);
  add_all_to_alls(state, moves);
  add_reductions(state, moves);
  // One permute can do the work of any number, so a path never needs a second one.
  if (!state.permuted) add_permutes(state, moves);
  return moves;
}

// An unsharded dim can be split into any number of parts. The shards of a finer split must tile the existing shards.
std::optional<int64_t> MoveGenerator::sliced_block(const TileState& state, size_t dim, int64_t parts) const {
  if (digits_.count(state.dims[dim]) == 1) return ceil_div(problem_.shape[dim], parts);
  if (state.blocks[dim] % parts != 0) return std::nullopt;
  return state.blocks[dim] / parts;
}

int64_t MoveGenerator::gathered_block(const TileState& state, size_t dim, int64_t parts) const {
  // A dim that becomes whole is trimmed to its size, whatever the blocks were.
  if (digits_.count(state.dims[dim]) == parts) return problem_.shape[dim];
  return std::min(state.blocks[dim] * parts, problem_.shape[dim]);
}

// The bytes of a splitting collective's operand, padded so that each dim divides by its parts.
double MoveGenerator::padded_bytes(const TileState& state, const std::vector<DigitList>& split,
                                   const Dims& blocks) const {
  Dims padded = state.blocks;
  for (size_t d = 0; d < padded.size(); ++d) {
    if (!split[d].empty()) padded[d] = blocks[d] * digits_.count(split[d]);
  }
  return tile_bytes(padded);
}

// Digits that shard a dim of the target and are unused here.
DigitList MoveGenerator::unused_wanted(const TileState& state) const {
  DigitList unused;
  for (const DigitList& digits : target_.dims) {
    for (const Digit digit : digits) {
      if (!in_dims(state.dims, digit) && !has(state.unreduced, digit)) unused.push_back(digit);
    }
  }
  return unused;
}

DigitList MoveGenerator::reducible(const TileState& state) const {
  DigitList digits;
  std::copy_if(state.unreduced.begin(), state.unreduced.end(), std::back_inserter(digits),
               [&](Digit digit) { return !has(target_.unreduced, digit); });
  return digits;
}

// A digit goes to its own dim, or to another dim temporarily, from which an all-to-all moves it along with others.
void MoveGenerator::add_slices(const TileState& state, std::vector<TileMove>& moves) const {
  for (const Digit digit : unused_wanted(state)) {
    for (size_t d = 0; d < state.dims.size(); ++d) {
      const auto block = sliced_block(state, d, digits_[digit].size);
      if (!block) continue;
      TileMove move{.kind = ReshardMove::kSlice, .dim_digits = {}, .digits = {}, .after = state};
      move.dim_digits.resize(state.dims.size());
      move.dim_digits[d] = {digit};
      move.after.dims[d].push_back(digit);
      move.after.blocks[d] = *block;
      moves.push_back(std::move(move));
    }
  }
}

void MoveGenerator::add_gathers(const TileState& state, std::vector<TileMove>& moves) const {
  const size_t ndim = state.dims.size();
  std::vector<size_t> most(ndim);
  size_t combinations = 1;
  for (size_t d = 0; d < ndim; ++d) {
    most[d] = state.dims[d].size() - frozen_[d];
    combinations = std::min(combinations * (most[d] + 1), kMaxGathersPerState + 1);
  }
  if (combinations == 1) return;
  // Too many combinations: gathers of one dim alone, and of everything.
  if (combinations > kMaxGathersPerState) {
    for (size_t d = 0; d < ndim; ++d) {
      std::vector<size_t> lengths(ndim, 0);
      for (size_t k = 1; k <= most[d]; ++k) {
        lengths[d] = k;
        add_gather(state, lengths, moves);
      }
    }
    add_gather(state, most, moves);
    return;
  }
  for (size_t number = 1; number < combinations; ++number) {
    std::vector<size_t> lengths(ndim);
    for (size_t d = 0, rest = number; d < ndim; ++d) {
      lengths[d] = rest % (most[d] + 1);
      rest /= most[d] + 1;
    }
    add_gather(state, lengths, moves);
  }
}

void MoveGenerator::add_gather(const TileState& state, const std::vector<size_t>& lengths,
                               std::vector<TileMove>& moves) const {
  TileMove move{.kind = ReshardMove::kAllGather, .dim_digits = {}, .digits = {}, .after = state};
  int64_t group = 1;
  for (size_t d = 0; d < lengths.size(); ++d) {
    DigitList& digits = move.after.dims[d];
    const auto cut = digits.end() - static_cast<std::ptrdiff_t>(lengths[d]);
    move.dim_digits.emplace_back(cut, digits.end());
    const int64_t parts = digits_.count(move.dim_digits.back());
    if (lengths[d] > 0) move.after.blocks[d] = gathered_block(state, d, parts);
    digits.erase(cut, digits.end());
    group *= parts;
  }
  move.bytes = all_gather_bytes(tile_bytes(state.blocks), group);
  moves.push_back(std::move(move));
}

void MoveGenerator::add_all_to_alls(const TileState& state, std::vector<TileMove>& moves) const {
  const size_t ndim = state.dims.size();
  for (size_t from = 0; from < ndim; ++from) {
    for (size_t count = 1; count + frozen_[from] <= state.dims[from].size(); ++count) {
      const auto cut = state.dims[from].end() - static_cast<std::ptrdiff_t>(count);
      const DigitList digits(cut, state.dims[from].end());
      const int64_t parts = digits_.count(digits);
      for (size_t to = 0; to < ndim; ++to) {
        if (to == from) continue;
        const auto block = sliced_block(state, to, parts);
        if (!block) continue;
        TileMove move{.kind = ReshardMove::kAllToAll,
                      .dim_digits = {},
                      .digits = digits,
                      .from_dim = from,
                      .to_dim = to,
                      .after = state};
        move.after.dims[from].resize(state.dims[from].size() - count);
        move.after.dims[to].insert(move.after.dims[to].end(), digits.begin(), digits.end());
        move.after.blocks[from] = gathered_block(state, from, parts);
        move.after.blocks[to] = *block;
        std::vector<DigitList> split(ndim);
        split[to] = digits;
        move.bytes = all_to_all_bytes(padded_bytes(state, split, move.after.blocks), parts);
        moves.push_back(std::move(move));
      }
    }
  }
}

void MoveGenerator::add_reductions(const TileState& state, std::vector<TileMove>& moves) const {
  const DigitList pending = reducible(state);
  if (pending.empty()) return;
  const size_t ndim = state.dims.size();
  TileMove reduce{.kind = ReshardMove::kAllReduce, .dim_digits = {}, .digits = pending, .after = state};
  for (const Digit digit : pending) erase(reduce.after.unreduced, digit);
  reduce.bytes = all_reduce_bytes(tile_bytes(state.blocks), digits_.count(pending));
  moves.push_back(std::move(reduce));

  // All pending digits at once where the target continues with them; otherwise one by one, also temporarily in other
  // dims.
  std::vector<DigitList> straight(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    const DigitList& wanted = target_.dims[d];
    const DigitList& digits = state.dims[d];
    if (!std::equal(digits.begin(), digits.end(), wanted.begin(),
                    wanted.begin() + static_cast<std::ptrdiff_t>(std::min(digits.size(), wanted.size()))))
      continue;
    for (size_t i = digits.size(); i < wanted.size() && has(pending, wanted[i]); ++i) straight[d].push_back(wanted[i]);
  }
  add_reduce_scatter(state, straight, moves);
  for (const Digit digit : pending) {
    for (size_t d = 0; d < ndim; ++d) {
      std::vector<DigitList> single(ndim);
      single[d] = {digit};
      if (single != straight) add_reduce_scatter(state, std::move(single), moves);
    }
  }
}

void MoveGenerator::add_reduce_scatter(const TileState& state, std::vector<DigitList> scatter,
                                       std::vector<TileMove>& moves) const {
  TileMove move{.kind = ReshardMove::kReduceScatter, .dim_digits = {}, .digits = {}, .after = state};
  int64_t group = 1;
  for (size_t d = 0; d < scatter.size(); ++d) {
    if (scatter[d].empty()) continue;
    const int64_t parts = digits_.count(scatter[d]);
    const auto block = sliced_block(state, d, parts);
    if (!block) return;
    move.after.blocks[d] = *block;
    for (const Digit digit : scatter[d]) {
      move.after.dims[d].push_back(digit);
      erase(move.after.unreduced, digit);
    }
    group *= parts;
  }
  // Without scattered digits, there is no move.
  if (move.after.unreduced.size() == state.unreduced.size()) return;
  move.bytes = reduce_scatter_bytes(padded_bytes(state, scatter, move.after.blocks), group);
  move.dim_digits = std::move(scatter);
  moves.push_back(std::move(move));
}

void MoveGenerator::add_permutes(const TileState& state, std::vector<TileMove>& moves) const {
  DigitList pool = unused_wanted(state);
  std::vector<DigitList> dims(state.dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto cut = state.dims[d].begin() + static_cast<std::ptrdiff_t>(frozen_[d]);
    dims[d].assign(state.dims[d].begin(), cut);
    pool.insert(pool.end(), cut, state.dims[d].end());
  }
  if (pool.size() < 2) return;
  // All arrangements of more digits would be too many states.
  if (pool.size() > kMaxDigitsToPermuteFreely) return add_refill(state, moves);
  for (DigitList& digits : dims) digits.reserve(digits.size() + pool.size());
  fill_dim(state, 0, dims, pool, 0, moves);
}

// Tries every arrangement of the pool that keeps the number of shards of each dim. `left` is the number of shards that
// the current dim still lacks, 0 before it is known.
void MoveGenerator::fill_dim(const TileState& state, size_t dim, std::vector<DigitList>& dims, DigitList& pool,
                             int64_t left, std::vector<TileMove>& moves) const {
  if (dim == dims.size()) {
    add_permute(state, dims, moves);
    return;
  }
  if (moves.size() > kMaxPermutesPerState) return;
  if (left == 0) left = digits_.count(state.dims[dim]) / digits_.count(dims[dim]);
  if (left == 1) {
    fill_dim(state, dim + 1, dims, pool, 0, moves);
    return;
  }
  for (size_t i = 0; i < pool.size(); ++i) {
    const Digit digit = pool[i];
    const int64_t size = digits_[digit].size;
    if (size == 1 || left % size != 0) continue;
    pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(i));
    dims[dim].push_back(digit);
    fill_dim(state, dim, dims, pool, left / size, moves);
    dims[dim].pop_back();
    pool.insert(pool.begin() + static_cast<std::ptrdiff_t>(i), digit);
  }
}

// With many digits, tries the most useful arrangement only: each dim first gets the digits that it needs, then those
// that can stay, and last those that other dims need.
void MoveGenerator::add_refill(const TileState& state, std::vector<TileMove>& moves) const {
  const size_t ndim = state.dims.size();
  DigitList pool = unused_wanted(state);
  std::vector<DigitList> dims(ndim);
  std::vector<int64_t> left(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    const auto cut = state.dims[d].begin() + static_cast<std::ptrdiff_t>(frozen_[d]);
    dims[d].assign(state.dims[d].begin(), cut);
    pool.insert(pool.end(), cut, state.dims[d].end());
    left[d] = digits_.count(state.dims[d]) / digits_.count(dims[d]);
  }
  const auto place = [&](size_t d, Digit digit) {
    if (!has(pool, digit) || left[d] % digits_[digit].size != 0) return;
    dims[d].push_back(digit);
    left[d] /= digits_[digit].size;
    erase(pool, digit);
  };
  for (size_t d = 0; d < ndim; ++d) {
    for (const Digit digit : target_.dims[d]) place(d, digit);
  }
  for (size_t d = 0; d < ndim; ++d) {
    for (const Digit digit : state.dims[d]) {
      if (!in_dims(target_.dims, digit)) place(d, digit);
    }
    for (const DigitList& wanted : target_.dims) {
      for (const Digit digit : wanted) place(d, digit);
    }
    for (const Digit digit : DigitList(pool)) place(d, digit);
    if (left[d] != 1) return;
  }
  add_permute(state, std::move(dims), moves);
}

void MoveGenerator::add_permute(const TileState& state, std::vector<DigitList> dims,
                                std::vector<TileMove>& moves) const {
  if (dims == state.dims) return;
  TileMove move{.kind = ReshardMove::kPermute, .dim_digits = {}, .digits = {}, .after = state};
  move.after.dims = std::move(dims);
  move.after.permuted = true;
  // Each device may receive its whole tile from another one.
  move.bytes = tile_bytes(state.blocks);
  moves.push_back(std::move(move));
}

}  // namespace shardwise
