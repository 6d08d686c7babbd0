// SPDX-License-Identifier: Apache-2.0
//
// Runs the local program of one device for the devices that a process owns: all of a mesh, or a DeviceSet.
//
//   Executable mlp(local, layouts, mesh);           // Program after `localize`: plans once
//   VirtualCommunicator devices;                    // all devices are in this process
//   std::vector<ShardedArray> y = mlp.run(devices, std::vector{scatter(x, …), scatter(w, …)});
//   gather(y[0])
//
//   Executable mine(local, layouts, mesh, {.devices = {{x}, rank}});     // one of several processes, in lockstep
//   mine.run(communicator_of_this_process, …)                            // the owned shards
//
// Every distinct shard is computed once: a value varies along the axes of its operands, axis_index adds axes,
// collectives remove them, and devices that differ only along other axes share buffer and kernel call. `faithful`
// computes every device apart. Results may be views of arguments. Only donated arguments are written, and they only where
// nothing else holds their memory. A run may happen in several threads at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/sharded_array.h"

namespace shardwise {

struct Plan;

// The record of one step of a run. A fused chain is one step, named after its last op.
struct TraceRow {
  std::string_view op;
  OpId id;  // in the local module
  LocId loc;
  int64_t fused_ops = 1;
  int64_t shards = 1;    // distinct shards computed
  int64_t start_ns = 0;  // since the start of the run
  int64_t duration_ns = 0;
  int64_t bytes = 0;  // of the results' shards
};

struct ExecutorOptions {
  bool fuse = true;        // chains of elementwise ops in one pass over memory
  DeviceSet devices = {};  // that this process owns
};

struct RunOptions {
  bool faithful = false;             // computes every device separately
  bool poison = false;               // fills padding and new buffers with NaN or 0xA5, to detect reads of them
  std::vector<size_t> donated = {};  // arguments that the caller gives up, so that results may take their memory
  std::vector<TraceRow>* trace = nullptr;
  std::function<void()> between_ops = {};  // also called during long ops; may throw to stop the run (Ctrl-C)
};

class Executable {
 public:
  // `layouts` is indexed by value and covers the arguments and results of the main function (Program::layouts).
  Executable(std::shared_ptr<const Module> local, std::vector<LocalLayout> layouts, MeshPtr mesh,
             ExecutorOptions options = {});
  ~Executable();
  // Runs a program with global shapes on one device: the reference for partitioned runs.
  static std::unique_ptr<Executable> unpartitioned(std::shared_ptr<const Module> global, ExecutorOptions options = {});

  size_t argument_count() const { return arguments_.size(); }
  size_t result_count() const { return results_.size(); }
  // The placement and global type that argument i must have, and that result i has.
  struct Signature {
    TensorType type;  // global
    Placement placement;
  };
  const Signature& argument(size_t i) const { return arguments_[i]; }
  const Signature& result(size_t i) const { return results_[i]; }

  // `communicator` reaches the devices of other processes, which run the same program. Arguments hold the shards of all
  // devices or of the owned ones, results those of the owned ones. ShapeError, DTypeError or ShardingError for
  // arguments that are not as `argument(i)` says.
  std::vector<ShardedArray> run(Communicator& communicator, std::vector<ShardedArray> arguments,
                                const RunOptions& options = {}) const;

 private:
  const Plan& plan(bool faithful) const;
  Plan planned(bool faithful) const;
  void check_argument(size_t i, const ShardedArray& argument) const;

  std::shared_ptr<const Module> module_;
  std::vector<LocalLayout> layouts_;
  MeshPtr mesh_;
  ExecutorOptions options_;
  std::vector<Signature> arguments_;
  std::vector<Signature> results_;
  std::unique_ptr<Plan> plan_;
  mutable std::once_flag faithful_once_;
  mutable std::unique_ptr<Plan> faithful_plan_;
};

}  // namespace shardwise
