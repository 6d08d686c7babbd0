// SPDX-License-Identifier: Apache-2.0
// Helpers of the tile evaluator's tests: run a program over whole arrays, and read the bits of an array.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "shardwise/tile/program.h"

namespace shardwise {

// The program's only output, of the inputs' shape.
inline NdArray run(const TileProgram& program, const std::vector<NdArray>& inputs) {
  const NdArray out = NdArray::empty(program.output_dtype(0), inputs[0].shape());
  run_tiles(program, inputs, std::array{out}, serial_for());
  return out;
}

inline std::vector<std::byte> bytes_of(const NdArray& array) {
  const NdArray dense = array.contiguous();
  return {dense.data(), dense.data() + dense.nbytes()};
}

}  // namespace shardwise
