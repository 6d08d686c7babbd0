// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/one_op.h"
#include "shardwise/base/error.h"
#include "tile/math_reference.h"

namespace shardwise {
namespace {

constexpr DType kAllDTypes[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32, DType::kI64,
                                DType::kU8,   DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                                DType::kBF16, DType::kF32, DType::kF64};

// The values where things go wrong, for any dtype.
std::vector<Scalar> interesting(DType dtype) {
  std::vector<Scalar> values;
  if (is_float(dtype)) {
    for (double v : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     7.25,
                     -7.0,
                     1e-40,
                     -1e-40,
                     65504.0,
                     3e38,
                     -3e38,
                     static_cast<double>(INFINITY),
                     static_cast<double>(-INFINITY),
                     std::nan("")}) {
      values.push_back(Scalar::of_float(dtype, v));
    }
  } else {
    for (int64_t v :
         {0L,   1L,     2L,     3L,          7L,  8L,  31L, 33L,   64L,     100L,         127L,      128L,
          255L, 32767L, 65535L, 2147483647L, -1L, -2L, -7L, -128L, -32768L, -2147483648L, INT64_MAX, INT64_MIN}) {
      values.push_back(Scalar::of_int(dtype, v));
    }
  }
  return values;
}

double as_double(Scalar s) {
  if (is_float(s.dtype)) return s.real;
  return is_unsigned_integer(s.dtype) ? static_cast<double>(s.natural) : static_cast<double>(s.integer);
}
__int128 as_wide(Scalar s) { return is_unsigned_integer(s.dtype) ? static_cast<__int128>(s.natural) : s.integer; }
Scalar wrap(DType dtype, __int128 value) {
  return dtype == DType::kBool ? Scalar::of_int(dtype, value != 0)
                               : Scalar::of_uint(dtype, static_cast<uint64_t>(value));
}

// Rounded as the tiles do: 16-bit floats through float32.
Scalar round_to(DType dtype, double value) {
  if (dtype == DType::kF64 || dtype == DType::kF32) return Scalar::of_float(dtype, value);
  return Scalar::of_float(dtype, static_cast<double>(static_cast<float>(value)));
}

__int128 power(__int128 base, __int128 exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return result;
}

Scalar integer_reference(std::string_view op, Scalar a, Scalar b) {
  const DType dtype = a.dtype;
  const int64_t bits = dtype == DType::kBool ? 1 : item_size(dtype) * 8;
  const __int128 x = as_wide(a), y = as_wide(b);
  const auto ux = static_cast<unsigned __int128>(x) & ((static_cast<unsigned __int128>(1) << bits) - 1);
  const auto uy = static_cast<unsigned __int128>(y) & ((static_cast<unsigned __int128>(1) << bits) - 1);
  const bool small_shift = uy < static_cast<unsigned __int128>(bits);
  if (op == "abs") return wrap(dtype, x < 0 ? -x : x);
  if (op == "negate") return wrap(dtype, -x);
  if (op == "sign") return wrap(dtype, (x > 0) - (x < 0));
  if (op == "not") return dtype == DType::kBool ? truth(x == 0) : wrap(dtype, ~x);
  if (op == "popcnt") return wrap(dtype, __builtin_popcountll(static_cast<uint64_t>(ux)));
  if (op == "count_leading_zeros")
    return wrap(dtype, ux == 0 ? bits : __builtin_clzll(static_cast<uint64_t>(ux)) - 64 + bits);
  if (op == "square" || op == "multiply") return wrap(dtype, static_cast<__int128>(ux * (op == "square" ? ux : uy)));
  if (op == "add") return wrap(dtype, x + y);
  if (op == "subtract") return wrap(dtype, x - y);
  if (op == "divide") return wrap(dtype, y == 0 ? -1 : x / y);
  if (op == "remainder") return wrap(dtype, y == 0 ? x : x % y);
  if (op == "power") return wrap(dtype, power(x, y));
  if (op == "maximum") return wrap(dtype, std::max(x, y));
  if (op == "minimum") return wrap(dtype, std::min(x, y));
  if (op == "and") return wrap(dtype, x & y);
  if (op == "or") return wrap(dtype, x | y);
  if (op == "xor") return wrap(dtype, x ^ y);
  if (op == "shift_left") return wrap(dtype, small_shift ? static_cast<__int128>(ux << uy) : 0);
  if (op == "shift_right_logical") return wrap(dtype, small_shift ? static_cast<__int128>(ux >> uy) : 0);
  // Arithmetic: of unsigned numbers too the top bit is repeated.
  const __int128 as_signed = (ux >> (bits - 1)) != 0 ? static_cast<__int128>(ux) - (static_cast<__int128>(1) << bits)
                                                     : static_cast<__int128>(ux);
  return wrap(dtype, as_signed >> static_cast<int>(small_shift ? static_cast<int64_t>(uy) : bits - 1));
}

#define NAME_smooth(name, ...) name
#define NAME_stepped(name, ...) name
constexpr std::pair<std::string_view, TileCode> kFunctions[] = {
// clang-format off
#define FUNCTION(Code, operands, accepts, loops, op) {NAME_##op, TileCode::k##Code},
#include "shardwise/tile/functions.def"
    // clang-format on
};

double float_reference(std::string_view op, double x, double y) {
  if (op == "abs") return std::fabs(x);
  if (op == "negate") return -x;
  if (op == "sign") return x > 0 ? 1 : x < 0 ? -1 : x;
  if (op == "sine") return std::sin(x);
  if (op == "cosine") return std::cos(x);
  if (op == "tan") return std::tan(x);
  if (op == "tanh") return std::tanh(x);
  if (op == "exponential") return std::exp(x);
  if (op == "exponential_minus_one") return std::expm1(x);
  if (op == "log") return std::log(x);
  if (op == "log_plus_one") return std::log1p(x);
  if (op == "logistic") return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  if (op == "sqrt") return std::sqrt(x);
  if (op == "rsqrt") return 1 / std::sqrt(x);
  if (op == "cbrt") return std::cbrt(x);
  if (op == "ceil") return std::ceil(x);
  if (op == "floor") return std::floor(x);
  if (op == "round_nearest_afz") return std::round(x);
  if (op == "round_nearest_even") return std::nearbyint(x);
  if (op == "erf") return std::erf(x);
  if (op == "erfc") return std::erfc(x);
  if (op == "square") return x * x;
  if (op == "sinh") return std::sinh(x);
  if (op == "cosh") return std::cosh(x);
  if (op == "asin") return std::asin(x);
  if (op == "acos") return std::acos(x);
  if (op == "atan") return std::atan(x);
  if (op == "asinh") return std::asinh(x);
  if (op == "acosh") return std::acosh(x);
  if (op == "atanh") return std::atanh(x);
  if (op == "add") return x + y;
  if (op == "subtract") return x - y;
  if (op == "multiply") return x * y;
  if (op == "divide") return x / y;
  if (op == "remainder") return std::fmod(x, y);
  if (op == "power") return std::pow(x, y);
  if (op == "atan2") return std::atan2(x, y);
  for (const auto& [name, code] : kFunctions) {  // any other one by the stem of its row
    if (name.substr(name.find('.') + 1) != op) continue;
    if (const auto reference = math_reference(code, x, y)) return *reference;
  }
  if (std::isnan(x) || std::isnan(y)) return std::nan("");
  if (op == "maximum") return x > y || (x == y && !std::signbit(x)) ? x : y;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}

// Ops whose result must be the correctly rounded one; the others may be off by a few units in the last place.
bool is_exact(std::string_view op) {
  return has(op, {"abs", "negate", "sign", "sqrt", "ceil", "floor", "round_nearest_afz", "round_nearest_even", "square",
                  "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"});
}

bool is_close(Scalar got, Scalar want, bool exact) {
  if (std::isnan(got.real) || std::isnan(want.real)) return std::isnan(got.real) && std::isnan(want.real);
  if (got == want) return true;
  if (exact || std::signbit(got.real) != std::signbit(want.real)) return false;
  const double eps = want.dtype == DType::kF64   ? 0x1p-52
                     : want.dtype == DType::kF32 ? 0x1p-23
                     : want.dtype == DType::kF16 ? 0x1p-10
                                                 : 0x1p-7;
  const double tiny = want.dtype == DType::kF64   ? 0x1p-1074
                      : want.dtype == DType::kF16 ? 0x1p-24
                      : want.dtype == DType::kF32 ? 0x1p-149
                                                  : 0x1p-133;
  return std::fabs(got.real - want.real) <= 3 * (eps * std::fabs(want.real) + tiny);
}

bool has_own_test(const OpDef& def) {
  return has(short_name(def),
             {"compare", "select", "clamp", "convert", "bitcast_convert", "reduce_precision", "is_finite"});
}

std::string dtypes_of(std::string_view op) {
  if (has(op, {"add", "multiply", "maximum", "minimum"})) return "all";
  if (has(op, {"abs", "sign"})) return "signed, float";
  if (has(op, {"negate", "square", "subtract", "divide", "remainder", "power"})) return "number";
  if (has(op, {"not", "and", "or", "xor"})) return "bool, integer";
  if (has(op, {"popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic", "shift_right_logical"}))
    return "integer";
  return "float";
}
bool takes(std::string_view op, DType dtype) {
  const std::string kind = dtypes_of(op);
  if (kind == "all") return true;
  if (kind == "signed, float") return is_signed_integer(dtype) || is_float(dtype);
  if (kind == "number") return dtype != DType::kBool;
  if (kind == "bool, integer") return !is_float(dtype);
  return kind == "integer" ? is_integer(dtype) : is_float(dtype);
}

TEST(Elementwise, EveryOpAndDTypeAgainstAScalarReference) {
  for (const OpDef& def : elementwise_ops()) {
    if (has_own_test(def)) continue;
    const std::string op = short_name(def);
    for (DType dtype : kAllDTypes) {
      SCOPED_TRACE(op + " " + std::string(mlir_name(dtype)));
      std::vector<Scalar> xs, ys;
      for (Scalar x : interesting(dtype)) {
        for (Scalar y : interesting(dtype)) {
          xs.push_back(x);
          ys.push_back(y);
        }
      }
      ComputedGraph graph;
      std::vector<ValueId> operands{graph.input(from_scalars(dtype, xs))};
      if (arity(def) == 2) operands.push_back(graph.input(from_scalars(dtype, ys)));
      if (!takes(op, dtype)) {
        EXPECT_THROW(graph.builder().create_op(def, operands), DTypeError);
        continue;
      }
      const OpId id = graph.builder().create_op(def, operands);
      const NdArray got = graph.array(graph.module().result(id));
      ASSERT_EQ(got.dtype(), dtype);
      for (size_t i = 0; i < xs.size(); ++i) {
        const Scalar have = got.scalar_at(static_cast<int64_t>(i));
        if (is_float(dtype)) {
          const Scalar want = round_to(dtype, float_reference(op, xs[i].real, ys[i].real));
          ASSERT_TRUE(is_close(have, want, is_exact(op)))
              << xs[i].real << ", " << ys[i].real << ": got " << have.real << ", want " << want.real;
        } else {
          const Scalar want = integer_reference(op, xs[i], ys[i]);
          ASSERT_EQ(have, want) << as_double(xs[i]) << ", " << as_double(ys[i]) << ": got " << as_double(have)
                                << ", want " << as_double(want);
        }
      }
    }
  }
}

TEST(Elementwise, IsFinite) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    ComputedGraph graph;
    const ValueId x = graph.input(from_scalars(dtype, interesting(dtype)));
    const NdArray got = graph.array(graph.builder().create("stablehlo.is_finite", {x}));
    for (int64_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got.scalar_at(i), truth(std::isfinite(interesting(dtype)[static_cast<size_t>(i)].real)));
    }
  }
}

Attrs comparison(std::string direction, std::string type = {}) {
  Attrs attrs{{"comparison_direction", EnumAttr{"stablehlo", "comparison_direction", std::move(direction)}}};
  if (!type.empty()) attrs.set("compare_type", EnumAttr{"stablehlo", "comparison_type", std::move(type)});
  return attrs;
}

TEST(Elementwise, Compare) {
  const auto expected = [](std::string_view direction, auto a, auto b) {
    if (direction == "EQ") return a == b;
    if (direction == "NE") return a != b;
    if (direction == "LT") return a < b;
    if (direction == "LE") return a <= b;
    return direction == "GT" ? a > b : a >= b;
  };
  for (DType dtype : kAllDTypes) {
    std::vector<Scalar> xs, ys;
    for (Scalar x : interesting(dtype)) {
      for (Scalar y : interesting(dtype)) {
        xs.push_back(x);
        ys.push_back(y);
      }
    }
    for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
      ComputedGraph graph;
      const ValueId x = graph.input(from_scalars(dtype, xs)), y = graph.input(from_scalars(dtype, ys));
      const NdArray got = graph.array(graph.builder().create("stablehlo.compare", {x, y}, comparison(direction)));
      for (size_t i = 0; i < xs.size(); ++i) {
        const bool want = is_float(dtype) ? expected(direction, xs[i].real, ys[i].real)
                                          : expected(direction, as_wide(xs[i]), as_wide(ys[i]));
        ASSERT_EQ(got.scalar_at(static_cast<int64_t>(i)), truth(want)) << mlir_name(dtype) << " " << direction;
      }
    }
  }
}

TEST(Elementwise, TotalOrder) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const double nan = std::nan("");
    const NdArray ordered = floats(dtype, {-nan, -INFINITY, -1, -0.0, 0.0, 1, INFINITY, nan});
    ComputedGraph graph;
    const ValueId low = graph.input(ordered.sliced(0, 0, 7)), high = graph.input(ordered.sliced(0, 1, 7));
    const NdArray got =
        graph.array(graph.builder().create("stablehlo.compare", {low, high}, comparison("LT", "TOTALORDER")));
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(got.scalar_at(i), truth(true)) << i;
  }
}

TEST(Elementwise, SelectAndClampTakeScalars) {
  for (DType dtype : kAllDTypes) {
    const std::vector<Scalar> values = interesting(dtype);
    const auto count = static_cast<int64_t>(values.size());
    ComputedGraph graph;
    const ValueId x = graph.input(from_scalars(dtype, values));
    std::vector<Scalar> reversed(values.rbegin(), values.rend()), mask;
    for (int64_t i = 0; i < count; ++i) mask.push_back(truth(i % 3 == 0));
    const ValueId y = graph.input(from_scalars(dtype, reversed)), which = graph.input(from_scalars(DType::kBool, mask));
    const NdArray yes(DType::kBool, {}, {}, from_scalars(DType::kBool, {truth(true)}).data(), nullptr);
    const NdArray kept = from_scalars(DType::kBool, {truth(true)});
    const ValueId scalar = graph.input(NdArray(DType::kBool, {}, {}, kept.data(), kept.owner()));
    const NdArray chosen = graph.array(graph.builder().create("stablehlo.select", {which, x, y}));
    const NdArray all = graph.array(graph.builder().create("stablehlo.select", {scalar, x, y}));
    const NdArray one = from_scalars(dtype, {Scalar::of_int(dtype, 1)});
    const ValueId low = graph.input(NdArray(dtype, {}, {}, one.data(), one.owner()));
    const NdArray clamped = graph.array(graph.builder().create("stablehlo.clamp", {low, x, y}));
    for (int64_t i = 0; i < count; ++i) {
      const Scalar a = values[static_cast<size_t>(i)], b = reversed[static_cast<size_t>(i)];
      const auto same = [](Scalar p, Scalar q) {
        return p == q || (is_float(p.dtype) && std::isnan(p.real) && std::isnan(q.real));
      };
      EXPECT_TRUE(same(chosen.scalar_at(i), i % 3 == 0 ? a : b));
      EXPECT_TRUE(same(all.scalar_at(i), a));
      if (is_float(dtype)) {
        EXPECT_TRUE(
            same(clamped.scalar_at(i),
                 Scalar::of_float(dtype, float_reference("minimum", float_reference("maximum", a.real, 1.0), b.real))));
      } else {
        EXPECT_EQ(clamped.scalar_at(i), wrap(dtype, std::min(std::max<__int128>(as_wide(a), 1), as_wide(b))));
      }
    }
  }
}

Scalar convert_reference(Scalar x, DType to) {
  if (to == DType::kBool) return truth(as_double(x) != 0);
  if (is_float(to)) {
    if (is_float(x.dtype)) return Scalar::of_float(to, x.real);
    const __int128 wide = as_wide(x);
    return to == DType::kF64 ? Scalar::of_float(to, static_cast<double>(wide))
                             : Scalar::of_float(to, static_cast<double>(static_cast<float>(wide)));
  }
  if (!is_float(x.dtype)) return wrap(to, as_wide(x));
  if (std::isnan(x.real)) return Scalar::of_int(to, 0);
  const int64_t bits = item_size(to) * 8;
  const __int128 top = static_cast<__int128>(1) << (is_signed_integer(to) ? bits - 1 : bits);
  const __int128 bottom = is_signed_integer(to) ? -top : 0;
  if (x.real >= static_cast<double>(top)) return wrap(to, top - 1);
  if (x.real <= static_cast<double>(bottom)) return wrap(to, bottom);
  return wrap(to, static_cast<__int128>(x.real));
}

TEST(Elementwise, ConvertBetweenAllDTypes) {
  for (DType from : kAllDTypes) {
    std::vector<Scalar> values = interesting(from);
    if (is_float(from)) {
      for (double v : {126.9, 127.0, 127.9, 128.0, -128.9, 255.9, 256.0, 2147483520.0, 2147483648.0, 4294967040.0,
                       9.2e18, 1.9e19, -0.9, 1.00048828125, 65519.99, 65520.0, 3.4028235677973366e38}) {
        values.push_back(Scalar::of_float(from, v));
      }
    }
    for (DType to : kAllDTypes) {
      ComputedGraph graph;
      const ValueId x = graph.input(from_scalars(from, values));
      const TypeId type = graph.module().context().tensor(to, graph.module().type(x).shape);
      const NdArray got = graph.array(graph.builder().create("stablehlo.convert", {x}, {}, {type}));
      for (size_t i = 0; i < values.size(); ++i) {
        const Scalar want = convert_reference(values[i], to), have = got.scalar_at(static_cast<int64_t>(i));
        const bool both_nan = is_float(to) && std::isnan(want.real) && std::isnan(have.real);
        ASSERT_TRUE(want == have || both_nan)
            << mlir_name(from) << " to " << mlir_name(to) << ": " << as_double(values[i]) << " gave " << as_double(have)
            << ", want " << as_double(want);
      }
    }
  }
}

TEST(Elementwise, BitcastAndReducePrecision) {
  ComputedGraph graph;
  const ValueId x = graph.input(floats(DType::kF32, {1.0, -0.0, 3.14159274, 1e30, 1e-30, 65520, -65519, 1e-40}));
  const TypeId bits = graph.module().context().tensor(DType::kU32, Dims{8});
  const ValueId word = graph.builder().create("stablehlo.bitcast_convert", {x}, {}, {bits});
  EXPECT_EQ(graph.array(word).scalar_at(0).natural, 0x3F800000U);
  EXPECT_EQ(graph.array(word).scalar_at(1).natural, 0x80000000U);
  const Attrs half{{"exponent_bits", IntAttr{5, 32}}, {"mantissa_bits", IntAttr{10, 32}}};
  const NdArray reduced = graph.array(graph.builder().create("stablehlo.reduce_precision", {x}, half));
  const double want[] = {1.0, -0.0, 3.140625, INFINITY, 0, INFINITY, -65504, 0};
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(reduced.scalar_at(i), Scalar::of_float(DType::kF32, want[i])) << i << " " << reduced.scalar_at(i).real;
  }
  const TypeId narrow = graph.module().context().tensor(DType::kU16, Dims{8});
  EXPECT_THROW(graph.builder().create("stablehlo.bitcast_convert", {x}, {}, {narrow}), DTypeError);
}

TEST(Elementwise, SplatsAreComputedOnce) {
  ComputedGraph graph;
  const ValueId x = graph.input(NdArray::full(DType::kF32, {1000, 1000, 1000}, Scalar::of_float(DType::kF32, 4)));
  const NdArray root = graph.array(graph.builder().create("stablehlo.sqrt", {x}));
  EXPECT_TRUE(root.is_splat());
  EXPECT_EQ(root.shape(), (Dims{1000, 1000, 1000}));
  EXPECT_EQ(root.scalar_at(12345).real, 2);
}

TEST(Elementwise, EmptyTensors) {
  ComputedGraph graph;
  const ValueId x = graph.input(NdArray::empty(DType::kF32, {3, 0}));
  EXPECT_EQ(graph.array(graph.builder().create("stablehlo.add", {x, x})).size(), 0);
}

TEST(Elementwise, WrongOperandsNameTypesAndTheWayOut) {
  ComputedGraph graph;
  const ValueId four = graph.input(floats(DType::kF32, {1, 2, 3, 4})), two = graph.input(floats(DType::kF32, {1, 2}));
  const ValueId integers = graph.input(from_scalars(DType::kI32, interesting(DType::kI32)));
  const auto message = [&](std::string_view name, std::initializer_list<ValueId> operands, const Attrs& attrs = {}) {
    try {
      graph.builder().create(name, operands, attrs);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(message("stablehlo.add", {four, two}),
            "stablehlo.add: operands must have the same shape, got tensor<4xf32>, tensor<2xf32>; broadcast one of them "
            "first");
  EXPECT_EQ(message("stablehlo.tanh", {integers}),
            "stablehlo.tanh: operands must be floats, got tensor<24xi32>; convert it first");
  EXPECT_NE(message("stablehlo.add", {four, integers}).find("same dtype"), std::string::npos);
  EXPECT_NE(message("stablehlo.select", {four, four, four}).find("predicate must be i1"), std::string::npos);
  EXPECT_NE(message("stablehlo.clamp", {two, four, four}).find("min must be a scalar"), std::string::npos);
  EXPECT_NE(message("stablehlo.compare", {four, four}, comparison("XX")).find("EQ, NE, LT"), std::string::npos);
  EXPECT_NE(message("stablehlo.compare", {four, four}, comparison("LT", "SIGNED")).find("FLOAT or TOTALORDER"),
            std::string::npos);
  EXPECT_NE(message("stablehlo.convert", {four}).find("result type must be given"), std::string::npos);
  EXPECT_NE(message("stablehlo.add", {four}).find("takes 2 operands"), std::string::npos);
}

TEST(Elementwise, RulesAreOneFactorPerDim) {
  ComputedGraph graph;
  const NdArray matrix = NdArray::empty(DType::kF32, {4, 8});
  const ValueId x = graph.input(matrix), scalar = graph.input(NdArray::empty(DType::kF32, {}));
  const ValueId clamped = graph.builder().create("stablehlo.clamp", {scalar, x, scalar});
  const ShardingRule& rule = sharding_rule(graph.defining_op(clamped));
  EXPECT_EQ(rule.factors().size(), 2U);
  EXPECT_EQ(rule.ndim(0), 0U);
  EXPECT_EQ(rule.dim(1, 0)[0], rule.dim(3, 0)[0]);
  EXPECT_EQ(rule.dim(1, 1)[0], rule.dim(3, 1)[0]);
}

}  // namespace
}  // namespace shardwise
