// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <sleef.h>

#include "shardwise/tile/simd.h"

namespace shardwise {
namespace {

struct F32 {
  using T = float;
  using V = __m256;
};
struct F64 {
  using T = double;
  using V = __m256d;
};

constexpr TileTable make_table() {
  TileTable t = arithmetic_table();
  set_math(t, TileCode::kCbrt, vector_unary<F32, Sleef_finz_cbrtf8_u10avx2>,
           vector_unary<F64, Sleef_finz_cbrtd4_u10avx2>);
  set_math(t, TileCode::kExponential, vector_unary<F32, Sleef_finz_expf8_u10avx2>,
           vector_unary<F64, Sleef_finz_expd4_u10avx2>);
  set_math(t, TileCode::kExponentialMinusOne, vector_unary<F32, Sleef_finz_expm1f8_u10avx2>,
           vector_unary<F64, Sleef_finz_expm1d4_u10avx2>);
  set_math(t, TileCode::kLog, vector_unary<F32, Sleef_finz_logf8_u10avx2>, vector_unary<F64, Sleef_finz_logd4_u10avx2>);
  set_math(t, TileCode::kLogPlusOne, with_large<F32, LogOnce, Sleef_finz_log1pf8_u10avx2, Sleef_finz_logf8_u10avx2>,
           with_large<F64, LogOnce, Sleef_finz_log1pd4_u10avx2, Sleef_finz_logd4_u10avx2>);
  set_math(t, TileCode::kSine, vector_unary<F32, Sleef_finz_sinf8_u10avx2>,
           vector_unary<F64, Sleef_finz_sind4_u10avx2>);
  set_math(t, TileCode::kCosine, vector_unary<F32, Sleef_finz_cosf8_u10avx2>,
           vector_unary<F64, Sleef_finz_cosd4_u10avx2>);
  set_math(t, TileCode::kTan, vector_unary<F32, Sleef_finz_tanf8_u10avx2>, vector_unary<F64, Sleef_finz_tand4_u10avx2>);
  set_math(t, TileCode::kTanh, vector_unary<F32, Sleef_finz_tanhf8_u10avx2>,
           vector_unary<F64, Sleef_finz_tanhd4_u10avx2>);
  set_math(t, TileCode::kSinh, with_large<F32, ExpHalf, Sleef_finz_sinhf8_u10avx2, Sleef_finz_expf8_u10avx2>,
           with_large<F64, ExpHalf, Sleef_finz_sinhd4_u10avx2, Sleef_finz_expd4_u10avx2>);
  set_math(t, TileCode::kCosh, with_large<F32, ExpHalf, Sleef_finz_coshf8_u10avx2, Sleef_finz_expf8_u10avx2>,
           with_large<F64, ExpHalf, Sleef_finz_coshd4_u10avx2, Sleef_finz_expd4_u10avx2>);
  set_math(t, TileCode::kAsin, vector_unary<F32, Sleef_finz_asinf8_u10avx2>,
           vector_unary<F64, Sleef_finz_asind4_u10avx2>);
  set_math(t, TileCode::kAcos, vector_unary<F32, Sleef_finz_acosf8_u10avx2>,
           vector_unary<F64, Sleef_finz_acosd4_u10avx2>);
  set_math(t, TileCode::kAtan, vector_unary<F32, Sleef_finz_atanf8_u10avx2>,
           vector_unary<F64, Sleef_finz_atand4_u10avx2>);
  set_math(t, TileCode::kAtanh, vector_unary<F32, Sleef_finz_atanhf8_u10avx2>,
           vector_unary<F64, Sleef_finz_atanhd4_u10avx2>);
  set_math(t, TileCode::kErf, vector_unary<F32, Sleef_finz_erff8_u10avx2>, vector_unary<F64, Sleef_finz_erfd4_u10avx2>);
  set_math(t, TileCode::kErfc, vector_unary<F32, Sleef_finz_erfcf8_u15avx2>,
           vector_unary<F64, Sleef_finz_erfcd4_u15avx2>);
  set_math(t, TileCode::kPower, vector_binary<F32, Sleef_finz_powf8_u10avx2>,
           vector_binary<F64, Sleef_finz_powd4_u10avx2>);
  set_math(t, TileCode::kAtan2, vector_binary<F32, Sleef_finz_atan2f8_u10avx2>,
           vector_binary<F64, Sleef_finz_atan2d4_u10avx2>);
  set_math(t, TileCode::kLogistic, logistic<F32, Sleef_finz_expf8_u10avx2>, logistic<F64, Sleef_finz_expd4_u10avx2>);
  set_math(t, TileCode::kAsinh, with_large<F32, LogTwice, Sleef_finz_asinhf8_u10avx2, Sleef_finz_logf8_u10avx2>,
           with_large<F64, LogTwice, Sleef_finz_asinhd4_u10avx2, Sleef_finz_logd4_u10avx2>);
  set_math(t, TileCode::kAcosh, with_large<F32, LogTwice, Sleef_finz_acoshf8_u10avx2, Sleef_finz_logf8_u10avx2>,
           with_large<F64, LogTwice, Sleef_finz_acoshd4_u10avx2, Sleef_finz_logd4_u10avx2>);
  return t;
}
constexpr TileTable kTable = make_table();

}  // namespace

const TileTable* tile_table_avx2() { return &kTable; }

}  // namespace shardwise
