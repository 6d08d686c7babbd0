// SPDX-License-Identifier: Apache-2.0
//
// Transforms of lines. Lengths are told apart, never the number of lines, so that a line has the same bits in any
// batch:
//
//   few elements      lines side by side in vectors, split by factors
//   many elements     one line at a time, as a matrix of columns and rows (tile/fourier.h)
//   a large factor    a convolution of length 2^k >= 2 n - 1 (Bluestein, 1970)
//
// Real lines of an even length are complex ones of half the length.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <type_traits>
#include <vector>

#include "shardwise/ops/linalg/fft.h"
#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/tile/lines.h"

namespace shardwise {
namespace {

constexpr int64_t kFewElements = 256;
constexpr int64_t kGrainElements = 1 << 13;

template <class T>
constexpr int64_t kLines = kFourierBytes / static_cast<int64_t>(sizeof(T));  // that are transformed together

const FourierTable& kernels(float) { return line_kernels().fourier_f32; }
const FourierTable& kernels(double) { return line_kernels().fourier_f64; }

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
      // 4, 2, 3, 5, 7, …: a factor of 4 costs less than two of 2.
      factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2;
      if (factor > kLargestFourierFactor) return {};
    }
  }
  return factors;
}

bool has_small_factors(int64_t n) { return n == 1 || !small_factors(n).empty(); }

// Memory that nobody has written.
template <class T>
class Workspace {
 public:
  explicit Workspace(int64_t bytes) : memory_(new(kAlignment) std::byte[static_cast<size_t>(bytes)]) {}
  T* data() { return reinterpret_cast<T*>(memory_.get()); }

 private:
  static constexpr std::align_val_t kAlignment{kFourierBytes};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
};

template <class T>
class Stages {
 public:
  explicit Stages(int64_t n) : factors_(small_factors(n)) {
    int64_t rest = n;
    for (const int64_t p : factors_) {
      const int64_t m = rest / p;
      for (int64_t j = 0; p % 2 == 1 && j < p; ++j) roots_.push_back(root_of_unity<T>(j, p));
      for (int64_t q = 0; m > 1 && q < m; ++q) {
        for (int64_t j = 1; j < p; ++j) roots_.push_back(root_of_unity<T>(q * j, rest));
      }
      rest = m;
    }
    plan_ = {n, static_cast<int64_t>(factors_.size()), factors_.data(), roots_.data()};
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  const FourierStages& plan() const { return plan_; }

 private:
  std::vector<int64_t> factors_;
  std::vector<std::complex<T>> roots_;
  FourierStages plan_;
};

// A transform of lines of one length.
template <class T>
class LinePlan {
 public:
  using Number = std::complex<T>;

  virtual ~LinePlan() = default;
  // `count` lines, at most kLines. `from` and `to` are row-major and do not overlap.
  virtual void run(const Number* from, Number* to, int64_t count, bool inverse) const = 0;

  static std::unique_ptr<const LinePlan> of_length(int64_t n);
};

template <class T>
class ShortLines : public LinePlan<T> {
 public:
  using Number = std::complex<T>;
  explicit ShortLines(int64_t n) : stages_(n) {}

  void run(const Number* from, Number* to, int64_t count, bool inverse) const override {
    const int64_t n = stages_.plan().n, element = 2 * kLines<T>;
    Workspace<T> workspace(2 * n * element * static_cast<int64_t>(sizeof(T)));
    T* const x = workspace.data();
    const int64_t re = inverse ? kLines<T> : 0, im = kLines<T> - re;  // an inverse transform exchanges the parts
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t line = 0; line < kLines<T>; ++line) {
        const Number value = line < count ? from[line * n + k] : Number{};
        x[k * element + re + line] = value.real();
        x[k * element + im + line] = value.imag();
      }
    }
    kernels(T{}).stages(stages_.plan(), x, x + n * element);
    const T scale = inverse ? T{1} / static_cast<T>(n) : T{1};
    for (int64_t line = 0; line < count; ++line) {
      for (int64_t k = 0; k < n; ++k) {
        to[line * n + k] = {x[k * element + re + line] * scale, x[k * element + im + line] * scale};
      }
    }
  }

 private:
  Stages<T> stages_;
};

template <class T>
class LongLine : public LinePlan<T> {
 public:
  using Number = std::complex<T>;

  explicit LongLine(int64_t n) : LongLine(n, columns_of(n)) {}

  void run(const Number* from, Number* to, int64_t count, bool inverse) const override {
    const int64_t n = plan_.columns.n * plan_.rows.n;
    Workspace<std::byte> workspace(fourier_workspace(plan_, sizeof(T)));
    const double scale = inverse ? 1 / static_cast<double>(n) : 1;
    for (int64_t line = 0; line < count; ++line) {
      kernels(T{}).line(plan_, from + line * n, to + line * n, inverse, scale, workspace.data());
    }
  }

 private:
  LongLine(int64_t n, int64_t columns) : columns_(columns), rows_(n / columns) {
    const int64_t vectors = ceil_div(rows_.plan().n, kLines<T>);
    turns_.resize(static_cast<size_t>(2 * vectors * columns * kLines<T>));
    T* turn = turns_.data();
    for (int64_t vector = 0; vector < vectors; ++vector) {
      for (int64_t row = 0; row < columns; ++row, turn += 2 * kLines<T>) {
        for (int64_t lane = 0; lane < kLines<T>; ++lane) {
          const Number root = root_of_unity<T>(row * (vector * kLines<T> + lane), n);
          turn[lane] = root.real();
          turn[kLines<T> + lane] = root.imag();
        }
      }
    }
    plan_ = {columns_.plan(), rows_.plan(), turns_.data()};
  }

  // The length of the columns: few lanes stay empty, and the matrix is nearly square.
  static int64_t columns_of(int64_t n) {
    constexpr double kPriceOfLength = 0.02;
    const auto padded = [](int64_t size) { return ceil_div(size, kLines<T>) * kLines<T>; };
    int64_t best = 1;
    double least = 0;
    const auto consider = [&](int64_t columns) {
      const int64_t rows = n / columns;
      const double longer = static_cast<double>(std::max(columns, rows)) / std::sqrt(static_cast<double>(n));
      const double cost =
          static_cast<double>(padded(rows) * columns + padded(columns) * rows) * (1 + kPriceOfLength * longer);
      if (columns > 1 && cost >= least) return;
      best = columns;
      least = cost;
    };
    for (int64_t factor = 1; factor * factor <= n; ++factor) {
      if (n % factor != 0) continue;
      consider(factor);
      consider(n / factor);
    }
    return best;
  }

  Stages<T> columns_, rows_;
  std::vector<T> turns_;
  FourierLine plan_;
};

// X[k] = c[k] sum of (x[j] c[j]) / c[k - j], where c[k] = exp(-pi i k^2 / n).
template <class T>
class ChirpedLine : public LinePlan<T> {
 public:
  using Number = std::complex<T>;

  explicit ChirpedLine(int64_t n) : n_(n), length_(length_for(n)), convolution_(length_) {
    std::vector<Number> kernel(static_cast<size_t>(length_));
    spectrum_.resize(kernel.size());
    for (int64_t k = 0; k < n; ++k) {
      chirp_.push_back(root_of_unity<T>(static_cast<int64_t>(square_modulo(k, 2 * n)), 2 * n));
      kernel[static_cast<size_t>(k)] = std::conj(chirp_.back());
      if (k > 0) kernel[static_cast<size_t>(length_ - k)] = kernel[static_cast<size_t>(k)];
    }
    convolution_.run(kernel.data(), spectrum_.data(), 1, false);
  }

  void run(const Number* from, Number* to, int64_t count, bool inverse) const override {
    const auto length = static_cast<size_t>(length_), n = static_cast<size_t>(n_);
    std::vector<Number> padded(length), product(length);
    const T scale = inverse ? T{1} / static_cast<T>(n_) : T{1};
    for (int64_t line = 0; line < count; ++line, from += n_, to += n_) {
      for (size_t k = 0; k < n; ++k) padded[k] = times(inverse ? std::conj(from[k]) : from[k], chirp_[k]);
      std::fill(padded.begin() + n_, padded.end(), Number{});
      convolution_.run(padded.data(), product.data(), 1, false);
      for (size_t k = 0; k < length; ++k) product[k] = times(product[k], spectrum_[k]);
      convolution_.run(product.data(), padded.data(), 1, true);
      for (size_t k = 0; k < n; ++k) {
        const Number result = times(padded[k], chirp_[k]);
        to[k] = (inverse ? std::conj(result) : result) * scale;
      }
    }
  }

 private:
  static int64_t length_for(int64_t n) {
    int64_t length = kFewElements;
    while (length < 2 * n - 1) length *= 2;
    return length;
  }
  static uint64_t square_modulo(int64_t k, int64_t n) {
    return static_cast<uint64_t>(k) * static_cast<uint64_t>(k) % static_cast<uint64_t>(n);
  }

  int64_t n_, length_;
  LongLine<T> convolution_;
  std::vector<Number> chirp_, spectrum_;
};

template <class T>
std::unique_ptr<const LinePlan<T>> LinePlan<T>::of_length(int64_t n) {
  // Only by n, never by the number of lines: see above.
  if (!has_small_factors(n)) return std::make_unique<ChirpedLine<T>>(n);
  if (n < kFewElements) return std::make_unique<ShortLines<T>>(n);
  return std::make_unique<LongLine<T>>(n);
}

// The plans of an op, made when it first runs: a million roots of unity take as long as the transform.
template <class T>
class Plans {
 public:
  const LinePlan<T>& of_length(int64_t n) {
    const std::lock_guard lock(mutex_);
    auto& plan = plans_[n];
    if (plan == nullptr) plan = LinePlan<T>::of_length(n);
    return *plan;
  }
  // exp(-2 pi i k / n) for k up to n / 2.
  const std::vector<std::complex<T>>& half_turn(int64_t n) {
    const std::lock_guard lock(mutex_);
    auto& roots = roots_[n];
    for (auto k = static_cast<int64_t>(roots.size()); k <= n / 2; ++k) roots.push_back(root_of_unity<T>(k, n));
    return roots;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<const LinePlan<T>>> plans_;
  std::map<int64_t, std::vector<std::complex<T>>> roots_;
};

// Runs body(first line, lines, buffer, buffer) for groups of lines; each buffer has room for `n` numbers of each.
template <class T, class F>
void for_each_group(KernelContext& context, int64_t lines, int64_t n, F body) {
  constexpr int64_t kGroup = kLines<T>;
  const int64_t grain = std::max<int64_t>(kGrainElements / std::max<int64_t>(n * kGroup, 1), 1);
  context.parallel_for(ceil_div(lines, kGroup), grain, [&](int64_t begin, int64_t end) {
    const int64_t bytes = n * std::min(kGroup, lines) * static_cast<int64_t>(sizeof(std::complex<T>));
    Workspace<std::complex<T>> from(bytes), to(bytes);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kGroup;
      body(first, std::min(kGroup, lines - first), from.data(), to.data());
    }
  });
}

// A transform along one dim of row-major complex numbers. `from` may be `to`, but must not overlap it otherwise.
template <class T>
void transform_dim(KernelContext& context, Plans<T>& plans, const NdArray& from, const NdArray& to, size_t dim,
                   bool inverse) {
  const DimSpan shape = to.shape();
  const int64_t n = shape[dim], inner = element_count(shape.subspan(dim + 1)), lines = to.size() / n;
  const LinePlan<T>& plan = plans.of_length(n);
  using Number = std::complex<T>;
  const auto* source = reinterpret_cast<const Number*>(from.data());
  auto* target = reinterpret_cast<Number*>(to.data());
  for_each_group<T>(context, lines, n, [&](int64_t first, int64_t count, Number* in, Number* out) {
    if (inner == 1 && source != target) return plan.run(source + first * n, target + first * n, count, inverse);
    if (inner == 1) {
      plan.run(source + first * n, out, count, inverse);
      std::copy_n(out, count * n, target + first * n);
      return;
    }
    const auto place = [&](int64_t line) { return (first + line) / inner * n * inner + (first + line) % inner; };
    int64_t places[kLines<T>];
    for (int64_t line = 0; line < count; ++line) places[line] = place(line);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t line = 0; line < count; ++line) in[line * n + k] = source[places[line] + k * inner];
    }
    plan.run(in, out, count, inverse);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t line = 0; line < count; ++line) target[places[line] + k * inner] = out[line * n + k];
    }
  });
}

// Both parts of a few numbers, each in a register that any CPU of this architecture has.
template <class T>
using Register __attribute__((vector_size(16))) = T;
template <class T>
constexpr int64_t kPairs = 16 / static_cast<int64_t>(sizeof(T));

template <class T>
struct Parts {
  using Number = std::complex<T>;
  using Places = Register<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  Register<T> re, im;

  // Numbers from[0], from[1], …, or from[0], from[-1], …; those beyond `count` are 0.
  template <int kStep>
  static Parts at(const Number* from, int64_t count) {
    if (count == kPairs<T>) return split<kStep>(kStep > 0 ? from : from - (kPairs<T> - 1));
    Number room[kPairs<T>] = {};
    for (int64_t i = 0; i < count; ++i) room[i] = from[kStep * i];
    return split<1>(room);
  }
  template <int kStep>
  void put(Number* to, int64_t count) const {
    if (count == kPairs<T>) return join<kStep>(kStep > 0 ? to : to - (kPairs<T> - 1));
    Number room[kPairs<T>];
    join<1>(room);
    for (int64_t i = 0; i < count; ++i) to[kStep * i] = room[i];
  }

 private:
  static constexpr int kLast = static_cast<int>(kPairs<T>) - 1;
  template <int kStep>
  static Parts split(const Number* numbers) {
    Register<T> low, high;
    std::memcpy(&low, numbers, sizeof low);
    std::memcpy(&high, reinterpret_cast<const T*>(numbers) + kPairs<T>, sizeof high);
    Places re, im;
    for (int i = 0; i <= kLast; ++i) {
      re[i] = 2 * (kStep > 0 ? i : kLast - i);
      im[i] = re[i] + 1;
    }
    return {__builtin_shuffle(low, high, re), __builtin_shuffle(low, high, im)};
  }
  template <int kStep>
  void join(Number* numbers) const {
    Places first, second;
    for (int i = 0; i <= kLast; ++i) {
      const int place = i / 2, part = i % 2 * (kLast + 1), half = (kLast + 1) / 2;
      first[i] = (kStep > 0 ? place : kLast - place) + part;
      second[i] = (kStep > 0 ? half + place : kLast - half - place) + part;
    }
    const Register<T> low = __builtin_shuffle(re, im, first), high = __builtin_shuffle(re, im, second);
    std::memcpy(reinterpret_cast<T*>(numbers), &low, sizeof low);
    std::memcpy(reinterpret_cast<T*>(numbers) + kPairs<T>, &high, sizeof high);
  }
};

// Calls body(k, count) for blocks of [1, end). The last one overlaps the one before, so that it is whole.
template <class T, class Body>
void for_each_pair_block(int64_t end, Body body) {
  if (end - 1 < kPairs<T>) return body(1, end - 1);
  for (int64_t k = 1; k < end; k += kPairs<T>) body(std::min(k, end - kPairs<T>), kPairs<T>);
}

// With z[j] = x[2 j] + i x[2 j + 1] and its transform Z of m = n / 2 elements, X[k] is the sum of the transforms of the
// even and of the odd elements: (Z[k] + Z*[m - k]) / 2 - i w^k (Z[k] - Z*[m - k]) / 2, where w = exp(-2 pi i / n).
template <class T>
void split_spectrum(const std::complex<T>* z, int64_t m, const std::vector<std::complex<T>>& roots,
                    std::complex<T>* to) {
  to[0] = z[0].real() + z[0].imag();
  to[m] = z[0].real() - z[0].imag();
  // X[m - k] has the same terms, because the root of m - k is that of k mirrored at the imaginary axis.
  for_each_pair_block<T>(m / 2 + 1, [&](int64_t k, int64_t count) {
    const auto a = Parts<T>::template at<1>(z + k, count), b = Parts<T>::template at<-1>(z + m - k, count);
    const auto root = Parts<T>::template at<1>(roots.data() + k, count);
    // The second number is a conjugate.
    const Parts<T> even{(a.re + b.re) * T{0.5}, (a.im - b.im) * T{0.5}};
    const Parts<T> odd{(a.im + b.im) * T{0.5}, -((a.re - b.re) * T{0.5})};
    const Parts<T> turned{odd.re * root.re - odd.im * root.im, odd.re * root.im + odd.im * root.re};
    Parts<T>{even.re + turned.re, even.im + turned.im}.template put<1>(to + k, count);
    Parts<T>{even.re - turned.re, turned.im - even.im}.template put<-1>(to + m - k, count);
  });
}

// The inverse of this. The first and the last number are real.
template <class T>
void join_spectrum(const std::complex<T>* from, int64_t m, const std::vector<std::complex<T>>& roots,
                   std::complex<T>* z) {
  const T first = from[0].real(), last = from[m].real();
  z[0] = {(first + last) * T{0.5}, (first - last) * T{0.5}};
  for_each_pair_block<T>(m, [&](int64_t k, int64_t count) {
    const auto a = Parts<T>::template at<1>(from + k, count), b = Parts<T>::template at<-1>(from + m - k, count);
    const auto root = Parts<T>::template at<1>(roots.data() + k, count);
    const Parts<T> even{(a.re + b.re) * T{0.5}, (a.im - b.im) * T{0.5}};
    const Parts<T> odd{(a.re - b.re) * T{0.5}, (a.im + b.im) * T{0.5}};
    const Parts<T> turned{odd.re * root.re + odd.im * root.im, odd.im * root.re - odd.re * root.im};
    Parts<T>{even.re - turned.im, even.im + turned.re}.template put<1>(z + k, count);
  });
}

// The first half of the transform along the last dim of real numbers.
template <class T>
void transform_real(KernelContext& context, Plans<T>& plans, const NdArray& from, const NdArray& to) {
  const int64_t n = from.shape().back(), half = n / 2 + 1, m = n % 2 == 0 ? n / 2 : n;
  const LinePlan<T>& plan = plans.of_length(m);
  const auto& roots = plans.half_turn(n);
  using Number = std::complex<T>;
  const auto* source = reinterpret_cast<const T*>(from.data());
  auto* target = reinterpret_cast<Number*>(to.data());
  for_each_group<T>(context, from.size() / n, m, [&](int64_t first, int64_t count, Number* in, Number* out) {
    const T* lines = source + first * n;
    if (n % 2 == 0) {
      plan.run(reinterpret_cast<const Number*>(lines), out, count, false);
    } else {
      for (int64_t k = 0; k < count * n; ++k) in[k] = lines[k];
      plan.run(in, out, count, false);
    }
    for (int64_t line = 0; line < count; ++line) {
      Number* result = target + (first + line) * half;
      if (n % 2 == 0) {
        split_spectrum(out + line * m, m, roots, result);
      } else {
        std::copy_n(out + line * n, half, result);
      }
    }
  });
}

// The inverse: the other half of the last dim is the conjugate of the first.
template <class T>
void transform_to_real(KernelContext& context, Plans<T>& plans, const NdArray& from, const NdArray& to) {
  const int64_t n = to.shape().back(), half = n / 2 + 1, m = n % 2 == 0 ? n / 2 : n;
  const LinePlan<T>& plan = plans.of_length(m);
  const auto& roots = plans.half_turn(n);
  using Number = std::complex<T>;
  const auto* source = reinterpret_cast<const Number*>(from.data());
  auto* target = reinterpret_cast<T*>(to.data());
  for_each_group<T>(context, to.size() / n, m, [&](int64_t first, int64_t count, Number* in, Number* out) {
    for (int64_t line = 0; line < count; ++line) {
      const Number* spectrum = source + (first + line) * half;
      if (n % 2 == 0) {
        join_spectrum(spectrum, m, roots, in + line * m);
      } else {
        for (int64_t k = 0; k < half; ++k) in[line * n + k] = spectrum[k];
        for (int64_t k = half; k < n; ++k) in[line * n + k] = std::conj(spectrum[n - k]);
      }
    }
    T* lines = target + first * n;
    if (n % 2 == 0) return plan.run(in, reinterpret_cast<Number*>(lines), count, true);
    plan.run(in, out, count, true);
    for (int64_t k = 0; k < count * n; ++k) lines[k] = out[k].real();
  });
}

// The dims of `array` that are transformed are its last `count`.
template <class T>
void transform(KernelContext& context, Plans<T>& plans, FftType type, size_t count) {
  const auto begin = static_cast<size_t>(context.operand(0).ndim()) - count;
  const bool inverse = type == FftType::kIfft || type == FftType::kIrfft;
  const bool real = type == FftType::kRfft || type == FftType::kIrfft;
  const auto others = [&](NdArray from, const NdArray& to, size_t end) {
    for (size_t dim = begin; dim < end; ++dim) {
      transform_dim<T>(context, plans, from, to, dim, inverse);
      from = to;
    }
  };
  const std::optional<NdArray> taken = real ? std::nullopt : context.take_operand(0);
  if (taken && taken->is_contiguous()) {
    context.set_result(0, *taken);
    return others(*taken, *taken, begin + count);
  }
  const NdArray to = context.allocate_result();
  const NdArray from = contiguous_array(context, context.operand(0));
  if (!real) return others(from, to, begin + count);
  if (type == FftType::kRfft) {
    transform_real<T>(context, plans, from, to);
    return others(to, to, begin + count - 1);
  }
  const NdArray spectrum = count > 1 ? NdArray::empty(from.dtype(), from.shape()) : from;
  others(from, spectrum, begin + count - 1);
  transform_to_real<T>(context, plans, spectrum, to);
}

template <class T>
Kernel kernel_of(FftType type, size_t count) {
  return
      [=, plans = std::make_shared<Plans<T>>()](KernelContext& context) { transform<T>(context, *plans, type, count); };
}

}  // namespace

std::optional<Kernel> prepare_fft(const OpView& op, const KernelTypes& types) {
  const size_t count = op.attrs().get<IntArray>("fft_length").size();
  const FftType type = fft_type(op.attrs());
  if (types.operands[0].size() == 0 || types.results[0].size() == 0) {
    return [](KernelContext& context) { context.allocate_result(); };
  }
  const bool wide = types.operands[0].dtype == DType::kC128 || types.operands[0].dtype == DType::kF64;
  return wide ? kernel_of<double>(type, count) : kernel_of<float>(type, count);
}

}  // namespace shardwise
