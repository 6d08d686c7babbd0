// SPDX-License-Identifier: Apache-2.0
// Machines with FMA but without AVX2, and the scalar reference of the vector units: SLEEF's functions contain the FMA
// instructions, nothing here does. sleef.h declares them only where the compiler's target has fast FMA.
#define FP_FAST_FMA
#define FP_FAST_FMAF

#include <sleef.h>

#define VECTOR_F32 float
#define VECTOR_F64 double
#define SLEEF_F32(stem, ulp) Sleef_finz_##stem##f1_u##ulp##purecfma
#define SLEEF_F64(stem, ulp) Sleef_finz_##stem##d1_u##ulp##purecfma
#include "shardwise/tile/simd.h"

namespace shardwise {

const TileTable* tile_table_scalar_fma() { return &kTable; }
const ReductionTable* reduction_table_scalar_fma() { return &kReductions; }

}  // namespace shardwise
