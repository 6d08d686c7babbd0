// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagate.h"

#include <gtest/gtest.h>

#include "shardwise/explanation/explain.h"
#include "shardwise/mesh/sharding_text.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr auto kMesh = R"(sdy.mesh @mesh = <["a"=2, "b"=2]>
)";

struct Result {
  Module module;
  PassContext context = {};
};

Result propagated(const std::string& text, Strategy strategy = Strategy::kBasic,
                  Priorities priorities = Priorities::kNone) {
  Result result{.module = parse_program(kMesh + text)};
  record_annotations(result.module, result.context.provenance);
  propagate_shardings(result.module, result.context, strategy, priorities);
  return result;
}

// The shardings of the results of all ops of main, in order; "-" for none.
std::vector<std::string> op_shardings(const Module& module) {
  std::vector<std::string> texts;
  for (OpId op : module.region(module.main().body).ops) {
    const ShardingId id = module.value(module.result(op)).sharding;
    texts.push_back(id ? short_text(module.context().sharding(id)) : "-");
  }
  return texts;
}
using Texts = std::vector<std::string>;

const std::string kDot = R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  })";

TEST(Propagate, FollowsTheFactorsOfARule) {
  EXPECT_EQ(op_shardings(propagated(kDot).module), (Texts{R"([{"a", ?}, {"b", ?}])", R"([{"a", ?}, {"b", ?}])"}));
}

TEST(Propagate, GoesBackwards) {
  const Result result = propagated(R"(func.func @main(%x: tensor<8x4xf32>)
      -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
    %0 = stablehlo.sine %x : tensor<8x4xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  })");
  EXPECT_EQ(op_shardings(result.module), (Texts{R"([{"b", ?}, {"a", ?}])", R"([{"a", ?}, {"b", ?}])"}));
  const ValueId argument = result.module.region(result.module.main().body).arguments[0];
  EXPECT_EQ(short_text(result.module.context().sharding(result.module.value(argument).sharding)),
            R"([{"b", ?}, {"a", ?}])");
}

// Both dims of the result want "a": the basic strategy gives it to none, the aggressive one to the larger operand.
const std::string kConflict = R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  })";

TEST(Propagate, BasicLeavesAConflictAlone) { EXPECT_EQ(op_shardings(propagated(kConflict).module), Texts{"-"}); }

TEST(Propagate, AggressiveServesTheLargerTensor) {
  EXPECT_EQ(op_shardings(propagated(kConflict, Strategy::kAggressive).module), Texts{R"([{?}, {"a", ?}])"});
}

// In program order the product is visited first; in rounds the sum is.
TEST(Propagate, ServesOpsThatChangeNothingFirst) {
  const std::string text = R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                                %w: tensor<4x16xf32>,
                                %y: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.add %0, %y : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  })";
  EXPECT_EQ(op_shardings(propagated(text, Strategy::kAggressive).module)[0], R"([{"a", ?}, {?}])");
  EXPECT_EQ(op_shardings(propagated(text, Strategy::kAggressive, Priorities::kOps).module)[0], R"([{?}, {"a", ?}])");
}

TEST(Propagate, PrioritiesOfAUserComeFirst) {
  const std::string text = R"(func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {}]>},
                                %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
    %0 = stablehlo.add %x, %y : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  })";
  EXPECT_EQ(op_shardings(propagated(text, Strategy::kAggressive, Priorities::kOps).module),
            Texts{R"([{"a", ?}, {?}])"});
  const Result result = propagated(text, Strategy::kAggressive, Priorities::kUser);
  EXPECT_EQ(op_shardings(result.module), Texts{R"([{?}, {"a", ?}])"});
  const Module& module = result.module;
  const ValueId x = module.region(module.main().body).arguments[0];
  EXPECT_EQ(short_text(module.context().sharding(module.value(x).sharding)), R"([{"a"}, {}])");
  EXPECT_EQ(Explainer(module, result.context.provenance).explain(x).axes[0].origin.label.text, "argument 0");
}

TEST(Propagate, DoesNotOpenWhatAnAnnotationClosed) {
  const Result result =
      propagated(R"(func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{}]> : tensor<8xf32>
    %1 = stablehlo.sine %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  })");
  EXPECT_EQ(op_shardings(result.module), (Texts{"[{}]", "-"}));
}

TEST(Propagate, VisitsDoNotDependOnTheSizeOfAnAxis) {
  const Result small = propagated(kDot);
  std::string text = kMesh + kDot;
  text.replace(text.find("\"a\"=2"), 5, "\"a\"=1048576");
  Result large{.module = parse_program(text)};
  propagate_shardings(large.module, large.context, Strategy::kBasic, Priorities::kNone);
  EXPECT_EQ(small.context.counters.entries(), large.context.counters.entries());
  EXPECT_GT(small.context.counters.get("propagate.visits"), 0);
}

TEST(Propagate, WorksOutEqualVisitsOnce) {
  std::string text =
      R"(func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> tensor<8xf32> {
    %0 = stablehlo.sine %x : tensor<8xf32>
)";
  for (int i = 1; i < 100; ++i) {
    text += "%" + std::to_string(i) + " = stablehlo.sine %" + std::to_string(i - 1) + " : tensor<8xf32>\n";
  }
  const Result result = propagated(text + "return %99 : tensor<8xf32>\n}");
  EXPECT_EQ(result.context.counters.get("propagate.visits"), 100);
  EXPECT_LE(result.context.counters.get("propagate.distinct_visits"), 4);
}

Module after_propagate(const std::string& text) {
  PassContext context;
  return propagate(parse_program(text), context);
}

TEST(PropagatePass, ClosesEveryValue) {
  const Module module = after_propagate(kMesh + kDot);
  EXPECT_EQ(op_shardings(module), (Texts{R"([{"a"}, {"b"}])", R"([{"a"}, {"b"}])"}));
  EXPECT_NE(signature_text(module).find(R"(tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})"),
            std::string::npos);
}

TEST(PropagatePass, GivesEachUseOfAConstantItsOwn) {
  const Module module = after_propagate(std::string(kMesh) + R"(
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
                  %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
    %c = stablehlo.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
    %0 = stablehlo.add %x, %c : tensor<8xf32>
    %1 = stablehlo.add %y, %c : tensor<8xf32>
    return %0, %1 : tensor<8xf32>, tensor<8xf32>
  })");
  EXPECT_EQ(op_shardings(module), (Texts{R"([{"a"}])", R"([{"b"}])", R"([{"a"}])", R"([{"b"}])"}));
}

TEST(PropagatePass, HearsAnUnusedConstraint) {
  const Module module = after_propagate(std::string(kMesh) + R"(
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %x : tensor<8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  })");
  EXPECT_EQ(op_shardings(module), Texts{R"([{"a"}])"});
}

}  // namespace
}  // namespace shardwise
