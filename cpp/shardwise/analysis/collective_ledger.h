// SPDX-License-Identifier: Apache-2.0
//
// Every collective of a local program with its bytes and its cause, as data:
//
//   all_reduce  {"model"}  8192 B from 2 devices  tensor<32x64xf32>  train.py:31  reduction in dot_general
//
// Bytes are those one device receives in one execution (cost/collective_cost.h). A collective in a function is one row
// for all its calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// One of the operands that a collective moves together.
struct LedgerOperand {
  double bytes = 0;  // received for it by one device, by one execution
  TensorType operand;
  TensorType result;
  LocId loc;  // the op that needed it
  std::string cause;
};

struct LedgerRow {
  CollectiveKind kind = CollectiveKind::kNone;
  std::string name;        // "all_reduce"; of an exchange that permutes whole tiles, "collective_permute"
  std::string axes;        // {"x", "y":(1)2}; of several dims or moves: dim 0 {"x"}, dim 1 {"y"}
  double bytes = 0;        // received by one device, by one execution
  int64_t group_size = 1;  // devices that take part
  bool is_chain = false;   // a message is passed on from device to device
  TensorType operand;      // on one device
  TensorType result;
  int64_t count = 1;  // executions in one run, as far as they are known: trips times calls
  // "" where `count` and `bytes` are exact; "at most" in a branch, which may not run, and in an exchange among too
  // many devices to count its bytes; "per trip" in a loop with an unknown number of iterations.
  std::string_view bound = {};
  LocId loc;          // the op that needed it
  std::string cause;  // "reduction in dot_general", "operand 1 of add", "annotation", "result 0", or ""
  OpId op;            // of the local program
  // All operands of a collective that combines several: then the types, `loc` and `cause` above are those of the first.
  std::vector<LedgerOperand> combined = {};
};

std::vector<LedgerRow> collective_ledger(const Module& local);

}  // namespace shardwise
