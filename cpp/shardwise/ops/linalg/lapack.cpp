// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/lapack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "shardwise/base/error.h"

// LAPACK's Fortran interface: arguments by reference; the lengths of character arguments follow the others.
using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;

// NOLINTBEGIN(bugprone-macro-parentheses)
#define SHARDWISE_LAPACK(p, T, orgqr_name, ormqr_name)                                                               \
  void p##potrf_(const char&, const blasint&, T*, const blasint&, blasint&, size_t);                                 \
  void p##trsm_(const char&, const char&, const char&, const char&, const blasint&, const blasint&, const T&,        \
                const T*, const blasint&, T*, const blasint&, size_t, size_t, size_t, size_t);                       \
  void p##getrf_(const blasint&, const blasint&, T*, const blasint&, blasint*, blasint&);                            \
  void p##getrs_(const char&, const blasint&, const blasint&, const T*, const blasint&, const blasint*, T*,          \
                 const blasint&, blasint&, size_t);                                                                  \
  void p##gtsv_(const blasint&, const blasint&, T*, T*, T*, T*, const blasint&, blasint&);                           \
  void p##geqrf_(const blasint&, const blasint&, T*, const blasint&, T*, T*, const blasint&, blasint&);              \
  void p##orgqr_name##_(const blasint&, const blasint&, const blasint&, T*, const blasint&, const T*, T*,            \
                        const blasint&, blasint&);                                                                   \
  void p##ormqr_name##_(const char&, const char&, const blasint&, const blasint&, const blasint&, const T*,          \
                        const blasint&, const T*, T*, const blasint&, T*, const blasint&, blasint&, size_t, size_t); \
  void p##gehrd_(const blasint&, const blasint&, const blasint&, T*, const blasint&, T*, T*, const blasint&, blasint&);
#define SHARDWISE_REAL_LAPACK(p, T)                                                                                    \
  SHARDWISE_LAPACK(p, T, orgqr, ormqr)                                                                                 \
  void p##geqp3_(const blasint&, const blasint&, T*, const blasint&, blasint*, T*, T*, const blasint&, blasint&);      \
  void p##syevd_(const char&, const char&, const blasint&, T*, const blasint&, T*, T*, const blasint&, blasint*,       \
                 const blasint&, blasint&, size_t, size_t);                                                            \
  void p##gesdd_(const char&, const blasint&, const blasint&, T*, const blasint&, T*, T*, const blasint&, T*,          \
                 const blasint&, T*, const blasint&, blasint*, blasint&, size_t);                                      \
  void p##gesvd_(const char&, const char&, const blasint&, const blasint&, T*, const blasint&, T*, T*, const blasint&, \
                 T*, const blasint&, T*, const blasint&, blasint&, size_t, size_t);                                    \
  void p##geev_(const char&, const char&, const blasint&, T*, const blasint&, T*, T*, T*, const blasint&, T*,          \
                const blasint&, T*, const blasint&, blasint&, size_t, size_t);                                         \
  void p##gees_(const char&, const char&, void*, const blasint&, T*, const blasint&, blasint&, T*, T*, T*,             \
                const blasint&, T*, const blasint&, blasint*, blasint&, size_t, size_t);                               \
  void p##sytrd_(const char&, const blasint&, T*, const blasint&, T*, T*, T*, T*, const blasint&, blasint&, size_t);
#define SHARDWISE_COMPLEX_LAPACK(p, T, R)                                                                              \
  SHARDWISE_LAPACK(p, T, ungqr, unmqr)                                                                                 \
  void p##geqp3_(const blasint&, const blasint&, T*, const blasint&, blasint*, T*, T*, const blasint&, R*, blasint&);  \
  void p##heevd_(const char&, const char&, const blasint&, T*, const blasint&, R*, T*, const blasint&, R*,             \
                 const blasint&, blasint*, const blasint&, blasint&, size_t, size_t);                                  \
  void p##gesdd_(const char&, const blasint&, const blasint&, T*, const blasint&, R*, T*, const blasint&, T*,          \
                 const blasint&, T*, const blasint&, R*, blasint*, blasint&, size_t);                                  \
  void p##gesvd_(const char&, const char&, const blasint&, const blasint&, T*, const blasint&, R*, T*, const blasint&, \
                 T*, const blasint&, T*, const blasint&, R*, blasint&, size_t, size_t);                                \
  void p##geev_(const char&, const char&, const blasint&, T*, const blasint&, T*, T*, const blasint&, T*,              \
                const blasint&, T*, const blasint&, R*, blasint&, size_t, size_t);                                     \
  void p##gees_(const char&, const char&, void*, const blasint&, T*, const blasint&, blasint&, T*, T*, const blasint&, \
                T*, const blasint&, R*, blasint*, blasint&, size_t, size_t);                                           \
  void p##hetrd_(const char&, const blasint&, T*, const blasint&, R*, R*, T*, T*, const blasint&, blasint&, size_t);

extern "C" {
SHARDWISE_REAL_LAPACK(s, float)
SHARDWISE_REAL_LAPACK(d, double)
SHARDWISE_COMPLEX_LAPACK(c, ComplexFloat, float)
SHARDWISE_COMPLEX_LAPACK(z, ComplexDouble, double)
}

namespace shardwise::lapack {
namespace {

// LAPACK refuses a leading dimension of 0, which an empty matrix would have.
Int leading(Int rows) { return std::max<Int>(rows, 1); }

// Calls f(info, work, length) once for the length of its workspace, then with it. Returns info.
template <class T, class F>
Int with_workspace(F&& f) {
  Int info = 0;
  T length{};
  // A length of -1 is a query: the routine writes the best length into the first item of its workspace.
  f(info, &length, Int{-1});
  if (info != 0) return info;
  // A float32 may have rounded a length above 2^24 down: the next one is at least the length.
  const Real<T> least = std::nextafter(std::real(length), std::numeric_limits<Real<T>>::infinity());
  std::vector<T> work(static_cast<size_t>(std::max(least, Real<T>{1})));
  f(info, work.data(), static_cast<Int>(work.size()));
  return info;
}

template <class R>
std::vector<R> real_workspace(int64_t count) {
  if (count > std::numeric_limits<Int>::max()) {
    fail<UnsupportedError>("LAPACK", "a workspace must have fewer than 2^31 elements", std::to_string(count),
                           "take smaller matrices");
  }
  return std::vector<R>(static_cast<size_t>(std::max<int64_t>(count, 1)));
}

// The same for routines that take a workspace of reals as well if they are of complex numbers: the last argument of f.
template <class T, class F>
Int with_workspaces(int64_t real_count, F&& f) {
  if constexpr (kIsComplex<T>) {
    std::vector<Real<T>> reals = real_workspace<Real<T>>(real_count);
    return with_workspace<T>([&](Int& info, T* work, Int size) { f(info, work, size, reals.data()); });
  } else {
    return with_workspace<T>(f);
  }
}

// LAPACK's formula for gesdd (3.7 and later).
int64_t gesdd_real_count(char job, int64_t m, int64_t n) {
  const int64_t small = std::min(m, n), large = std::max(m, n);
  if (job == 'N') return 7 * small;
  return std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small);
}

template <class T>
bool is_nan(const T& x) {
  return std::isnan(std::real(x)) || std::isnan(std::imag(x));
}

template <class T>
T nan_of() {
  constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (kIsComplex<T>) {
    return T(kNan, kNan);
  } else {
    return kNan;
  }
}

// The place from 1 of the first NaN on the diagonal; 0 without one.
template <class T>
Int first_nan(Int n, const T* a) {
  // LAPACK's own potrf reports NaN. OpenBLAS does not, and its kernels may lose one in the rest of the factor.
  for (Int i = 0; i < n; ++i) {
    if (std::isnan(std::real(a[static_cast<size_t>(i) * (static_cast<size_t>(n) + 1)]))) return i + 1;
  }
  return 0;
}

// The first column with a NaN; n without one.
//
// OpenBLAS's kernels drop some NaN: below a pivot of NaN they wrote zeros, and `solve` then returned finite numbers.
template <class T>
Int first_nan_column(Int m, Int n, const T* a) {
  for (Int column = 0; column < n; ++column) {
    const T* first = a + static_cast<size_t>(column) * static_cast<size_t>(m);
    if (std::any_of(first, first + m, is_nan<T>)) return column;
  }
  return n;
}

// Fills the columns from `first` on with NaN: elimination spreads a NaN of column `first` to all of them.
template <class T>
void fill_nan(Int m, Int first, Int n, T* a) {
  const auto rows = static_cast<size_t>(m);
  std::fill(a + static_cast<size_t>(first) * rows, a + static_cast<size_t>(n) * rows, nan_of<T>());
}

// Job A returns all n rows of vᵀ, job S the first min(m, n); with job N nothing is
// written, but the argument is checked.
Int rows_of_vt(char job, Int m, Int n) { return leading(job == 'A' ? n : std::min(m, n)); }

// The routines of one element type, under the names of real ones.
template <class T>
struct Routines;
#define SHARDWISE_ROUTINES(p, T, orgqr_name, ormqr_name, syevd_name, sytrd_name) \
  template <>                                                                    \
  struct Routines<T> {                                                           \
    static constexpr auto* potrf = p##potrf_;                                    \
    static constexpr auto* trsm = p##trsm_;                                      \
    static constexpr auto* getrf = p##getrf_;                                    \
    static constexpr auto* getrs = p##getrs_;                                    \
    static constexpr auto* gtsv = p##gtsv_;                                      \
    static constexpr auto* geqrf = p##geqrf_;                                    \
    static constexpr auto* geqp3 = p##geqp3_;                                    \
    static constexpr auto* orgqr = p##orgqr_name##_;                             \
    static constexpr auto* ormqr = p##ormqr_name##_;                             \
    static constexpr auto* syevd = p##syevd_name##_;                             \
    static constexpr auto* gesdd = p##gesdd_;                                    \
    static constexpr auto* gesvd = p##gesvd_;                                    \
    static constexpr auto* geev = p##geev_;                                      \
    static constexpr auto* gees = p##gees_;                                      \
    static constexpr auto* gehrd = p##gehrd_;                                    \
    static constexpr auto* sytrd = p##sytrd_name##_;                             \
  };
SHARDWISE_ROUTINES(s, float, orgqr, ormqr, syevd, sytrd)
SHARDWISE_ROUTINES(d, double, orgqr, ormqr, syevd, sytrd)
SHARDWISE_ROUTINES(c, ComplexFloat, ungqr, unmqr, heevd, hetrd)
SHARDWISE_ROUTINES(z, ComplexDouble, ungqr, unmqr, heevd, hetrd)
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

template <class T>
Int Lapack<T>::potrf(char uplo, Int n, T* a) {
  Int info = 0;
  Routines<T>::potrf(uplo, n, a, leading(n), info, 1);
  return info == 0 ? first_nan(n, a) : info;
}

template <class T>
void Lapack<T>::trsm(char side, char uplo, char transpose, char diagonal, Int m, Int n, const T* a, T* b) {
  Routines<T>::trsm(side, uplo, transpose, diagonal, m, n, T{1}, a, leading(side == 'L' ? m : n), b, leading(m), 1, 1,
                    1, 1);
}

template <class T>
Int Lapack<T>::getrf(Int m, Int n, T* a, Int* pivots) {
  const Int known = first_nan_column(m, n, a);
  Int info = 0;
  Routines<T>::getrf(m, known, a, leading(m), pivots, info);
  fill_nan(m, known, n, a);
  for (Int i = std::min(m, known); i < std::min(m, n); ++i) pivots[i] = i + 1;
  return info;
}

template <class T>
Int Lapack<T>::getrs(Int n, Int columns, const T* lu, const Int* pivots, T* b) {
  Int info = 0;
  Routines<T>::getrs('N', n, columns, lu, leading(n), pivots, b, leading(n), info, 1);
  return info;
}

template <class T>
Int Lapack<T>::gtsv(Int n, Int columns, T* lower, T* diagonal, T* upper, T* b) {
  Int info = 0;
  Routines<T>::gtsv(n, columns, lower, diagonal, upper, b, leading(n), info);
  return info;
}

template <class T>
Int Lapack<T>::geqrf(Int m, Int n, T* a, T* tau) {
  const Int known = first_nan_column(m, n, a);
  fill_nan(m, known, n, a);
  for (Int i = std::min(m, known); i < std::min(m, n); ++i) tau[i] = nan_of<T>();
  return with_workspace<T>(
      [&](Int& info, T* work, Int size) { Routines<T>::geqrf(m, known, a, leading(m), tau, work, size, info); });
}

template <class T>
Int Lapack<T>::geqp3(Int m, Int n, T* a, Int* pivots, T* tau) {
  return with_workspaces<T>(int64_t{2} * n, [&](Int& info, auto... work) {
    Routines<T>::geqp3(m, n, a, leading(m), pivots, tau, work..., info);
  });
}

template <class T>
Int Lapack<T>::orgqr(Int m, Int n, Int k, T* a, const T* tau) {
  const auto known = static_cast<Int>(std::find_if(tau, tau + k, is_nan<T>) - tau);
  if (known < k) fill_nan(m, known, n, a);
  const Int columns = known < k ? known : n;
  return with_workspace<T>([&](Int& info, T* work, Int size) {
    Routines<T>::orgqr(m, columns, known, a, leading(m), tau, work, size, info);
  });
}

template <class T>
Int Lapack<T>::ormqr(char side, char transpose, Int m, Int n, Int k, Int rows, const T* a, const T* tau, T* c) {
  return with_workspace<T>([&](Int& info, T* work, Int size) {
    Routines<T>::ormqr(side, transpose, m, n, k, a, leading(rows), tau, c, leading(m), work, size, info, 1, 1);
  });
}

template <class T>
Int Lapack<T>::syevd(char job, char uplo, Int n, T* a, Real<T>* w) {
  std::vector<Int> integers(static_cast<size_t>(3 + 5 * n));
  const int64_t real_count = 1 + (5 + int64_t{2} * n) * n;
  return with_workspaces<T>(real_count, [&](Int& info, T* work, Int size, auto... reals) {
    const auto length = [&](int64_t count) { return size == -1 ? Int{-1} : static_cast<Int>(count); };
    const Int count = length(std::ssize(integers));
    if constexpr (kIsComplex<T>) {
      Routines<T>::syevd(job, uplo, n, a, leading(n), w, work, size, reals..., length(real_count), integers.data(),
                         count, info, 1, 1);
    } else {
      Routines<T>::syevd(job, uplo, n, a, leading(n), w, work, size, integers.data(), count, info, 1, 1);
    }
  });
}

template <class T>
Int Lapack<T>::gesdd(char job, Int m, Int n, T* a, Real<T>* s, T* u, T* vt) {
  std::vector<Int> integers(static_cast<size_t>(8 * std::min(m, n) + 1));
  return with_workspaces<T>(gesdd_real_count(job, m, n), [&](Int& info, auto... work) {
    Routines<T>::gesdd(job, m, n, a, leading(m), s, u, leading(m), vt, rows_of_vt(job, m, n), work..., integers.data(),
                       info, 1);
  });
}

template <class T>
Int Lapack<T>::gesvd(char job, Int m, Int n, T* a, Real<T>* s, T* u, T* vt) {
  return with_workspaces<T>(int64_t{5} * std::min(m, n), [&](Int& info, auto... work) {
    Routines<T>::gesvd(job, job, m, n, a, leading(m), s, u, leading(m), vt, rows_of_vt(job, m, n), work..., info, 1, 1);
  });
}

template <class T>
Int Lapack<T>::geev(char left, char right, Int n, T* a, T* wr, T* wi, T* vl, T* vr) {
  return with_workspaces<T>(int64_t{2} * n, [&](Int& info, auto... work) {
    if constexpr (kIsComplex<T>) {
      Routines<T>::geev(left, right, n, a, leading(n), wr, vl, leading(n), vr, leading(n), work..., info, 1, 1);
    } else {
      Routines<T>::geev(left, right, n, a, leading(n), wr, wi, vl, leading(n), vr, leading(n), work..., info, 1, 1);
    }
  });
}

template <class T>
Int Lapack<T>::gees(char job, Int n, T* a, T* wr, T* wi, T* vectors) {
  Int selected = 0;
  return with_workspaces<T>(n, [&](Int& info, auto... work) {
    const auto call = [&](auto... w) {
      Routines<T>::gees(job, 'N', nullptr, n, a, leading(n), selected, w..., vectors, leading(n), work..., nullptr,
                        info, 1, 1);
    };
    if constexpr (kIsComplex<T>) {
      call(wr);
    } else {
      call(wr, wi);
    }
  });
}

template <class T>
Int Lapack<T>::gehrd(Int n, Int low, Int high, T* a, T* tau) {
  return with_workspace<T>(
      [&](Int& info, T* work, Int size) { Routines<T>::gehrd(n, low, high, a, leading(n), tau, work, size, info); });
}

template <class T>
Int Lapack<T>::sytrd(char uplo, Int n, T* a, Real<T>* d, Real<T>* e, T* tau) {
  return with_workspace<T>([&](Int& info, T* work, Int size) {
    Routines<T>::sytrd(uplo, n, a, leading(n), d, e, tau, work, size, info, 1);
  });
}

template struct Lapack<float>;
template struct Lapack<double>;
template struct Lapack<std::complex<float>>;
template struct Lapack<std::complex<double>>;

}  // namespace shardwise::lapack
