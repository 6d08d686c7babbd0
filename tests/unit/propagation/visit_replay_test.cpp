// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/visit_replay.h"

#include <optional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

std::string program(const std::string& x, const std::string& y, const std::string& body) {
  const auto argument = [](const char* name, const std::string& sharding) {
    return std::string(name) + ": tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, " + sharding + ">}";
  };
  return "sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\nfunc.func @main(" + argument("%x", x) + ", " + argument("%y", y) +
         ") -> tensor<8x8xf32> {\n" + body + "\n return %0 : tensor<8x8xf32> }";
}
const std::string kAdd = "%0 = stablehlo.add %x, %y : tensor<8x8xf32>";
const std::string kSquareDot =
    "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> "
    "tensor<8x8xf32>";

struct Replayed {
  PassContext context;
  Module module;
  OpId op;
  VisitReplay visits;

  Replayed(const std::string& text, Strategy strategy)
      : context{.options = {.strategy = strategy}},
        module(propagate(parse_program(text), context)),
        op(module.region(module.main().body).ops.front()),
        visits(module, context.provenance) {}

  // Axis "a" of tensor `other` along factor `factor`, which tensor `tensor` does not have.
  AxisObserver ask(size_t tensor, size_t other, FactorId factor, size_t time, int round, bool only_two) {
    AxisObserver observer{.tensor = tensor, .factor = factor, .axis = {.axis = 0, .pre = 1, .size = 2}};
    visits.replay({op}, time, round, observer, only_two ? std::optional(other) : std::nullopt);
    return observer;
  }
};

TEST(VisitReplay, TellsWhatTheTensorItselfRefuses) {
  const auto verdict = [](const std::string& x, const std::string& y) {
    Replayed replayed(program(x, y, kAdd), Strategy::kAggressive);
    return replayed.ask(1, 0, 0, replayed.visits.now(), kLastRound, true).verdict;
  };
  EXPECT_EQ(verdict(R"([{"a"}, {?}])", "[{}, {?}]"), Verdict::kClosedDim);
  EXPECT_EQ(verdict(R"([{"a"}, {?}])", R"([{?}, {?}], replicated={"a"})"), Verdict::kReplicated);
  EXPECT_EQ(verdict(R"([{"a"}, {?}])", R"([{?}, {"a", ?}])"), Verdict::kOtherFactor);
  EXPECT_EQ(verdict(R"([{"a"}, {?}])", R"([{}, {"a", ?}])"), Verdict::kOtherFactor);  // an open dim would not help
  EXPECT_EQ(verdict(R"([{"a"}, {?}])", R"([{"b", ?}, {?}])"), Verdict::kTaken);       // but for what it has
}

TEST(VisitReplay, TellsWhatFurtherTensorsRefuse) {
  const auto answer = [](const std::string& x, const std::string& y, Strategy strategy) {
    Replayed replayed(program(x, y, kAdd), strategy);
    return replayed.ask(2, 0, 0, replayed.visits.now(), kLastRound, false);
  };
  const std::string a = R"([{"a"}, {?}])";
  EXPECT_EQ(answer(a, R"([{"b"}, {?}])", Strategy::kAggressive).verdict, Verdict::kDisagreement);
  const AxisObserver closed = answer(a, "[{}, {?}]", Strategy::kBasic);
  EXPECT_EQ(closed.verdict, Verdict::kClosedDim);
  EXPECT_EQ(closed.blocker.tensor, 1u);
  EXPECT_EQ(answer(a, "[{}, {?}]", Strategy::kAggressive).verdict, Verdict::kTaken);
}

TEST(VisitReplay, TellsWhichOfTwoFactorsGoesFirst) {
  Replayed replayed(program(R"([{"a"}, {?}])", R"([{?}, {"a"}])", kSquareDot), Strategy::kAggressive);
  const size_t won = replayed.visits.steps_of({replayed.module.result(replayed.op)}).front();
  EXPECT_TRUE(replayed.visits.steps()[won].first);
  const ShardingRule& rule = replayed.visits.rule({replayed.op});
  const FactorId i = rule.dim(0, 0)[0], j = rule.dim(1, 1)[0];
  const AxisObserver early = replayed.ask(2, 1, j, won, 0, false);
  EXPECT_EQ(early.verdict, Verdict::kLaterRound);
  const AxisObserver seen = replayed.ask(2, 1, j, won, replayed.visits.round_of(won).round, false);
  EXPECT_EQ(seen.verdict, Verdict::kOtherFactor);
  EXPECT_EQ(seen.blocker.factor, i);
  EXPECT_EQ(seen.source.tensor, 1u);
  EXPECT_EQ(seen.blocking_source.tensor, 0u);
  EXPECT_EQ(seen.blocking_source.size, seen.source.size);
  EXPECT_NO_THROW(replayed.visits.verify());
}

TEST(VisitReplay, VerifiesThatVisitsEndAsRecorded) {
  Replayed replayed(program(R"([{"a"}, {?}])", R"([{?}, {"b"}])", kSquareDot), Strategy::kAggressive);
  EXPECT_NO_THROW(replayed.visits.verify());
  for (PropagationStep& step : replayed.context.provenance.steps) {
    if (step.op && step.after) step.after = replayed.module.value(ValueId{1}).sharding;
  }
  EXPECT_THROW(replayed.visits.verify(), InternalError);
}

TEST(VisitReplay, HasTheShardingsOfAnyTime) {
  Replayed replayed(program(R"([{"a"}, {?}])", R"([{?}, {"b"}])", kSquareDot), Strategy::kAggressive);
  const TensorRef result{replayed.module.result(replayed.op)};
  const std::span<const size_t> steps = replayed.visits.steps_of(result);
  ASSERT_FALSE(steps.empty());
  EXPECT_FALSE(replayed.visits.initial(result));
  EXPECT_FALSE(replayed.visits.at(result, steps.front()));
  EXPECT_EQ(replayed.visits.at(result, steps.front() + 1), replayed.visits.steps()[steps.front()].after);
  EXPECT_EQ(replayed.visits.at(result, replayed.visits.now()), replayed.visits.steps()[steps.back()].after);
}

}  // namespace
}  // namespace shardwise
