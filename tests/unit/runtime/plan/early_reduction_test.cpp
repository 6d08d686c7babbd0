// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/early_reduction.h"

#include <numeric>

#include "runtime/local_text.h"
#include "shardwise/runtime/plan/plan.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

constexpr int64_t kAddendRows = 8, kLeft = 4, kRight = 2;

// %a: 8x4 and %b: 8x2, whose rows are sharded along x = 4; %p: the partial products %aT·%b of each device, 4x2.
class EarlyReduction : public ::testing::Test {
 protected:
  EarlyReduction() : mesh_(std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}})) {
    std::vector<int64_t> left(kAddendRows * kLeft), right(kAddendRows * kRight);
    std::iota(left.begin(), left.end(), -7);
    std::iota(right.begin(), right.end(), -3);
    product_.assign(kLeft * kRight, 0);
    for (size_t k = 0; k < kAddendRows; ++k) {
      for (size_t i = 0; i < kLeft; ++i) {
        for (size_t j = 0; j < kRight; ++j) product_[i * kRight + j] += left[k * kLeft + i] * right[k * kRight + j];
      }
    }
    arguments_ = {numbers(DType::kF32, {kAddendRows, kLeft}, left), numbers(DType::kF32, {kAddendRows, kRight}, right)};
  }

  AxisList x() const { return {full_axis(*mesh_, 0)}; }

  static std::string reduce(std::string_view from, std::string_view to) {
    return str(
        to, R"( = "shardwise.all_reduce"()", from,
        R"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum"}> : (tensor<4x2xf32>) -> tensor<4x2xf32>)",
        "\n");
  }

  static std::string accumulated(std::string_view init) {
    return str(R"(
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %limit = stablehlo.constant dense<3> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %c = )",
               init, R"() : tensor<i32>, tensor<4x2xf32>
        cond {
          %goes = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %goes : tensor<i1>
        } do {
          %j = stablehlo.add %i, %one : tensor<i32>
          %q = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
          %next = stablehlo.add %c, %q : tensor<4x2xf32>
          stablehlo.return %j, %next : tensor<i32>, tensor<4x2xf32>
        }
      )");
  }

  // Checks the numbers in all modes; returns how many ops reduce their results at once.
  int64_t check(std::string_view body, std::string_view returned, const Placed& result,
                const std::vector<int64_t>& expected) const {
    const std::string type = str("tensor<", 4 / product(result.axes[0]), "x2xf32>");
    const std::string text = str("func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x2xf32>) -> ", type, R"( {
      %p = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %zeros = stablehlo.constant dense<0.0> : tensor<4x2xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x2xf32>
      )",
                                 body, "return ", returned, " : ", type, "}");
    const LocalText program(mesh_, text, {{{kAddendRows, kLeft}, {x(), {}}}, {{kAddendRows, kRight}, {x(), {}}}},
                            {result});
    program.expect(arguments_, {numbers(DType::kF32, {kLeft, kRight}, expected)});
    EXPECT_EQ(reductions(make_plan(program.module(), *mesh_, {.faithful = true}).main), 0);
    EXPECT_EQ(reductions(make_plan(program.module(), *mesh_, {.pinned = x()}).main), 0);
    return reductions(make_plan(program.module(), *mesh_, {}).main);
  }

  static int64_t reductions(const Block& block) {
    int64_t count = 0;
    for (const Step& step : block.steps) {
      const auto* call = std::get_if<KernelCall>(&step.work);
      if (call != nullptr && !call->reduced.empty()) {
        ++count;
        EXPECT_TRUE(step.axes.empty());
        EXPECT_TRUE(call->merge.has_value());
      }
      if (const auto* loop = std::get_if<Loop>(&step.work)) count += reductions(loop->body);
    }
    return count;
  }

  std::vector<int64_t> times(int64_t factor, int64_t more = 0) const {
    std::vector<int64_t> values = product_;
    for (int64_t& value : values) value = value * factor + more;
    return values;
  }

  MeshPtr mesh_;
  std::vector<NdArray> arguments_;
  std::vector<int64_t> product_;
  const Placed whole_{{kLeft, kRight}, {{}, {}}};
};

TEST_F(EarlyReduction, OfAProduct) { EXPECT_EQ(check(reduce("%p", "%s"), "%s", whole_, times(1)), 1); }

TEST_F(EarlyReduction, OfALoopThatAccumulates) {
  EXPECT_EQ(check(accumulated("%zeros") + reduce("%r#1", "%s"), "%s", whole_, times(3)), 1);
}

TEST_F(EarlyReduction, AlsoOfTheFirstAddend) {
  EXPECT_EQ(check(accumulated("%p") + reduce("%r#1", "%s"), "%s", whole_, times(4)), 2);
}

TEST_F(EarlyReduction, ThroughLinearOps) {
  const std::string body = R"(
      %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
      %u = stablehlo.reshape %t : (tensor<2x4xf32>) -> tensor<4x2xf32>
      %v = stablehlo.add %u, %u : tensor<4x2xf32>
      )" + reduce("%v", "%s");
  std::vector<int64_t> expected;
  for (size_t j = 0; j < kRight; ++j) {
    for (size_t i = 0; i < kLeft; ++i) expected.push_back(2 * product_[i * kRight + j]);
  }
  EXPECT_EQ(check(body, "%s", whole_, expected), 1);
}

TEST_F(EarlyReduction, ScattersWhatIsReduced) {
  const std::string body = R"(
      %s = "shardwise.reduce_scatter"(%p) <{axes = #sdy<axis_ref_list{"x"}>, scatter = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, reducer = "sum"}> : (tensor<4x2xf32>) -> tensor<1x2xf32>
      )";
  EXPECT_EQ(check(body, "%s", {{kLeft, kRight}, {x(), {}}}, times(1)), 1);
}

// The shards of the reshaped operand cannot be merged without a copy: each has its own product.
TEST_F(EarlyReduction, OfShardsThatAreNotAdjacent) {
  const std::string body = R"(
      %c = stablehlo.reshape %a : (tensor<2x4xf32>) -> tensor<4x2xf32>
      %q = stablehlo.dot_general %c, %b, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      )" + reduce("%q", "%s");
  std::vector<int64_t> expected(kLeft * kRight, 0);
  for (size_t device = 0; device < 4; ++device) {
    for (size_t i = 0; i < 4; ++i) {
      for (size_t k = 0; k < 2; ++k) {
        for (size_t j = 0; j < 2; ++j) {
          const auto a = static_cast<int64_t>(8 * device + 2 * i + k) - 7;
          expected[2 * i + j] += a * (static_cast<int64_t>(4 * device + 2 * k + j) - 3);
        }
      }
    }
  }
  EXPECT_EQ(check(body, "%s", whole_, expected), 1);
}

TEST_F(EarlyReduction, NotWhereAPartialResultIsRead) {
  const std::string max = R"(
      %m = "shardwise.all_reduce"(%p) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "max"}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %n = stablehlo.subtract %m, %m : tensor<4x2xf32>
      )";
  EXPECT_EQ(check(max + reduce("%p", "%q") + "%s = stablehlo.add %q, %n : tensor<4x2xf32>\n", "%s", whole_, times(1)),
            0);
}

TEST_F(EarlyReduction, NotWhereEachDeviceAddsSomething) {
  EXPECT_EQ(check("%q = stablehlo.add %p, %ones : tensor<4x2xf32>\n" + reduce("%q", "%s"), "%s", whole_, times(1, 4)),
            0);
  EXPECT_EQ(check(accumulated("%ones") + reduce("%r#1", "%s"), "%s", whole_, times(3, 4)), 0);
}

}  // namespace
}  // namespace shardwise
