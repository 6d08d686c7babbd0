// SPDX-License-Identifier: Apache-2.0
//
// Functions of complex numbers are the C library's, which has the special values of C99's annex G and the branch cuts
// of NumPy. Functions that it lacks are computed in double precision, so that complex64 is rounded once.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "shardwise/tile/portable.h"

namespace shardwise {
namespace {

using Double = std::complex<double>;

// ---- functions that the C library lacks -----------------------------------------------------------------------------

// Smith, "Algorithm 116: Complex division", CACM 5 (1962), with the operations of NumPy.
template <class T>
std::complex<T> quotient(std::complex<T> a, std::complex<T> b) {
  const T size_real = std::abs(b.real()), size_imag = std::abs(b.imag());
  if (size_real >= size_imag) {
    if (size_real == 0 && size_imag == 0) return {a.real() / size_real, a.imag() / size_real};
    const T ratio = b.imag() / b.real(), scale = T{1} / (b.real() + b.imag() * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = b.real() / b.imag(), scale = T{1} / (b.imag() + b.real() * ratio);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}

Double product(Double a, Double b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Double sign(Double z) {
  const double size = std::hypot(z.real(), z.imag());
  return size == 0 ? z : Double{z.real() / size, z.imag() / size};
}

Double rsqrt(Double z) {
  if (z.real() == 0 && z.imag() == 0) {
    return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  }
  return quotient(Double{1, 0}, std::sqrt(z));
}

// The principal root.
Double cbrt(Double z) {
  if (z.imag() == 0 && z.real() >= 0) return {std::cbrt(z.real()), z.imag()};
  const double size = std::cbrt(std::hypot(z.real(), z.imag())), angle = std::atan2(z.imag(), z.real()) / 3;
  return {size * std::cos(angle), size * std::sin(angle)};
}

// e^z - 1 = (e^x - 1) cos y - 2 sin^2(y / 2) + i e^x sin y
Double expm1(Double z) {
  constexpr double kLarge = 40;  // above, 1 is less than half of the last digit
  const double x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x), y};
  if (!std::isfinite(x) || x > kLarge) {
    const Double power = std::exp(z);
    return {power.real() - 1, power.imag()};
  }
  const double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}

// The rounding error of a sum (Knuth's two-sum).
double sum_error(double a, double b) {
  const double sum = a + b, added = sum - a;
  return (a - (sum - added)) + (b - added);
}

// log(1 + z). Near |1 + z| = 1 the real part is log1p(2 x + x^2 + y^2) / 2, whose argument is computed with twice the
// digits; where |x| >= 1/2, 1 + x is exact there, and the C library does the same.
Double log1p(Double z) {
  const double x = z.real(), y = z.imag();
  if (!(std::abs(x) < 0.5 && std::abs(y) <= 2)) return std::log(Double{1 + x, y});
  const double xx = x * x, yy = y * y, twice = 2 * x;
  const double squares = std::fma(x, x, -xx) + std::fma(y, y, -yy);
  const double low = twice + yy, total = low + xx;
  const double rest = squares + sum_error(twice, yy) + sum_error(low, xx);
  return {std::log1p(total + rest) / 2, std::atan2(y, 1 + x)};
}

// Both forms avoid a power that overflows: 1 / (1 + e^-z), and e^z / (1 + e^z).
Double logistic(Double z) {
  const bool is_right = z.real() >= 0;
  const Double power = std::exp(is_right ? -z : z), whole{1 + power.real(), power.imag()};
  return quotient(is_right ? Double{1, 0} : power, whole);
}

// x^y. Exact cases are those of NumPy: x^0 = 1, powers of zero, and small whole exponents by repeated products.
Double power(Double x, Double y) {
  constexpr double kMostProducts = 100;
  if (y == Double{0, 0}) return {1, 0};
  if (x == Double{0, 0}) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return y.real() > 0 ? Double{0, 0} : Double{kNan, kNan};
  }
  if (y.imag() == 0 && y.real() == std::floor(y.real()) && std::abs(y.real()) < kMostProducts) {
    Double result{1, 0}, factor = x;
    for (int rest = static_cast<int>(std::abs(y.real())); rest > 0; rest /= 2) {
      if (rest % 2 != 0) result = product(result, factor);
      if (rest > 1) factor = product(factor, factor);
    }
    return y.real() < 0 ? quotient(Double{1, 0}, result) : result;
  }
  return std::pow(x, y);
}

// -i log((x + i y) / sqrt(x^2 + y^2))
Double atan2(Double y, Double x) {
  const Double xx = product(x, x), yy = product(y, y);
  const Double root = std::sqrt(Double{xx.real() + yy.real(), xx.imag() + yy.imag()});
  const Double log = std::log(quotient(Double{x.real() - y.imag(), x.imag() + y.real()}, root));
  return {log.imag(), -log.real()};
}

// ---- loops ----------------------------------------------------------------------------------------------------------

template <class T, class F, class... Operands>
void each(F function, int64_t lanes, void* out, Operands... operands) {
  auto* to = static_cast<std::complex<T>*>(out);
  for (int64_t i = 0; i < lanes; ++i) to[i] = function(static_cast<const std::complex<T>*>(operands)[i]...);
}

// A function of complex numbers of either width.
template <class T, std::complex<T> Function(const std::complex<T>&)>
void library(void* out, const void* a, const void*, const void*, int64_t lanes) {
  each<T>(Function, lanes, out, a);
}

// A function in double precision.
template <class T, Double Function(Double)>
void own(void* out, const void* a, const void*, const void*, int64_t lanes) {
  each<T>([](const auto& z) { return std::complex<T>(Function(Double(z))); }, lanes, out, a);
}
template <class T, Double Function(Double, Double)>
void own_binary(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  const auto function = [](const auto& x, const auto& y) { return std::complex<T>(Function(Double(x), Double(y))); };
  each<T>(function, lanes, out, a, b);
}

template <class T>
void divide(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  each<T>(quotient<T>, lanes, out, a, b);
}

template <class T>
void copy(void* out, const void* a, const void*, const void*, int64_t lanes) {
  std::memmove(out, a, static_cast<size_t>(lanes) * sizeof(T));
}

template <class T>
TileKernel kernel_of(TileCode code) {
  switch (code) {
    case TileCode::kCopy: return copy<std::complex<T>>;
    case TileCode::kDivide: return divide<T>;
    case TileCode::kSign: return own<T, sign>;
    case TileCode::kSqrt: return library<T, std::sqrt<T>>;
    case TileCode::kRsqrt: return own<T, rsqrt>;
    case TileCode::kCbrt: return own<T, cbrt>;
    case TileCode::kExponential: return library<T, std::exp<T>>;
    case TileCode::kExponentialMinusOne: return own<T, expm1>;
    case TileCode::kLog: return library<T, std::log<T>>;
    case TileCode::kLogPlusOne: return own<T, log1p>;
    case TileCode::kLogistic: return own<T, logistic>;
    case TileCode::kSine: return library<T, std::sin<T>>;
    case TileCode::kCosine: return library<T, std::cos<T>>;
    case TileCode::kTan: return library<T, std::tan<T>>;
    case TileCode::kTanh: return library<T, std::tanh<T>>;
    case TileCode::kSinh: return library<T, std::sinh<T>>;
    case TileCode::kCosh: return library<T, std::cosh<T>>;
    case TileCode::kAsin: return library<T, std::asin<T>>;
    case TileCode::kAcos: return library<T, std::acos<T>>;
    case TileCode::kAtan: return library<T, std::atan<T>>;
    case TileCode::kAsinh: return library<T, std::asinh<T>>;
    case TileCode::kAcosh: return library<T, std::acosh<T>>;
    case TileCode::kAtanh: return library<T, std::atanh<T>>;
    case TileCode::kPower: return own_binary<T, power>;
    case TileCode::kAtan2: return own_binary<T, atan2>;
    default: return nullptr;
  }
}

}  // namespace

TileKernel complex_kernel(TileCode code, DType dtype) {
  return dtype == DType::kC64 ? kernel_of<float>(code) : kernel_of<double>(code);
}

}  // namespace shardwise
