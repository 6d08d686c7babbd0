// SPDX-License-Identifier: Apache-2.0
//
// The collectives of a local program. Each operates on all shards that this process owns. The executor knows only the
// devices of its communicator; the virtual one owns every device of the mesh. A communicator that only watches another
// one, or stands for it, is given calls (collective_call.h); one that has devices is a DeviceCommunicator.
//
//   mesh x=4:  all_gather(s, {{x}, {}})   four shards of 2x3 along x  ->  one array 8x3, the same on every device
//
// Axes may be sub-axes, lists are major to minor, and several axes are one collective over their product. Operands are
// read only; results may be views of them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "shardwise/ir/ids.h"
#include "shardwise/runtime/collective_call.h"

namespace shardwise {

class Communicator {
 public:
  virtual ~Communicator() = default;

  // The next calls are for this op of the local program. Only reports need it.
  virtual void begin(OpId /*op*/) {}
  // On operands that are indexed by the axes of the mesh of the run, as the results are: one for each operand of a kind
  // that takes several, else one.
  std::vector<Shards> run(const CollectiveCall& call, std::span<const Shards> operands);
  // On operands that are indexed by the axes of the call's mesh, or, if it is across meshes, of that of the run.
  virtual Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) = 0;
  // The results of several operands, in one message if that is faster.
  virtual std::vector<Shards> run_together(const CollectiveCall& call, std::span<const Shards> operands);
  // all_reduce of each operand, in one message if that is faster.
  virtual std::vector<Shards> all_reduce_together(std::span<const Shards> operands, AxisSpan axes,
                                                  std::span<const Reducer> reducers);

  // A collective that uses the axes of `order.other`; it is given a communicator of the same devices, and operands that
  // are indexed by these axes. Operands and result of this function are indexed by the axes of `order.main`.
  using Collective = std::function<Shards(Communicator&, std::span<const Shards>)>;
  virtual Shards on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective);

 private:
  Shards run_one(const CollectiveCall& call, std::span<const Shards> operands);
};

class DeviceCommunicator : public Communicator {
 public:
  Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) final;

  // The position of every device along `axes`, row-major in list order: a scalar i32.
  virtual Shards axis_index(AxisSpan axes) = 0;
  // Reduces over the devices that differ along `axes` only, from the first to the last of each group in list order.
  // 16-bit floats accumulate in float32 and are rounded once. For max and min, NaN wins and +0 > -0.
  virtual Shards all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) = 0;
  // Dim d grows by the product of gather[d]: shards are concatenated in row-major order of these axes.
  virtual Shards all_gather(const Shards& operand, std::span<const AxisList> gather) = 0;
  // all_reduce over `axes`; every device keeps its part of dim d along scatter[d] (a sublist of `axes`).
  virtual Shards reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                                Reducer reducer) = 0;
  // Each move splits its to_dim over its axes and gathers from_dim along them, in order.
  virtual Shards all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) = 0;
  // The device with coordinates c along `to` receives from the device with coordinates c along `from`. Axes in only one
  // of the lists are swapped as well, so that this permutes devices: from={x}, to={y} swaps x and y.
  virtual Shards permute(const Shards& operand, AxisSpan from, AxisSpan to) = 0;
  // Device i along `axes` receives from i - offset. Without `wrap`, devices without a source receive zeros.
  virtual Shards shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) = 0;
  // Device i along `axes` receives what the operands of all devices before it combine to, in order, from the one before
  // it; if the step is -1, of all after it from the one after it. The end of the chain receives zeros.
  virtual Shards chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) = 0;
  // Each device receives the elements of its tile (mesh/exchange.h). What no operand has is `fill`, a scalar, or zeros
  // if it is null. If the map is across meshes, shards are indexed by the axes of `main`, which may be one of the two;
  // else it is null.
  virtual Shards exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                          const Mesh* main) = 0;
};

}  // namespace shardwise
