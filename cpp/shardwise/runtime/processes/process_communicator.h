// SPDX-License-Identifier: Apache-2.0
//
// The communicator of one process among several, each of which owns the devices of a DeviceSet. Bytes travel by a
// Transport; all arithmetic is that of the virtual mesh, on the same operands in the same order. So results are equal
// bit by bit, which native reductions of MPI do not give.
//
//   mesh x=4 in 4 processes, all_reduce {x} of f32[1000]
//     all_to_all     250 elements from each of the 4 processes
//     fold           own elements, from the first device to the last
//     all_gather     the 4 folded parts
//
// Small operands are sent unsplit: one step instead of two. Axes that all devices of a process have (free axes) need no
// transport.
#pragma once

#include <map>
#include <memory>

#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/processes/transport.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise {

class ProcessCommunicator final : public DeviceCommunicator {
 public:
  ProcessCommunicator(DeviceSet devices, std::shared_ptr<Transport> transport);

  const DeviceSet& devices() const { return devices_; }

  void begin(OpId op) override { transport_->begin(op); }
  Shards axis_index(AxisSpan axes) override;
  Shards all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) override;
  std::vector<Shards> run_together(const CollectiveCall& call, std::span<const Shards> operands) override;
  std::vector<Shards> all_reduce_together(std::span<const Shards> operands, AxisSpan axes,
                                          std::span<const Reducer> reducers) override;
  Shards all_gather(const Shards& operand, std::span<const AxisList> gather) override;
  Shards reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                        Reducer reducer) override;
  Shards all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) override;
  Shards permute(const Shards& operand, AxisSpan from, AxisSpan to) override;
  Shards shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) override;
  Shards chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) override;
  Shards exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                  const Mesh* main) override;
  // If each process has one device, as another mesh of processes. Else every process has the shards of all devices.
  Shards on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) override;

 private:
  struct Route;

  ProcessCommunicator& on_other_mesh(const DeviceOrder& order);
  bool is_pinned(const AxisRef& piece) const { return overlaps(devices_.pinned, piece); }
  const ProcessGroup& group_along(AxisSpan axes);  // the pinned digits of `axes`
  std::vector<Shards> all_gather_together(std::span<const Shards> operands, std::span<const AxisList> gather);
  std::vector<Shards> reduce_scatter_together(std::span<const Shards> operands, AxisSpan axes,
                                              std::span<const AxisList> scatter, Reducer reducer);
  std::vector<Shards> gathered(std::span<const Shards> operands, const ProcessGroup& group);
  Shards folded(const NdArray& members, const AxisList& own, const ProcessGroup& group, AxisSpan axes, Reducer reducer);
  void gather_parts(std::vector<Shards>& sums, const ProcessGroup& group);
  Shards move(const Shards& operand, const AllToAllMove& move);
  Shards route(const Shards& operand, const Route& route);

  DeviceSet devices_;
  std::shared_ptr<Transport> transport_;
  VirtualCommunicator own_;  // among the devices of this process
  std::map<AxisList, ProcessGroup> groups_;
  std::shared_ptr<size_t> group_count_ = std::make_shared<size_t>(0);            // with those of other meshes
  std::map<std::string, std::shared_ptr<ProcessCommunicator>> on_other_meshes_;  // by text
};

}  // namespace shardwise
