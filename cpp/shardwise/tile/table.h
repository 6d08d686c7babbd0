// SPDX-License-Identifier: Apache-2.0
//
// The instruction set of the tile evaluator, and the table of functions that implement it on one kind of CPU.
//
// This header is included by translation units compiled for AVX2 and AVX-512, so it contains plain data only. An inline
// function here could be emitted with instructions that other machines lack, and the linker could keep that copy.
//
// A kernel computes `lanes` (a multiple of 64) elements from contiguous operands, aligned to their item size. The
// result may be exactly one of the operands. Table columns are numbered like DType (base/dtype.h):
//   bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128
#pragma once

#include <stdint.h>

#include "shardwise/tile/lines.h"

namespace shardwise {

// clang-format off
enum class TileCode : uint8_t {
#define FUNCTION(Code, ...) k##Code,
#define TILE_ONLY(Code, ...) k##Code,
#include "shardwise/tile/functions.def"
};
inline constexpr int kTileCodeCount = 0
#define FUNCTION(...) + 1
#define TILE_ONLY(...) + 1
#include "shardwise/tile/functions.def"
    ;
// clang-format on
inline constexpr int kTileDTypeCount = 15;
inline constexpr int64_t kLaneBlock = 64;  // kernels run whole blocks of lanes; tails are padded

using TileKernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t lanes);

struct TileTable {
  TileKernel code[kTileCodeCount][kTileDTypeCount];      // by the dtype of the last operand; null: not defined
  TileKernel convert[kTileDTypeCount][kTileDTypeCount];  // [from][to]; null: goes through float32
  LineTable lines;
};

// One function per instruction set (simd_*.cpp). The first needs no more than x86-64 offers; the second needs scalar FMA,
// and gives the bits that AVX2, AVX-512 and NEON give.
const TileTable* tile_table_baseline();
const TileTable* tile_table_scalar_fma();
const TileTable* tile_table_avx2();
const TileTable* tile_table_avx512();
const TileTable* tile_table_neon();

}  // namespace shardwise
