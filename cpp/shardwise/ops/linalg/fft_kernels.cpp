// SPDX-License-Identifier: Apache-2.0
//
// Transforms of one line at a time. A length whose prime factors are small is split by them (Cooley and Tukey, 1965);
// any other length n is a convolution of length 2^k >= 2 n - 1 (Bluestein, 1970).
#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <vector>

#include "shardwise/ops/linalg/fft.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

constexpr int64_t kLargestFactor = 31;  // a butterfly of p elements takes p^2 products
constexpr int64_t kGrainElements = 1 << 13;

template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n), in double precision; k in the first turn keeps the angle small.
template <class T>
std::complex<T> root_of_unity(int64_t k, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

// The factors of n, fours first; none if one of them is too large.
std::vector<int64_t> small_factors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t factor = 4; n > 1;) {
    if (n % factor == 0) {
      factors.push_back(factor);
      n /= factor;
    } else {
      factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2;
      if (factor > kLargestFactor) return {};
    }
  }
  return factors;
}

// A forward transform of a fixed length.
template <class T>
class LinePlan {
 public:
  using Number = std::complex<T>;

  explicit LinePlan(int64_t n) : n_(n), factors_(small_factors(n)) {
    if (n > 1 && factors_.empty()) {
      prepare_chirp();
    } else {
      for (int64_t k = 0; k < n; ++k) roots_.push_back(root_of_unity<T>(k, n));
    }
  }

  int64_t size() const { return n_; }

  // `to` and `from` have n elements each and do not overlap.
  void run(const Number* from, Number* to) const {
    if (convolution_ != nullptr) return run_chirp(from, to);
    if (n_ == 1) {
      to[0] = from[0];
      return;
    }
    split(from, to, 1, 0);
  }

 private:
  // Elements from[0], from[stride], … become to[0 .. n / stride), by the factors from `level` on.
  void split(const Number* from, Number* to, int64_t stride, size_t level) const {
    const int64_t parts = factors_[level], size = n_ / stride / parts;
    for (int64_t q = 0; q < parts; ++q) {
      if (size == 1) {
        to[q] = from[q * stride];
      } else {
        split(from + q * stride, to + q * size, stride * parts, level + 1);
      }
    }
    switch (parts) {
      case 2: return butterfly_of_two(to, stride, size);
      case 4: return butterfly_of_four(to, stride, size);
      default: return butterfly(to, stride, size, parts);
    }
  }

  void butterfly_of_two(Number* to, int64_t stride, int64_t size) const {
    for (int64_t k = 0; k < size; ++k) {
      const Number odd = times(to[k + size], roots_[static_cast<size_t>(k * stride)]);
      to[k + size] = to[k] - odd;
      to[k] += odd;
    }
  }

  void butterfly_of_four(Number* to, int64_t stride, int64_t size) const {
    for (int64_t k = 0; k < size; ++k) {
      const Number a = to[k], b = times(to[k + size], roots_[static_cast<size_t>(k * stride)]);
      const Number c = times(to[k + 2 * size], roots_[static_cast<size_t>(2 * k * stride)]);
      const Number d = times(to[k + 3 * size], roots_[static_cast<size_t>(3 * k * stride)]);
      const Number even = a + c, rest = a - c, odd = b + d, turned{(b - d).imag(), -(b - d).real()};  // -i (b - d)
      to[k] = even + odd;
      to[k + size] = rest + turned;
      to[k + 2 * size] = even - odd;
      to[k + 3 * size] = rest - turned;
    }
  }

  void butterfly(Number* to, int64_t stride, int64_t size, int64_t parts) const {
    std::array<Number, kLargestFactor> column;
    for (int64_t k = 0; k < size; ++k) {
      for (int64_t q = 0; q < parts; ++q) column[static_cast<size_t>(q)] = to[k + q * size];
      for (int64_t row = 0; row < parts; ++row) {
        const int64_t step = (k + row * size) * stride;
        Number sum = column[0];
        for (int64_t q = 1, turn = step % n_; q < parts; ++q, turn = (turn + step) % n_) {
          sum += times(column[static_cast<size_t>(q)], roots_[static_cast<size_t>(turn)]);
        }
        to[k + row * size] = sum;
      }
    }
  }

  // X[k] = c[k] sum of (x[j] c[j]) / c[k - j], where c[k] = exp(-pi i k^2 / n).
  void prepare_chirp() {
    int64_t length = 1;
    while (length < 2 * n_ - 1) length *= 2;
    convolution_ = std::make_unique<LinePlan>(length);
    std::vector<Number> kernel(static_cast<size_t>(length));
    spectrum_.resize(static_cast<size_t>(length));
    for (int64_t k = 0; k < n_; ++k) {
      chirp_.push_back(root_of_unity<T>(static_cast<int64_t>(square_modulo(k, 2 * n_)), 2 * n_));
      kernel[static_cast<size_t>(k)] = std::conj(chirp_.back());
      if (k > 0) kernel[static_cast<size_t>(length - k)] = kernel[static_cast<size_t>(k)];
    }
    convolution_->run(kernel.data(), spectrum_.data());
  }

  static uint64_t square_modulo(int64_t k, int64_t n) {
    return static_cast<uint64_t>(k) * static_cast<uint64_t>(k) % static_cast<uint64_t>(n);
  }

  void run_chirp(const Number* from, Number* to) const {
    const auto length = static_cast<size_t>(convolution_->size()), n = static_cast<size_t>(n_);
    std::vector<Number> padded(length), product(length);
    for (size_t k = 0; k < n; ++k) padded[k] = times(from[k], chirp_[k]);
    convolution_->run(padded.data(), product.data());
    // The inverse transform is the conjugate of the transform of the conjugate.
    for (size_t k = 0; k < length; ++k) padded[k] = std::conj(times(product[k], spectrum_[k]));
    convolution_->run(padded.data(), product.data());
    const T scale = T{1} / static_cast<T>(length);
    for (size_t k = 0; k < n; ++k) to[k] = times(std::conj(product[k]) * scale, chirp_[k]);
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Number> roots_;
  std::vector<Number> chirp_, spectrum_;
  std::unique_ptr<LinePlan> convolution_;
};

// Runs body(line, buffers) for each line; `n` is the length of a line, for the size of a task.
template <class T, class F>
void for_each_line(KernelContext& context, int64_t lines, int64_t n, F body) {
  const int64_t grain = std::max<int64_t>(kGrainElements / std::max<int64_t>(n, 1), 1);
  context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
    std::vector<std::complex<T>> from(static_cast<size_t>(n)), to(static_cast<size_t>(n));
    for (int64_t line = begin; line < end; ++line) body(line, from.data(), to.data());
  });
}

// A transform along one dim of row-major complex numbers, in place.
template <class T>
void transform_dim(KernelContext& context, const NdArray& array, size_t dim, bool inverse) {
  const DimSpan shape = array.shape();
  const int64_t n = shape[dim], inner = element_count(shape.subspan(dim + 1)), lines = array.size() / n;
  const LinePlan<T> plan(n);
  auto* data = reinterpret_cast<std::complex<T>*>(array.data());
  const T scale = inverse ? T{1} / static_cast<T>(n) : T{1};
  for_each_line<T>(context, lines, n, [&](int64_t line, std::complex<T>* from, std::complex<T>* to) {
    std::complex<T>* first = data + line / inner * n * inner + line % inner;
    for (int64_t k = 0; k < n; ++k) from[k] = inverse ? std::conj(first[k * inner]) : first[k * inner];
    plan.run(from, to);
    for (int64_t k = 0; k < n; ++k) first[k * inner] = inverse ? std::conj(to[k]) * scale : to[k];
  });
}

// The first half of the transform along the last dim of real numbers.
template <class T>
void transform_real(KernelContext& context, const NdArray& from, const NdArray& to) {
  const int64_t n = from.shape().back(), half = n / 2 + 1;
  const LinePlan<T> plan(n);
  const auto* source = reinterpret_cast<const T*>(from.data());
  auto* target = reinterpret_cast<std::complex<T>*>(to.data());
  for_each_line<T>(context, from.size() / n, n, [&](int64_t line, std::complex<T>* in, std::complex<T>* out) {
    for (int64_t k = 0; k < n; ++k) in[k] = source[line * n + k];
    plan.run(in, out);
    std::copy_n(out, half, target + line * half);
  });
}

// The inverse: the other half of the last dim is the conjugate of the first.
template <class T>
void transform_to_real(KernelContext& context, const NdArray& from, const NdArray& to) {
  const int64_t n = to.shape().back(), half = n / 2 + 1;
  const LinePlan<T> plan(n);
  const auto* source = reinterpret_cast<const std::complex<T>*>(from.data());
  auto* target = reinterpret_cast<T*>(to.data());
  const T scale = T{1} / static_cast<T>(n);
  for_each_line<T>(context, to.size() / n, n, [&](int64_t line, std::complex<T>* in, std::complex<T>* out) {
    const std::complex<T>* first = source + line * half;
    for (int64_t k = 0; k < half; ++k) in[k] = std::conj(first[k]);
    for (int64_t k = half; k < n; ++k) in[k] = first[n - k];
    plan.run(in, out);
    for (int64_t k = 0; k < n; ++k) target[line * n + k] = out[k].real() * scale;
  });
}

// The dims of `array` that are transformed are its last `count`.
template <class T>
void transform(KernelContext& context, FftType type, size_t count) {
  const auto begin = static_cast<size_t>(context.operand(0).ndim()) - count;
  const bool inverse = type == FftType::kIfft || type == FftType::kIrfft;
  const bool real = type == FftType::kRfft || type == FftType::kIrfft;
  const auto others = [&](const NdArray& array, size_t end) {
    for (size_t dim = begin; dim < end; ++dim) transform_dim<T>(context, array, dim, inverse);
  };
  if (type == FftType::kRfft) {
    const NdArray from = contiguous_array(context, context.operand(0)), to = context.allocate_result();
    transform_real<T>(context, from, to);
    return others(to, begin + count - 1);
  }
  if (!real) return others(start_result_from(context, 0, 0), begin + count);
  const NdArray from = NdArray::empty(context.operand(0).dtype(), context.operand(0).shape());
  copy_array(context, from, context.operand(0));
  others(from, begin + count - 1);
  transform_to_real<T>(context, from, context.allocate_result());
}

}  // namespace

std::optional<Kernel> prepare_fft(const OpView& op, const KernelTypes& types) {
  const size_t count = op.attrs().get<IntArray>("fft_length").size();
  const FftType type = fft_type(op.attrs());
  const bool empty = types.operands[0].size() == 0 || types.results[0].size() == 0;
  const bool wide = types.operands[0].dtype == DType::kC128 || types.operands[0].dtype == DType::kF64;
  return [=](KernelContext& context) {
    if (empty) {
      context.allocate_result();
    } else if (wide) {
      transform<double>(context, type, count);
    } else {
      transform<float>(context, type, count);
    }
  };
}

}  // namespace shardwise
