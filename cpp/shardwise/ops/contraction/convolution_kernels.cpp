// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ops/contraction/convolution.h"
#include "shardwise/ops/contraction/gemm.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

constexpr int64_t kTileBytes = 1 << 19;  // of the columns of one product
constexpr int64_t kMostRows = 1024, kLeastRows = 64;

// A convolution is a product of matrices: each row has the elements that one window reads, for all input features, and
// each column of the kernel is one output. A tile of rows at a time is gathered, so that it fits in the cache.
//
//   input [1, 4, 2], window 3, kernel [3, 2, 5]     2 rows of 3 · 2 = 6 elements, times 6 x 5
// Everything with the dims batch, spatial, features; the kernel with spatial, input features, output features.
struct Geometry {
  Dims input, output, taps;  // sizes of the spatial dims
  Window window;
  int64_t batches = 0;   // of the result
  int64_t features = 0;  // of the input
  int64_t outputs = 0;
  int64_t group_features = 0;  // that one output reads
  int64_t feature_groups = 1, batch_groups = 1;

  int64_t positions() const { return element_count(output); }
  int64_t columns() const { return element_count(taps) * group_features; }
  int64_t groups() const { return std::max(feature_groups, batch_groups); }
  int64_t group_outputs() const { return outputs / groups(); }
  // Whether the rows of the product are the pixels of the input.
  bool is_pointwise() const {
    bool trivial = groups() == 1;
    for (size_t d = 0; d < taps.size(); ++d) trivial = trivial && window.is_trivial(d);
    return trivial;
  }
};

template <BlasItem T>
void multiply_rows(const T* a, int64_t lda, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t ld) {
  gemm<T>(m, n, k, {a, lda}, {b, ld}, c, ld);
}

// Integers wrap around.
template <class T>
void multiply_rows(const T* a, int64_t lda, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t ld) {
  for (int64_t i = 0; i < m; ++i) {
    std::fill_n(c + i * ld, n, T{});
    for (int64_t p = 0; p < k; ++p) {
      // Wide and unsigned, because a product of two narrow or signed items could overflow.
      const uint64_t factor = a[i * lda + p];
      for (int64_t j = 0; j < n; ++j) c[i * ld + j] = static_cast<T>(c[i * ld + j] + factor * b[p * ld + j]);
    }
  }
}

template <class T>
class Columns {
 public:
  Columns(const Geometry& geometry, const T* input)
      : g_(geometry),
        input_(input),
        index_(geometry.output.size()),
        at_(geometry.output.size()),
        ndim_(geometry.output.size()) {
    for (size_t d = 0; d < ndim_; ++d) {
      inner_.push_back(element_count(DimSpan(g_.taps).subspan(d + 1)) * g_.group_features);
    }
  }

  // Writes the elements that the windows of rows [begin, end) of the product read, for one group.
  void fill(T* to, int64_t begin, int64_t end, int64_t group) {
    first_feature_ = g_.feature_groups > 1 ? group * g_.group_features : 0;
    // Batch groups read different examples, and feature groups different features of one example.
    const int64_t first_batch = g_.batch_groups > 1 ? group * g_.batches : 0;
    place(begin);
    for (int64_t row = begin; row < end; ++row) {
      to = fill_dim(to, 0, first_batch + batch_);
      advance();
    }
  }

  // Calls visit(tap, pixel) for the taps of a row inside the input.
  template <class Visit>
  void for_each_tap(int64_t row, Visit&& visit) {
    place(row);
    visit_dim(0, 0, batch_, visit);
  }

 private:
  void place(int64_t row) {
    int64_t rest = row;
    for (size_t d = ndim_; d-- > 0;) {
      index_[d] = rest % g_.output[d];
      at_[d] = index_[d] * g_.window.strides[d] - g_.window.low[d];
      rest /= g_.output[d];
    }
    batch_ = rest;
  }

  // The place of the next row, without a division.
  void advance() {
    for (size_t d = ndim_; d-- > 0;) {
      at_[d] += g_.window.strides[d];
      if (++index_[d] < g_.output[d]) return;
      index_[d] = 0;
      at_[d] = -g_.window.low[d];
    }
    ++batch_;
  }

  // The index that a tap reads along a dim; -1 if it is outside, or between two elements.
  int64_t source(size_t d, int64_t tap) const {
    const int64_t place = at_[d] + tap * g_.window.dilations[d], holes = g_.window.base_dilations[d];
    if (holes == 1) return place >= 0 && place < g_.input[d] ? place : -1;
    if (place < 0 || place % holes != 0) return -1;
    return place / holes < g_.input[d] ? place / holes : -1;
  }

  T* fill_dim(T* to, size_t d, int64_t pixel) {
    if (d == ndim_) return std::copy_n(input_ + pixel * g_.features + first_feature_, g_.group_features, to);
    const bool is_run = d + 1 == ndim_ && g_.window.dilations[d] == 1 && g_.window.base_dilations[d] == 1 &&
                        g_.group_features == g_.features;
    if (is_run) return fill_run(to, d, pixel);
    for (int64_t tap = 0; tap < g_.taps[d]; ++tap) {
      const int64_t from = source(d, tap);
      // Padding and holes are zeros here, which the sum needs: a row has a place for each tap.
      to = from < 0 ? std::fill_n(to, inner_[d], T{}) : fill_dim(to, d + 1, pixel * g_.input[d] + from);
    }
    return to;
  }

  // Neighbouring taps read neighbouring pixels.
  T* fill_run(T* to, size_t d, int64_t pixel) {
    const int64_t taps = g_.taps[d], first = std::clamp<int64_t>(-at_[d], 0, taps);
    const int64_t last = std::clamp<int64_t>(g_.input[d] - at_[d], first, taps);
    to = std::fill_n(to, first * g_.features, T{});
    if (last > first) {
      const T* from = input_ + (pixel * g_.input[d] + at_[d] + first) * g_.features;
      to = std::copy_n(from, (last - first) * g_.features, to);
    }
    return std::fill_n(to, (taps - last) * g_.features, T{});
  }

  template <class Visit>
  void visit_dim(size_t d, int64_t tap, int64_t pixel, Visit&& visit) {
    if (d == ndim_) return visit(tap, pixel);
    for (int64_t t = 0; t < g_.taps[d]; ++t) {
      const int64_t from = source(d, t);
      if (from >= 0) visit_dim(d + 1, tap * g_.taps[d] + t, pixel * g_.input[d] + from, visit);
    }
  }

  const Geometry& g_;
  const T* input_;
  Dims index_, at_;  // of the output, and the place of its first tap
  Dims inner_;       // elements of a row that one tap of a dim has
  size_t ndim_;
  int64_t batch_ = 0, first_feature_ = 0;
};

// Adds the products of one pixel and one tap: each feature with the weights of its outputs.
template <class T>
void add_products(const T* pixel, const T* weights, int64_t features, int64_t each, T* out) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // int would overflow
  const auto add = [=](int64_t o, int64_t f) { out[o] = static_cast<T>(out[o] + Wide{pixel[f]} * weights[o]); };
  if (each == 1) {  // a loop of its own, which compiles to vector code
#pragma GCC ivdep
    for (int64_t f = 0; f < features; ++f) add(f, f);
    return;
  }
  for (int64_t f = 0; f < features; ++f) {
    for (int64_t o = f * each; o < (f + 1) * each; ++o) add(o, f);
  }
}

// Each output reads one feature: no product of matrices.
template <class T>
void convolve_single_features(KernelContext& context, const Geometry& g, const T* input, const T* kernel, T* result) {
  const int64_t rows = g.batches * g.positions();
  const int64_t grain = std::max<int64_t>((1 << 16) / (g.columns() * g.outputs + 1), 1);
  context.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    Columns<T> columns(g, input);
    for (int64_t row = begin; row < end; ++row) {
      T* out = result + row * g.outputs;
      std::fill_n(out, g.outputs, T{});
      columns.for_each_tap(row, [&](int64_t tap, int64_t pixel) {
        add_products(input + pixel * g.features, kernel + tap * g.outputs, g.features, g.group_outputs(), out);
      });
    }
  });
}

template <class T>
void convolve(KernelContext& context, const Geometry& g, const T* input, const T* kernel, T* result) {
  const int64_t rows = g.batches * g.positions(), k = g.columns();
  // No taps or no features: an empty sum.
  if (k == 0) {
    std::fill_n(result, rows * g.outputs, T{});
    return;
  }
  if (g.feature_groups > 1 && g.group_features == 1) return convolve_single_features(context, g, input, kernel, result);
  const auto item = static_cast<int64_t>(sizeof(T));
  const int64_t tile = std::clamp(kTileBytes / (k * item), kLeastRows, kMostRows);
  context.parallel_for(ceil_div(rows, tile), 1, [&](int64_t begin, int64_t end) {
    Columns<T> columns(g, input);
    std::vector<T> memory(g.is_pointwise() ? 0 : static_cast<size_t>(std::min(tile, rows) * k));
    for (int64_t first = begin * tile; first < std::min(end * tile, rows); first += tile) {
      const int64_t count = std::min(tile, rows - first);
      for (int64_t group = 0; group < g.groups(); ++group) {
        // Neither a window nor a group moves an element, so the input is already the matrix.
        const T* a = g.is_pointwise() ? input + first * k : memory.data();
        if (!g.is_pointwise()) columns.fill(memory.data(), first, first + count, group);
        const int64_t column = group * g.group_outputs();
        multiply_rows(a, k, kernel + column, result + first * g.outputs + column, count, g.group_outputs(), k,
                      g.outputs);
      }
    }
  });
}

void convolve_items(KernelContext& context, const Geometry& g, const NdArray& input, const NdArray& kernel,
                    const NdArray& result) {
  dispatch_products(result.dtype(), [&]<class T>() {
    convolve(context, g, reinterpret_cast<const T*>(input.data()), reinterpret_cast<const T*>(kernel.data()),
             reinterpret_cast<T*>(result.data()));
  });
}

Dims dims_of(int64_t first, const Dims& spatial, int64_t last) {
  Dims dims{first};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  dims.push_back(last);
  return dims;
}

NdArray prepared(KernelContext& context, const NdArray& array, const Dims& order, DType dtype) {
  return contiguous_array(context, converted(context, permuted(array, order), dtype));
}

NdArray with_reversed(const NdArray& kernel, const Dims& dims, const Dims& reversed) {
  Dims strides = kernel.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reversed[i] == 0) continue;
    const auto d = static_cast<size_t>(dims[i]);
    offset += (kernel.shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return restrided(kernel, kernel.shape(), std::move(strides), offset);
}

// Sums of bools are "or": they are counted, and what is not 0 is true. Integers of less than a byte wrap at the end.
DType summed_in(DType dtype) {
  if (dtype == DType::kF64 || is_complex(dtype)) return dtype;
  if (is_float(dtype) || dtype == DType::kBool) return DType::kF32;
  if (bit_width(dtype) < 8) return is_unsigned_integer(dtype) ? DType::kU8 : DType::kI8;
  return dtype;
}

void run_convolution(KernelContext& context, const Convolution& convolution) {
  const ConvolutionNumbers& numbers = convolution.numbers;
  const NdArray result = context.allocate_result();
  if (result.size() == 0) return;
  const DType dtype = summed_in(result.dtype());
  const Dims order = dims_of(numbers.lhs.batch, numbers.lhs.spatial, numbers.lhs.feature);
  Dims kernel_order = numbers.rhs.spatial;
  kernel_order.push_back(numbers.rhs.batch);
  kernel_order.push_back(numbers.rhs.feature);
  const NdArray input = prepared(context, context.operand(0), order, dtype);
  const NdArray kernel = prepared(context, with_reversed(context.operand(1), numbers.rhs.spatial, convolution.reversed),
                                  kernel_order, dtype);
  const NdArray view = permuted(result, dims_of(numbers.result.batch, numbers.result.spatial, numbers.result.feature));
  // The product writes into the result itself where its layout and dtype are those of the product.
  const bool direct = view.is_contiguous() && result.dtype() == dtype;
  const NdArray target = direct ? view : NdArray::empty(dtype, view.shape());
  const size_t spatial = numbers.lhs.spatial.size();
  const auto middle = [&](const NdArray& array, size_t from) {
    return to_dims(DimSpan(array.shape()).subspan(from, spatial));
  };
  const Geometry geometry{.input = middle(input, 1),
                          .output = middle(target, 1),
                          .taps = middle(kernel, 0),
                          .window = convolution.window,
                          .batches = target.shape()[0],
                          .features = input.shape().back(),
                          .outputs = kernel.shape().back(),
                          .group_features = kernel.shape()[spatial],
                          .feature_groups = convolution.feature_groups,
                          .batch_groups = convolution.batch_groups};
  convolve_items(context, geometry, input, kernel, target);
  if (!direct) convert_into(context, view, target);
}

}  // namespace

std::optional<Kernel> prepare_convolution(const OpView& op, const KernelTypes& types) {
  const Convolution convolution = Convolution::of(op);
  // Attributes suit the sizes of the op's own types.
  const size_t batch = static_cast<size_t>(convolution.numbers.lhs.batch);
  Dims expected = op.operand_type(0).shape;
  // Merged shards are more examples. Groups of the batch count its rows, so they need the op's own size.
  if (convolution.batch_groups == 1) expected[batch] = types.operands[0].shape[batch];
  if (types.operands[0].shape != expected || types.operands[1].shape != op.operand_type(1).shape) return std::nullopt;
  return [convolution](KernelContext& context) { run_convolution(context, convolution); };
}

}  // namespace shardwise
