// SPDX-License-Identifier: Apache-2.0
//
// Scans: loops over the rows of stacked values. In trip t, row t of each input is an argument of the body, and row t of
// each output is one of its results; reversed, the last row comes first.
//
//   %ys, %h = chlo.scan(%xs) inits (%h0) dimension=0 {       %xs: 10x8, so that there are 10 trips
//   ^bb0(%x: tensor<8xf32>, %a: tensor<8xf32>):              arguments: rows of the inputs, then the carries
//     return %y, %next                                       results: rows of the outputs, then the carries
//   } : (tensor<10x8xf32>, tensor<8xf32>) -> (tensor<10x8xf32>, tensor<8xf32>)
//
// chlo.scan is an op of texts: a counted while takes its place before shardings propagate. shardwise.scan is an op of
// local programs, the verified form of a counted while (transforms/form_scans.h). Its body may use values from around
// it, as that of a while may; the body of chlo.scan may not, says MLIR. Its attributes are the number of trips
// (scan_dim_size), the dim, the direction, and which operands and results are stacked (the segment sizes). `infer` checks
// them all: each stacked value has as many rows as there are trips, each row has the type of its argument or result, and
// each carry has one type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> scan_ops();
const OpDef& local_scan();  // shardwise.scan

// The parts of a loop of a local program: of a while, or of a scan, which has no condition.
struct LoopParts {
  struct Carry {
    ValueId entry, argument, next, result;
  };
  struct Input {
    ValueId stack, row;  // an operand, an argument of the body
  };
  struct Output {
    ValueId row, stack;  // a result of the body, a result of the op
  };

  RegionId condition = {};
  RegionId body;
  std::vector<Input> inputs = {};
  std::vector<Output> outputs = {};
  std::vector<Carry> carries = {};
};
LoopParts loop_parts(const OpView& loop);

// The number of trips, where the program says it.
std::optional<int64_t> trip_count(const OpView& loop);

struct ScanOrder {
  int64_t dimension = 0;  // of the stacked values
  int64_t trips = 0;
  bool is_reverse = false;
};
std::optional<ScanOrder> scan_order(const OpView& loop);  // none: a while

// The values that hold the rows of a scan's input one after another: the operands of a concatenation along the scan's
// dim, or the input itself.
std::vector<ValueId> pieces_of_input(const OpView& scan, ValueId stack);

// The attributes of a scan with so many inputs and outputs.
Attrs scan_attrs(const ScanOrder& order, size_t inputs, size_t outputs, size_t carries);

}  // namespace shardwise
