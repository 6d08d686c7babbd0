// SPDX-License-Identifier: Apache-2.0
//
// LAPACK for one matrix in column-major order, by element type: float, double, and complex numbers of these. Leading
// dims are the rows. Each returns LAPACK's info: 0, -i where argument i is refused, i > 0 where it did not succeed.
//
//   std::vector<double> a = …;                       // n × n
//   if (lapack::Lapack<double>::potrf('L', n, a.data()) != 0) …    // not positive definite
#pragma once

#include <complex>
#include <openblas_config.h>
#include <type_traits>

namespace shardwise::lapack {

using Int = blasint;

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;
template <class T>
using Complex = std::complex<Real<T>>;

template <class T>
struct Lapack {
  // ---- triangles and products --------------------------------------------------------------------------------------

  static Int potrf(char uplo, Int n, T* a);
  // b (m × n) becomes op(a)⁻¹·b for side L, b·op(a)⁻¹ for side R.
  static void trsm(char side, char uplo, char transpose, char diagonal, Int m, Int n, const T* a, T* b);

  // ---- solvers -----------------------------------------------------------------------------------------------------

  static Int getrf(Int m, Int n, T* a, Int* pivots);  // pivots count from 1
  static Int getrs(Int n, Int columns, const T* lu, const Int* pivots, T* b);
  static Int gtsv(Int n, Int columns, T* lower, T* diagonal, T* upper, T* b);

  // ---- orthogonal factors ------------------------------------------------------------------------------------------

  static Int geqrf(Int m, Int n, T* a, T* tau);
  static Int geqp3(Int m, Int n, T* a, Int* pivots, T* tau);
  static Int orgqr(Int m, Int n, Int k, T* a, const T* tau);  // ungqr for complex numbers
  // c (m × n) becomes Q·c for side L, c·Q for side R; `transpose` N, or T (C for complex numbers). a has `rows` rows.
  static Int ormqr(char side, char transpose, Int m, Int n, Int k, Int rows, const T* a, const T* tau, T* c);

  // ---- eigenvalues and singular values -----------------------------------------------------------------------------

  static Int syevd(char job, char uplo, Int n, T* a, Real<T>* w);  // heevd for complex numbers
  // The leading dim of vt: n for job A, else min(m, n).
  static Int gesdd(char job, Int m, Int n, T* a, Real<T>* s, T* u, T* vt);
  static Int gesvd(char job, Int m, Int n, T* a, Real<T>* s, T* u, T* vt);
  // Real numbers: wr and wi, and eigenvectors in LAPACK's packed form. Complex numbers: w is wr, and wi is not read.
  static Int geev(char left, char right, Int n, T* a, T* wr, T* wi, T* vl, T* vr);
  static Int gees(char job, Int n, T* a, T* wr, T* wi, T* vectors);  // no sorting
  static Int gehrd(Int n, Int low, Int high, T* a, T* tau);
  static Int sytrd(char uplo, Int n, T* a, Real<T>* d, Real<T>* e, T* tau);  // hetrd for complex numbers
};

}  // namespace shardwise::lapack
