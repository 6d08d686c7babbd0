// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include "shardwise/ops/contraction/gemm.h"

namespace shardwise {

template <BlasItem T>
void gemm(int64_t m, int64_t n, int64_t k, GemmOperand<T> a, GemmOperand<T> b, T* c, int64_t leading) {
  const auto call = [&](auto function, auto one, auto zero) {
    function(CblasRowMajor, a.is_transposed ? CblasTrans : CblasNoTrans, b.is_transposed ? CblasTrans : CblasNoTrans,
             static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), one, a.items,
             static_cast<blasint>(a.leading), b.items, static_cast<blasint>(b.leading), zero, c,
             static_cast<blasint>(leading));
  };
  const T one = 1, zero = 0;
  if constexpr (std::same_as<T, float>) {
    call(cblas_sgemm, one, zero);
  } else if constexpr (std::same_as<T, double>) {
    call(cblas_dgemm, one, zero);
  } else if constexpr (std::same_as<T, std::complex<float>>) {
    call(cblas_cgemm, &one, &zero);
  } else {
    call(cblas_zgemm, &one, &zero);
  }
}

template void gemm(int64_t, int64_t, int64_t, GemmOperand<float>, GemmOperand<float>, float*, int64_t);
template void gemm(int64_t, int64_t, int64_t, GemmOperand<double>, GemmOperand<double>, double*, int64_t);
template void gemm(int64_t, int64_t, int64_t, GemmOperand<std::complex<float>>, GemmOperand<std::complex<float>>,
                   std::complex<float>*, int64_t);
template void gemm(int64_t, int64_t, int64_t, GemmOperand<std::complex<double>>, GemmOperand<std::complex<double>>,
                   std::complex<double>*, int64_t);

}  // namespace shardwise
