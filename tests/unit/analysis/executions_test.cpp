// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/executions.h"

#include <gtest/gtest.h>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

// The executions of the only op of this name.
Executions executions_of(const Module& module, std::string_view name) {
  OpId found;
  walk(module, [&](OpId op) { found = OpView(module, op).name() == name ? op : found; });
  return ModuleExecutions(module).of(found);
}

// A loop around `body`, which makes %y of %x; 10 trips, or as many as a value says.
std::string loop(const std::string& limit, const std::string& body, const std::string& attributes = "") {
  return R"(%zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4xf32>)" +
         attributes + R"(
  cond {
    %goes = stablehlo.compare LT, %i, )" +
         limit + R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %goes : tensor<i1>
  } do {
    )" + body +
         R"(
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
  }
)";
}

Module program(const std::string& body, const std::string& functions = "") {
  return parse_program("func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {\n" + body +
                       "return %a : tensor<4xf32>\n}\n" + functions);
}

constexpr const char* kTanh = "%y = stablehlo.tanh %x : tensor<4xf32>";

TEST(Executions, ACountedLoopMultiplies) {
  EXPECT_EQ(executions_of(program(loop("%ten", kTanh)), "stablehlo.tanh"), (Executions{.count = 10, .factor = {}}));
  EXPECT_EQ(executions_of(program(loop("%ten", kTanh)), "stablehlo.while"), (Executions{.count = 1, .factor = {}}));
}

TEST(Executions, ALoopThatDoesNotCountIsAssumedToRun16Trips) {
  EXPECT_EQ(executions_of(program(loop("%n", kTanh)), "stablehlo.tanh"),
            (Executions{.count = 1, .factor = {16, 1}, .kind = CountKind::kAssumed}));
  EXPECT_EQ(executions_of(program(loop("%n", kTanh, " attributes {shardwise.trips = 100 : i64}")), "stablehlo.tanh"),
            (Executions{.count = 1, .factor = {100, 1}, .kind = CountKind::kAssumed}));
}

TEST(Executions, AConditionIsComputedOnceMoreThanTheBody) {
  EXPECT_EQ(executions_of(program(loop("%ten", kTanh)), "stablehlo.compare"), (Executions{.count = 11, .factor = {}}));
  EXPECT_EQ(executions_of(program(loop("%n", kTanh)), "stablehlo.compare"),
            (Executions{.count = 1, .factor = {17, 1}, .kind = CountKind::kAssumed}));
}

std::string branches(const std::string& attributes = "") {
  return R"(%y = "stablehlo.case"(%n) ({
      %t = stablehlo.tanh %x : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }, {
      %t = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }))" +
         attributes + " : (tensor<i32>) -> tensor<4xf32>";
}

TEST(Executions, ABranchCountsAsIfItRanWithItsShareAsTheFactor) {
  EXPECT_EQ(executions_of(program(loop("%ten", branches())), "stablehlo.tanh"),
            (Executions{.count = 10, .factor = {1, 3}, .kind = CountKind::kBranch}));
  const Module declared = program(loop("%ten", branches(" {shardwise.weights = array<i64: 6, 2, 0>}")));
  EXPECT_EQ(executions_of(declared, "stablehlo.tanh"),
            (Executions{.count = 10, .factor = {3, 4}, .kind = CountKind::kBranch}));
  EXPECT_EQ(executions_of(declared, "stablehlo.negate"),
            (Executions{.count = 10, .factor = {1, 4}, .kind = CountKind::kBranch}));
}

// The weaker kind of count stays: a loop that does not count makes the count one per trip.
TEST(Executions, ABranchInALoopThatDoesNotCountIsAssumed) {
  EXPECT_EQ(executions_of(program(loop("%n", branches())), "stablehlo.tanh"),
            (Executions{.count = 1, .factor = {16, 3}, .kind = CountKind::kAssumed}));
}

constexpr const char* kFunction = R"(
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
)";
constexpr const char* kCall = "%y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>";

TEST(Executions, TheCallsOfAFunctionAddUp) {
  // 10 calls in a loop, and one
  const Module module =
      program(loop("%ten", kCall) + "%z = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n", kFunction);
  EXPECT_EQ(executions_of(module, "stablehlo.tanh"), (Executions{.count = 11, .factor = {}}));
  EXPECT_EQ(ModuleExecutions(module).of_function(1).count, 11);
}

TEST(Executions, CallsWithDifferentFactorsHaveTheirMean) {
  // one call in a loop that does not count, 16 times, and one for sure: 17 of 2 counted ones
  const Module module =
      program(loop("%n", kCall) + "%z = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n", kFunction);
  const Executions found = executions_of(module, "stablehlo.tanh");
  EXPECT_EQ(found, (Executions{.count = 2, .factor = {17, 2}, .kind = CountKind::kAssumed}));
  EXPECT_EQ(found.times(1000), 17000);
}

TEST(Executions, AFunctionThatNothingCallsNeverRuns) {
  EXPECT_EQ(executions_of(program("", kFunction), "stablehlo.tanh").count, 0);
}

TEST(Executions, TimesRoundsUpOnce) {
  EXPECT_EQ((Executions{.count = 10, .factor = {1, 3}}).times(7), 24);  // 70 / 3
  EXPECT_EQ((Executions{.count = 1, .factor = {0, 1}}).times(7), 0);
  EXPECT_EQ((Executions{.count = 1, .factor = {}}).times(kHuge), kHuge);
  EXPECT_EQ((Executions{.count = kHuge, .factor = {16, 1}}).times(1), kHuge);
  EXPECT_EQ((Executions{.count = int64_t{1} << 40, .factor = {1, 3}}).times(int64_t{1} << 20),
            ((int64_t{1} << 60) + 2) / 3);
}

TEST(Executions, HugeCountsSaturate) {
  Executions calls{.count = kHuge, .factor = {kHuge, 1}, .kind = CountKind::kAssumed};
  calls += {.count = kHuge, .factor = {1, kHuge}, .kind = CountKind::kBranch};
  EXPECT_EQ(calls.count, kHuge);
  EXPECT_EQ(calls.kind, CountKind::kAssumed);
  // The mean of 2^62 and of nearly nothing: a half of 2^62
  EXPECT_NEAR(static_cast<double>(calls.factor.numerator) / static_cast<double>(calls.factor.denominator) / 0x1p61, 1,
              1e-6);
}

TEST(Executions, NestedLoopsOfHugeTripsSaturate) {
  std::string text = R"(
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %n = stablehlo.constant dense<4611686018427387904> : tensor<i64>
  %l:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i64>, tensor<4xf32>
  cond {
    %goes = stablehlo.compare LT, %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %goes : tensor<i1>
  } do {
    %m:2 = stablehlo.while(%k = %zero, %w = %x) : tensor<i64>, tensor<4xf32>
    cond {
      %goes = stablehlo.compare LT, %k, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %goes : tensor<i1>
    } do {
      %y = stablehlo.tanh %w : tensor<4xf32>
      %h = stablehlo.add %k, %one : tensor<i64>
      stablehlo.return %h, %y : tensor<i64>, tensor<4xf32>
    }
    %j = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %j, %m#1 : tensor<i64>, tensor<4xf32>
  }
  return %l#1 : tensor<4xf32>
}
)";
  EXPECT_EQ(executions_of(parse_program(text), "stablehlo.tanh"), (Executions{.count = kHuge, .factor = {}}));
}

}  // namespace
}  // namespace shardwise
