// SPDX-License-Identifier: Apache-2.0
//
// The instruction set of the tile evaluator, and the table of functions that implement it on one kind of CPU.
//
// This header is included by translation units compiled for AVX2 and AVX-512, so it contains plain data only. An inline
// function here could be emitted with instructions that other machines lack, and the linker could keep that copy.
//
// A kernel computes `lanes` (a multiple of 64) elements from contiguous operands, aligned to their item size. The
// result may be exactly one of the operands. Table columns are numbered like DType (base/dtype.h):
//   bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
#pragma once

#include <stdint.h>

namespace shardwise {

// clang-format off
enum class TileCode : uint8_t {
  // Unary; the result has the operand's dtype unless said otherwise.
  kCopy, kAbs, kNegate, kSign, kNot, kPopcnt, kCountLeadingZeros,
  kCeil, kFloor, kRoundNearestAfz, kRoundNearestEven, kIsFinite,  // is_finite gives bool
  kSqrt, kRsqrt, kCbrt, kExponential, kExponentialMinusOne, kLog, kLogPlusOne, kLogistic,
  kSine, kCosine, kTan, kTanh, kSinh, kCosh, kAsin, kAcos, kAtan, kAsinh, kAcosh, kAtanh, kErf, kErfc,
  kTotalOrderKey,  // float -> signed integer of the same width whose order is IEEE's totalOrder
  kBitcast,        // same width, same bits
  kConvert,        // any dtype to any other
  // Binary, equal operand dtypes.
  kAdd, kSubtract, kMultiply, kDivide, kRemainder, kPower, kAtan2, kMaximum, kMinimum, kAnd, kOr, kXor,
  kShiftLeft, kShiftRightArithmetic, kShiftRightLogical,
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual,  // give bool
  // Ternary.
  kSelect,  // (bool, T, T)
  kClamp,   // (min, x, max) as in StableHLO: minimum(maximum(x, min), max)
};
// clang-format on
inline constexpr int kTileCodeCount = static_cast<int>(TileCode::kClamp) + 1;
inline constexpr int kTileDTypeCount = 13;
inline constexpr int64_t kLaneBlock = 64;  // kernels run whole blocks of lanes; tails are padded

using TileKernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t lanes);

struct TileTable {
  TileKernel code[kTileCodeCount][kTileDTypeCount];      // by the dtype of the last operand; null: not defined
  TileKernel convert[kTileDTypeCount][kTileDTypeCount];  // [from][to]; null: goes through float32
};

// One function per instruction set (tile_simd_*.cpp). The baseline needs x86-64 only. The second one adds scalar FMA,
// and gives the same bits as AVX2 and AVX-512.
const TileTable* tile_table_baseline();
const TileTable* tile_table_scalar_fma();
const TileTable* tile_table_avx2();
const TileTable* tile_table_avx512();

}  // namespace shardwise
