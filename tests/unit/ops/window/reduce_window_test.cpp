// SPDX-License-Identifier: Apache-2.0

#include "shardwise/ops/build/reduce_window.h"

#include <limits>

#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise::test {
namespace {

Window prefix_window(DimSpan shape, size_t dim, Prefix prefix) {
  Window window = Window::trivial(static_cast<int64_t>(shape.size()));
  window.set_prefix(dim, shape[dim], prefix);
  return window;
}

BuildOp windows(Reducer reducer, Window window) {
  return [=](Builder& builder, const std::vector<ValueId>& operands) {
    return build_reduce_window(builder, operands[0], operands.size() > 1 ? operands[1] : ValueId{}, reducer, window);
  };
}

NdArray scanned(const NdArray& x, Reducer reducer, size_t dim, Prefix prefix, int64_t piece = 1 << 30) {
  TestGraph graph;
  graph.piece = piece;
  Builder builder = graph.builder();
  const Window window = prefix_window(x.shape(), dim, prefix);
  return graph.evaluate(build_reduce_window(builder, graph.input(x), {}, reducer, window));
}

double combined(Reducer reducer, double a, double b) {
  switch (reducer) {
    case Reducer::kSum: return a + b;
    case Reducer::kProd: return a * b;
    case Reducer::kMax: return std::max(a, b);
    case Reducer::kMin: return std::min(a, b);
    case Reducer::kAnd: return static_cast<double>(static_cast<int64_t>(a) & static_cast<int64_t>(b));
    default: return static_cast<double>(static_cast<int64_t>(a) | static_cast<int64_t>(b));
  }
}

std::vector<Reducer> window_reducers_of(DType dtype) {
  if (dtype == DType::kBool) return {Reducer::kAnd, Reducer::kOr};
  if (is_float(dtype)) return {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin};
  return {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin, Reducer::kAnd, Reducer::kOr};
}

// Along the middle of three dims, one element after the other; -1 … 1, so that no product leaves the dtype.
void expect_scan(const NdArray& x, const NdArray& y, Reducer reducer, bool forward) {
  ASSERT_EQ(y.shape(), x.shape());
  const int64_t count = x.shape()[1], inner = x.shape()[2];
  for (int64_t line = 0; line < x.shape()[0] * inner; ++line) {
    double total = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t row = forward ? k : count - 1 - k;
      const int64_t place = (line / inner * count + row) * inner + line % inner;
      const double item = as_double(x.scalar_at(place));
      total = k == 0 ? item : combined(reducer, total, item);
      ASSERT_EQ(as_double(y.scalar_at(place)), total) << mlir_name(x.dtype()) << " " << name(reducer) << " " << place;
    }
  }
}

TEST(Window, ScansEveryDTypeAndLayout) {
  for (DType dtype : all_dtypes()) {
    const bool natural = dtype == DType::kBool || is_unsigned_integer(dtype);
    for (Reducer reducer : window_reducers_of(dtype)) {
      for (const Dims& shape : {Dims{3, 5, 4}, Dims{20, 6, 1}, Dims{1, 7, 2}, Dims{2, 3, 300}, Dims{0, 3, 2}}) {
        uint32_t seed = 7;
        const NdArray x = make_array(dtype, shape, [&](int64_t) {
          seed = seed * 1664525 + 1013904223;
          return static_cast<double>((seed >> 16) % (natural ? 2 : 3)) - (natural ? 0 : 1);
        });
        for (const NdArray& operand : {x, in_odd_strides(x), column_major(x)}) {
          for (Prefix prefix : {Prefix::kForward, Prefix::kReverse}) {
            expect_scan(x, scanned(operand, reducer, 1, prefix, 2), reducer, prefix == Prefix::kForward);
          }
        }
      }
    }
  }
}

TEST(Window, SumsOfFloatsAreAsExactAsTheirDType) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const int64_t count = 200000;
    const NdArray x = make_array(dtype, {count}, [](int64_t i) { return 0.1 + 1e-3 * static_cast<double>(i % 7); });
    const NdArray y = scanned(x, Reducer::kSum, 0, Prefix::kForward);
    const double eps = dtype == DType::kF32 ? 1.2e-7 : 1e-15;  // long double itself strays by 2e-16
    long double total = 0;
    for (int64_t i = 0; i < count; ++i) {
      total += static_cast<long double>(x.scalar_at(i).real);
      ASSERT_NEAR(y.scalar_at(i).real, static_cast<double>(total), eps * static_cast<double>(total));
    }
  }
}

TEST(Window, InfinitiesAndNansRunOn) {
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::kF16, DType::kF32, DType::kF64}) {
    const NdArray x = array_of(dtype, {5}, {1, inf, 2, -inf, 3});
    const std::vector<double> y = elements(scanned(x, Reducer::kSum, 0, Prefix::kForward));
    EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 3), (std::vector<double>{1, inf, inf}));
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
    EXPECT_EQ(elements(scanned(x, Reducer::kMin, 0, Prefix::kReverse)),
              (std::vector<double>{-inf, -inf, -inf, -inf, 3}));
  }
}

TEST(Window, PaddingCountsTheInitValue) {
  Window window = Window::trivial(1);
  window.sizes = {3};
  window.low = {2};
  window.strides = {2};
  TestGraph graph;
  Builder builder = graph.builder();
  const ValueId x = graph.input(array_of(DType::kI32, {4}, {1, 2, 3, 4}));
  const ValueId init = graph.input(array_of(DType::kI32, {}, {10}));
  const ValueId y = build_reduce_window(builder, x, init, Reducer::kSum, window);
  EXPECT_EQ(elements(graph.evaluate(y)), (std::vector<double>{31, 16}));
}

TEST(Window, GradientsAreDifferences) {
  const NdArray x = random_reals(DType::kF64, {5, 4}, 3), init = array_of(DType::kF64, {}, {0.3});
  Window pool = Window::trivial(2);
  pool.sizes = {2, 3};
  pool.strides = {2, 1};
  pool.base_dilations = {2, 1};
  pool.dilations = {1, 2};
  pool.low = {1, 1};
  pool.high = {-1, 2};
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin}) {
    for (size_t dim : {0, 1}) {
      check_vjp(windows(reducer, prefix_window(x.shape(), dim, Prefix::kForward)), {x, init});
      check_vjp(windows(reducer, prefix_window(x.shape(), dim, Prefix::kReverse)), {x});
    }
    check_vjp(windows(reducer, pool), {x, init});
  }
}

TEST(Window, BatchesOperandsAndInitValues) {
  Window window = prefix_window(Dims{4, 3}, 0, Prefix::kReverse);
  window.sizes[1] = 2;
  window.high[1] = 1;
  const NdArray x = random_array(DType::kF64, {4, 3}), xs = random_array(DType::kF64, {5, 4, 3});
  const NdArray init = array_of(DType::kF64, {}, {2}), inits = array_of(DType::kF64, {5}, {2, -1, 0, 3, 1});
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax}) {
    check_batch(windows(reducer, window), {xs, init}, {true, false});
    check_batch(windows(reducer, window), {x, inits}, {false, true});
    check_batch(windows(reducer, window), {xs, inits}, {true, true});
  }
}

TEST(Window, KnowsThePrefixForm) {
  Window window = prefix_window(Dims{5}, 0, Prefix::kForward);
  EXPECT_EQ(window.prefix(0, 5), Prefix::kForward);
  EXPECT_EQ(window.prefix(0, 6), Prefix::kNone);
  window.strides = {2};
  EXPECT_EQ(window.prefix(0, 5), Prefix::kNone);
  EXPECT_EQ(prefix_window(Dims{5}, 0, Prefix::kReverse).prefix(0, 5), Prefix::kReverse);
  EXPECT_TRUE(prefix_window(Dims{1}, 0, Prefix::kReverse).is_trivial(0));
}

}  // namespace
}  // namespace shardwise::test
