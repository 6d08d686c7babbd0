// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/processes/process_communicator.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/exchange.h"
#include "shardwise/runtime/fold.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/processes/reduction_message.h"

namespace shardwise {
namespace {

// Received bytes up to which a reduction gathers whole operands: the second step would cost more than the bytes.
constexpr int64_t kWholeBytes = int64_t{1} << 17;

AxisList part_of(AxisSpan pieces, AxisSpan pinned, bool is_pinned) {
  AxisList part;
  for (const AxisRef& piece : pieces) {
    if (overlaps(pinned, piece) == is_pinned) part.push_back(piece);
  }
  return part;
}

// Cuts `array`, whose dims follow `lead` dims of axes: dim d is cut along split[d], and the digits of each member of
// `group` select its part. The result begins with the dims of the group.
NdArray parts_for_members(const NdArray& array, size_t lead, std::span<const AxisList> split,
                          const ProcessGroup& group) {
  auto [view, labels] = split_along(array, AxisList(lead, kNoAxis), split);
  // all_to_all sends row i of the result to member i: 8 rows split along a pinned x=4 become [x=4, 2].
  for (const AxisRef& axis : group.axes) {  // members along an axis that splits nothing get the same
    if (std::find(labels.begin(), labels.end(), axis) != labels.end()) continue;
    view = insert_dim(view, 0, axis.size);
    labels.insert(labels.begin(), axis);
  }
  std::vector<size_t> order;
  for (const AxisRef& axis : group.axes) order.push_back(position_of(labels, axis));
  for (size_t d = 0; d < labels.size(); ++d) {
    if (std::find(group.axes.begin(), group.axes.end(), labels[d]) == group.axes.end()) order.push_back(d);
  }
  return dense(reorder_dims(view, order));
}

// Of each operand, in one message: [`members`, own axes, local dims]. `members` are dims for the members of the group.
std::vector<NdArray> gathered_rows(Transport& transport, const ProcessGroup& group, std::span<const Shards> operands,
                                   const Dims& members) {
  std::vector<Pack> packs = packs_of_one(operands);
  ReductionMessage message(packs, 1);
  message.fill(packs, operands);
  const ReductionMessage all = message.of_rows(group.count);
  transport.all_gather(group, memory_of(message.memory()), memory_of(all.memory()));
  std::vector<NdArray> rows;
  for (size_t i = 0; i < operands.size(); ++i) {
    const NdArray parts = all.part(packs[i], members);
    rows.push_back(split_dim(parts, static_cast<size_t>(parts.ndim() - 1), operands[i].local_shape()));
  }
  return rows;
}

// The parts of an operand that is scattered: for each member, those of all its devices.
struct PartsOfMembers {
  NdArray parts;               // [the group's axes, own axes, local dims]
  std::vector<AxisList> free;  // along which a member scatters them among its devices, by dim
  Dims sizes;                  // of what one member receives from another one
};

PartsOfMembers parts_of_members(const Shards& operand, std::span<const AxisList> scatter, const AxisList& pinned,
                                const ProcessGroup& group) {
  const AxisList borders = joined(joined(pinned, group.axes), operand.axes());
  std::vector<AxisList> split;
  PartsOfMembers made;
  Dims local = operand.local_shape();
  for (size_t d = 0; d < scatter.size(); ++d) {
    split.push_back(pieces_of(scatter[d], borders));
    made.free.push_back(part_of(split.back(), pinned, false));
    // A process receives the parts of all its devices: the pinned pieces choose a member, the free ones stay.
    local[d] = local[d] / product(split.back()) * product(made.free.back());
  }
  made.parts = parts_for_members(operand.stack(), operand.axes().size(), split, group);
  made.sizes = concatenated(sizes_of(operand.axes()), local);
  return made;
}

// In one message: row i of each goes to member i. Returns what all members send, in their order.
std::vector<NdArray> exchanged_rows(Transport& transport, const ProcessGroup& group,
                                    std::span<const PartsOfMembers> sent) {
  std::vector<Shards> operands;
  for (const PartsOfMembers& each : sent) operands.emplace_back(each.parts);
  std::vector<Pack> packs = packs_of_one(operands);
  ReductionMessage message(packs, group.count);
  message.fill(packs, operands);
  const ReductionMessage received = message.of_rows(group.count);
  transport.all_to_all(group, memory_of(message.memory()), memory_of(received.memory()));
  std::vector<NdArray> rows;
  for (size_t i = 0; i < sent.size(); ++i) {
    rows.push_back(split_dim(received.part(packs[i], sizes_of(group.axes)), group.axes.size(), sent[i].sizes));
  }
  return rows;
}

}  // namespace

ProcessCommunicator::ProcessCommunicator(DeviceSet devices, std::shared_ptr<Transport> transport)
    : devices_(std::move(devices)), transport_(std::move(transport)) {}

const ProcessGroup& ProcessCommunicator::group_along(AxisSpan axes) {
  const AxisList shared = part_of(pieces_of(axes, devices_.pinned), devices_.pinned, true);
  const auto [found, is_new] = groups_.try_emplace(shared);
  ProcessGroup& group = found->second;
  if (!is_new) return group;
  group.axes = shared;
  // All processes make the same calls in the same order, so that they number groups alike.
  group.id = (*group_count_)++;
  group.count = product(shared);
  const AxisList all = joined(without(devices_.pinned, shared), shared);
  // The shared axes are minor in `all`: members of a group come one after the other.
  for (int64_t i = 0; i < product(all); ++i) group.order.push_back(position_along(devices_.pinned, all, i));
  return group;
}

std::vector<Shards> ProcessCommunicator::gathered(std::span<const Shards> operands, const ProcessGroup& group) {
  const std::vector<NdArray> rows = gathered_rows(*transport_, group, operands, sizes_of(group.axes));
  std::vector<Shards> all;
  for (size_t i = 0; i < rows.size(); ++i) all.push_back(shards_along(joined(group.axes, operands[i].axes()), rows[i]));
  return all;
}

Shards ProcessCommunicator::axis_index(AxisSpan axes) {
  AxisList grid = in_mesh_order(part_of(pieces_of(axes, devices_.pinned), devices_.pinned, false));
  const NdArray array = pooled_empty(DType::kI32, sizes_of(grid));
  auto* values = reinterpret_cast<int32_t*>(array.data());
  for (int64_t i = 0; i < array.size(); ++i) {
    values[i] = static_cast<int32_t>(devices_.position_along(axes, grid, i));
  }
  return {std::move(grid), array};
}

Shards ProcessCommunicator::all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) {
  if (group_along(axes).count == 1) return own_.all_reduce(operand, axes, reducer);
  return all_reduce_together({&operand, 1}, axes, {&reducer, 1})[0];
}

std::vector<Shards> ProcessCommunicator::all_reduce_together(std::span<const Shards> operands, AxisSpan axes,
                                                             std::span<const Reducer> reducers) {
  const ProcessGroup& group = group_along(axes);
  if (group.count == 1) return Communicator::all_reduce_together(operands, axes, reducers);
  std::vector<Pack> packs = packed(operands, reducers);
  ReductionMessage message(packs, 1);
  // Whole operands take (n - 1) * bytes in one step, parts 2 (n - 1) / n * bytes in two. They differ by about
  // (n - 2) * bytes, which is 0 for two processes.
  const bool in_parts = message.row_bytes() * (group.count - 2) > kWholeBytes;
  if (in_parts) message = ReductionMessage(packs, group.count);
  message.fill(packs, operands);
  const ReductionMessage received = message.of_rows(group.count);
  if (in_parts) {
    transport_->all_to_all(group, memory_of(message.memory()), memory_of(received.memory()));
  } else {
    transport_->all_gather(group, memory_of(message.memory()), memory_of(received.memory()));
  }
  std::vector<Shards> sums;
  sums.reserve(packs.size());
  for (const Pack& pack : packs) {
    sums.push_back(folded(received.part(pack, sizes_of(group.axes)), pack.axes, group, axes, pack.reducer));
  }
  if (in_parts) gather_parts(sums, group);
  std::vector<Shards> results(operands.size());
  for (size_t i = 0; i < packs.size(); ++i) unpack(packs[i], sums[i], operands, results);
  return results;
}

// The first dims of `members` are those of `group`, then come the own axes.
Shards ProcessCommunicator::folded(const NdArray& members, const AxisList& own, const ProcessGroup& group,
                                   AxisSpan axes, Reducer reducer) {
  // Devices of this process are folded with the others, in the order of all devices along the axes.
  if (product(axes) != group.count) {
    return own_.all_reduce(shards_along(joined(group.axes, own), members), axes, reducer);
  }
  // The group is in the order of `axes`.
  const Shards by_member(group.axes, members);
  std::vector<NdArray> list;
  for (int64_t i = 0; i < group.count; ++i) list.push_back(by_member[i]);
  return {own, fold(reducer, list)};
}

// Each process has folded its part of the elements of each pack, and receives those of the others.
void ProcessCommunicator::gather_parts(std::vector<Shards>& sums, const ProcessGroup& group) {
  const std::vector<NdArray> rows = gathered_rows(*transport_, group, sums, Dims{group.count});
  for (size_t i = 0; i < sums.size(); ++i) {
    const AxisList own = sums[i].axes();
    // From [member, own devices, part] to [own devices, member, part]: the elements of a device in order.
    std::vector<size_t> order;
    for (size_t d = 0; d < own.size(); ++d) order.push_back(d + 1);
    order.push_back(0);
    order.push_back(own.size() + 1);
    std::vector<size_t> groups(own.size(), 1);
    groups.push_back(2);
    sums[i] = {own, merge_groups(reorder_dims(rows[i], order), groups)};
  }
}

Shards ProcessCommunicator::all_gather(const Shards& operand, std::span<const AxisList> gather) {
  return all_gather_together({&operand, 1}, gather)[0];
}

Shards ProcessCommunicator::reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                                           Reducer reducer) {
  return reduce_scatter_together({&operand, 1}, axes, scatter, reducer)[0];
}

std::vector<Shards> ProcessCommunicator::run_together(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.kind == CollectiveKind::kAllGather) return all_gather_together(operands, call.dims);
  if (call.kind == CollectiveKind::kReduceScatter) {
    return reduce_scatter_together(operands, call.axes, call.dims, call.reducer);
  }
  return all_reduce_together(operands, call.axes, std::vector<Reducer>(operands.size(), call.reducer));
}

std::vector<Shards> ProcessCommunicator::all_gather_together(std::span<const Shards> operands,
                                                             std::span<const AxisList> gather) {
  const ProcessGroup& group = group_along(joined(gather));
  std::vector<Shards> results(operands.begin(), operands.end());
  if (group.count > 1) results = gathered(operands, group);
  for (Shards& each : results) each = own_.all_gather(each, gather);
  return results;
}

std::vector<Shards> ProcessCommunicator::reduce_scatter_together(std::span<const Shards> operands, AxisSpan axes,
                                                                 std::span<const AxisList> scatter, Reducer reducer) {
  // A sum over y=4 scattered along y:(2)2 and y:(1)2: members of the group are found by the digits that select a part.
  const ProcessGroup& group = group_along(pieces_of(axes, joined(scatter)));
  std::vector<Shards> results;
  if (group.count == 1) {
    for (const Shards& operand : operands) results.push_back(own_.reduce_scatter(operand, axes, scatter, reducer));
    return results;
  }
  std::vector<PartsOfMembers> sent;
  for (const Shards& operand : operands) sent.push_back(parts_of_members(operand, scatter, devices_.pinned, group));
  const std::vector<NdArray> rows = exchanged_rows(*transport_, group, sent);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Shards all = shards_along(joined(group.axes, operands[i].axes()), rows[i]);
    results.push_back(own_.reduce_scatter(all, axes, sent[i].free, reducer));
  }
  return results;
}

Shards ProcessCommunicator::all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) {
  Shards result = operand;
  // One after the other: a later move may split the dim that an earlier one has gathered.
  for (const AllToAllMove& each : moves) result = move(result, each);
  return result;
}

Shards ProcessCommunicator::move(const Shards& operand, const AllToAllMove& move) {
  const ProcessGroup& group = group_along(move.axes);
  if (group.count == 1) return own_.all_to_all(operand, {&move, 1});
  const AxisList pieces = pieces_of(move.axes, joined(devices_.pinned, operand.axes()));
  const AxisList free = part_of(pieces, devices_.pinned, false);
  AxisList axes = in_mesh_order(joined(free, without(operand.axes(), free)));
  const auto from = static_cast<size_t>(move.from_dim);
  const auto to = static_cast<size_t>(move.to_dim);
  Dims local = operand.local_shape();
  std::vector<AxisList> split(local.size());
  split[to] = pieces;
  const int64_t block = local[to] / product(pieces);
  local[to] = block * product(free);
  const NdArray send = parts_for_members(operand.along(axes).stack(), axes.size(), split, group);
  NdArray received = pooled_empty(send.dtype(), concatenated(sizes_of(joined(group.axes, axes)), local));
  transport_->all_to_all(group, memory_of(send), memory_of(received));
  // Dims now: the senders along the group's axes, own axes, local dims. The new free digits are parts of to_dim.
  const size_t own = group.axes.size();
  const size_t lead = own + axes.size();
  Dims sizes = sizes_of(free);
  sizes.push_back(block);
  received = split_dim(received, lead + to, sizes);
  std::vector<size_t> order;
  std::vector<size_t> groups(axes.size(), 1);
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto moved = std::find(free.begin(), free.end(), axes[a]);
    order.push_back(moved == free.end() ? own + a : lead + to + static_cast<size_t>(moved - free.begin()));
  }
  for (size_t d = 0; d < local.size(); ++d) {
    groups.push_back(1);
    if (d == from) {
      for (const AxisRef& piece : pieces) {
        order.push_back(is_pinned(piece) ? position_of(group.axes, piece) : own + position_of(axes, piece));
      }
      groups.back() += pieces.size();
    }
    order.push_back(lead + d + (d >= to ? free.size() : 0));
  }
  return {std::move(axes), merge_groups(reorder_dims(received, order), groups)};
}

// The device at number c along `targets` receives from the one at c - offset along `sources`.
struct ProcessCommunicator::Route {
  AxisList sources;
  AxisList targets;
  int64_t offset = 0;
  bool wrap = true;
  std::optional<int64_t> only = {};  // the one sender of each group

  std::optional<int64_t> moved(int64_t number, int64_t by) const { return shifted(number, by, product(sources), wrap); }
};

Shards ProcessCommunicator::permute(const Shards& operand, AxisSpan from, AxisSpan to) {
  // Axes in only one of the lists trade places, which makes the map a permutation of devices.
  const Route swap{joined(from, without(to, from)), joined(to, without(from, to))};
  return group_along(swap.sources).count == 1 ? own_.permute(operand, from, to) : route(operand, swap);
}

Shards ProcessCommunicator::shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) {
  const AxisList list(axes.begin(), axes.end());
  if (group_along(axes).count == 1) return own_.shift(operand, axes, offset, wrap);
  return route(operand, {list, list, offset, wrap});
}

Shards ProcessCommunicator::chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) {
  const AxisList list(axes.begin(), axes.end());
  if (group_along(axes).count == 1) return own_.chain(operand, axes, step, reducer);
  const int64_t count = product(list);
  Shards total = operand;
  std::vector<NdArray> totals, results;
  // One step after the other, with one sender each: the total of a device needs that of the device before it.
  for (int64_t k = 0; k + 1 < count; ++k) {
    const int64_t sender = step > 0 ? k : count - 1 - k;
    const Shards received = route(total, {list, list, step, false, sender});
    const AxisList& grid = received.axes();
    if (totals.empty()) {
      const Shards own = operand.along(grid);
      for (int64_t i = 0; i < own.count(); ++i) {
        totals.push_back(own[i]);
        results.push_back(NdArray::full(own.dtype(), own.local_shape(), Scalar::of_int(own.dtype(), 0)));
      }
    }
    for (int64_t i = 0; i < received.count(); ++i) {
      // The other shards have received nothing in this step, and keep their totals.
      if (devices_.position_along(list, grid, i) != sender + step) continue;
      const auto at = static_cast<size_t>(i);
      results[at] = received[i];
      const NdArray both[] = {received[i], totals[at]};
      totals[at] = fold(reducer, both);
    }
    total = Shards(grid, totals);
  }
  return {total.axes(), std::move(results)};
}

// `rest` is major in givers and takers, so that row + c is the device that differs from this one along the route only.
// Messages need no header: both sides order the shards by their places in the receiver's grid.
Shards ProcessCommunicator::route(const Shards& operand, const Route& route) {
  const AxisList free = part_of(pieces_of(route.sources, devices_.pinned), devices_.pinned, false);
  const AxisList grid = in_mesh_order(joined(free, without(operand.axes(), route.sources)));
  const AxisList rest = without(joined(devices_.pinned, grid), route.sources);
  const AxisList givers = joined(rest, route.sources);
  const AxisList takers = joined(rest, route.targets);
  const int64_t devices = product(route.sources);
  const Dims local = operand.local_shape();
  const DType dtype = operand.dtype();
  struct Sent {
    int64_t place;  // in the grid of the receiver
    int64_t shard;
    auto operator<=>(const Sent&) const = default;
  };
  std::map<int64_t, std::vector<Sent>> sent;
  std::map<int64_t, std::vector<int64_t>> awaited;
  std::vector<NdArray> list(static_cast<size_t>(product(grid)));
  for (int64_t i = 0; i < product(grid); ++i) {
    const auto place_along = [&](AxisSpan axes) { return devices_.position_along(axes, grid, i); };
    const int64_t row = place_along(rest) * devices;
    const auto giver = route.moved(place_along(route.targets), -route.offset);
    if (giver && (!route.only || giver == route.only)) {
      const int64_t process = shardwise::position_along(devices_.pinned, givers, row + *giver);
      if (process == devices_.position) {
        list[static_cast<size_t>(i)] = operand[position_along(operand.axes(), givers, row + *giver)];
      } else {
        awaited[process].push_back(i);
      }
    } else {
      list[static_cast<size_t>(i)] = NdArray::full(dtype, local, Scalar::of_int(dtype, 0));
    }
    if (route.only && place_along(route.sources) != *route.only) continue;
    if (const auto taker = route.moved(place_along(route.sources), route.offset)) {
      const int64_t process = position_along(devices_.pinned, takers, row + *taker);
      if (process == devices_.position) continue;
      sent[process].push_back({position_along(grid, takers, row + *taker), place_along(operand.axes())});
    }
  }
  std::vector<NdArray> buffers;  // alive until all have arrived
  std::vector<Transport::Outgoing> outgoing;
  for (auto& [process, shards] : sent) {
    std::ranges::sort(shards);
    const NdArray buffer = pooled_empty(dtype, concatenated({std::ssize(shards)}, local));
    for (size_t k = 0; k < shards.size(); ++k) {
      copy_parallel(select(buffer, 0, static_cast<int64_t>(k)), operand[shards[k].shard]);
    }
    outgoing.push_back({process, memory_of(buffer)});
    buffers.push_back(buffer);
  }
  std::vector<Transport::Incoming> incoming;
  for (const auto& [process, places] : awaited) {
    const NdArray buffer = pooled_empty(dtype, concatenated({std::ssize(places)}, local));
    for (size_t k = 0; k < places.size(); ++k) {
      list[static_cast<size_t>(places[k])] = select(buffer, 0, static_cast<int64_t>(k));
    }
    incoming.push_back({process, memory_of(buffer)});
  }
  transport_->exchange(outgoing, incoming);
  return {grid, std::move(list)};
}

// The positions of processes are those of their devices in the other mesh.
class ReorderedTransport final : public Transport {
 public:
  ReorderedTransport(std::shared_ptr<Transport> transport, std::vector<int64_t> positions)
      : transport_(std::move(transport)), positions_(std::move(positions)) {}

  void begin(OpId op) override { transport_->begin(op); }
  void all_gather(const ProcessGroup& group, std::span<const std::byte> own, std::span<std::byte> all) override {
    transport_->all_gather(reordered(group), own, all);
  }
  void all_to_all(const ProcessGroup& group, std::span<const std::byte> send, std::span<std::byte> receive) override {
    transport_->all_to_all(reordered(group), send, receive);
  }
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    std::vector<Outgoing> sent(outgoing.begin(), outgoing.end());
    std::vector<Incoming> received(incoming.begin(), incoming.end());
    for (Outgoing& message : sent) message.to = positions_[static_cast<size_t>(message.to)];
    for (Incoming& message : received) message.from = positions_[static_cast<size_t>(message.from)];
    transport_->exchange(sent, received);
  }

 private:
  const ProcessGroup& reordered(const ProcessGroup& group) {
    const auto [found, is_new] = groups_.try_emplace(group.id, group);
    if (is_new) {
      for (int64_t& process : found->second.order) process = positions_[static_cast<size_t>(process)];
    }
    return found->second;
  }

  std::shared_ptr<Transport> transport_;
  const std::vector<int64_t> positions_;
  std::map<size_t, ProcessGroup> groups_;
};

ProcessCommunicator& ProcessCommunicator::on_other_mesh(const DeviceOrder& order) {
  // By text, because another program has other objects for the same mesh; its groups are set up once.
  std::shared_ptr<ProcessCommunicator>& known = on_other_meshes_[order.other->text()];
  if (known != nullptr) return *known;
  std::vector<int64_t> positions(order.main_index.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = position_along(devices_.pinned, axes_of_several_devices(*order.main), order.main_index[i]);
  }
  known = std::make_shared<ProcessCommunicator>(devices_on_other_mesh(order, devices_),
                                                std::make_shared<ReorderedTransport>(transport_, std::move(positions)));
  // Shared, because both use one transport, which identifies a group by its id.
  known->group_count_ = group_count_;
  return *known;
}

Shards ProcessCommunicator::on_mesh(const DeviceOrder& order, std::span<const Shards> operands,
                                    const Collective& collective) {
  const AxisList axes = axes_of_several_devices(*order.main);
  // If each process has one device, reordering processes is reordering devices. Otherwise all compute for all devices.
  if (product(devices_.pinned) == product(axes)) return collective(on_other_mesh(order), operands);
  std::vector<Shards> all;
  for (const Shards& operand : operands) {
    const Shards own = operand.along(devices_.free(axes));
    all.push_back(gathered({&own, 1}, group_along(devices_.pinned))[0]);
  }
  return devices_.owned(own_.on_mesh(order, all, collective));
}

Shards ProcessCommunicator::exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                                     const Mesh* main) {
  return exchanged(operands, fill, map, main, devices_, *transport_);
}

}  // namespace shardwise
