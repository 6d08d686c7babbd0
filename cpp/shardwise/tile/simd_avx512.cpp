// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <sleef.h>

#include "shardwise/tile/simd.h"

namespace shardwise {
namespace {

struct F32 {
  using T = float;
  using V = __m512;
};
struct F64 {
  using T = double;
  using V = __m512d;
};

constexpr TileTable make_table() {
  TileTable t = arithmetic_table();
  set_math(t, TileCode::kCbrt, vector_unary<F32, Sleef_finz_cbrtf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_cbrtd8_u10avx512f>);
  set_math(t, TileCode::kExponential, vector_unary<F32, Sleef_finz_expf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_expd8_u10avx512f>);
  set_math(t, TileCode::kExponentialMinusOne, vector_unary<F32, Sleef_finz_expm1f16_u10avx512f>,
           vector_unary<F64, Sleef_finz_expm1d8_u10avx512f>);
  set_math(t, TileCode::kLog, vector_unary<F32, Sleef_finz_logf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_logd8_u10avx512f>);
  set_math(t, TileCode::kLogPlusOne,
           with_large<F32, LogOnce, Sleef_finz_log1pf16_u10avx512f, Sleef_finz_logf16_u10avx512f>,
           with_large<F64, LogOnce, Sleef_finz_log1pd8_u10avx512f, Sleef_finz_logd8_u10avx512f>);
  set_math(t, TileCode::kSine, vector_unary<F32, Sleef_finz_sinf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_sind8_u10avx512f>);
  set_math(t, TileCode::kCosine, vector_unary<F32, Sleef_finz_cosf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_cosd8_u10avx512f>);
  set_math(t, TileCode::kTan, vector_unary<F32, Sleef_finz_tanf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_tand8_u10avx512f>);
  set_math(t, TileCode::kTanh, vector_unary<F32, Sleef_finz_tanhf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_tanhd8_u10avx512f>);
  set_math(t, TileCode::kSinh, with_large<F32, ExpHalf, Sleef_finz_sinhf16_u10avx512f, Sleef_finz_expf16_u10avx512f>,
           with_large<F64, ExpHalf, Sleef_finz_sinhd8_u10avx512f, Sleef_finz_expd8_u10avx512f>);
  set_math(t, TileCode::kCosh, with_large<F32, ExpHalf, Sleef_finz_coshf16_u10avx512f, Sleef_finz_expf16_u10avx512f>,
           with_large<F64, ExpHalf, Sleef_finz_coshd8_u10avx512f, Sleef_finz_expd8_u10avx512f>);
  set_math(t, TileCode::kAsin, vector_unary<F32, Sleef_finz_asinf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_asind8_u10avx512f>);
  set_math(t, TileCode::kAcos, vector_unary<F32, Sleef_finz_acosf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_acosd8_u10avx512f>);
  set_math(t, TileCode::kAtan, vector_unary<F32, Sleef_finz_atanf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_atand8_u10avx512f>);
  set_math(t, TileCode::kAtanh, vector_unary<F32, Sleef_finz_atanhf16_u10avx512f>,
           vector_unary<F64, Sleef_finz_atanhd8_u10avx512f>);
  set_math(t, TileCode::kErf, vector_unary<F32, Sleef_finz_erff16_u10avx512f>,
           vector_unary<F64, Sleef_finz_erfd8_u10avx512f>);
  set_math(t, TileCode::kErfc, vector_unary<F32, Sleef_finz_erfcf16_u15avx512f>,
           vector_unary<F64, Sleef_finz_erfcd8_u15avx512f>);
  set_math(t, TileCode::kPower, vector_binary<F32, Sleef_finz_powf16_u10avx512f>,
           vector_binary<F64, Sleef_finz_powd8_u10avx512f>);
  set_math(t, TileCode::kAtan2, vector_binary<F32, Sleef_finz_atan2f16_u10avx512f>,
           vector_binary<F64, Sleef_finz_atan2d8_u10avx512f>);
  set_math(t, TileCode::kLogistic, logistic<F32, Sleef_finz_expf16_u10avx512f>,
           logistic<F64, Sleef_finz_expd8_u10avx512f>);
  set_math(t, TileCode::kAsinh, with_large<F32, LogTwice, Sleef_finz_asinhf16_u10avx512f, Sleef_finz_logf16_u10avx512f>,
           with_large<F64, LogTwice, Sleef_finz_asinhd8_u10avx512f, Sleef_finz_logd8_u10avx512f>);
  set_math(t, TileCode::kAcosh, with_large<F32, LogTwice, Sleef_finz_acoshf16_u10avx512f, Sleef_finz_logf16_u10avx512f>,
           with_large<F64, LogTwice, Sleef_finz_acoshd8_u10avx512f, Sleef_finz_logd8_u10avx512f>);
  return t;
}
constexpr TileTable kTable = make_table();

}  // namespace

const TileTable* tile_table_avx512() { return &kTable; }

}  // namespace shardwise
