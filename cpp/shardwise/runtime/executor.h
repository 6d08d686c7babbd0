// SPDX-License-Identifier: Apache-2.0
//
// Runs the local program of one device for the devices that a process owns: all of a mesh, or a DeviceSet.
//
//   Executable mlp(local, mesh);                    // a program after `localize`: plans once
//   VirtualCommunicator devices;                    // all devices are in this process
//   std::vector<ShardedArray> y = mlp.run(devices, std::vector{scatter(x, …), scatter(w, …)});
//   gather(y[0])
//
//   Executable mine(local, mesh, {.devices = {{x}, rank}});     // one of several processes, in lockstep
//   mine.run(communicator_of_this_process, …)                            // the owned shards
//
// Every distinct shard is computed once: a value varies along the axes of its operands, axis_index adds axes,
// collectives remove them, and devices that differ only along other axes share buffer and kernel call. `faithful`
// computes every device separately. Results may be views of arguments. Only donated arguments are overwritten, and only
// if nothing else references their memory. Several threads may run it at once.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "shardwise/analysis/memory_use.h"
#include "shardwise/ir/module.h"
#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/run_options.h"
#include "shardwise/runtime/sharded_array.h"

namespace shardwise {

struct Plan;

struct ExecutorOptions {
  bool fuse = true;        // chains of elementwise ops in one pass over memory
  DeviceSet devices = {};  // that this process owns
};

struct MemoryOptions {
  bool per_device = true;            // or of all devices of the virtual mesh together, in this process
  std::vector<size_t> donated = {};  // arguments whose memory the run may free or reuse
};

class Executable {
 public:
  // Arguments and results of main without a part (Module::part) are replicated.
  Executable(std::shared_ptr<const Module> local, MeshPtr mesh, ExecutorOptions options = {});
  ~Executable();
  // Runs a program with global shapes on one device: the reference for partitioned runs.
  static std::unique_ptr<Executable> unpartitioned(std::shared_ptr<const Module> global, ExecutorOptions options = {});

  size_t argument_count() const { return arguments_.size(); }
  size_t result_count() const { return results_.size(); }
  // The global type and the placement that argument i must have.
  const TensorType& argument_type(size_t i) const;
  const Placement& argument_placement(size_t i) const { return arguments_[i]; }

  // Whether `array` has the type, the placement and the devices that argument i must have.
  bool accepts(size_t i, const ShardedArray& array) const;

  // `communicator` reaches the devices of other processes, which run the same program. Arguments hold the shards of all
  // devices or of the owned ones, results those of the owned ones. ShapeError, DTypeError or ShardingError for
  // arguments that do not match `argument_type(i)` and `argument_placement(i)`.
  std::vector<ShardedArray> run(Communicator& communicator, std::vector<ShardedArray> arguments,
                                const RunOptions& options = {}) const;

  // The memory that a run takes. Reads no data, and takes no memory of that size itself.
  MemoryUse memory(const MemoryOptions& options = {}) const;

 private:
  struct Result {  // all runs need this to make the array of a result
    ArrayLayoutPtr layout;
    AxisList axes;  // along which the shards of this process differ
  };

  const Plan& plan(bool faithful) const;
  Plan planned(bool faithful, const AxisList& pinned) const;
  MemoryUse rehearse(const Plan& plan, const MemoryOptions& options, const BranchChoices& branches) const;
  Shards rehearsed_argument(size_t i, bool per_device) const;
  Shards argument_shards(const Plan& plan, size_t i, const ShardedArray& argument) const;
  ShardedArray result_array(const Plan& plan, size_t i, const Shards& shards, Communicator& communicator,
                            bool faithful) const;
  bool fits(size_t i, const ShardedArray& array) const;  // on any devices
  void check_argument(size_t i, const ShardedArray& argument) const;

  std::shared_ptr<const Module> module_;
  MeshPtr mesh_;
  ExecutorOptions options_;
  std::vector<Placement> arguments_;
  std::vector<Result> results_;
  std::unique_ptr<Plan> plan_;
  mutable std::once_flag faithful_once_;
  mutable std::unique_ptr<Plan> faithful_plan_;
};

}  // namespace shardwise
