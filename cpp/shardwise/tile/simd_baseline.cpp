// SPDX-License-Identifier: Apache-2.0
// Machines without FMA: SLEEF's `cinz` functions, whose last bits differ from those of `finz`.
#include <emmintrin.h>
#include <sleef.h>

#define VECTOR_F32 __m128
#define VECTOR_F64 __m128d
#define SLEEF_F32(stem, ulp) Sleef_cinz_##stem##f4_u##ulp##sse2
#define SLEEF_F64(stem, ulp) Sleef_cinz_##stem##d2_u##ulp##sse2
#include "shardwise/tile/simd.h"

namespace shardwise {

const TileTable* tile_table_baseline() { return &kTable; }
const ReductionTable* reduction_table_baseline() { return &kReductions; }

}  // namespace shardwise
