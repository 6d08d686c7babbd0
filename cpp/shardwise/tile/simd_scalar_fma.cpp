// SPDX-License-Identifier: Apache-2.0
// Machines with FMA but without AVX2, and the scalar reference of the vector units: SLEEF's functions contain the FMA
// instructions, nothing here does. sleef.h declares them only where the compiler's target has fast FMA.
#define FP_FAST_FMA
#define FP_FAST_FMAF

#include <sleef.h>

#include "shardwise/tile/simd.h"

namespace shardwise {
namespace {

struct F32 {
  using T = float;
  using V = float;
};
struct F64 {
  using T = double;
  using V = double;
};

constexpr TileTable make_table() {
  TileTable t = arithmetic_table();
  set_math(t, TileCode::kCbrt, vector_unary<F32, Sleef_finz_cbrtf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_cbrtd1_u10purecfma>);
  set_math(t, TileCode::kExponential, vector_unary<F32, Sleef_finz_expf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_expd1_u10purecfma>);
  set_math(t, TileCode::kExponentialMinusOne, vector_unary<F32, Sleef_finz_expm1f1_u10purecfma>,
           vector_unary<F64, Sleef_finz_expm1d1_u10purecfma>);
  set_math(t, TileCode::kLog, vector_unary<F32, Sleef_finz_logf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_logd1_u10purecfma>);
  set_math(t, TileCode::kLogPlusOne,
           with_large<F32, LogOnce, Sleef_finz_log1pf1_u10purecfma, Sleef_finz_logf1_u10purecfma>,
           with_large<F64, LogOnce, Sleef_finz_log1pd1_u10purecfma, Sleef_finz_logd1_u10purecfma>);
  set_math(t, TileCode::kSine, vector_unary<F32, Sleef_finz_sinf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_sind1_u10purecfma>);
  set_math(t, TileCode::kCosine, vector_unary<F32, Sleef_finz_cosf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_cosd1_u10purecfma>);
  set_math(t, TileCode::kTan, vector_unary<F32, Sleef_finz_tanf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_tand1_u10purecfma>);
  set_math(t, TileCode::kTanh, vector_unary<F32, Sleef_finz_tanhf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_tanhd1_u10purecfma>);
  set_math(t, TileCode::kSinh, with_large<F32, ExpHalf, Sleef_finz_sinhf1_u10purecfma, Sleef_finz_expf1_u10purecfma>,
           with_large<F64, ExpHalf, Sleef_finz_sinhd1_u10purecfma, Sleef_finz_expd1_u10purecfma>);
  set_math(t, TileCode::kCosh, with_large<F32, ExpHalf, Sleef_finz_coshf1_u10purecfma, Sleef_finz_expf1_u10purecfma>,
           with_large<F64, ExpHalf, Sleef_finz_coshd1_u10purecfma, Sleef_finz_expd1_u10purecfma>);
  set_math(t, TileCode::kAsin, vector_unary<F32, Sleef_finz_asinf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_asind1_u10purecfma>);
  set_math(t, TileCode::kAcos, vector_unary<F32, Sleef_finz_acosf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_acosd1_u10purecfma>);
  set_math(t, TileCode::kAtan, vector_unary<F32, Sleef_finz_atanf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_atand1_u10purecfma>);
  set_math(t, TileCode::kAtanh, vector_unary<F32, Sleef_finz_atanhf1_u10purecfma>,
           vector_unary<F64, Sleef_finz_atanhd1_u10purecfma>);
  set_math(t, TileCode::kErf, vector_unary<F32, Sleef_finz_erff1_u10purecfma>,
           vector_unary<F64, Sleef_finz_erfd1_u10purecfma>);
  set_math(t, TileCode::kErfc, vector_unary<F32, Sleef_finz_erfcf1_u15purecfma>,
           vector_unary<F64, Sleef_finz_erfcd1_u15purecfma>);
  set_math(t, TileCode::kPower, vector_binary<F32, Sleef_finz_powf1_u10purecfma>,
           vector_binary<F64, Sleef_finz_powd1_u10purecfma>);
  set_math(t, TileCode::kAtan2, vector_binary<F32, Sleef_finz_atan2f1_u10purecfma>,
           vector_binary<F64, Sleef_finz_atan2d1_u10purecfma>);
  set_math(t, TileCode::kLogistic, logistic<F32, Sleef_finz_expf1_u10purecfma>,
           logistic<F64, Sleef_finz_expd1_u10purecfma>);
  set_math(t, TileCode::kAsinh, with_large<F32, LogTwice, Sleef_finz_asinhf1_u10purecfma, Sleef_finz_logf1_u10purecfma>,
           with_large<F64, LogTwice, Sleef_finz_asinhd1_u10purecfma, Sleef_finz_logd1_u10purecfma>);
  set_math(t, TileCode::kAcosh, with_large<F32, LogTwice, Sleef_finz_acoshf1_u10purecfma, Sleef_finz_logf1_u10purecfma>,
           with_large<F64, LogTwice, Sleef_finz_acoshd1_u10purecfma, Sleef_finz_logd1_u10purecfma>);
  return t;
}

constexpr TileTable kTable = make_table();

}  // namespace

const TileTable* tile_table_scalar_fma() { return &kTable; }

}  // namespace shardwise
