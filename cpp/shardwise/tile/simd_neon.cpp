// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>
#include <sleef.h>

#define VECTOR_F32 float32x4_t
#define VECTOR_F64 float64x2_t
#define SLEEF_F32(stem, ulp) Sleef_finz_##stem##f4_u##ulp##advsimd
#define SLEEF_F64(stem, ulp) Sleef_finz_##stem##d2_u##ulp##advsimd
#include "shardwise/tile/simd.h"

namespace shardwise {

const TileTable* tile_table_neon() { return &kTable; }
const ReductionTable* reduction_table_neon() { return &kReductions; }

}  // namespace shardwise
