// SPDX-License-Identifier: Apache-2.0
//
// Several processes, as threads of this one: each owns the devices at one position along the pinned axes. Two
// communicators for them: MeetingCommunicator puts the shards of all together, computes as on a virtual mesh, and gives
// each process its own; ProcessCommunicator is the one that MPI uses, here with bytes that threads copy.
//
//   expect_same_in_processes({x}, [&](const DeviceSet& devices) { return program.executable({.devices = devices}); },
//                            arguments, results_of_all_devices);
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/simulator.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/runtime/processes/process_communicator.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise::testing {

class Meeting {
 public:
  explicit Meeting(AxisList pinned)
      : pinned_(std::move(pinned)), parts_(static_cast<size_t>(product(pinned_))), barrier_(product(pinned_)) {}

  // All shards, once every process has given its own.
  Shards all_shards(const DeviceSet& devices, const Shards& own) {
    parts_[static_cast<size_t>(devices.position)] = own;
    barrier_.arrive_and_wait();
    Shards all = assembled();
    barrier_.arrive_and_wait();  // nobody gives the next one before all have read this one
    return all;
  }
  void leave() { barrier_.arrive_and_drop(); }

 private:
  Shards assembled() const {
    AxisList axes = parts_[0].axes();
    axes.insert(axes.end(), pinned_.begin(), pinned_.end());
    std::sort(axes.begin(), axes.end());
    std::vector<NdArray> list;
    for (int64_t i = 0; i < product(axes); ++i) {
      const Shards& part = parts_[static_cast<size_t>(position_along(pinned_, axes, i))];
      list.push_back(part[position_along(part.axes(), axes, i)]);
    }
    return {std::move(axes), std::move(list)};
  }

  AxisList pinned_;
  std::vector<Shards> parts_;  // by position along the pinned axes
  std::barrier<> barrier_;
};

class MeetingCommunicator final : public DeviceCommunicator {
 public:
  MeetingCommunicator(Meeting& meeting, const DeviceSet& devices) : meeting_(meeting), devices_(devices) {}

  Shards axis_index(AxisSpan axes) override { return devices_.owned(virtual_.axis_index(axes)); }
  Shards all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) override {
    return together(operand, [&](const Shards& all) { return virtual_.all_reduce(all, axes, reducer); });
  }
  Shards all_gather(const Shards& operand, std::span<const AxisList> gather) override {
    return together(operand, [&](const Shards& all) { return virtual_.all_gather(all, gather); });
  }
  Shards reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                        Reducer reducer) override {
    return together(operand, [&](const Shards& all) { return virtual_.reduce_scatter(all, axes, scatter, reducer); });
  }
  Shards all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) override {
    return together(operand, [&](const Shards& all) { return virtual_.all_to_all(all, moves); });
  }
  Shards permute(const Shards& operand, AxisSpan from, AxisSpan to) override {
    return together(operand, [&](const Shards& all) { return virtual_.permute(all, from, to); });
  }
  Shards shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) override {
    return together(operand, [&](const Shards& all) { return virtual_.shift(all, axes, offset, wrap); });
  }
  Shards chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) override {
    return together(operand, [&](const Shards& all) { return virtual_.chain(all, axes, step, reducer); });
  }
  Shards exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                  const Mesh* main) override {
    std::vector<Shards> all;
    for (const Shards& operand : operands) all.push_back(meeting_.all_shards(devices_, operand));
    const Shards value = fill == nullptr ? Shards() : meeting_.all_shards(devices_, *fill);
    return devices_.owned(virtual_.exchange(all, fill == nullptr ? nullptr : &value, map, main));
  }

 private:
  template <class Collective>
  Shards together(const Shards& operand, const Collective& collective) {
    return devices_.owned(collective(meeting_.all_shards(devices_, operand)));
  }

  Meeting& meeting_;
  const DeviceSet& devices_;
  VirtualCommunicator virtual_;
};

// Threads that copy what the others put on a table.
class TableTransport final : public Transport {
 public:
  struct Table {
    explicit Table(int64_t processes)
        : parts(static_cast<size_t>(processes)), messages(static_cast<size_t>(processes)), barrier(processes) {}
    std::vector<std::span<const std::byte>> parts;
    std::vector<std::vector<Outgoing>> messages;
    std::barrier<> barrier;
  };

  TableTransport(std::shared_ptr<Table> table, int64_t position)
      : table_(std::move(table)), position_(static_cast<size_t>(position)) {}

  void begin(OpId) override {}
  void all_gather(const ProcessGroup& group, std::span<const std::byte> own, std::span<std::byte> all) override {
    ASSERT_EQ(own.size() * static_cast<size_t>(group.count), all.size());
    meet(own, [&] {
      for (size_t i = 0; i < static_cast<size_t>(group.count); ++i) copy(part(group, i), all.subspan(i * own.size()));
    });
  }
  void all_to_all(const ProcessGroup& group, std::span<const std::byte> send, std::span<std::byte> receive) override {
    ASSERT_EQ(send.size(), receive.size());
    const size_t size = send.size() / static_cast<size_t>(group.count);
    meet(send, [&] {
      for (size_t i = 0; i < static_cast<size_t>(group.count); ++i) {
        copy(part(group, i).subspan(own_index(group) * size, size), receive.subspan(i * size));
      }
    });
  }
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    table_->messages[position_] = {outgoing.begin(), outgoing.end()};
    meet({}, [&] {
      for (const Incoming& message : incoming) {
        const auto& sent = table_->messages[static_cast<size_t>(message.from)];
        const auto mine = std::ranges::find(sent, static_cast<int64_t>(position_), &Outgoing::to);
        ASSERT_NE(mine, sent.end());
        ASSERT_EQ(mine->bytes.size(), message.bytes.size());
        copy(mine->bytes, message.bytes);
      }
    });
  }
  void leave() { table_->barrier.arrive_and_drop(); }

 private:
  template <class Read>
  void meet(std::span<const std::byte> own, const Read& read) {
    table_->parts[position_] = own;
    table_->barrier.arrive_and_wait();
    read();
    table_->barrier.arrive_and_wait();
  }
  size_t own_place(const ProcessGroup& group) const {
    return static_cast<size_t>(std::ranges::find(group.order, static_cast<int64_t>(position_)) - group.order.begin());
  }
  size_t own_index(const ProcessGroup& group) const { return own_place(group) % static_cast<size_t>(group.count); }
  std::span<const std::byte> part(const ProcessGroup& group, size_t member) const {
    return table_->parts[static_cast<size_t>(group.order[own_place(group) - own_index(group) + member])];
  }
  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }

  std::shared_ptr<Table> table_;
  size_t position_;
};

// The first error of any process reaches the caller; the others then run on without it.
template <class Body>
void run_in_threads(size_t count, const Body& body) {
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < errors.size(); ++i) threads.emplace_back([&, i] { errors[i] = body(i); });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

inline void run_in_processes(const AxisList& pinned,
                             const std::function<void(const DeviceSet&, DeviceCommunicator&)>& body) {
  const auto count = static_cast<size_t>(product(pinned));
  Meeting meeting(pinned);
  run_in_threads(count, [&](size_t i) -> std::exception_ptr {
    const DeviceSet devices{pinned, static_cast<int64_t>(i)};
    MeetingCommunicator communicator(meeting, devices);
    try {
      body(devices, communicator);
    } catch (...) {
      meeting.leave();
      return std::current_exception();
    }
    return nullptr;
  });
  const auto table = std::make_shared<TableTransport::Table>(product(pinned));
  run_in_threads(count, [&](size_t i) -> std::exception_ptr {
    const DeviceSet devices{pinned, static_cast<int64_t>(i)};
    const auto transport = std::make_shared<TableTransport>(table, devices.position);
    ProcessCommunicator communicator(devices, transport);
    try {
      body(devices, communicator);
    } catch (...) {
      transport->leave();
      return std::current_exception();
    }
    return nullptr;
  });
}

// Processes, each with the devices at one position along `pinned`, compute the shards that one process computes for
// all.
inline void expect_same_in_processes(const AxisList& pinned,
                                     const std::function<std::unique_ptr<Executable>(const DeviceSet&)>& make,
                                     const std::vector<ShardedArray>& arguments,
                                     const std::vector<ShardedArray>& expected, const RunOptions& options = {}) {
  std::vector<std::unique_ptr<Executable>> parts;  // planned before the threads begin: they share a Context
  for (int64_t i = 0; i < product(pinned); ++i) parts.push_back(make({pinned, i}));
  std::atomic<int64_t> compared = 0;
  run_in_processes(pinned, [&](const DeviceSet& devices, DeviceCommunicator& communicator) {
    const auto results = parts[static_cast<size_t>(devices.position)]->run(communicator, arguments, options);
    for (size_t i = 0; i < results.size(); ++i) {
      const Mesh& mesh = results[i].mesh();
      EXPECT_EQ(results[i].devices(), devices);
      for (int64_t logical = 0; logical < mesh.device_count(); ++logical) {
        if (!devices.owns(mesh, logical)) continue;
        const int64_t device = mesh.device_at(logical);
        EXPECT_TRUE(same_elements(results[i].shard(device), expected[i].shard(device))) << i << " on device " << device;
        ++compared;
      }
    }
  });
  int64_t all = 0;
  for (const ShardedArray& array : expected) all += 2 * array.mesh().device_count();  // by both communicators
  EXPECT_EQ(compared, all);
}

}  // namespace shardwise::testing
