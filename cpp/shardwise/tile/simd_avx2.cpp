// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <sleef.h>

#define VECTOR_F32 __m256
#define VECTOR_F64 __m256d
#define SLEEF_F32(stem, ulp) Sleef_finz_##stem##f8_u##ulp##avx2
#define SLEEF_F64(stem, ulp) Sleef_finz_##stem##d4_u##ulp##avx2
#include "shardwise/tile/simd.h"

namespace shardwise {

const TileTable* tile_table_avx2() { return &kTable; }
const ReductionTable* reduction_table_avx2() { return &kReductions; }

}  // namespace shardwise
