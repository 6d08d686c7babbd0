// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <limits>

#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/text/parser.h"

namespace shardwise::test {
namespace {

// ---- argmax --------------------------------------------------------------------------------------------------------

struct Pair {
  Scalar value, index;
};

bool better(Reducer reducer, Scalar a, Scalar b) {
  if (is_float(a.dtype)) return reducer == Reducer::kMax ? a.real > b.real : a.real < b.real;
  if (is_unsigned_integer(a.dtype)) {
    return reducer == Reducer::kMax ? a.natural > b.natural : a.natural < b.natural;
  }
  return reducer == Reducer::kMax ? a.integer > b.integer : a.integer < b.integer;
}

Pair combine(Reducer reducer, Pair a, Pair b) {
  const bool nan = is_float(a.value.dtype) && std::isnan(a.value.real);
  if (nan || better(reducer, a.value, b.value)) return a;
  const bool equal = !better(reducer, b.value, a.value) && !(is_float(b.value.dtype) && std::isnan(b.value.real));
  return {b.value, equal && as_double(a.index) < as_double(b.index) ? a.index : b.index};
}

ValueId compare(Builder& builder, std::string_view direction, ValueId lhs, ValueId rhs) {
  // The type is given, as in the texts that JAX writes.
  const DType dtype = builder.module().type(lhs).dtype;
  return build_compare(builder, direction, lhs, rhs,
                       is_inexact(dtype)          ? "FLOAT"
                       : is_signed_integer(dtype) ? "SIGNED"
                                                  : "UNSIGNED");
}

// The region that JAX writes for argmax and argmin.
RegionId build_argument_region(Builder& builder, Reducer reducer, DType value, DType index) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  std::array<ValueId, 4> arguments;
  for (size_t i = 0; i < 4; ++i) {
    arguments[i] = module.add_argument(id, builder.context().tensor(i % 2 == 0 ? value : index, {}));
  }
  const auto [a, i, b, j] = arguments;
  Builder inner(module, id, builder.loc());
  const ValueId better = compare(inner, reducer == Reducer::kMax ? "GT" : "LT", a, b);
  // A NaN wins, as in np.argmax: it differs from itself.
  const ValueId wins = inner.create("stablehlo.or", {better, compare(inner, "NE", a, a)});
  const ValueId equal = compare(inner, "EQ", a, b);
  // The first index of equal values wins, whatever the order in which the reduction combines them.
  const ValueId first = inner.create("stablehlo.and", {equal, compare(inner, "LT", i, j)});
  const ValueId wins_index = inner.create("stablehlo.or", {wins, first});
  const ValueId best = inner.create("stablehlo.select", {wins, a, b});
  const ValueId best_index = inner.create("stablehlo.select", {wins_index, i, j});
  module.region(id).results = {best, best_index};
  return id;
}

struct Results {
  NdArray values, indices;
};

Results argument(const NdArray& x, const NdArray& indices, Reducer reducer, Dims dims, int64_t piece = 1 << 30) {
  TestGraph graph;
  graph.piece = piece;
  Builder builder = graph.builder();
  const ValueId operands[] = {graph.input(x), graph.input(indices),
                              build_scalar(builder, neutral_element(reducer, x.dtype())),
                              build_scalar(builder, scalar_of(indices.dtype(), 0))};
  const RegionId region = build_argument_region(builder, reducer, x.dtype(), indices.dtype());
  const AttrsId attrs = builder.context().intern(Attrs{{"dimensions", IntArray(dims)}});
  const OpId op = builder.create_op(get_op("stablehlo.reduce"), operands, attrs, {}, {&region, 1});
  return {graph.evaluate(graph.module().result(op, 0)), graph.evaluate(graph.module().result(op, 1))};
}

// Along the middle one of three dims.
std::vector<Pair> middle_by_a_loop(const NdArray& x, const NdArray& indices, Reducer reducer) {
  std::vector<Pair> found;
  const Dims& shape = x.shape();
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t k = 0; k < shape[2]; ++k) {
      Pair best{neutral_element(reducer, x.dtype()), scalar_of(indices.dtype(), 0)};
      for (int64_t j = 0; j < shape[1]; ++j) {
        const int64_t at = (i * shape[1] + j) * shape[2] + k;
        best = combine(reducer, best, {x.scalar_at(at), indices.scalar_at(at)});
      }
      found.push_back(best);
    }
  }
  return found;
}

void expect_equal(const Results& results, const std::vector<Pair>& expected) {
  ASSERT_EQ(results.values.size(), std::ssize(expected));
  for (int64_t i = 0; i < std::ssize(expected); ++i) {
    const Pair& pair = expected[static_cast<size_t>(i)];
    EXPECT_EQ(results.values.scalar_at(i), pair.value) << mlir_name(pair.value.dtype) << " at " << i;
    EXPECT_EQ(results.indices.scalar_at(i), pair.index) << mlir_name(pair.value.dtype) << " at " << i;
  }
}

NdArray row_numbers(DType dtype, const Dims& shape) {
  return make_array(dtype, shape, [&](int64_t i) { return static_cast<double>(i / shape[2] % shape[1]); });
}

TEST(ReduceArguments, AgreesWithALoopForEveryDTypeAndLayout) {
  for (DType dtype : all_dtypes()) {
    for (DType index : {DType::kI32, DType::kI64, DType::kU32, DType::kI16}) {
      for (Reducer reducer : {Reducer::kMax, Reducer::kMin}) {
        for (const Dims& shape : {Dims{3, 5, 4}, Dims{2, 300, 1}, Dims{1, 70, 9}, Dims{2, 1, 2}, Dims{2, 0, 3}}) {
          const NdArray x = random_array(dtype, shape, 5);
          for (const NdArray& indices : {row_numbers(index, shape), random_array(index, shape, 6)}) {
            const std::vector<Pair> expected = middle_by_a_loop(x, indices, reducer);
            expect_equal(argument(x, indices, reducer, {1}), expected);
            expect_equal(argument(in_odd_strides(x), indices, reducer, {1}), expected);
            expect_equal(argument(column_major(x), in_odd_strides(indices), reducer, {1}), expected);
          }
        }
      }
    }
  }
}

TEST(ReduceArguments, FindsTheFirstNanAndTheLastOfEqualZeros) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const Dims& shape : {Dims{1, 700, 1}, Dims{1, 700, 8}}) {
      for (int64_t at : {0, 3, 255, 256, 699}) {
        NdArray x = random_array(dtype, shape);
        const NdArray indices = make_array(DType::kI32, shape, [](int64_t i) { return static_cast<double>(-i); });
        put(x, at * shape[2], nan);
        if (at < 690) put(x, (at + 5) * shape[2], nan);
        const Results results = argument(x, indices, Reducer::kMax, {1});
        EXPECT_TRUE(std::isnan(results.values.scalar_at(0).real));
        EXPECT_EQ(results.indices.scalar_at(0).integer, -at * shape[2]);
      }
      for (const bool first_negative : {false, true}) {
        const NdArray zeros =
            make_array(dtype, shape, [&](int64_t i) { return (i < shape[2]) == first_negative ? -0.0 : 0.0; });
        const Results results = argument(zeros, row_numbers(DType::kI64, shape), Reducer::kMin, {1});
        EXPECT_EQ(std::signbit(results.values.scalar_at(0).real), !first_negative);
        EXPECT_EQ(results.indices.scalar_at(0).integer, 0);
      }
    }
  }
}

TEST(ReduceArguments, OfLongRowsIsTheSameForAnyThreads) {
  for (const Dims& shape : {Dims{1, 200000, 1}, Dims{1, 30000, 6}, Dims{70, 3000, 1}}) {
    NdArray x = random_reals(DType::kF32, shape);
    put(x, 150000, 2);
    put(x, 170000, 2);
    const NdArray indices = row_numbers(DType::kI32, shape);
    const std::vector<Pair> expected = middle_by_a_loop(x, indices, Reducer::kMax);
    for (int64_t piece : {int64_t{1}, int64_t{3}, int64_t{1} << 30}) {
      expect_equal(argument(x, indices, Reducer::kMax, {1}, piece), expected);
    }
  }
}

TEST(ReduceArguments, OverSeveralDimsGoesInTheOrderOfElements) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NdArray x = array_of(DType::kF64, {2, 3}, {1, 2, nan, nan, 2, 1});
  const NdArray indices = array_of(DType::kI32, {2, 3}, {0, 1, 9, 3, 4, 5});
  EXPECT_EQ(elements(argument(x, indices, Reducer::kMax, {1, 0}).indices), std::vector<double>{9});
}

// ---- the recogniser ------------------------------------------------------------------------------------------------

constexpr std::string_view kJaxArgmax = R"(module {
  func.func public @main(%arg0: tensor<4x8xf32>, %0: tensor<4x8xi32>, %cst: tensor<f32>, %c: tensor<i32>) -> tensor<4xi32> {
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<4xi32>
  }
})";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kJaxArgmax);
  const size_t at = text.find(from);
  check_internal(at != std::string::npos, "a test must change the text");
  return text.replace(at, from.size(), to);
}

std::optional<Reducer> reducer_of(std::string_view text) {
  register_ops();
  const Module module = parse(text, std::make_shared<Context>());
  const OpView reduce(module, module.region(module.main().body).ops[0]);
  return region_argument_reducer(module, reduce.regions()[0]);
}

TEST(RegionArgumentReducer, KnowsWhatJaxWritesAndItsVariants) {
  EXPECT_EQ(reducer_of(kJaxArgmax), Reducer::kMax);
  EXPECT_EQ(reducer_of(replaced("compare GT", "compare LT")), Reducer::kMin);
  EXPECT_EQ(reducer_of(replaced("GT, %arg1, %arg3", "LT, %arg3, %arg1")), Reducer::kMax);
  EXPECT_EQ(reducer_of(replaced("or %2, %3", "or %3, %2")), Reducer::kMax);
  EXPECT_EQ(reducer_of(replaced("and %5, %6", "and %6, %5")), Reducer::kMax);
  EXPECT_EQ(reducer_of(replaced("GT, %arg1, %arg3, FLOAT", "GT, %arg1, %arg3")), Reducer::kMax);
}

TEST(RegionArgumentReducer, RefusesWhatGivesOtherNumbers) {
  EXPECT_EQ(reducer_of(replaced("compare GT", "compare GE")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("LT, %arg2, %arg4", "GT, %arg2, %arg4")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("NE, %arg1, %arg1", "NE, %arg3, %arg3")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("GT, %arg1, %arg3, FLOAT", "GT, %arg1, %arg3, TOTALORDER")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("select %4, %arg1, %arg3", "select %4, %arg3, %arg1")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("select %8", "select %4")), std::nullopt);
  EXPECT_EQ(reducer_of(replaced("or %4, %7", "or %2, %7")), std::nullopt);
}

TEST(RegionArgumentReducer, RecognizesEveryDType) {
  TestGraph graph;
  Builder builder = graph.builder();
  for (const DType dtype : all_dtypes()) {
    for (const Reducer reducer : {Reducer::kMax, Reducer::kMin}) {
      const RegionId region = build_argument_region(builder, reducer, dtype, DType::kI64);
      EXPECT_EQ(region_argument_reducer(graph.module(), region), reducer);
      EXPECT_EQ(region_argument_reducer(graph.module(), counted_region(builder, graph.module(), region)), std::nullopt);
    }
  }
}

// ---- other regions -------------------------------------------------------------------------------------------------

// x → m·x + c, one after the other; the last of the two results.
BuildOp affine(Dims dims) {
  return [=](Builder& builder, const std::vector<ValueId>& operands) {
    Module& module = builder.module();
    const RegionId region = module.add_region();
    const TypeId scalar = builder.context().tensor(module.type(operands[0]).dtype, {});
    std::array<ValueId, 4> a;
    for (ValueId& argument : a) argument = module.add_argument(region, scalar);
    Builder inner(module, region);
    const ValueId scale = inner.create("stablehlo.multiply", {a[0], a[2]});
    const ValueId shift = inner.create("stablehlo.add", {inner.create("stablehlo.multiply", {a[1], a[2]}), a[3]});
    module.region(region).results = {scale, shift};
    const AttrsId attrs = builder.context().intern(Attrs{{"dimensions", IntArray(dims)}});
    const OpId op = builder.create_op(get_op("stablehlo.reduce"), operands, attrs, {}, {&region, 1});
    return module.result(op, 1);
  };
}

TEST(ReduceRegion, CombinesInTheOrderOfElements) {
  // Scales 2, 3, …: the shift of the first goes through all scales after it.
  for (int64_t rows : {0, 1, 2, 3, 5, 8}) {
    TestGraph graph;
    Builder builder = graph.builder();
    const NdArray scales = make_array(DType::kI64, {rows, 2}, [](int64_t i) { return 2 + static_cast<double>(i / 2); });
    const NdArray shifts = make_array(DType::kI64, {rows, 2}, [](int64_t i) { return static_cast<double>(i); });
    const ValueId result = affine({0})(
        builder, {graph.input(in_odd_strides(scales)), graph.input(shifts), graph.input(array_of(DType::kI64, {}, {1})),
                  graph.input(array_of(DType::kI64, {}, {7}))});
    for (int64_t column : {0, 1}) {
      int64_t expected = 7;
      for (int64_t row = 0; row < rows; ++row) expected = expected * (2 + row) + 2 * row + column;
      EXPECT_EQ(graph.evaluate(result).scalar_at(column).integer, expected) << rows;
    }
  }
}

TEST(ReduceRegion, BatchesOperandsAndInits) {
  const NdArray a = random_array(DType::kI32, {3, 5, 4}, 1), b = random_array(DType::kI32, {3, 5, 4}, 2);
  const NdArray single = random_array(DType::kI32, {5, 4}, 3);
  const NdArray ones = random_array(DType::kI32, {3}, 4), two = array_of(DType::kI32, {}, {2});
  for (const Dims& dims : {Dims{0}, Dims{1}, Dims{0, 1}, Dims{}}) {
    check_batch(affine(dims), {a, b, two, two}, {true, true, false, false});
    check_batch(affine(dims), {a, single, two, two}, {true, false, false, false});
    check_batch(affine(dims), {a, b, ones, two}, {true, true, true, false});
    check_batch(affine(dims), {single, single, two, ones}, {false, false, false, true});
  }
  const NdArray empty = random_array(DType::kI32, {3, 0, 4}, 1);
  check_batch(affine({0}), {empty, empty, ones, two}, {true, true, true, false});
}

}  // namespace
}  // namespace shardwise::test
