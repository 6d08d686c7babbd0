// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/isas.h"

namespace shardwise {

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{{"baseline", tile_table_baseline(), reduction_table_baseline()}};
  __builtin_cpu_init();
  const bool fma = __builtin_cpu_supports("fma") != 0;
  const bool avx2 = fma && __builtin_cpu_supports("avx2") != 0;
  if (fma) isas.push_back({"scalar_fma", tile_table_scalar_fma(), reduction_table_scalar_fma()});
  if (avx2) isas.push_back({"avx2", tile_table_avx2(), reduction_table_avx2()});
  // All four, because the compiler may use any of them in simd_avx512.cpp (its flags in CMakeLists.txt).
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    isas.push_back({"avx512", tile_table_avx512(), reduction_table_avx512()});
  }
  return isas;
}

}  // namespace shardwise
