// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.cholesky and triangular_solve, the calls of JAX's TPU texts, and those of np.linalg.

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/linalg/lapack_calls.h"
#include "shardwise/ops/linalg/solve_steps.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

using namespace lapack;

size_t count_of(Int rows, Int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); }

// Sets one side of the diagonal of a column-major matrix to 0.
template <class T>
void keep_triangle(T* a, Int rows, Int columns, bool lower) {
  for (Int j = 0; j < columns; ++j) {
    T* const column = a + count_of(rows, j);
    std::fill(lower ? column : column + std::min(j + 1, rows), lower ? column + std::min(j, rows) : column + rows, T{});
  }
}

// ---- ops -----------------------------------------------------------------------------------------------------------

CallOptions read_cholesky(const Attrs& attrs) {
  CallOptions options;
  options.set("uplo", is_set(attrs, "lower") ? 'L' : 'U');
  return options;
}

// Aᵀ is the conjugate of A, and so are its factors: Lᵀ of A = L·Lᴴ is U of Aᵀ = Uᴴ·U.
constexpr auto kCholesky = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  const char transposed = other_triangle(p.letter("uplo"));
  T* const a = p.result_from<T>(0, 0);
  // A matrix that is not positive definite gives NaN, as XLA does. An error could not
  // tell which problem of a batch failed.
  if (Lapack<T>::potrf(transposed, n, a) != 0) return p.fill(0, quiet_nan<T>());
  keep_triangle(a, n, n, transposed == 'L');
};

CallOptions read_triangular_solve(const Attrs& attrs) {
  CallOptions options;
  options.set("side", attrs.get<bool>("left_side") ? 'L' : 'R');
  options.set("uplo", attrs.get<bool>("lower") ? 'L' : 'U');
  options.set("diag", attrs.get<bool>("unit_diagonal") ? 'U' : 'N');
  const std::string& transpose = attrs.get<EnumAttr>("transpose_a").value;
  // NO_TRANSPOSE and TRANSPOSE begin with LAPACK's letters, N and T.
  options.set("trans_x", transpose == "ADJOINT" ? 'C' : transpose[0]);
  return options;
}

// ---- LU ------------------------------------------------------------------------------------------------------------

template <class T>
struct Lu {
  std::vector<T> a;
  std::vector<Int> pivots;  // from 1

  Lu(const Problem& p, Int m, Int n) : a(p.load<T>(0)), pivots(static_cast<size_t>(std::min(m, n))) {
    Lapack<T>::getrf(m, n, a.data(), pivots.data());
  }
};

// The pivots count from 0. Row i of L·U is row permutation[i] of the matrix.
constexpr auto kLuDecomposition = []<class T>(const Problem& p) {
  const Int m = p.size('m');
  Lu<T> lu(p, m, p.size('n'));
  p.store(0, lu.a, m);
  p.store(2, permutation_of(lu.pivots, m), m);
  for (Int& pivot : lu.pivots) --pivot;
  p.store(1, lu.pivots, p.size('k'));
};

constexpr auto kLinearSolve = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  const Lu<T> lu(p, n, n);
  std::vector<T> b = p.load<T>(1);
  Lapack<T>::getrs(n, p.size('c'), lu.a.data(), lu.pivots.data(), b.data());
  p.store(0, b, n);
};

char free_dim_of_solve(const CallOptions&) { return 'c'; }

// The sign of the permutation, and the diagonal of U.
template <class T>
std::pair<T, std::vector<T>> factors_of_determinant(const Problem& p) {
  const Int n = p.size('n');
  const Lu<T> lu(p, n, n);
  T sign{1};
  std::vector<T> diagonal(static_cast<size_t>(n));
  for (Int i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    diagonal[at] = lu.a[count_of(n, i) + at];
    // Each row that is exchanged with another one, not with itself, changes the sign.
    if (lu.pivots[at] != i + 1) sign = -sign;
  }
  return {sign, diagonal};
}

constexpr auto kDeterminant = []<class T>(const Problem& p) {
  auto [product, diagonal] = factors_of_determinant<T>(p);
  for (const T& item : diagonal) product *= item;
  p.store(0, product);
};

constexpr auto kSignAndLogarithm = []<class T>(const Problem& p) {
  auto [sign, diagonal] = factors_of_determinant<T>(p);
  Real<T> logarithm = 0;
  for (const T& item : diagonal) {
    const Real<T> size = std::abs(item);
    // A singular matrix has sign 0 and logarithm -inf, as in np.linalg.slogdet.
    sign *= size == 0 ? T{} : item / size;
    logarithm += std::log(size);
  }
  p.store(0, sign);
  p.store(1, logarithm);
};

// ---- QR ------------------------------------------------------------------------------------------------------------

bool qr_fits(const CallSizes& sizes, const CallOptions&) {
  return sizes['p'] == sizes['k'] || sizes['p'] == sizes['m'];
}

constexpr auto kQr = []<class T>(const Problem& p) {
  const Int m = p.size('m'), n = p.size('n'), columns = p.size('p'), k = std::min(m, n);
  std::vector<T> r = p.load<T>(0), tau(static_cast<size_t>(k));
  Lapack<T>::geqrf(m, n, r.data(), tau.data());
  std::vector<T> q = r;
  // Column-major: columns are added or dropped at the end. orgqr makes all of them from the reflectors.
  q.resize(count_of(m, columns));
  Lapack<T>::orgqr(m, columns, k, q.data(), tau.data());
  keep_triangle(r.data(), m, n, false);
  p.store(0, q, m);
  p.store(1, r, m);
};

// ---- eigenvalues ---------------------------------------------------------------------------------------------------

// "1,1,100,1e-6": whether to read the lower triangle; then sorting, iterations and tolerance, which LAPACK chooses.
CallOptions read_tpu_eigh(const Attrs& attrs) {
  const auto* config = attrs.find<std::string>("backend_config");
  CallOptions options;
  options.set("uplo", config != nullptr && config->starts_with('0') ? 'U' : 'L');
  return options;
}

template <bool with_vectors>
constexpr auto kSymmetricEigen = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  std::vector<T> a = p.load<T>(0);
  std::vector<Real<T>> w(static_cast<size_t>(n));
  // LAPACK may loop forever on NaN, so such matrices never reach it.
  const bool succeeds =
      all_finite(a) && Lapack<T>::syevd(with_vectors ? 'V' : 'N', p.letter("uplo"), n, a.data(), w.data()) == 0;
  if (with_vectors) succeeds ? p.store(0, a, n) : p.fill(0, quiet_nan<T>());
  const size_t values = with_vectors ? 1 : 0;
  succeeds ? p.store(values, w, n) : p.fill(values, quiet_nan<Real<T>>());
};

// Eigenvectors have length 1, as LAPACK leaves them.
template <bool with_vectors>
constexpr auto kEigen = []<class T>(const Problem& p) {
  const Int n = p.size('n');
  std::vector<T> a = p.load<T>(0), wr(static_cast<size_t>(n)), wi = wr, vectors(count_of(n, n)), unused(1);
  const bool succeeds = all_finite(a) && Lapack<T>::geev('N', with_vectors ? 'V' : 'N', n, a.data(), wr.data(),
                                                         wi.data(), vectors.data(), vectors.data()) == 0;
  if (!succeeds) {
    p.fill(0, quiet_nan<Complex<T>>());
    if (with_vectors) p.fill(1, quiet_nan<Complex<T>>());
    return;
  }
  std::vector<Complex<T>> w(static_cast<size_t>(n));
  for (size_t i = 0; i < w.size(); ++i) {
    if constexpr (kIsComplex<T>) w[i] = wr[i];
    // Real matrices have complex eigenvalues, of which LAPACK returns the parts in two lists.
    if constexpr (!kIsComplex<T>) w[i] = {wr[i], wi[i]};
  }
  p.store(0, w, n);
  if (with_vectors) p.store(1, unpacked_eigenvectors(vectors, wi, n), n);
};

// ---- singular values -----------------------------------------------------------------------------------------------

constexpr auto kSvd = []<class T>(const Problem& p) {
  const Int m = p.size('m'), n = p.size('n');
  std::vector<T> a = p.load<T>(0);
  const char job = p.size('p') == m && p.size('q') == n ? 'A' : 'S';
  const SingularValues<T> found = singular_values<T>('d', job, m, n, a);
  if (found.info != 0) {
    p.fill(0, quiet_nan<T>());
    p.fill(1, quiet_nan<Real<T>>());
    return p.fill(2, quiet_nan<T>());
  }
  p.store(0, found.u, m);
  p.store(1, found.s, p.size('k'));
  p.store(2, found.vt, found.rows_of_vt);
};

constexpr auto kSingularValuesOnly = []<class T>(const Problem& p) {
  std::vector<T> a = p.load<T>(0);
  const SingularValues<T> found = singular_values<T>('d', 'N', p.size('m'), p.size('n'), a);
  if (found.info != 0) return p.fill(0, quiet_nan<Real<T>>());
  p.store(0, found.s, p.size('k'));
};

// ---- tables --------------------------------------------------------------------------------------------------------

constexpr std::string_view kUplo = "uplo=LU";
const SolveByType kPackedQr = solve_by_type<kQrFactors>();

const BatchedCall kTpuCalls[] = {
    {"LuDecomposition", "T m n -> T m n, I k, I m", {}, solve_by_type<kLuDecomposition>()},
    {"Qr", "T m n -> T m n, T k", {}, kPackedQr},
    {"ProductOfElementaryHouseholderReflectors",
     "T m n, T k -> T m n",
     {},
     solve_by_type<kReflectors>(),
     reflectors_fit},
    {"Eigh", "T n n -> T n n, R n", kUplo, solve_by_type<kSymmetricEigen<true>>(), nullptr, nullptr, read_tpu_eigh},
};

const BatchedCall kDecompositions[] = {
    {"shardwise.lu", "T m n -> T m n, I k, I m", {}, solve_by_type<kLuDecomposition>()},
    {"shardwise.solve", "T n n, T n c -> T n c", {}, solve_by_type<kLinearSolve>(), nullptr, free_dim_of_solve},
    {"shardwise.det", "T n n -> T", {}, solve_by_type<kDeterminant>()},
    {"shardwise.slogdet", "T n n -> T, R", {}, solve_by_type<kSignAndLogarithm>()},
    {"shardwise.qr", "T m n -> T m p, T p n", {}, solve_by_type<kQr>(), qr_fits},
    {"shardwise.eigh", "T n n -> T n n, R n", kUplo, solve_by_type<kSymmetricEigen<true>>()},
    {"shardwise.eigvalsh", "T n n -> R n", kUplo, solve_by_type<kSymmetricEigen<false>>()},
    {"shardwise.eig", "T n n -> C n, C n n", {}, solve_by_type<kEigen<true>>()},
    {"shardwise.eigvals", "T n n -> C n", {}, solve_by_type<kEigen<false>>()},
    {"shardwise.svd", "T m n -> T m p, R k, T q n", {}, solve_by_type<kSvd>(), svd_fits},
    {"shardwise.svdvals", "T m n -> R k", {}, solve_by_type<kSingularValuesOnly>()},
};

}  // namespace

const BatchedCall kCholeskyCall{
    "stablehlo.cholesky", "T n n -> T n n", {}, solve_by_type<kCholesky>(), nullptr, nullptr, read_cholesky};
const BatchedCall kTriangularSolveCall{
    "stablehlo.triangular_solve", "T s s, T m n -> T m n", {}, solve_by_type<kTriangularSolve>(), triangle_fits,
    free_dim_of_triangle,         read_triangular_solve};

std::span<const BatchedCall> tpu_linalg_calls() { return kTpuCalls; }
std::span<const BatchedCall> decomposition_calls() { return kDecompositions; }

}  // namespace shardwise
