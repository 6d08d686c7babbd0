// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <sleef.h>

#define VECTOR_F32 __m512
#define VECTOR_F64 __m512d
#define SLEEF_F32(stem, ulp) Sleef_finz_##stem##f16_u##ulp##avx512f
#define SLEEF_F64(stem, ulp) Sleef_finz_##stem##d8_u##ulp##avx512f
#include "shardwise/tile/simd.h"

namespace shardwise {

const TileTable* tile_table_avx512() { return &kTable; }
const ReductionTable* reduction_table_avx512() { return &kReductions; }

}  // namespace shardwise
