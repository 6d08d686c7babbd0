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
// chlo.scan is an op of texts: a counted while takes its place before shardings propagate.
//
//   %h, %ys = shardwise.scan %xs, %ys0, %first, %h0 {offsets = [0, -1]}     segments: 2 inputs, 1 border, 1 carry
//   { ^bb0(%x, %before, %a): … }                                            %before: row i - 1 of %ys0; %first at 0
//
// shardwise.scan is an op of local programs, the verified form of a counted while (transforms/form_scans.h). Its body
// may use values from around it, as that of a while may; MLIR forbids it for chlo.scan. In the trip of row i an input
// gives its row i + offset. The one row that it may lack, before its first or after its last, is an operand, a border.
// The attributes are the number of trips, the dim, the direction, the offsets, and which operands and results are
// stacked. `infer` checks them all: every row of every trip exists, rows have the types of the body's arguments and
// results, outputs have as many rows as there are trips, and each carry has one type.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> scan_ops();
const OpDef& local_scan();  // shardwise.scan

}  // namespace shardwise
