// SPDX-License-Identifier: Apache-2.0

#include "shardwise/ops/build/reduce.h"

#include <limits>

#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise::test {
namespace {

BuildOp reduction(Reducer reducer, Dims dims) {
  return [=](Builder& builder, const std::vector<ValueId>& operands) {
    return build_reduce(builder, operands[0], operands[1], reducer, dims);
  };
}

NdArray reduce(const NdArray& x, Reducer reducer, Dims dims, std::optional<NdArray> init = {},
               int64_t piece = 1 << 30) {
  TestGraph graph;
  graph.piece = piece;
  Builder builder = graph.builder();
  const ValueId start = init ? graph.input(*init) : ValueId{};
  return graph.evaluate(build_reduce(builder, graph.input(x), start, reducer, dims));
}

// As many bits as the dtype has, kept in 64; floats (small integers) are exact.
Scalar combine(Reducer reducer, Scalar a, Scalar b) {
  const DType dtype = a.dtype;
  if (is_float(dtype)) {
    switch (reducer) {
      case Reducer::kSum: return Scalar::of_float(dtype, a.real + b.real);
      case Reducer::kProd: return Scalar::of_float(dtype, a.real * b.real);
      case Reducer::kMax: return Scalar::of_float(dtype, std::max(a.real, b.real));
      default: return Scalar::of_float(dtype, std::min(a.real, b.real));
    }
  }
  uint64_t bits = 0;
  const bool less = is_unsigned_integer(dtype) ? a.natural < b.natural : a.integer < b.integer;
  switch (reducer) {
    case Reducer::kSum: bits = a.natural + b.natural; break;
    case Reducer::kProd: bits = a.natural * b.natural; break;
    case Reducer::kAnd: bits = a.natural & b.natural; break;
    case Reducer::kOr: bits = a.natural | b.natural; break;
    case Reducer::kMax: bits = (less ? b : a).natural; break;
    default: bits = (less ? a : b).natural; break;
  }
  std::array<std::byte, 8> item{};
  Scalar whole = a;
  whole.natural = bits;
  store(whole, item.data());
  return load(dtype, item.data());
}

// Over dims 0 and 2 of three.
std::vector<Scalar> reduced_outer(const NdArray& x, Reducer reducer) {
  std::vector<Scalar> result;
  for (int64_t j = 0; j < x.shape()[1]; ++j) {
    Scalar total = neutral_element(reducer, x.dtype());
    for (int64_t i = 0; i < x.shape()[0]; ++i) {
      for (int64_t k = 0; k < x.shape()[2]; ++k) {
        total = combine(reducer, total, x.scalar_at((i * x.shape()[1] + j) * x.shape()[2] + k));
      }
    }
    result.push_back(total);
  }
  return result;
}

std::vector<Reducer> reducers_of(DType dtype) {
  if (dtype == DType::kBool) return {Reducer::kAnd, Reducer::kOr};
  if (is_float(dtype)) return {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin};
  return {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin, Reducer::kAnd, Reducer::kOr};
}

TEST(Reduce, AgreesWithALoopForEveryDTypeAndLayout) {
  for (DType dtype : all_dtypes()) {
    for (Reducer reducer : reducers_of(dtype)) {
      for (const Dims& shape : {Dims{3, 5, 4}, Dims{2, 1, 1}, Dims{1, 7, 2}, Dims{0, 3, 2}, Dims{2, 3, 0}}) {
        const NdArray x = random_array(dtype, shape, 5);
        const std::vector<Scalar> expected = reduced_outer(x, reducer);
        for (const NdArray& operand : {x, in_odd_strides(x), column_major(x)}) {
          const NdArray y = reduce(operand, reducer, {0, 2});
          ASSERT_EQ(y.shape(), Dims{shape[1]});
          for (int64_t j = 0; j < shape[1]; ++j) {
            EXPECT_EQ(as_double(y.scalar_at(j)), as_double(expected[static_cast<size_t>(j)]))
                << mlir_name(dtype) << " " << name(reducer);
          }
        }
      }
    }
  }
}

TEST(Reduce, OfRepeatedElements) {
  const NdArray x = NdArray::full(DType::kF32, {100, 7}, scalar_of(DType::kF32, 2));
  EXPECT_EQ(elements(reduce(x, Reducer::kSum, {0})), std::vector<double>(7, 200));
  EXPECT_EQ(elements(reduce(x, Reducer::kSum, {0, 1})), std::vector<double>{1400});
}

TEST(Reduce, StartsFromInit) {
  const NdArray x = array_of(DType::kI32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(elements(reduce(x, Reducer::kSum, {1}, array_of(DType::kI32, {}, {10}))), (std::vector<double>{13, 17}));
  EXPECT_EQ(elements(reduce(x, Reducer::kMax, {}, array_of(DType::kI32, {}, {3}))), (std::vector<double>{3, 3, 3, 4}));
}

TEST(Reduce, LetsNanWinAndPositiveZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (Reducer reducer : {Reducer::kMax, Reducer::kMin}) {
      for (int64_t at : {0, 3, 20, 39}) {
        NdArray x = random_array(dtype, {40});
        put(x, at, nan);
        EXPECT_TRUE(std::isnan(reduce(x, reducer, {0}).scalar_at(0).real));
        put(x, at, -nan);
        EXPECT_TRUE(std::isnan(reduce(x, reducer, {0}).scalar_at(0).real));
      }
    }
    for (const auto& zeros : {std::vector<double>{0.0, -0.0}, std::vector<double>{-0.0, 0.0}}) {
      EXPECT_FALSE(std::signbit(reduce(array_of(dtype, {2}, zeros), Reducer::kMax, {0}).scalar_at(0).real));
      EXPECT_TRUE(std::signbit(reduce(array_of(dtype, {2}, zeros), Reducer::kMin, {0}).scalar_at(0).real));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(reduce(array_of(dtype, {2}, {-infinity, -infinity}), Reducer::kMax, {0}).scalar_at(0).real, -infinity);
  }
}

TEST(Reduce, SumsWithinAFewRoundings) {
  for (const Dims& shape : {Dims{300000, 1}, Dims{1, 300000}, Dims{20000, 12}, Dims{12, 20000}}) {
    for (Dims dims : {Dims{0}, Dims{1}, Dims{0, 1}}) {
      const NdArray x =
          make_array(DType::kF32, shape, [](int64_t i) { return 0.1 + 1e-3 * static_cast<double>(i % 7); });
      const NdArray exact = make_array(DType::kF64, shape, [&](int64_t i) { return x.scalar_at(i).real; });
      const NdArray y = reduce(x, Reducer::kSum, dims), expected = reduce(exact, Reducer::kSum, dims);
      for (int64_t i = 0; i < y.size(); ++i) {
        EXPECT_NEAR(y.scalar_at(i).real, expected.scalar_at(i).real, 4 * 1.2e-7 * expected.scalar_at(i).real);
      }
    }
  }
}

TEST(Reduce, GivesTheSameBitsForAnyThreads) {
  for (const Dims& shape : {Dims{300000}, Dims{70000, 5}, Dims{700, 600}}) {
    const NdArray x = random_reals(DType::kF32, shape);
    for (const Dims& dims : {Dims{0}, Dims{static_cast<int64_t>(shape.size()) - 1}}) {
      const std::vector<double> whole = elements(reduce(x, Reducer::kSum, dims));
      for (int64_t piece : {1, 3, 64}) EXPECT_EQ(elements(reduce(x, Reducer::kSum, dims, {}, piece)), whole);
    }
  }
}

TEST(Reduce, RefusesAnInitOfAnotherDType) {
  EXPECT_EQ(error_of<DTypeError>(
                [] { reduce(random_array(DType::kF32, {4}), Reducer::kSum, {0}, array_of(DType::kI32, {}, {0})); }),
            "stablehlo.reduce: operand 1 must have dtype f32, got tensor<4xf32>, tensor<i32>; convert it first");
}

TEST(ReduceRule, ReducesWithItsReducer) {
  TestGraph graph;
  Builder builder = graph.builder();
  const ValueId y =
      build_reduce(builder, graph.input(random_array(DType::kF32, {2, 64, 13})), {}, Reducer::kMax, Dims{1});
  const OpView op(graph.module(), graph.module().value(y).op);
  const ShardingRule rule = op.def().rule(op);
  EXPECT_EQ(text(rule), "([i, j, k], [])->([i, k]) {i=2, j=64, k=13} reduction={j}");
  EXPECT_EQ(rule.factors()[1].reducer, Reducer::kMax);
}

TEST(RegionReducer, KnowsBooleansAndSwappedArguments) {
  TestGraph graph;
  Builder builder = graph.builder();
  const RegionId either = build_reducer_region(builder, Reducer::kSum, DType::kBool);
  EXPECT_EQ(region_reducer(graph.module(), either), Reducer::kOr);
  const RegionId region = graph.module().add_region();
  const TypeId scalar = graph.module().context().tensor(DType::kF32, {});
  const ValueId a = graph.module().add_argument(region, scalar), b = graph.module().add_argument(region, scalar);
  Builder inner(graph.module(), region);
  graph.module().region(region).results = {inner.create("stablehlo.minimum", {b, a})};
  EXPECT_EQ(region_reducer(graph.module(), region), Reducer::kMin);
  graph.module().region(region).results = {a};
  EXPECT_EQ(region_reducer(graph.module(), region), std::nullopt);
}

TEST(NeutralElement, ChangesNothing) {
  for (DType dtype : all_dtypes()) {
    for (Reducer reducer : reducers_of(dtype)) {
      const Scalar neutral = neutral_element(reducer, dtype);
      EXPECT_TRUE(is_neutral(reducer, neutral));
      const NdArray x = random_array(dtype, {9});
      for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(combine(reducer, neutral, x.scalar_at(i)), x.scalar_at(i));
    }
  }
}

TEST(ReduceVjp, AgreesWithDifferences) {
  const NdArray x = random_reals(DType::kF64, {3, 5, 2}), init = array_of(DType::kF64, {}, {0.7});
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin}) {
    for (const Dims& dims : {Dims{1}, Dims{0, 2}, Dims{2, 0, 1}, Dims{}})
      check_vjp(reduction(reducer, dims), {x, init});
  }
}

TEST(ReduceVjp, OfProductsIsRightAtZeros) {
  const NdArray init = array_of(DType::kF64, {}, {1});
  check_vjp(reduction(Reducer::kProd, {0}), {array_of(DType::kF64, {5}, {2, 0, 3, -1, 4}), init});
  check_vjp(reduction(Reducer::kProd, {0}), {array_of(DType::kF64, {4}, {2, 0, 3, 0}), init});
  check_vjp(reduction(Reducer::kProd, {0}), {NdArray::empty(DType::kF64, {0, 2}), init});
}

TEST(ReduceVjp, SplitsTies) {
  TestGraph graph;
  Builder builder = graph.builder();
  const ValueId x = graph.input(array_of(DType::kF64, {4}, {3, 1, 3, 2}));
  const ValueId y = build_reduce(builder, x, {}, Reducer::kMax, Dims{0});
  TestVjpContext vjp(graph, OpView(graph.module(), graph.module().value(y).op),
                     graph.input(array_of(DType::kF64, {}, {1})));
  vjp.op().def().vjp(vjp);
  EXPECT_EQ(elements(graph.evaluate(vjp.cotangents[0])), (std::vector<double>{0.5, 0, 0.5, 0}));
}

TEST(ReduceBatch, AgreesWithEveryExample) {
  const NdArray x = random_array(DType::kF32, {3, 5, 2}), one = random_array(DType::kF32, {5, 2});
  const NdArray init = array_of(DType::kF32, {}, {2}), inits = array_of(DType::kF32, {3}, {1, 2, 3});
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax}) {
    check_batch(reduction(reducer, {0}), {x, init}, {true, false});
    check_batch(reduction(reducer, {1}), {x, inits}, {true, true});
    check_batch(reduction(reducer, {0, 1}), {one, inits}, {false, true});
  }
}

}  // namespace
}  // namespace shardwise::test
