// SPDX-License-Identifier: Apache-2.0
//
// Transport: how the processes of a run send bytes to each other. MPI is one (bindings/bind_processes.cpp).
//
// A process is named by its position along the pinned axes (DeviceSet::position). A *group* is the processes that
// differ along some pinned axes only, in row-major order of that list; a mesh has many groups along the same axes.
//
//   mesh x=4, y=2, both pinned, axes {y, x}:
//     count = 8, order = {0, 2, 4, 6, 1, 3, 5, 7}      one group; process 2 is its second member
//   axes {y}:
//     count = 2, order = {0, 1, 2, 3, 4, 5, 6, 7}      four groups of two
//
// All processes call the same functions in the same order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shardwise/base/ndarray.h"
#include "shardwise/ir/ids.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

struct ProcessGroup {
  AxisList axes;               // pinned digits
  size_t id = 0;               // the same for the same axes of a communicator
  int64_t count = 1;           // members of a group
  std::vector<int64_t> order;  // all processes, one group after the other
};

inline std::span<std::byte> memory_of(const NdArray& array) {
  return {array.data(), static_cast<size_t>(array.nbytes())};
}

class Transport {
 public:
  virtual ~Transport() = default;

  // The op of the local program that the next calls are for, to name it in a report.
  virtual void begin(OpId op) = 0;
  // `all` receives the bytes of each member, which are as many for all.
  virtual void all_gather(const ProcessGroup& group, std::span<const std::byte> own, std::span<std::byte> all) = 0;
  // `send` has a part for each member, `receive` one from each; all parts have one size.
  virtual void all_to_all(const ProcessGroup& group, std::span<const std::byte> send, std::span<std::byte> receive) = 0;

  struct Outgoing {
    int64_t to = 0;
    std::span<const std::byte> bytes;
  };
  struct Incoming {
    int64_t from = 0;
    std::span<std::byte> bytes;
  };
  // Pairs of processes exchange messages, at most one each way. Also called with none.
  virtual void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) = 0;
};

}  // namespace shardwise
