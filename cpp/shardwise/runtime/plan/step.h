// SPDX-License-Identifier: Apache-2.0
//
// The parts of a plan: steps on slots, in blocks (plan.h shows one).
#pragma once

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "shardwise/runtime/collective_call.h"
#include "shardwise/runtime/plan/merge.h"
#include "shardwise/tile/program.h"

namespace shardwise {

struct Step;

// A move from slot to slot, when control enters or leaves a block. All moves of a list read before one writes.
struct Move {
  uint32_t from = 0, to = 0;
  bool is_last = false;  // nothing reads `from` any more
};

// The steps of main, of a function, or of a region of a loop or branch.
struct Block {
  std::vector<Step> steps;
  std::vector<uint32_t> results;    // slots
  std::vector<Move> moves = {};     // afterwards: to the carries, or to the results of the branch
  std::vector<uint32_t> dead = {};  // what it may free and does not read: freed before its first step
};

// The work of a step, apart from its slots, is one of the six types below.
struct KernelCall {
  Kernel kernel;
  std::vector<TensorType> results;  // of one shard
  double work = 0;                  // flops and bytes of one shard, about
  std::optional<Merge> merge = {};  // how the shards can share a call
  AxisList reduced = {};            // axes over which the result is reduced at once
  Reducer reducer = Reducer::kNone;
};

// A chain of elementwise ops in one pass over memory.
struct FusedChain {
  TileProgram program;
  int64_t ops = 1;
  int64_t lanes = 0;                    // elements of all shards, if they are few and all inputs have as many
  std::optional<uint32_t> runner = {};  // in a loop or function, if it is short: the number of a workspace that is kept
};

// The rows that a scan reads and writes in its trips (ops/control/scan.h).
struct ScanRows {
  struct Read {
    uint32_t from = 0, to = 0;  // the stack, and a view of one row
    int64_t offset = 0;
    std::optional<uint32_t> border = {};  // the row that the stack lacks
  };
  size_t dim = 0;
  bool is_reverse = false;
  std::vector<Read> reads = {};
  std::vector<Move> writes = {};  // a row, to the stack
};

// The first outputs of the step are the carries, and so are the first results of the body; those of a scan are then the
// stacks and their rows.
struct Loop {
  Block condition, body;              // a scan has no condition
  std::vector<Move> enter = {};       // the initial values to the carries
  std::optional<int64_t> trips = {};  // if the program states the number
  std::optional<ScanRows> rows = {};  // of a scan
  size_t carries = 0;
};

struct Branches {
  std::vector<Block> blocks;
};

struct Call {
  uint32_t function = 0;         // its number in Plan::functions
  std::vector<Move> enter = {};  // the operands to the function's arguments
  std::vector<Move> leave = {};  // its results to those of the call
};

struct Step {
  OpId op;                            // of a fused chain: the last one
  std::vector<uint32_t> inputs = {};  // slots; of a loop or branch: the operands, then what its blocks capture
  std::vector<uint32_t> outputs = {};
  std::vector<uint32_t> dead = {};  // slots that are not read after this step
  AxisList axes = {};               // axes along which the results vary, and along which a kernel's operands are read
  std::variant<KernelCall, FusedChain, CollectiveCall, Loop, Branches, Call> work = {};
};

// The blocks of a loop or of branches, in the order of the op's regions. The step may be const.
template <class F>
void for_each_block(auto& step, F&& visit) {
  if (auto* loop = std::get_if<Loop>(&step.work)) visit(loop->condition), visit(loop->body);
  if (auto* branches = std::get_if<Branches>(&step.work)) std::ranges::for_each(branches->blocks, visit);
}

struct PlannedFunction {
  Block block;
  std::vector<uint32_t> arguments;  // slots, in order
  bool has_effect = false;          // a step of the block does more than make its outputs
};

struct Plan {
  Digits digits;
  DeviceOrders orders = {};  // of other meshes than that of the run
  DigitSet free = 0;         // digits along which this process owns several devices: all except the pinned ones
  Block main;
  std::vector<PlannedFunction> functions = {};  // that are called; each is planned once
  std::vector<ValueId> slots;                   // the value of each slot; of a carry: the loop's result
  std::vector<DigitSet> slot_varying;
  std::vector<AxisList> slot_axes;  // the same as axes
  std::vector<uint32_t> arguments;  // slots, in order
  uint32_t runners = 0;             // how many there are
};

}  // namespace shardwise
