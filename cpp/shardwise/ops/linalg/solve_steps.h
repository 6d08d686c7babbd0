// SPDX-License-Identifier: Apache-2.0
//
// Steps and whole calls that several tables of linear algebra share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "shardwise/ops/linalg/batched_call.h"
#include "shardwise/ops/linalg/lapack.h"

namespace shardwise::lapack {

template <class T>
constexpr T quiet_nan() {
  return T(std::numeric_limits<Real<T>>::quiet_NaN());
}

// Some of LAPACK's iterations do not end on NaN, and their checks differ.
template <class T>
bool all_finite(const std::vector<T>& items) {
  return std::all_of(items.begin(), items.end(),
                     [](const T& item) { return std::isfinite(std::real(item)) && std::isfinite(std::imag(item)); });
}
inline constexpr Int kNotFinite = -4;  // LAPACK's info where gesdd finds a NaN

template <class T>
std::vector<T> zeros(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count));
}

template <class T>
std::vector<T> identity_matrix(Int n) {
  std::vector<T> matrix = zeros<T>(int64_t{n} * n);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) matrix[i * static_cast<size_t>(n) + i] = T{1};
  return matrix;
}

// Row i of the product is row permutation[i] of the matrix.
inline std::vector<Int> permutation_of(const std::vector<Int>& pivots, Int rows) {
  std::vector<Int> permutation(static_cast<size_t>(rows));
  for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<Int>(i);
  for (size_t i = 0; i < pivots.size(); ++i) std::swap(permutation[i], permutation[static_cast<size_t>(pivots[i] - 1)]);
  return permutation;
}

inline char other_triangle(char uplo) { return uplo == 'L' ? 'U' : 'L'; }

// op(A) X = B, or X op(A) = B for side R. The transposes have the other side and the other triangle, and the same op:
// Xᵀ op(Aᵀ) = Bᵀ.
inline constexpr auto kTriangularSolve = []<class T>(const Problem& p) {
  std::vector<T> room;
  const T* a = p.rows<T>(0, room);
  Lapack<T>::trsm(p.letter("side") == 'L' ? 'R' : 'L', other_triangle(p.letter("uplo")), p.letter("trans_x"),
                  p.letter("diag"), p.size('n'), p.size('m'), a, p.result_from<T>(0, 1));
};

// The signature has one letter for the size of the triangle, which is m or n by the side it is on.
inline bool triangle_fits(const CallSizes& sizes, const CallOptions& options) {
  return sizes['s'] == sizes[options.letter("side") == 'L' ? 'm' : 'n'];
}

// Columns of the right-hand side are independent if the triangle is on the left, and rows if it is on the right.
inline char free_dim_of_triangle(const CallOptions& options) { return options.letter("side") == 'L' ? 'n' : 'm'; }

template <class T>
struct SingularValues {
  std::vector<T> u, vt;
  std::vector<Real<T>> s;
  Int rows_of_vt, info;
};

// T m n -> T m n, T k: R above the diagonal, the reflectors of Q below it, and their factors (LAPACK geqrf).
inline constexpr auto kQrFactors = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0), tau = zeros<T>(p.size('k'));
  Lapack<T>::geqrf(p.size('m'), p.size('n'), a.data(), tau.data());
  p.store(0, a, p.size('m'));
  p.store(1, tau, p.size('k'));
};

// T m n, T k -> T m n: the first n columns of the product of k reflectors (LAPACK orgqr).
inline constexpr auto kReflectors = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0);
  const std::vector<T> tau = p.load<T>(1);
  Lapack<T>::orgqr(p.size('m'), p.size('n'), p.size('k'), a.data(), tau.data());
  p.store(0, a, p.size('m'));
};

inline bool reflectors_fit(const CallSizes& sizes, const CallOptions&) {
  return sizes['n'] <= sizes['m'] && sizes['k'] <= sizes['n'];
}

// All columns of u and all rows of vt, or, unless the mode asks for all, those of the smaller size.
inline bool svd_fits(const CallSizes& sizes, const CallOptions& options) {
  const bool is_full = sizes['p'] == sizes['m'] && sizes['q'] == sizes['n'];
  const bool is_reduced = sizes['p'] == sizes['k'] && sizes['q'] == sizes['k'];
  const int64_t* mode = options.find("mode");
  return is_full || (is_reduced && (mode == nullptr || *mode != 'A'));
}

using SvdRoutine = char;  // d: gesdd, v: gesvd
template <class T>
SingularValues<T> singular_values(SvdRoutine routine, char job, Int m, Int n, std::vector<T>& a) {
  const auto size = [](Int rows, Int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); };
  SingularValues<T> found{identity_matrix<T>(m), identity_matrix<T>(n), {}, n, 0};
  const Int k = std::min(m, n);
  found.s.resize(size(k, 1));
  if (job != 'A') found.rows_of_vt = k;
  if (k == 0) return found;
  const auto call = routine == 'd' ? Lapack<T>::gesdd : Lapack<T>::gesvd;
  found.info = all_finite(a) ? call(job, m, n, a.data(), found.s.data(), found.u.data(), found.vt.data()) : kNotFinite;
  return found;
}

// LAPACK packs a pair of complex eigenvectors of a real matrix into two real columns: real parts, imaginary parts.
template <class T>
std::vector<Complex<T>> unpacked_eigenvectors(const std::vector<T>& packed, const std::vector<T>& wi, Int n) {
  const auto size = static_cast<size_t>(n);
  std::vector<Complex<T>> vectors(packed.begin(), packed.end());
  if constexpr (!kIsComplex<T>) {
    for (size_t j = 0; j + 1 < size; ++j) {
      if (wi[j] == 0) continue;
      for (size_t i = 0; i < size; ++i) {
        const T real = packed[j * size + i], imaginary = packed[(j + 1) * size + i];
        vectors[j * size + i] = {real, imaginary};
        vectors[(j + 1) * size + i] = {real, -imaginary};
      }
      ++j;
    }
  }
  return vectors;
}

}  // namespace shardwise::lapack
