// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/contraction/dot_algorithm.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/contraction/gemm.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

// Our pool is the only source of threads. Once, before any product runs.
const bool kOneBlasThread = [] {
  openblas_set_num_threads(1);
  return true;
}();

constexpr int64_t kParallelFlops = 1 << 22;  // a product below that runs on one thread
constexpr int64_t kMaxPieces = 8;            // a product is cut by its shape, so that threads change no bits
constexpr int64_t kPieceRows = 256;          // each piece packs the other operand anew: 128 rows cost a fifth more

constexpr int64_t kSumGrain = int64_t{1} << 16;

// One operand as a stack of matrices: `rows` are the free dims of lhs or the contracting dims of rhs. Strides in bytes.
struct Matrices {
  std::byte* data;
  std::shared_ptr<void> owner;
  Dims batch_shape, batch_strides;
  int64_t rows, columns, row_stride, column_stride;

  std::byte* at(int64_t batch) const {
    int64_t offset = 0;
    for (size_t dim = batch_shape.size(); dim-- > 0;) {
      offset += batch % batch_shape[dim] * batch_strides[dim];
      batch /= batch_shape[dim];
    }
    return data + offset;
  }
};

// A matrix as BLAS takes it: one of its strides is one item, the other (the leading dim) at least a row or column.
struct BlasMatrix {
  CBLAS_TRANSPOSE transpose;
  int64_t leading;
};

// A broadcast operand (stride 0) and a reversed one (negative) have neither form: `matrices` copies them.
std::optional<BlasMatrix> blas_form(const Matrices& m, int64_t item) {
  const bool one_column = m.columns == 1, one_row = m.rows == 1;
  if ((one_column || m.column_stride == item) && (one_row || m.row_stride >= m.columns * item)) {
    return BlasMatrix{CblasNoTrans, one_row ? m.columns : m.row_stride / item};
  }
  if ((one_row || m.row_stride == item) && (one_column || m.column_stride >= m.rows * item)) {
    return BlasMatrix{CblasTrans, one_column ? m.rows : m.column_stride / item};
  }
  return std::nullopt;
}

// Some dims of an array as one: its size and stride, or none.
struct MergedDim {
  int64_t size;
  std::optional<int64_t> stride;
};

MergedDim merged(const NdArray& array, DimSpan dims) {
  const int64_t item = item_size(array.dtype());
  // Most products have one dim of each kind. Small ones would spend a tenth of their time on lists of one number.
  if (dims.size() == 1) {
    const auto dim = static_cast<size_t>(dims[0]);
    return {array.shape()[dim], merged_stride({&array.shape()[dim], 1}, {&array.strides()[dim], 1}, item)};
  }
  const Dims shape = sizes_at(array.shape(), dims);
  return {element_count(shape), merged_stride(shape, sizes_at(array.strides(), dims), item)};
}

std::optional<Matrices> as_matrices(const NdArray& array, DimSpan batching, DimSpan rows, DimSpan columns) {
  const MergedDim row = merged(array, rows), column = merged(array, columns);
  if (!row.stride || !column.stride) return std::nullopt;
  return Matrices{array.data(),
                  array.owner(),
                  sizes_at(array.shape(), batching),
                  sizes_at(array.strides(), batching),
                  row.size,
                  column.size,
                  *row.stride,
                  *column.stride};
}

// The operand with its dims in the order batching, rows, columns; copied where BLAS could not read it as it lies.
Matrices matrices(KernelContext& context, const NdArray& array, DimSpan batching, DimSpan rows, DimSpan columns,
                  bool row_major) {
  if (auto found = as_matrices(array, batching, rows, columns)) {
    const auto form = blas_form(*found, item_size(array.dtype()));
    if (form && !(row_major && form->transpose == CblasTrans)) return std::move(*found);
  }
  Dims order = joined(joined(batching, rows), columns);
  const NdArray view = permuted(array, order);
  const NdArray copy = NdArray::empty(array.dtype(), view.shape());
  copy_array(context, copy, view);
  // The copy is row-major in the new order, so its rows and columns always merge.
  std::iota(order.begin(), order.end(), 0);
  const DimSpan dims = order;
  return *as_matrices(copy, dims.first(batching.size()), dims.subspan(batching.size(), rows.size()),
                      dims.last(columns.size()));
}

struct Product {
  Matrices lhs, rhs;
  int64_t batch, m, n, k;
};

void gemv(CBLAS_TRANSPOSE transpose, blasint rows, blasint columns, const float* a, blasint lda, const float* x,
          blasint x_step, float* y) {
  cblas_sgemv(CblasRowMajor, transpose, rows, columns, 1.0f, a, lda, x, x_step, 1.0f, y, 1);
}
void gemv(CBLAS_TRANSPOSE transpose, blasint rows, blasint columns, const double* a, blasint lda, const double* x,
          blasint x_step, double* y) {
  cblas_dgemv(CblasRowMajor, transpose, rows, columns, 1.0, a, lda, x, x_step, 1.0, y, 1);
}
double dot(blasint count, const float* x, blasint x_step, const float* y, blasint y_step) {
  return static_cast<double>(cblas_sdot(count, x, x_step, y, y_step));
}
double dot(blasint count, const double* x, blasint x_step, const double* y, blasint y_step) {
  return cblas_ddot(count, x, x_step, y, y_step);
}

// The distance of the items of a matrix with one row or one column.
template <class T>
blasint vector_step(const Matrices& vector) {
  const int64_t stride = vector.columns == 1 ? vector.row_stride : vector.column_stride;
  return static_cast<blasint>(std::max(vector.rows, vector.columns) == 1 ? 1 : stride / int64_t{sizeof(T)});
}

// Sums of kDotPiece products each are added in double precision.
template <class T>
T dot_of_vectors(const Product& product, const T* a, const T* b) {
  constexpr int64_t kDotPiece = 4096;
  const blasint a_step = vector_step<T>(product.lhs), b_step = vector_step<T>(product.rhs);
  double sum = 0;
  for (int64_t k = 0; k < product.k; k += kDotPiece) {
    const auto count = static_cast<blasint>(std::min(kDotPiece, product.k - k));
    sum += dot(count, a + k * a_step, a_step, b + k * b_step, b_step);
  }
  return static_cast<T>(sum);
}

// A product with a vector reads the matrix once: packing it, as for a product of matrices, takes three times as long.
// Returns false for a product of two matrices.
template <class T>
bool multiply_vector(const Product& product, const T* a, const T* b, T* c, int64_t m, int64_t n) {
  if (product.m != 1 && product.n != 1) return false;
  if (product.m == 1 && product.n == 1) {
    *c = dot_of_vectors(product, a, b);
    return true;
  }
  const bool right = product.n == 1;  // the vector is on the right
  const BlasMatrix form = *blas_form(right ? product.lhs : product.rhs, sizeof(T));
  const int64_t rows = right ? m : product.k, columns = right ? product.k : n;
  const bool is_transposed = form.transpose == CblasTrans;
  std::fill_n(c, right ? m : n, T{});
  // A vector on the left multiplies the transpose: x · B is Bᵀ · x. A matrix that is stored transposed is one already.
  gemv(is_transposed == right ? CblasTrans : CblasNoTrans, static_cast<blasint>(is_transposed ? columns : rows),
       static_cast<blasint>(is_transposed ? rows : columns), right ? a : b, static_cast<blasint>(form.leading),
       right ? b : a, right ? vector_step<T>(product.rhs) : vector_step<T>(product.lhs), c);
  return true;
}

// Products of one kind of item; C is row-major, m × n, `ldc` items between its rows.
template <BlasItem T>
void multiply(const Product& product, const T* a, const T* b, T* c, int64_t m, int64_t n) {
  if constexpr (std::floating_point<T>) {
    if (multiply_vector(product, a, b, c, m, n)) return;
  }
  const BlasMatrix lhs = *blas_form(product.lhs, sizeof(T)), rhs = *blas_form(product.rhs, sizeof(T));
  gemm<T>(m, n, product.k, {a, lhs.leading, lhs.transpose == CblasTrans}, {b, rhs.leading, rhs.transpose == CblasTrans},
          c, product.n);
}

// A tag type for booleans, which are bytes of 0 and 1.
struct Boolean {
  uint8_t value;
};

Boolean multiply_add(Boolean c, Boolean a, Boolean b) { return {static_cast<uint8_t>(c.value | (a.value & b.value))}; }
template <class T>
T multiply_add(T c, T a, T b) {
  return static_cast<T>(uint64_t{c} + uint64_t{a} * b);
}

// Both operands are row-major. Blocks of rows of rhs stay in the cache while all rows of lhs pass.
template <class T>
void multiply(const Product& product, const T* a, const T* b, T* c, int64_t m, int64_t n) {
  constexpr int64_t kBlockK = 64, kBlockN = 1024;
  const int64_t lda = product.lhs.rows == 1 ? product.k : product.lhs.row_stride / static_cast<int64_t>(sizeof(T));
  const int64_t ldb = product.rhs.rows == 1 ? n : product.rhs.row_stride / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * product.n, n, T{});
  for (int64_t n0 = 0; n0 < n; n0 += kBlockN) {
    const int64_t n1 = std::min(n0 + kBlockN, n);
    for (int64_t k0 = 0; k0 < product.k; k0 += kBlockK) {
      const int64_t k1 = std::min(k0 + kBlockK, product.k);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t k = k0; k < k1; ++k) {
          const T factor = a[i * lda + k];
          const T* row = b + k * ldb;
          T* out = c + i * product.n;
          for (int64_t j = n0; j < n1; ++j) out[j] = multiply_add(out[j], factor, row[j]);
        }
      }
    }
  }
}

// Cut into pieces of rows, or of columns where there are more of them. Two smaller pieces take less time than one.
template <class T>
void multiply_all(KernelContext& context, const Product& product, T* result) {
  const double flops =
      2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k);
  const bool by_rows = product.m >= product.n;
  const int64_t length = by_rows ? product.m : product.n;
  const int64_t piece = flops < static_cast<double>(kParallelFlops)
                            ? length
                            : std::max(length < 2 * kPieceRows ? kPieceRows / 2 : kPieceRows,
                                       ceil_div(ceil_div(length, kMaxPieces), 16) * 16);
  const int64_t pieces = ceil_div(length, piece);
  const double piece_flops = flops / static_cast<double>(pieces);
  const auto grain = static_cast<int64_t>(static_cast<double>(kParallelFlops) / 2 / std::max(piece_flops, 1.0)) + 1;
  const int64_t lhs_step = by_rows ? product.lhs.row_stride : 0, rhs_step = by_rows ? 0 : product.rhs.column_stride;
  context.parallel_for(product.batch * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / pieces, first = i % pieces * piece;
      const int64_t count = std::min(piece, length - first);
      const auto* a = reinterpret_cast<const T*>(product.lhs.at(batch) + first * lhs_step);
      const auto* b = reinterpret_cast<const T*>(product.rhs.at(batch) + first * rhs_step);
      // A piece of columns is a part of each row of C: rows of C stay product.n items apart.
      T* c = result + batch * product.m * product.n + (by_rows ? first * product.n : first);
      multiply(product, a, b, c, by_rows ? count : product.m, by_rows ? product.n : count);
    }
  });
}

void multiply_items(KernelContext& context, const Product& product, const NdArray& result) {
  const auto run = [&]<class T>() { multiply_all(context, product, reinterpret_cast<T*>(result.data())); };
  if (result.dtype() == DType::kBool) return run.template operator()<Boolean>();
  dispatch_products(result.dtype(), run);
}

// A prepared dot_general.
struct PreparedDot {
  DotDims dims;
  Dims lhs_free, rhs_free;
  DotAlgorithm algorithm;

  PreparedDot(const OpView& op, const KernelTypes& types)
      : dims(dot_dims(op.attrs())),
        lhs_free(dims.lhs_free(types.operands[0].ndim())),
        rhs_free(dims.rhs_free(types.operands[1].ndim())),
        algorithm(dot_algorithm(op)) {}
};

int64_t count_along(const Dims& shape, const Dims& dims) { return element_count(sizes_at(shape, dims)); }

// Whether BLAS can count the rows and columns.
bool is_countable(const PreparedDot& dot, const KernelTypes& types) {
  constexpr int64_t kLimit = std::numeric_limits<blasint>::max();
  const Dims &lhs = types.operands[0].shape, &rhs = types.operands[1].shape;
  return std::max({count_along(lhs, dot.lhs_free), count_along(rhs, dot.rhs_free),
                   count_along(lhs, dot.dims.lhs_contracting)}) <= kLimit;
}

// One product of two operands of the dtype of `result`, which it overwrites.
void multiply_into(KernelContext& context, const PreparedDot& dot, const NdArray& lhs, const NdArray& rhs,
                   const NdArray& result) {
  const DotDims& dims = dot.dims;
  // Our loop for integers reads rows; BLAS takes transposed matrices as well.
  const bool own_loop = !is_inexact(result.dtype());
  Product product{matrices(context, lhs, dims.lhs_batching, dot.lhs_free, dims.lhs_contracting, own_loop),
                  matrices(context, rhs, dims.rhs_batching, dims.rhs_contracting, dot.rhs_free, own_loop),
                  1,
                  0,
                  0,
                  0};
  product.m = product.lhs.rows;
  product.n = product.rhs.columns;
  product.k = product.lhs.columns;
  product.batch = result.size() / (product.m * product.n);
  multiply_items(context, product, result);
}

// The sum of several products of parts, the leading one last. An infinity or NaN in an operand makes the others NaN:
// only the leading one has the result.
void multiply_parts(KernelContext& context, const PreparedDot& dot, const std::vector<NdArray>& lhs,
                    const std::vector<NdArray>& rhs, const NdArray& result) {
  const NdArray part = NdArray::empty(result.dtype(), result.shape());
  std::memset(result.data(), 0, static_cast<size_t>(result.nbytes()));
  const auto* added = reinterpret_cast<const float*>(part.data());
  auto* sum = reinterpret_cast<float*>(result.data());
  for (const auto& [left, right] : dot.algorithm.products) {
    multiply_into(context, dot, lhs[static_cast<size_t>(left)], rhs[static_cast<size_t>(right)], part);
    const bool is_leading = left + right == 0;
    context.parallel_for(part.size(), kSumGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum[i] = (is_leading && std::isnan(sum[i]) ? 0 : sum[i]) + added[i];
    });
  }
}

void run_dot(KernelContext& context, const PreparedDot& dot) {
  const NdArray result = context.allocate_result();
  if (result.size() == 0) return;
  if (context.operand(0).size() == 0) {  // nothing to sum
    std::memset(result.data(), 0, static_cast<size_t>(result.nbytes()));
    return;
  }
  const bool is_plain =
      dot.algorithm.precision == DotAlgorithm::Precision::kOperand && dot.algorithm.accumulation == result.dtype();
  if (is_plain && context.operand(0).dtype() == result.dtype() && context.operand(1).dtype() == result.dtype()) {
    return multiply_into(context, dot, context.operand(0), context.operand(1), result);
  }
  const std::vector<NdArray> lhs = dot_parts(context, context.operand(0), dot.algorithm);
  const std::vector<NdArray> rhs = dot_parts(context, context.operand(1), dot.algorithm);
  const DType dtype = dot.algorithm.accumulation;
  const NdArray target = dtype == result.dtype() ? result : NdArray::empty(dtype, result.shape());
  if (dot.algorithm.products.size() == 1) {
    multiply_into(context, dot, lhs[0], rhs[0], target);
  } else {
    multiply_parts(context, dot, lhs, rhs, target);
  }
  if (target.data() != result.data()) convert_into(context, result, target);
}

// Only the run fails: a program with such a product may be compiled for its cost.
Kernel fail_when_run(std::string types) {
  return [types = std::move(types)](KernelContext&) {
    fail<ShapeError>("stablehlo.dot_general", "the products of free and of contracting sizes must be below 2^31", types,
                     "shard or split these dims");
  };
}

}  // namespace

std::string_view blas_core_name() { return openblas_get_corename(); }

std::optional<Kernel> prepare_dot_general(const OpView& op, const KernelTypes& types) {
  PreparedDot dot(op, types);
  if (types.results[0].size() != 0 && !is_countable(dot, types)) {
    const bool is_merged = types.operands[0] != op.operand_type(0) || types.operands[1] != op.operand_type(1);
    // A call that was merged of several shards may be too large, where each shard alone is not.
    if (is_merged) return std::nullopt;
    return fail_when_run(str(types.operands[0].text(), " and ", types.operands[1].text()));
  }
  return [dot = std::move(dot)](KernelContext& context) { run_dot(context, dot); };
}

}  // namespace shardwise
