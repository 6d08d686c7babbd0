// SPDX-License-Identifier: Apache-2.0
//
// Tile kernels that are the same on every machine: conversions between narrow numbers and the dtypes of their
// arithmetic, and functions of complex numbers. The table (table.h) has all others.
//
//   portable_kernel(TileCode::kConvert, DType::kF8E5M2, DType::kF32)      // the floats of 8 bits each
//   portable_kernel(TileCode::kExponential, DType::kC64, DType::kC64)     // the C library's cexpf
#pragma once

#include "shardwise/base/dtype.h"
#include "shardwise/tile/table.h"

namespace shardwise {

// Null: the table's kernel, or none.
TileKernel portable_kernel(TileCode code, DType from, DType to);

TileKernel narrow_kernel(DType from, DType to);         // a conversion; portable_narrow.cpp
TileKernel complex_kernel(TileCode code, DType dtype);  // portable_complex.cpp

}  // namespace shardwise
