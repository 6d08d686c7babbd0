// SPDX-License-Identifier: Apache-2.0
//
// lapack_*_ffi: each call of JAX's texts is one routine of LAPACK, with its results as LAPACK leaves them. The routines
// that iterate are not called for a matrix with NaN or infinity; their info is then kNotFinite.
#include "shardwise/ops/linalg/lapack_calls.h"
#include "shardwise/ops/linalg/solve_steps.h"

namespace shardwise {
namespace {

using namespace lapack;

// ---- triangles and solvers -----------------------------------------------------------------------------------------

constexpr auto kPotrf = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0);
  // LAPACK's own code is a result of JAX's calls: their callers turn it into NaN.
  p.store_info(1, Lapack<T>::potrf(p.letter("uplo"), p.size('n'), a.data()));
  p.store(0, a, p.size('n'));
};

constexpr auto kGetrf = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0);
  std::vector<Int> pivots = zeros<Int>(p.size('k'));
  p.store_info(2, Lapack<T>::getrf(p.size('m'), p.size('n'), a.data(), pivots.data()));
  p.store(0, a, p.size('m'));
  p.store(1, pivots, p.size('k'));
};

constexpr auto kGtsv = []<class T>(const Problem& p) {
  // JAX's lower diagonal has n items, the first of which is not read.
  std::vector<T> lower = p.load<T>(0), diagonal = p.load<T>(1), upper = p.load<T>(2), b = p.load<T>(3);
  const Int n = p.size('n');
  T* first = lower.data() + (n > 0 ? 1 : 0);
  p.store_info(4, Lapack<T>::gtsv(n, p.size('c'), first, diagonal.data(), upper.data(), b.data()));
  p.store(0, lower, n);
  p.store(1, diagonal, n);
  p.store(2, upper, n);
  p.store(3, b, n);
};

// ---- orthogonal factors --------------------------------------------------------------------------------------------

constexpr auto kGeqp3 = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0), tau = zeros<T>(p.size('k'));
  std::vector<Int> pivots = p.load<Int>(1);
  Lapack<T>::geqp3(p.size('m'), p.size('n'), a.data(), pivots.data(), tau.data());
  p.store(0, a, p.size('m'));
  p.store(1, pivots, p.size('n'));
  p.store(2, tau, p.size('k'));
};

bool ormqr_fits(const CallSizes& sizes, const CallOptions& options) {
  const int64_t rows = sizes[options.number("left") != 0 ? 'm' : 'n'];
  return sizes['r'] == rows && sizes['k'] <= rows && sizes['k'] <= sizes['q'];
}

char free_dim_of_ormqr(const CallOptions& options) { return options.number("left") != 0 ? 'n' : 'm'; }

constexpr auto kOrmqr = []<class T>(const Problem& p) {
  const std::vector<T> a = p.load<T>(0), tau = p.load<T>(1);
  std::vector<T> c = p.load<T>(2);
  // unmqr knows the adjoint only, ormqr the transpose.
  const char transposed = kIsComplex<T> ? 'C' : 'T';
  Lapack<T>::ormqr(p.number("left") != 0 ? 'L' : 'R', p.number("transpose") != 0 ? transposed : 'N', p.size('m'),
                   p.size('n'), p.size('k'), p.size('r'), a.data(), tau.data(), c.data());
  p.store(0, c, p.size('m'));
};

constexpr auto kGehrd = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0), tau = zeros<T>(p.size('l'));
  p.store_info(2, Lapack<T>::gehrd(p.size('n'), static_cast<Int>(p.number("low")), static_cast<Int>(p.number("high")),
                                   a.data(), tau.data()));
  p.store(0, a, p.size('n'));
  p.store(1, tau, p.size('l'));
};

bool gehrd_fits(const CallSizes& sizes, const CallOptions& options) {
  const int64_t low = options.number("low"), high = options.number("high"), n = sizes['n'];
  // Checked here because xerbla, LAPACK's handler of wrong arguments, would print to the terminal.
  return n == 0 || (low >= 1 && low <= high && high <= n);
}

constexpr auto kSytrd = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0), tau = zeros<T>(p.size('l'));
  std::vector<Real<T>> d = zeros<Real<T>>(p.size('n')), e = zeros<Real<T>>(p.size('l'));
  p.store_info(4, Lapack<T>::sytrd(p.letter("uplo"), p.size('n'), a.data(), d.data(), e.data(), tau.data()));
  p.store(0, a, p.size('n'));
  p.store(1, d, p.size('n'));
  p.store(2, e, p.size('l'));
  p.store(3, tau, p.size('l'));
};

// ---- eigenvalues and singular values -------------------------------------------------------------------------------

constexpr auto kSyevd = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  std::vector<T> a = p.load<T>(0);
  std::vector<Real<T>> w = zeros<Real<T>>(n);
  const Int info =
      all_finite(a) ? Lapack<T>::syevd(p.letter("mode"), p.letter("uplo"), n, a.data(), w.data()) : kNotFinite;
  p.store(0, a, n);
  p.store(1, w, n);
  p.store_info(2, info);
};

template <SvdRoutine routine>
constexpr auto kSvd = []<class T>(const Problem& p) {
  const Int m = p.size('m'), n = p.size('n');
  std::vector<T> a = p.load<T>(0);
  SingularValues<T> found = singular_values<T>(routine, p.letter("mode"), m, n, a);
  p.store(0, a, m);
  p.store(1, found.s, p.size('k'));
  p.store(2, found.u, m);
  p.store(3, found.vt, found.rows_of_vt);
  p.store_info(4, found.info);
};

constexpr auto kGeev = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  const size_t vectors = kIsComplex<T> ? 1 : 2;  // the results after the eigenvalues
  std::vector<T> a = p.load<T>(0), w = zeros<T>(n), wi = zeros<T>(n);
  const char left = p.letter("compute_left"), right = p.letter("compute_right");
  std::vector<T> vl = zeros<T>(int64_t{n} * n), vr = zeros<T>(int64_t{n} * n);
  Int info = kNotFinite;
  // LAPACK may loop forever on NaN.
  if (all_finite(a)) info = Lapack<T>::geev(left, right, n, a.data(), w.data(), wi.data(), vl.data(), vr.data());
  p.store(0, w, n);
  if constexpr (!kIsComplex<T>) p.store(1, wi, n);
  p.store(vectors, unpacked_eigenvectors(vl, wi, n), n);
  p.store(vectors + 1, unpacked_eigenvectors(vr, wi, n), n);
  p.store_info(vectors + 2, info);
};

constexpr auto kGees = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  const size_t selected = kIsComplex<T> ? 3 : 4;
  std::vector<T> a = p.load<T>(0), w = zeros<T>(n), wi = zeros<T>(n), vectors = zeros<T>(int64_t{n} * n);
  Int info = kNotFinite;
  if (all_finite(a)) info = Lapack<T>::gees(p.letter("mode"), n, a.data(), w.data(), wi.data(), vectors.data());
  p.store(0, a, n);
  p.store(1, vectors, n);
  p.store(2, w, n);
  if constexpr (!kIsComplex<T>) p.store(3, wi, n);
  // The number of eigenvalues that a sort has selected. The only sort that is accepted is N, none.
  p.store_info(selected, 0);
  p.store_info(selected + 1, info);
};

// ---- the table -----------------------------------------------------------------------------------------------------

// Signatures of real and of complex matrices differ where LAPACK's do.
struct Row {
  std::string_view real_stem, complex_stem, real_signature, complex_signature, options;
  SolveByType solve;
  bool (*fits)(const CallSizes&, const CallOptions&) = nullptr;
  char (*free_dim)(const CallOptions&) = nullptr;
};

constexpr std::string_view kSvdSignature = "T m n -> T m n, R k, T m p, T q n, I";

const Row kRows[] = {
    {"potrf", "potrf", "T n n -> T n n, I", {}, "uplo=LU", solve_by_type<kPotrf>()},
    {"trsm",
     "trsm",
     "T s s, T m n -> T m n",
     {},
     "side=LR uplo=LU trans_x=NTC diag=NU",
     solve_by_type<kTriangularSolve>(),
     triangle_fits,
     free_dim_of_triangle},
    {"getrf", "getrf", "T m n -> T m n, I k, I", {}, {}, solve_by_type<kGetrf>()},
    {"geqrf", "geqrf", "T m n -> T m n, T k", {}, {}, solve_by_type<kQrFactors>()},
    {"geqp3", "geqp3", "T m n, I n -> T m n, I n, T k", {}, {}, solve_by_type<kGeqp3>()},
    {"orgqr", "ungqr", "T m n, T k -> T m n", {}, {}, solve_by_type<kReflectors>(), reflectors_fit},
    {"ormqr",
     "unmqr",
     "T r q, T k, T m n -> T m n",
     {},
     "left? transpose?",
     solve_by_type<kOrmqr>(),
     ormqr_fits,
     free_dim_of_ormqr},
    {"syevd", "heevd", "T n n -> T n n, R n, I", {}, "mode=VN uplo=LU", solve_by_type<kSyevd>()},
    {"gesdd", "gesdd", kSvdSignature, {}, "mode=ASN", solve_by_type<kSvd<'d'>>(), svd_fits},
    {"gesvd", "gesvd", kSvdSignature, {}, "mode=ASN", solve_by_type<kSvd<'v'>>(), svd_fits},
    {"geev", "geev", "T n n -> R n, R n, C n n, C n n, I", "T n n -> T n, T n n, T n n, I",
     "compute_left=VN compute_right=VN", solve_by_type<kGeev>()},
    {"gees", "gees", "T n n -> T n n, T n n, R n, R n, I, I", "T n n -> T n n, T n n, T n, I, I", "mode=VN sort=N",
     solve_by_type<kGees>()},
    {"gehrd", "gehrd", "T n n -> T n n, T l, I", {}, "low# high#", solve_by_type<kGehrd>(), gehrd_fits},
    {"sytrd", "hetrd", "T n n -> T n n, R n, R l, T l, I", {}, "uplo=LU", solve_by_type<kSytrd>()},
    {"gtsv", "gtsv", "T n, T n, T n, T n c -> T n, T n, T n, T n c, I", {}, {}, solve_by_type<kGtsv>()},
};

std::vector<BatchedCall> all_rows() {
  constexpr std::string_view kLetters = "sdcz";
  std::vector<BatchedCall> calls;
  for (const Row& row : kRows) {
    for (size_t type = 0; type < kLetters.size(); ++type) {
      const bool is_complex = type >= 2;
      const std::string_view stem = is_complex ? row.complex_stem : row.real_stem;
      // An empty complex signature means the same one.
      const bool differs = is_complex && !row.complex_signature.empty();
      BatchedCall call{.name = "lapack_" + std::string(1, kLetters[type]) + std::string(stem) + "_ffi",
                       .signature = differs ? row.complex_signature : row.real_signature,
                       .options = row.options,
                       .fits = row.fits,
                       .free_dim = row.free_dim};
      // The other three stay null, so that lapack_spotrf_ffi refuses a float64 matrix.
      call.solve[type] = row.solve[type];
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

}  // namespace

std::span<const BatchedCall> lapack_calls() {
  // Never destroyed: kernels refer to rows.
  static const auto* calls = new std::vector<BatchedCall>(all_rows());
  return *calls;
}

}  // namespace shardwise
