// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/virtual_communicator.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/exchange.h"
#include "shardwise/runtime/fold.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// A stack in which every ref of `pieces` is its own dim: first the dims of `axes`, then the local ones.
Shards open(const Shards& shards, AxisSpan pieces) {
  // Also pieces along which the shards do not vary: `along` repeats the array there with stride 0.
  AxisList axes = in_mesh_order(joined(pieces, without(shards.axes(), pieces)));
  NdArray array = shards.along(axes).stack();
  return {std::move(axes), std::move(array)};
}

// The members of every group along `pieces`, first to last, as views without these dims.
std::vector<NdArray> members_of(const Shards& operand, const AxisList& pieces, AxisList& rest) {
  const Shards opened = open(operand, pieces);
  rest = without(opened.axes(), pieces);
  // The pieces in list order, because a reduction combines members in that order.
  const Shards members(pieces, reorder_axes(opened.stacked(), opened.axes(), joined(pieces, rest)));
  std::vector<NdArray> list;
  for (int64_t i = 0; i < members.count(); ++i) list.push_back(members[i]);
  return list;
}

// The array of an all_to_all between moves: its dims are the axes, then groups[d] dims for each tensor dim.
struct Exchange {
  NdArray array;
  std::vector<size_t> groups;
};

void move_axes(Exchange& state, AxisSpan axes, AxisSpan pieces, size_t from, size_t to) {
  // A dim that an earlier move gathered must be merged before it can be split.
  if (state.groups[axes.size() + to] != 1) {
    state.array = merge_groups(state.array, state.groups);
    std::fill(state.groups.begin(), state.groups.end(), size_t{1});
  }
  const auto start_of = [&](size_t d) {
    return std::accumulate(state.groups.begin(), state.groups.begin() + static_cast<std::ptrdiff_t>(axes.size() + d),
                           size_t{0});
  };
  // groups[d] dims make up tensor dim d, so that its first dim comes after those of all dims before it.
  const size_t split = start_of(to);
  Dims sizes = sizes_of(pieces);
  sizes.push_back(state.array.shape()[split] / product(pieces));
  state.array = split_dim(state.array, split, sizes);
  const size_t added = pieces.size();
  // The position of a dim after the split: dims after the split dim are shifted.
  const auto now = [&](size_t dim) { return dim > split ? dim + added : dim; };
  std::vector<size_t> order;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto moved = std::find(pieces.begin(), pieces.end(), axes[a]);
    order.push_back(moved == pieces.end() ? a : split + static_cast<size_t>(moved - pieces.begin()));
  }
  for (size_t d = 0; axes.size() + d < state.groups.size(); ++d) {
    // The gathered digits go in front of from_dim, major to minor: the merge then concatenates the shards in order.
    if (d == from) {
      for (const AxisRef& piece : pieces) order.push_back(position_of(axes, piece));
    }
    const size_t start = start_of(d);
    for (size_t i = 0; i < state.groups[axes.size() + d]; ++i) {
      order.push_back(d == to ? split + added : now(start + i));
    }
  }
  state.array = reorder_dims(state.array, order);
  state.groups[axes.size() + from] += added;
}

}  // namespace

Shards VirtualCommunicator::axis_index(AxisSpan axes) {
  const AxisList pieces = pieces_of(axes, axes);
  NdArray array = pooled_empty(DType::kI32, sizes_of(pieces));
  auto* values = reinterpret_cast<int32_t*>(array.data());
  // Row-major in the order of the list, which need not be mesh order.
  std::iota(values, values + array.size(), 0);
  return shards_along(pieces, array);
}

Shards VirtualCommunicator::all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) {
  const AxisList pieces = pieces_of(axes, operand.axes());
  AxisList rest;
  const std::vector<NdArray> members = members_of(operand, pieces, rest);
  // Members in list order, so that the sum has the same bits as with several processes.
  NdArray result = fold(reducer, members);
  return {std::move(rest), std::move(result)};
}

Shards VirtualCommunicator::all_gather(const Shards& operand, std::span<const AxisList> gather) {
  std::vector<AxisList> pieces;
  for (const AxisList& axes : gather) pieces.push_back(pieces_of(axes, operand.axes()));
  const AxisList all = joined(pieces);
  const Shards opened = open(operand, all);
  AxisList rest = without(opened.axes(), all);
  std::vector<size_t> order;
  std::vector<size_t> groups(rest.size(), 1);
  for (const AxisRef& axis : rest) order.push_back(position_of(opened.axes(), axis));
  for (size_t d = 0; d < pieces.size(); ++d) {
    for (const AxisRef& piece : pieces[d]) order.push_back(position_of(opened.axes(), piece));
    order.push_back(opened.axes().size() + d);
    groups.push_back(pieces[d].size() + 1);
  }
  return {std::move(rest), merge_groups(reorder_dims(opened.stacked(), order), groups)};
}

Shards VirtualCommunicator::reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                                           Reducer reducer) {
  const AxisList pieces = pieces_of(axes, operand.axes());
  AxisList rest;
  std::vector<NdArray> members = members_of(operand, pieces, rest);
  std::vector<AxisList> parts;
  for (const AxisList& dim : scatter) parts.push_back(pieces_of(dim, operand.axes()));
  AxisList result_axes = in_mesh_order(joined(rest, joined(parts)));
  for (NdArray& member : members) member = parts_of(member, rest, parts, result_axes);
  NdArray result = fold(reducer, members);
  return {std::move(result_axes), std::move(result)};
}

Shards VirtualCommunicator::all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) {
  AxisList used;
  for (const AllToAllMove& move : moves) used = joined(used, move.axes);
  const AxisList borders = joined(operand.axes(), used);
  AxisList all;
  for (const AllToAllMove& move : moves) {
    for (const AxisRef& piece : pieces_of(move.axes, borders)) {
      if (std::find(all.begin(), all.end(), piece) == all.end()) all.push_back(piece);
    }
  }
  const Shards opened = open(operand, all);
  Exchange state{opened.stacked(), std::vector<size_t>(opened.stacked().shape().size(), 1)};
  for (const AllToAllMove& move : moves) {
    move_axes(state, opened.axes(), pieces_of(move.axes, borders), static_cast<size_t>(move.from_dim),
              static_cast<size_t>(move.to_dim));
  }
  return {opened.axes(), merge_groups(state.array, state.groups)};
}

Shards VirtualCommunicator::permute(const Shards& operand, AxisSpan from, AxisSpan to) {
  // Axes in only one of the lists trade places, which makes the map a permutation of devices.
  const AxisList sources = joined(from, without(to, from));
  const AxisList targets = joined(to, without(from, to));
  const AxisList borders = joined(joined(operand.axes(), sources), targets);
  const AxisList out = pieces_of(sources, borders);
  const AxisList in = pieces_of(targets, borders);
  const Shards opened = open(operand, out);
  const AxisList rest = without(opened.axes(), out);
  const size_t locals = opened.stacked().shape().size() - opened.axes().size();
  NdArray array = reorder_axes(opened.stacked(), opened.axes(), joined(rest, out));
  // from = {x=2, y=6}, to = {u=3, v=4}: sender and receiver have the same number, 6 x + y = 4 u + v.
  if (sizes_of(out) != sizes_of(in)) {  // digits of other sizes: merge them into one number, then split that
    std::vector<size_t> groups(rest.size(), 1);
    groups.push_back(out.size());
    groups.insert(groups.end(), locals, 1);
    array = split_dim(merge_groups(array, groups), rest.size(), sizes_of(in));
  }
  return shards_along(joined(rest, in), array);
}

Shards VirtualCommunicator::shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) {
  const AxisList pieces = pieces_of(axes, operand.axes());
  const AxisList all = in_mesh_order(joined(pieces, without(operand.axes(), pieces)));
  const AxisList rest = without(all, pieces);
  const AxisList givers = joined(rest, pieces);
  const Shards source = operand.along(all);
  const int64_t devices = product(pieces);
  const Dims shape = operand.local_shape();
  const NdArray zeros = NdArray::full(operand.dtype(), shape, Scalar::of_int(operand.dtype(), 0));
  std::vector<NdArray> list;
  for (int64_t i = 0; i < product(all); ++i) {
    const std::optional<int64_t> giver = shifted(position_along(pieces, all, i), -offset, devices, wrap);
    if (!giver) {
      list.push_back(zeros);
      continue;
    }
    // `rest` is major, so that this is the device that differs from the receiver along the pieces only.
    list.push_back(source[position_along(all, givers, position_along(rest, all, i) * devices + *giver)]);
  }
  return {all, std::move(list)};
}

Shards VirtualCommunicator::chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) {
  const AxisList pieces = pieces_of(axes, operand.axes());
  AxisList rest;
  const std::vector<NdArray> members = members_of(operand, pieces, rest);
  const int64_t count = std::ssize(members);
  NdArray array = pooled_empty(operand.dtype(), concatenated({count}, members[0].shape()));
  NdArray total = NdArray::full(operand.dtype(), members[0].shape(), Scalar::of_int(operand.dtype(), 0));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = step > 0 ? k : count - 1 - k;
    const NdArray& own = members[static_cast<size_t>(at)];
    // A device receives the total of those before it, its own part excluded; the first one receives zeros.
    copy_parallel(select(array, 0, at), total);
    const NdArray both[] = {total, own};
    total = k == 0 ? own : fold(reducer, both);
  }
  return shards_along(joined(pieces, rest), split_dim(array, 0, sizes_of(pieces)));
}

Shards VirtualCommunicator::exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                                     const Mesh* main) {
  return exchanged(operands, fill, map, main);
}

}  // namespace shardwise
