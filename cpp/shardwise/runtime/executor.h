// SPDX-License-Identifier: Apache-2.0
//
// Runs the local program of one device for all devices of a mesh.
//
//   Executable mlp(program);                        // Program after `localize`; plans once
//   std::vector<ShardedArray> y = mlp.run(std::vector{scatter(x, …), scatter(w, …)});
//   gather(y[0])
//
// Every distinct shard is computed once. A value varies along the axes of its operands, axis_index adds axes, and
// collectives remove them. Devices that differ only along other axes share buffer and kernel call. `faithful` computes
// every device separately. Arguments are never written; results may be views of them. Several threads may run one
// Executable at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"
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
  bool fuse = true;  // chains of elementwise ops in one pass over memory
};

struct RunOptions {
  bool faithful = false;  // computes every device separately
  bool poison = false;    // fills padding and new buffers with NaN or 0xA5, to detect reads of them
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

  // Throws ShapeError, DTypeError or ShardingError for an argument that does not match `argument(i)`.
  std::vector<ShardedArray> run(std::span<const ShardedArray> arguments, const RunOptions& options = {}) const;

 private:
  const Plan& plan(bool faithful) const;
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
