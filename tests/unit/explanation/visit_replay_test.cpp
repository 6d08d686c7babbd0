// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/visit_replay.h"

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
const std::string kDot =
    "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> "
    "tensor<8x8xf32>";

struct Replayed {
  PassContext context;
  Module module;
  OpId op;
  AxisHistory history;
  VisitReplay replay;

  Replayed(const std::string& text, Strategy strategy)
      : context{.options = {.strategy = strategy}},
        module(propagate(parse_program(text), context)),
        op(module.region(module.main().body).ops.front()),
        history(module, context.provenance),
        replay(module, history) {}

  // Axis "a" of tensor `other` along factor `factor`, which tensor `tensor` does not have.
  AxisObserver ask(size_t tensor, size_t other, FactorId factor, size_t time, int round, bool only_two) {
    const AxisRef axis{.axis = 0, .pre = 1, .size = 2};
    return replay.observe({.op = op, .tensor = tensor, .other = other, .factor = factor, .axis = axis}, time, round,
                          only_two);
  }
};

TEST(VisitReplay, TellsWhatTheTensorItselfRefuses) {
  const auto verdict = [](const std::string& x, const std::string& y) {
    Replayed replayed(program(x, y, kAdd), Strategy::kAggressive);
    return replayed.ask(1, 0, 0, replayed.history.now(), kLastRound, true).verdict;
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
    return replayed.ask(2, 0, 0, replayed.history.now(), kLastRound, false);
  };
  const std::string a = R"([{"a"}, {?}])";
  EXPECT_EQ(answer(a, R"([{"b"}, {?}])", Strategy::kAggressive).verdict, Verdict::kDisagreement);
  const AxisObserver closed = answer(a, "[{}, {?}]", Strategy::kBasic);
  EXPECT_EQ(closed.verdict, Verdict::kClosedDim);
  EXPECT_EQ(closed.blocker.tensor, 1u);
  EXPECT_EQ(answer(a, "[{}, {?}]", Strategy::kAggressive).verdict, Verdict::kTaken);
}

TEST(VisitReplay, TellsWhichOfTwoFactorsGoesFirst) {
  Replayed replayed(program(R"([{"a"}, {?}])", R"([{?}, {"a"}])", kDot), Strategy::kAggressive);
  const size_t won = replayed.history.arrival({replayed.module.result(replayed.op)}, 0,
                                              {.axis = 0, .pre = 1, .size = 2}, replayed.history.now());
  const PropagationStep& step = replayed.history.steps()[won];
  const FactorId i = replayed.history.rule(replayed.op).dim(0, 0)[0],
                 j = replayed.history.rule(replayed.op).dim(1, 1)[0];
  const AxisObserver early = replayed.ask(2, 1, j, replayed.history.visit_begin(won), 0, false);
  EXPECT_EQ(early.verdict, Verdict::kLaterRound);
  const AxisObserver seen = replayed.ask(2, 1, j, replayed.history.visit_begin(won), step.round, false);
  EXPECT_EQ(seen.verdict, Verdict::kOtherFactor);
  EXPECT_EQ(seen.blocker.factor, i);
  EXPECT_EQ(seen.source.tensor, 1u);
  EXPECT_EQ(seen.blocking_source.tensor, 0u);
  EXPECT_EQ(seen.blocking_source.size, seen.source.size);
  EXPECT_NO_THROW(replayed.replay.verify());
}

TEST(VisitReplay, VerifiesThatVisitsEndAsRecorded) {
  Replayed replayed(program(R"([{"a"}, {?}])", R"([{?}, {"b"}])", kDot), Strategy::kAggressive);
  EXPECT_NO_THROW(replayed.replay.verify());
  for (PropagationStep& step : replayed.context.provenance.steps) {
    if (step.op && step.after) step.after = replayed.module.value(ValueId{1}).sharding;
  }
  EXPECT_THROW(replayed.replay.verify(), InternalError);
}

}  // namespace
}  // namespace shardwise
