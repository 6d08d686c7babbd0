// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/program.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "tile/math_reference.h"
#include "tile/tile_runs.h"

namespace shardwise {
namespace {

// All functions that SLEEF computes, and some that loops compute.
std::vector<TileCode> math_codes() {
  std::vector<TileCode> codes{TileCode::kSqrt,   TileCode::kRsqrt,     TileCode::kFloor,   TileCode::kRoundNearestAfz,
                              TileCode::kDivide, TileCode::kRemainder, TileCode::kMaximum, TileCode::kAdd};
  for (int i = 0; i < kTileCodeCount; ++i) {
    if (math_reference(static_cast<TileCode>(i), 0.5, 0.5)) codes.push_back(static_cast<TileCode>(i));
  }
  return codes;
}
const std::vector<TileCode> kMath = math_codes();
constexpr DType kFloats[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

TileProgram one_instruction(TileCode code, DType dtype, DType result) {
  TileBuilder tiles;
  std::vector<uint32_t> inputs;
  for (int i = 0; i < operand_count(code); ++i) inputs.push_back(tiles.input(dtype));
  tiles.output(tiles.emit(code, inputs, result));
  return std::move(tiles).build();
}

// Values of all magnitudes, with the special ones in between.
NdArray random_floats(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-12, 6), any(0, 39), wild(-140, 127);
  constexpr double kSpecial[] = {0.0, -0.0, 1.0, -1.0, 0.5, INFINITY, -INFINITY, 1e-40, -1e-40, 88.5, -95.0, 3e38};
  const NdArray array = NdArray::empty(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    const int choice = any(random);
    double value = std::ldexp(mantissa(random), choice < 4 ? wild(random) : exponent(random));
    if (choice == 4) value = kSpecial[static_cast<size_t>(random() % std::size(kSpecial))];
    if (choice == 5 && i % 8 == 0) value = std::nan("");
    store(Scalar::of_float(dtype, value), array.data() + i * item_size(dtype));
  }
  return array;
}

// A view of elements offset, offset + step, … of a one-dimensional array.
NdArray view(const NdArray& array, int64_t offset, int64_t step, int64_t count) {
  const int64_t item = item_size(array.dtype());
  return NdArray(array.dtype(), {count}, {step * item}, array.data() + offset * item, array.owner());
}

std::string name_of(TileCode code, DType dtype) {
  return "code " + std::to_string(static_cast<int>(code)) + " " + std::string(mlir_name(dtype));
}

TEST(Tile, SameBitsWhateverPositionLengthAndStride) {
  constexpr int64_t kCount = 10000;
  for (DType dtype : kFloats) {
    const NdArray x = random_floats(dtype, kCount, 1), y = random_floats(dtype, kCount, 2);
    for (TileCode code : kMath) {
      const TileProgram program = one_instruction(code, dtype, dtype);
      std::vector<NdArray> whole{x};
      if (operand_count(code) == 2) whole.push_back(y);
      const std::vector<std::byte> expected = bytes_of(run(program, whole));
      const auto item = static_cast<size_t>(item_size(dtype));
      for (int64_t length = 1; length <= 40; ++length) {
        for (int64_t step : {1, 3, -2}) {
          const int64_t offset = (length * 977 + step * 131 + 200) % (kCount - 300) + 100;
          std::vector<NdArray> part;
          for (const NdArray& array : whole) part.push_back(view(array, offset, step, length));
          const std::vector<std::byte> got = bytes_of(run(program, part));
          for (int64_t i = 0; i < length; ++i) {
            const auto at = static_cast<size_t>(offset + i * step) * item;
            ASSERT_EQ(std::memcmp(&expected[at], &got[static_cast<size_t>(i) * item], item), 0)
                << name_of(code, dtype) << " length " << length << " step " << step << " lane " << i;
          }
        }
      }
    }
  }
}

TEST(Tile, PiecesOfAnyThreadCountGiveTheSameBits) {
  const NdArray x = random_floats(DType::kF32, 10000, 3);
  const ParallelFor ragged = [](int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
    for (int64_t begin = 0, size = 1; begin < count; begin += size, size = size * 3 % 1013 + 1) {
      body(begin, std::min(begin + size, count));
    }
  };
  for (TileCode code : {TileCode::kTanh, TileCode::kExponential, TileCode::kErf, TileCode::kLog}) {
    const TileProgram program = one_instruction(code, DType::kF32, DType::kF32);
    const NdArray out = NdArray::empty(DType::kF32, {10000});
    run_tiles(program, std::array{x}, std::array{out}, ragged);
    EXPECT_EQ(bytes_of(out), bytes_of(run(program, {x})));
  }
}

class EveryIsa : public testing::Test {
 protected:
  void TearDown() override { use_tile_isa(tile_isas().back()); }
};

TEST_F(EveryIsa, GivesTheSameBits) {
  for (DType dtype : kFloats) {
    const NdArray x = random_floats(dtype, 10000, 4), y = random_floats(dtype, 10000, 5);
    for (TileCode code : kMath) {
      const TileProgram program = one_instruction(code, dtype, dtype);
      std::vector<NdArray> inputs{x};
      if (operand_count(code) == 2) inputs.push_back(y);
      use_tile_isa(tile_isas().back());
      const NdArray expected = run(program, inputs);
      for (std::string_view isa : tile_isas()) {
        if (isa == "baseline") continue;  // without FMA the last bits of transcendentals differ
        use_tile_isa(isa);
        const NdArray got = run(program, inputs);
        for (int64_t i = 0; i < 10000; ++i) {
          const Scalar want = expected.scalar_at(i), have = got.scalar_at(i);
          if (std::isnan(want.real) && std::isnan(have.real)) continue;  // which NaN is no part of the promise
          ASSERT_EQ(want, have) << isa << " " << name_of(code, dtype) << " x = " << x.scalar_at(i).real
                                << " y = " << y.scalar_at(i).real << ": " << want.real << " and " << have.real;
        }
      }
    }
  }
}

long double exact(TileCode code, long double x, long double y) {
  if (const auto reference = math_reference(code, x, y)) return *reference;
  switch (code) {
    case TileCode::kSqrt: return sqrtl(x);
    case TileCode::kRsqrt: return 1 / sqrtl(x);
    case TileCode::kFloor: return floorl(x);
    case TileCode::kRoundNearestAfz: return roundl(x);
    case TileCode::kDivide: return x / y;
    case TileCode::kRemainder: return fmodl(x, y);
    case TileCode::kMaximum:
      if (std::isnan(x) || std::isnan(y)) return NAN;
      return x > y || (x == y && !std::signbit(x)) ? x : y;
    default: return x + y;
  }
}

// Units in the last place of T between `got` and the exact value; infinities beyond the largest number are rounding.
template <class T>
double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0 : 1e9;
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : 1e9;
  if (std::isinf(got) || std::isinf(rounded)) return 1e9;
  const T above = std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity());
  const long double unit = static_cast<long double>(above) - std::fabs(static_cast<long double>(rounded));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

template <class T>
void check_accuracy(DType dtype) {
  constexpr int64_t kCount = 20000;
  const NdArray x = random_floats(dtype, kCount, 6), y = random_floats(dtype, kCount, 7);
  for (TileCode code : kMath) {
    const NdArray got =
        run(one_instruction(code, dtype, dtype), operand_count(code) == 2 ? std::vector{x, y} : std::vector{x});
    double worst = 0;
    int64_t where = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const long double want = exact(code, x.scalar_at(i).real, y.scalar_at(i).real);
      double error = ulps(static_cast<T>(got.scalar_at(i).real), want);
      // SLEEF bounds the absolute error at the roots of lgamma, which are all but two at negative numbers.
      const long double bound = dtype == DType::kF64 ? 1e-15L : 1e-8L;
      if (code == TileCode::kLgamma && x.scalar_at(i).real < 0 && std::fabs(got.scalar_at(i).real - want) <= bound)
        error = 0;
      if (error > worst) {
        worst = error;
        where = i;
      }
    }
    const bool composed = code == TileCode::kLogistic || code == TileCode::kSinh || code == TileCode::kCosh;
    EXPECT_LE(worst, composed ? 2.5 : 1.5)
        << name_of(code, dtype) << " at x = " << x.scalar_at(where).real << ", y = " << y.scalar_at(where).real
        << " got " << got.scalar_at(where).real;
  }
}

// A base of 2 takes a function of its own, also between lanes with other bases.
template <class T>
void check_powers_of_two(DType dtype) {
  constexpr int64_t kCount = 5000;
  const NdArray exponents = random_floats(dtype, kCount, 15), bases = random_floats(dtype, kCount, 16);
  const NdArray twos = NdArray::full(dtype, {kCount}, Scalar::of_float(dtype, 2));
  for (int64_t i = 0; i < kCount; i += 3) store(Scalar::of_float(dtype, 2), bases.data() + i * item_size(dtype));
  const TileProgram program = one_instruction(TileCode::kPower, dtype, dtype);
  const NdArray among_others = run(program, {bases, exponents}), alone = run(program, {twos, exponents});
  for (int64_t i = 0; i < kCount; ++i) {
    const double y = exponents.scalar_at(i).real;
    ASSERT_LE(ulps(static_cast<T>(alone.scalar_at(i).real), exp2l(y)), 1.5) << y;
    if (i % 3 != 0 || std::isnan(y)) continue;
    ASSERT_EQ(among_others.scalar_at(i), alone.scalar_at(i)) << y;
  }
}

TEST_F(EveryIsa, PowersOfTwo) {
  for (std::string_view isa : tile_isas()) {
    SCOPED_TRACE(std::string(isa));
    use_tile_isa(isa);
    check_powers_of_two<float>(DType::kF32);
    check_powers_of_two<double>(DType::kF64);
  }
}

NdArray joined(DType dtype, const NdArray& real, const NdArray& imag) {
  TileBuilder tiles;
  const uint32_t x = tiles.input(real.dtype()), y = tiles.input(imag.dtype());
  tiles.output(tiles.emit(TileCode::kComplex, {x, y}, dtype));
  return run(std::move(tiles).build(), {real, imag});
}

// Numbers that lie packed in memory, and those that a program makes of their parts, take other instructions.
TEST_F(EveryIsa, PackedComplexNumbersEqualPairs) {
  for (const auto& [dtype, part] : {std::pair{DType::kC64, DType::kF32}, std::pair{DType::kC128, DType::kF64}}) {
    std::vector<NdArray> parts;
    for (uint32_t seed = 17; seed < 21; ++seed) parts.push_back(random_floats(part, 1003, seed));
    for (std::string_view isa : tile_isas()) {
      use_tile_isa(isa);
      const NdArray a = joined(dtype, parts[0], parts[1]), b = joined(dtype, parts[2], parts[3]);
      for (const TileCode code : {TileCode::kNegate, TileCode::kAdd, TileCode::kSubtract, TileCode::kMultiply}) {
        TileBuilder pairs;
        uint32_t registers[4];
        for (uint32_t& reg : registers) reg = pairs.input(part);
        const std::array operands{pairs.emit(TileCode::kComplex, {registers[0], registers[1]}, dtype),
                                  pairs.emit(TileCode::kComplex, {registers[2], registers[3]}, dtype)};
        const auto count = static_cast<size_t>(operand_count(code));
        pairs.output(pairs.emit(code, std::span(operands).first(count), dtype));
        const NdArray want = run(std::move(pairs).build(), parts);
        const NdArray got = run(one_instruction(code, dtype, dtype), count == 1 ? std::vector{a} : std::vector{a, b});
        for (int64_t i = 0; i < want.size(); ++i) {
          const Scalar x = want.scalar_at(i), y = got.scalar_at(i);
          const auto same = [](double u, double v) {
            return std::isnan(u) ? std::isnan(v) : u == v && std::signbit(u) == std::signbit(v);
          };
          ASSERT_TRUE(same(x.real, y.real) && same(x.imag, y.imag)) << isa << " " << name_of(code, dtype) << " " << i;
        }
      }
    }
  }
}

TEST_F(EveryIsa, ConjugateIsTheNegatedImaginaryPart) {
  const NdArray real = random_floats(DType::kF32, 333, 21), imag = random_floats(DType::kF32, 333, 22);
  TileBuilder tiles;
  const uint32_t z = tiles.input(DType::kC64);
  const uint32_t x = tiles.emit(TileCode::kRealPart, {z}, DType::kF32);
  const uint32_t y = tiles.emit(TileCode::kNegate, {tiles.emit(TileCode::kImagPart, {z}, DType::kF32)}, DType::kF32);
  tiles.output(tiles.emit(TileCode::kComplex, {x, y}, DType::kC64));
  const TileProgram program = std::move(tiles).build();
  EXPECT_EQ(program.instruction_count(), 1U);
  const NdArray minus = run(one_instruction(TileCode::kNegate, DType::kF32, DType::kF32), {imag});
  for (std::string_view isa : tile_isas()) {
    use_tile_isa(isa);
    EXPECT_EQ(bytes_of(run(program, {joined(DType::kC64, real, imag)})), bytes_of(joined(DType::kC64, real, minus)));
  }
}

TEST(Tile, SignsOfSmallFloats) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const NdArray x = random_floats(dtype, 777, 23);
    const NdArray minus = run(one_instruction(TileCode::kNegate, dtype, dtype), {x});
    const NdArray size = run(one_instruction(TileCode::kAbs, dtype, dtype), {x});
    for (int64_t i = 0; i < 777; ++i) {
      const double value = x.scalar_at(i).real;
      if (std::isnan(value)) continue;
      ASSERT_EQ(minus.scalar_at(i), Scalar::of_float(dtype, -value)) << value;
      ASSERT_EQ(std::signbit(minus.scalar_at(i).real), !std::signbit(value)) << value;
      ASSERT_EQ(size.scalar_at(i), Scalar::of_float(dtype, std::fabs(value))) << value;
      ASSERT_FALSE(std::signbit(size.scalar_at(i).real)) << value;
    }
  }
}

TEST_F(EveryIsa, IsAccurate) {
  for (std::string_view isa : tile_isas()) {
    SCOPED_TRACE(std::string(isa));
    use_tile_isa(isa);
    check_accuracy<float>(DType::kF32);
    check_accuracy<double>(DType::kF64);
  }
}

// 16-bit floats: the float32 result, rounded once.
TEST(Tile, SmallFloatsRoundOncePerInstruction) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const NdArray x = random_floats(dtype, 5000, 8), y = random_floats(dtype, 5000, 9);
    NdArray wide_x = NdArray::empty(DType::kF32, {5000}), wide_y = NdArray::empty(DType::kF32, {5000});
    for (int64_t i = 0; i < 5000; ++i) {
      store(Scalar::of_float(DType::kF32, x.scalar_at(i).real), wide_x.data() + i * 4);
      store(Scalar::of_float(DType::kF32, y.scalar_at(i).real), wide_y.data() + i * 4);
    }
    for (TileCode code : kMath) {
      const bool two = operand_count(code) == 2;
      const NdArray got = run(one_instruction(code, dtype, dtype), two ? std::vector{x, y} : std::vector{x});
      const NdArray wide =
          run(one_instruction(code, DType::kF32, DType::kF32), two ? std::vector{wide_x, wide_y} : std::vector{wide_x});
      for (int64_t i = 0; i < 5000; ++i) {
        const Scalar want = Scalar::of_float(dtype, wide.scalar_at(i).real), have = got.scalar_at(i);
        const bool both_nan = std::isnan(want.real) && std::isnan(have.real);
        ASSERT_TRUE(both_nan || want == have) << name_of(code, dtype) << " " << have.real << ", not " << want.real;
      }
    }
  }
}

TEST(Tile, FusedChainEqualsItsOpsOneByOne) {
  for (DType dtype : kFloats) {
    const NdArray x = random_floats(dtype, 3001, 10), y = random_floats(dtype, 3001, 11);
    TileBuilder tiles;
    const uint32_t a = tiles.input(dtype), b = tiles.input(dtype);
    const uint32_t product = tiles.emit(TileCode::kMultiply, {a, b}, dtype);
    const uint32_t sum = tiles.emit(TileCode::kAdd, {product, a}, dtype);
    const uint32_t squashed = tiles.emit(TileCode::kTanh, {sum}, dtype);
    const uint32_t mask = tiles.emit(TileCode::kLess, {squashed, b}, DType::kBool);
    tiles.output(tiles.emit(TileCode::kSelect, {mask, squashed, product}, dtype));
    tiles.output(product);
    tiles.output(product);
    tiles.output(a);
    const TileProgram program = std::move(tiles).build();
    std::vector<NdArray> outs;
    for (int i = 0; i < 4; ++i) outs.push_back(NdArray::empty(dtype, {3001}));
    run_tiles(program, std::array{x, y}, outs, serial_for());

    const NdArray p = run(one_instruction(TileCode::kMultiply, dtype, dtype), {x, y});
    const NdArray s = run(one_instruction(TileCode::kAdd, dtype, dtype), {p, x});
    const NdArray t = run(one_instruction(TileCode::kTanh, dtype, dtype), {s});
    const NdArray m = run(one_instruction(TileCode::kLess, dtype, DType::kBool), {t, y});
    TileBuilder last;
    const uint32_t which = last.input(DType::kBool), one = last.input(dtype), other = last.input(dtype);
    last.output(last.emit(TileCode::kSelect, {which, one, other}, dtype));
    const NdArray selected = run(std::move(last).build(), {m, t, p});
    EXPECT_EQ(bytes_of(outs[0]), bytes_of(selected));
    EXPECT_EQ(bytes_of(outs[1]), bytes_of(p));
    EXPECT_EQ(bytes_of(outs[2]), bytes_of(p));
    EXPECT_EQ(bytes_of(outs[3]), bytes_of(x));
  }
}

// NaNs, zeros of either sign, bounds in the wrong order, and a maximum that something else reads, too.
TEST_F(EveryIsa, AMinimumOfAMaximumIsAClampWithTheSameBits) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const std::array values{0.0, -0.0, 1.0, -2.0, 7.0, kNaN};
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kF64, DType::kI8, DType::kI32, DType::kU64}) {
    std::array<NdArray, 3> x;
    constexpr int64_t kCount = 6 * 6 * 6;
    for (NdArray& array : x) array = NdArray::empty(dtype, {kCount});
    for (int64_t i = 0; i < kCount; ++i) {
      for (const auto& [k, place] : {std::pair{0, i % 6}, std::pair{1, i / 6 % 6}, std::pair{2, i / 36}}) {
        const double value = values[static_cast<size_t>(place)];
        const Scalar item = is_float(dtype)
                                ? Scalar::of_float(dtype, value)
                                : Scalar::of_int(dtype, std::isnan(value) ? 3 : std::abs(static_cast<int64_t>(value)));
        store(item, x[static_cast<size_t>(k)].data() + i * item_size(dtype));
      }
    }
    for (const std::string_view isa : tile_isas()) {
      use_tile_isa(isa);
      const NdArray raised = run(one_instruction(TileCode::kMaximum, dtype, dtype), {x[0], x[1]});
      const NdArray want = run(one_instruction(TileCode::kMinimum, dtype, dtype), {raised, x[2]});
      for (const bool swapped : {false, true}) {
        TileBuilder tiles;
        const uint32_t a = tiles.input(dtype), b = tiles.input(dtype), high = tiles.input(dtype);
        const uint32_t maximum = tiles.emit(TileCode::kMaximum, {a, b}, dtype);
        tiles.output(swapped ? tiles.emit(TileCode::kMinimum, {high, maximum}, dtype)
                             : tiles.emit(TileCode::kMinimum, {maximum, high}, dtype));
        if (swapped) tiles.output(maximum);
        const TileProgram program = std::move(tiles).build();
        EXPECT_EQ(program.instruction_count() == 1, !swapped && dtype != DType::kF16);
        std::vector<NdArray> outs(swapped ? 2 : 1);
        for (NdArray& out : outs) out = NdArray::empty(dtype, {kCount});
        run_tiles(program, x, outs, serial_for());
        EXPECT_EQ(bytes_of(outs[0]), bytes_of(want)) << isa << " " << mlir_name(dtype);
        EXPECT_EQ(bytes_of(outs.back()), bytes_of(swapped ? raised : want)) << isa << " " << mlir_name(dtype);
      }
    }
  }
}

TEST(Tile, StridedOperandsAndResults) {
  const auto value = [](const NdArray& array, int64_t i, int64_t j, int64_t k) {
    float element;
    std::memcpy(&element, array.data() + i * array.strides()[0] + j * array.strides()[1] + k * array.strides()[2], 4);
    return element;
  };
  const TileProgram program = one_instruction(TileCode::kAdd, DType::kF32, DType::kF32);
  for (const Dims& shape : {Dims{3, 5, 7}, Dims{2, 3, 1500}, Dims{70, 1, 33}, Dims{1, 1, 1}, Dims{256, 1, 160}}) {
    const int64_t a = shape[0], b = shape[1], c = shape[2];
    const NdArray x = random_floats(DType::kF32, a * b * c, 12), row = random_floats(DType::kF32, c, 13);
    const auto strided = [&](const NdArray& base, Dims strides, int64_t offset) {
      for (int64_t& stride : strides) stride *= 4;
      return NdArray(DType::kF32, shape, strides, base.data() + offset * 4, base.owner());
    };
    const NdArray views[] = {strided(x, {b * c, c, 1}, 0),
                             strided(x, {1, a, a * b}, 0),
                             strided(x, {-b * c, c, -1}, (a - 1) * b * c + c - 1),
                             strided(row, {0, 0, 1}, 0),
                             strided(row, {0, 0, 0}, 0),
                             strided(x, {1, 0, 0}, 0)};
    for (const NdArray& lhs : views) {
      for (const NdArray& rhs : views) {
        for (bool transposed : {false, true}) {
          const NdArray memory = NdArray::empty(DType::kF32, {a * b * c});
          const NdArray out = strided(memory, transposed ? Dims{1, a, a * b} : Dims{b * c, c, 1}, 0);
          run_tiles(program, std::array{lhs, rhs}, std::array{out}, serial_for());
          for (int64_t i = 0; i < a; ++i) {
            for (int64_t j = 0; j < b; ++j) {
              for (int64_t k = 0; k < c; ++k) {
                const float want = value(lhs, i, j, k) + value(rhs, i, j, k), got = value(out, i, j, k);
                ASSERT_TRUE(want == got || (std::isnan(want) && std::isnan(got))) << i << " " << j << " " << k;
              }
            }
          }
        }
      }
    }
  }
}

// An output may be an input; no operand is read after it was overwritten.
TEST(Tile, InPlace) {
  TileBuilder tiles;
  const uint32_t x = tiles.input(DType::kF32);
  const uint32_t twice = tiles.emit(TileCode::kAdd, {x, x}, DType::kF32);
  tiles.output(twice);
  tiles.output(tiles.emit(TileCode::kMultiply, {twice, x}, DType::kF32));
  const TileProgram program = std::move(tiles).build();
  for (int64_t count : {5, 64, 5000}) {
    const NdArray in = random_floats(DType::kF32, count, 14), out = NdArray::empty(DType::kF32, {count});
    const NdArray original = NdArray::empty(DType::kF32, {count});
    original.copy_from(in);
    run_tiles(program, std::array{in}, std::array{in, out}, serial_for());
    const NdArray sum = run(one_instruction(TileCode::kAdd, DType::kF32, DType::kF32), {original, original});
    EXPECT_EQ(bytes_of(in), bytes_of(sum));
    EXPECT_EQ(bytes_of(out),
              bytes_of(run(one_instruction(TileCode::kMultiply, DType::kF32, DType::kF32), {sum, original})));
  }
}

TEST(TileRunner, RunsContiguousSlabs) {
  const TileProgram program = one_instruction(TileCode::kMaximum, DType::kF32, DType::kF32);
  TileRunner runner(program);
  for (int64_t lanes : {1, 63, 64, 65, 5000}) {
    std::vector<float> sum(static_cast<size_t>(lanes) + 1, -1.0F), x(static_cast<size_t>(lanes));
    for (int64_t i = 0; i < lanes; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3);
    runner.run(std::array<const void*, 2>{sum.data(), x.data()}, std::array<void*, 1>{sum.data()}, lanes);
    for (int64_t i = 0; i < lanes; ++i)
      ASSERT_EQ(sum[static_cast<size_t>(i)], std::max(-1.0F, static_cast<float>(i % 7 - 3)));
    EXPECT_EQ(sum.back(), -1.0F);  // nothing is written beyond the end
  }
}

TEST(Tile, MisalignedMemory) {
  std::vector<std::byte> memory(4 * 200 + 1), result(4 * 200 + 1);
  for (int i = 0; i < 200; ++i) store(Scalar::of_float(DType::kF32, i), &memory[static_cast<size_t>(4 * i + 1)]);
  const NdArray x(DType::kF32, {200}, {4}, memory.data() + 1, nullptr);
  const NdArray out(DType::kF32, {200}, {4}, result.data() + 1, nullptr);
  run_tiles(one_instruction(TileCode::kNegate, DType::kF32, DType::kF32), std::array{x}, std::array{out}, serial_for());
  EXPECT_EQ(out.scalar_at(7).real, -7);
}

TEST(Tile, WrongOperandsAreErrors) {
  TileBuilder tiles;
  const uint32_t i = tiles.input(DType::kI32), f = tiles.input(DType::kF32);
  EXPECT_THROW(tiles.emit(TileCode::kTanh, {i}, DType::kI32), DTypeError);
  EXPECT_THROW(tiles.emit(TileCode::kAnd, {f, f}, DType::kF32), DTypeError);
  EXPECT_THROW(tiles.emit(TileCode::kAdd, {i, f}, DType::kF32), DTypeError);
  EXPECT_THROW(tiles.emit(TileCode::kSelect, {i, f, f}, DType::kF32), DTypeError);
  EXPECT_THROW(tiles.emit(TileCode::kAdd, {f}, DType::kF32), InternalError);
  EXPECT_THROW(std::move(tiles).build(), InternalError);
}

}  // namespace
}  // namespace shardwise
