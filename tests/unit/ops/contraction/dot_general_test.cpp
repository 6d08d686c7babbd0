// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/dot_general.h"

#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"

namespace shardwise::test {
namespace {

NdArray dot(const NdArray& lhs, const NdArray& rhs, const DotDims& dims, std::optional<DType> result = {},
            int64_t piece = 1 << 30) {
  TestGraph graph;
  graph.piece = piece;
  Builder builder = graph.builder();
  return graph.evaluate(build_dot(builder, graph.input(lhs), graph.input(rhs), dims, result.value_or(lhs.dtype())));
}

// Sums over every index of a [b, m, k, l] and a [l, b, k, n], as small integers; booleans by or of ands.
NdArray expected_product(const NdArray& lhs, const NdArray& rhs, DType dtype) {
  const Dims& a = lhs.shape();
  const int64_t n = rhs.shape()[3];
  return make_array(dtype, {a[0], a[1], n}, [&](int64_t i) {
    const int64_t batch = i / n / a[1], row = i / n % a[1], column = i % n;
    double sum = 0;
    for (int64_t k = 0; k < a[2]; ++k) {
      for (int64_t l = 0; l < a[3]; ++l) {
        sum += as_double(lhs.scalar_at(((batch * a[1] + row) * a[2] + k) * a[3] + l)) *
               as_double(rhs.scalar_at(((l * a[0] + batch) * a[2] + k) * n + column));
      }
    }
    return dtype == DType::kBool ? static_cast<double>(sum != 0) : sum;
  });
}

const DotDims kBatched{{0}, {1}, {2, 3}, {2, 0}};

TEST(Dot, AgreesWithALoopForEveryDTypeAndLayout) {
  for (DType dtype : all_dtypes()) {
    for (const Dims& s : {Dims{2, 3, 4, 2, 5}, Dims{1, 1, 3, 1, 1}, Dims{3, 7, 1, 1, 2}, Dims{2, 1, 2, 2, 6},
                          Dims{2, 3, 0, 2, 4}, Dims{0, 2, 2, 1, 2}, Dims{2, 0, 2, 1, 2}}) {
      const NdArray lhs = random_array(dtype, {s[0], s[1], s[2], s[3]}, 1);
      const NdArray rhs = random_array(dtype, {s[3], s[0], s[2], s[4]}, 2);
      const std::vector<double> expected = elements(expected_product(lhs, rhs, dtype));
      for (const NdArray& a : {lhs, in_odd_strides(lhs), column_major(lhs)}) {
        for (const NdArray& b : {rhs, in_odd_strides(rhs), column_major(rhs)}) {
          EXPECT_EQ(elements(dot(a, b, kBatched)), expected) << mlir_name(dtype);
        }
      }
    }
  }
}

TEST(Dot, ReadsTransposedAndRepeatedOperands) {
  const NdArray x = random_array(DType::kF32, {6, 4}),
                ones = NdArray::full(DType::kF32, {6, 3}, scalar_of(DType::kF32, 1));
  const NdArray sums = dot(x, ones, {{}, {}, {0}, {0}});
  for (int64_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 6; ++k) sum += x.scalar_at(k * 4 + i).real;
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(sums.scalar_at(i * 3 + j).real, sum);
  }
}

TEST(Dot, MayHaveAWiderResult) {
  const NdArray a = make_array(DType::kI8, {1, 100}, [](int64_t) { return 100; });
  EXPECT_EQ(elements(dot(a, a, {{}, {}, {1}, {1}}, DType::kI32)), std::vector<double>{1e6});
  EXPECT_EQ(elements(dot(a, a, {{}, {}, {1}, {1}})), std::vector<double>{64});  // 1e6 modulo 256
  const NdArray h = make_array(DType::kF16, {1, 4096}, [](int64_t) { return 1.5; });
  EXPECT_EQ(elements(dot(h, h, {{}, {}, {1}, {1}}, DType::kF32)), std::vector<double>{9216});
  EXPECT_EQ(elements(dot(h, h, {{}, {}, {1}, {1}})), std::vector<double>{9216});
}

TEST(Dot, GivesTheSameBitsForAnyThreads) {
  const NdArray a = random_reals(DType::kF32, {300, 150}, 1), b = random_reals(DType::kF32, {150, 400}, 2);
  const std::vector<double> whole = elements(dot(a, b, {{}, {}, {1}, {0}}));
  EXPECT_EQ(elements(dot(a, b, {{}, {}, {1}, {0}}, {}, 1)), whole);
  const NdArray exact_a = make_array(DType::kF64, {300, 150}, [&](int64_t i) { return a.scalar_at(i).real; });
  const NdArray exact_b = make_array(DType::kF64, {150, 400}, [&](int64_t i) { return b.scalar_at(i).real; });
  const std::vector<double> exact = elements(dot(exact_a, exact_b, {{}, {}, {1}, {0}}));
  for (size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(whole[i], exact[i], 1e-4);
  const NdArray i = random_array(DType::kI32, {300, 150}, 1), j = random_array(DType::kI32, {150, 400}, 2);
  EXPECT_EQ(elements(dot(i, j, {{}, {}, {1}, {0}})), elements(dot(i, j, {{}, {}, {1}, {0}}, {}, 1)));
}

TEST(Dot, RefusesOtherSizes) {
  const NdArray a = random_array(DType::kF32, {4, 8});
  EXPECT_EQ(
      error_of<ShapeError>([&] { dot(a, random_array(DType::kF32, {4, 2}), {{}, {}, {1}, {0}}); }),
      "stablehlo.dot_general: contracting dims must have equal size, got 8 and 4 for tensor<4x8xf32>, tensor<4x2xf32> "
      "with [1] x [0]; transpose an operand or choose other dims");
}

TEST(DotRule, EqualsShardys) {
  const auto text = [](Dims lhs, Dims rhs, const DotDims& dims) {
    return rule_text("stablehlo.dot_general", {std::move(lhs), std::move(rhs)},
                     {{"dot_dimension_numbers", dot_attribute(dims)}});
  };
  EXPECT_EQ(text({4, 8}, {8, 16}, {{}, {}, {1}, {0}}), "([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}");
  EXPECT_EQ(
      text({4, 2, 4, 8, 1, 7}, {16, 7, 1, 2, 4}, {{0, 1}, {4, 3}, {5, 4}, {1, 2}}),
      "([i, j, k, l, o, n], [m, n, o, j, i])->([i, j, k, l, m]) {i=4, j=2, k=4, l=8, m=16, n=7, o=1} reduction={n, o}");
}

TEST(DotVjp, AgreesWithDifferences) {
  const NdArray lhs = random_reals(DType::kF64, {2, 3, 4, 2}, 1), rhs = random_reals(DType::kF64, {2, 2, 4, 5}, 2);
  check_vjp(op_builder("stablehlo.dot_general", {{"dot_dimension_numbers", dot_attribute(kBatched)}}), {lhs, rhs});
  const DotDims crossed{{3}, {0}, {2, 0}, {2, 1}};
  check_vjp(op_builder("stablehlo.dot_general", {{"dot_dimension_numbers", dot_attribute(crossed)}}), {lhs, rhs});
}

TEST(DotBatch, AgreesWithEveryExample) {
  const NdArray a = random_array(DType::kF32, {2, 3, 4, 2}, 1), b = random_array(DType::kF32, {2, 2, 4, 5}, 2);
  const NdArray as = random_array(DType::kF32, {3, 2, 3, 4, 2}, 3), bs = random_array(DType::kF32, {3, 2, 2, 4, 5}, 4);
  const BuildOp build = op_builder("stablehlo.dot_general", {{"dot_dimension_numbers", dot_attribute(kBatched)}});
  check_batch(build, {as, bs}, {true, true});
  check_batch(build, {as, b}, {true, false});
  check_batch(build, {a, bs}, {false, true});
}

}  // namespace
}  // namespace shardwise::test
