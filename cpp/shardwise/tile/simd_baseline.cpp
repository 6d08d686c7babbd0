// SPDX-License-Identifier: Apache-2.0
// Machines without FMA: SLEEF's `cinz` functions, whose last bits differ from those of `finz`.
#include <emmintrin.h>
#include <sleef.h>

#include "shardwise/tile/simd.h"

namespace shardwise {
namespace {

struct F32 {
  using T = float;
  using V = __m128;
};
struct F64 {
  using T = double;
  using V = __m128d;
};
constexpr TileTable make_table() {
  TileTable t = arithmetic_table();
  set_math(t, TileCode::kCbrt, vector_unary<F32, Sleef_cinz_cbrtf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_cbrtd2_u10sse2>);
  set_math(t, TileCode::kExponential, vector_unary<F32, Sleef_cinz_expf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_expd2_u10sse2>);
  set_math(t, TileCode::kExponentialMinusOne, vector_unary<F32, Sleef_cinz_expm1f4_u10sse2>,
           vector_unary<F64, Sleef_cinz_expm1d2_u10sse2>);
  set_math(t, TileCode::kLog, vector_unary<F32, Sleef_cinz_logf4_u10sse2>, vector_unary<F64, Sleef_cinz_logd2_u10sse2>);
  set_math(t, TileCode::kLogPlusOne, with_large<F32, LogOnce, Sleef_cinz_log1pf4_u10sse2, Sleef_cinz_logf4_u10sse2>,
           with_large<F64, LogOnce, Sleef_cinz_log1pd2_u10sse2, Sleef_cinz_logd2_u10sse2>);
  set_math(t, TileCode::kSine, vector_unary<F32, Sleef_cinz_sinf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_sind2_u10sse2>);
  set_math(t, TileCode::kCosine, vector_unary<F32, Sleef_cinz_cosf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_cosd2_u10sse2>);
  set_math(t, TileCode::kTan, vector_unary<F32, Sleef_cinz_tanf4_u10sse2>, vector_unary<F64, Sleef_cinz_tand2_u10sse2>);
  set_math(t, TileCode::kTanh, vector_unary<F32, Sleef_cinz_tanhf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_tanhd2_u10sse2>);
  set_math(t, TileCode::kSinh, with_large<F32, ExpHalf, Sleef_cinz_sinhf4_u10sse2, Sleef_cinz_expf4_u10sse2>,
           with_large<F64, ExpHalf, Sleef_cinz_sinhd2_u10sse2, Sleef_cinz_expd2_u10sse2>);
  set_math(t, TileCode::kCosh, with_large<F32, ExpHalf, Sleef_cinz_coshf4_u10sse2, Sleef_cinz_expf4_u10sse2>,
           with_large<F64, ExpHalf, Sleef_cinz_coshd2_u10sse2, Sleef_cinz_expd2_u10sse2>);
  set_math(t, TileCode::kAsin, vector_unary<F32, Sleef_cinz_asinf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_asind2_u10sse2>);
  set_math(t, TileCode::kAcos, vector_unary<F32, Sleef_cinz_acosf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_acosd2_u10sse2>);
  set_math(t, TileCode::kAtan, vector_unary<F32, Sleef_cinz_atanf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_atand2_u10sse2>);
  set_math(t, TileCode::kAtanh, vector_unary<F32, Sleef_cinz_atanhf4_u10sse2>,
           vector_unary<F64, Sleef_cinz_atanhd2_u10sse2>);
  set_math(t, TileCode::kErf, vector_unary<F32, Sleef_cinz_erff4_u10sse2>, vector_unary<F64, Sleef_cinz_erfd2_u10sse2>);
  set_math(t, TileCode::kErfc, vector_unary<F32, Sleef_cinz_erfcf4_u15sse2>,
           vector_unary<F64, Sleef_cinz_erfcd2_u15sse2>);
  set_math(t, TileCode::kPower, vector_binary<F32, Sleef_cinz_powf4_u10sse2>,
           vector_binary<F64, Sleef_cinz_powd2_u10sse2>);
  set_math(t, TileCode::kAtan2, vector_binary<F32, Sleef_cinz_atan2f4_u10sse2>,
           vector_binary<F64, Sleef_cinz_atan2d2_u10sse2>);
  set_math(t, TileCode::kLogistic, logistic<F32, Sleef_cinz_expf4_u10sse2>, logistic<F64, Sleef_cinz_expd2_u10sse2>);
  set_math(t, TileCode::kAsinh, with_large<F32, LogTwice, Sleef_cinz_asinhf4_u10sse2, Sleef_cinz_logf4_u10sse2>,
           with_large<F64, LogTwice, Sleef_cinz_asinhd2_u10sse2, Sleef_cinz_logd2_u10sse2>);
  set_math(t, TileCode::kAcosh, with_large<F32, LogTwice, Sleef_cinz_acoshf4_u10sse2, Sleef_cinz_logf4_u10sse2>,
           with_large<F64, LogTwice, Sleef_cinz_acoshd2_u10sse2, Sleef_cinz_logd2_u10sse2>);
  return t;
}

constexpr TileTable kTable = make_table();

}  // namespace

const TileTable* tile_table_baseline() { return &kTable; }

}  // namespace shardwise
