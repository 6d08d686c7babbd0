// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explain.h"

#include <gtest/gtest.h>

#include "shardwise/explanation/axis_edges.h"
#include "shardwise/explanation/counterfactual.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/propagation/propagate.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

using Texts = std::vector<std::string>;

const std::string kMesh = R"(sdy.mesh @mesh = <["a"=2, "b"=2]>
)";
const std::string kDot = R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("model.py":3:1)
    %1 = stablehlo.tanh %0 : tensor<8x16xf32> loc("h"("model.py":4:1))
    return %1 : tensor<8x16xf32>
  })";
const std::string kConflict = R"(func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                                     %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  })";

struct Result {
  Module before;
  Module module;
  PassContext context;
  // Explains the first value that is called `name` or defined by an op of this name.
  ValueId find(const std::string& name) const {
    for (const ValueId value : values_of_main(module)) {
      const OpId op = module.value(value).op;
      const bool is_it = shown_name(module, value) == name || (op && module.op(op).def->name == name);
      if (is_it) return value;
    }
    return {};
  }
  Explanation why(const std::string& name) const { return Explainer(module, context.provenance).explain(find(name)); }
};

std::vector<PathStep> steps_of(const Explainer& explainer, PathId path) {
  std::vector<PathStep> steps;
  for (; path != kNoSteps; path = steps.front().before) {
    steps.insert(steps.begin(), explainer.paths()[static_cast<size_t>(path)]);
  }
  return steps;
}

Result propagated(const std::string& text) {
  const Module module = parse_program(kMesh + text);
  Result result{.before = module, .module = module, .context = {}};
  result.module = propagate(std::move(result.module), result.context);
  return result;
}

TEST(Explain, NamesTheAnnotationAndThePath) {
  const Result result = propagated(kDot);
  Explainer explainer(result.module, result.context.provenance);
  const Explanation why = explainer.explain(result.find("h"));
  ASSERT_EQ(why.axes.size(), 2u);
  EXPECT_EQ(why.axes[0].axis_text, "\"a\"");
  EXPECT_EQ(why.axes[0].origin.label.text, "argument 0");
  const std::vector<PathStep> path = steps_of(explainer, why.axes[0].path);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[0].label.text, "stablehlo.dot_general");
  EXPECT_EQ(path[0].from, "operand 0 dim 0");
  EXPECT_EQ(path[0].factor, "i");
  EXPECT_EQ(path[0].label.location, "model.py:3");
  EXPECT_EQ(path[0].round, 2);
  EXPECT_EQ(path[1].label.text, "stablehlo.tanh");
  EXPECT_EQ(why.axes[1].origin.label.text, "argument 1");
}

TEST(Explain, NamesWhatLostToWhatAndWhy) {
  const Explanation why = propagated(kConflict).why("stablehlo.dot_general");
  ASSERT_EQ(why.lost.size(), 1u);
  EXPECT_EQ(why.lost[0].dim, 0);
  EXPECT_EQ(why.lost[0].carrier.text, "stablehlo.dot_general");
  EXPECT_EQ(why.lost[0].reason, "the axis shards result 0 dim 1");
  EXPECT_EQ(why.lost[0].rule,
            "of two factors that want an axis, the one whose axes come from the larger tensor goes first");
  ASSERT_EQ(why.lost[0].winner.size(), 1u);
  EXPECT_EQ(why.lost[0].winner[0].origin.label.text, "argument 1");
}

TEST(Explain, LostCandidatesShareThePathOfWhatWon) {
  const std::string head = R"(func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
      %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}]>}) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("h"("t.py":1:1))
)";
  const std::string add = "    %NAME = stablehlo.add %0, %y : tensor<8xf32> loc(\"t.py\":LINE:1)\n";
  std::string uses;
  for (const char* name : {"1", "2", "3"}) {
    std::string line = add;
    line.replace(line.find("NAME"), 4, name);
    line.replace(line.find("LINE"), 4, name);
    uses += line;
  }
  const std::string tail = R"(    %4 = stablehlo.add %1, %2 : tensor<8xf32>
    %5 = stablehlo.add %4, %3 : tensor<8xf32>
    return %5 : tensor<8xf32>
  })";
  const Explanation why = propagated(head + uses + tail).why("h");
  ASSERT_EQ(why.axes.size(), 1u);
  ASSERT_EQ(why.lost.size(), 3u);
  for (const LostAxis& lost : why.lost) {
    ASSERT_EQ(lost.winner.size(), 1u);
    EXPECT_EQ(lost.winner[0].path, why.axes[0].path);  // the same one, not an equal one
  }
}

TEST(AxisHistory, ListsWhoCarriedWhat) {
  const Result result = propagated(kDot);
  AxisHistory history(result.module, result.context.provenance);
  Texts texts;
  for (const AxisEdge& edge : axis_edges(history, result.module)) {
    const std::string op(edge.at.op ? result.module.op(edge.at.op).def->name : "results");
    texts.push_back(op + " " + std::to_string(edge.source) + " " + std::to_string(edge.target));
  }
  EXPECT_EQ(texts, (Texts{"stablehlo.dot_general 0 2", "stablehlo.dot_general 1 2", "stablehlo.tanh 0 1",
                          "stablehlo.tanh 0 1", "results 0 1", "results 0 1"}));
}

TEST(Counterfactual, PropagatesWithoutTheAnnotation) {
  const Result result = propagated(kConflict);
  const Explanation why = result.why("stablehlo.dot_general");
  const auto found = counterfactuals({result.before, result.module, kPropagate, result.context}, why);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].without.label.text, "argument 1");
  EXPECT_EQ(found[0].sharding, R"([{"a"}, {}])");
  EXPECT_EQ(found[0].others, 1);
}

TEST(AxisHistory, FollowsAnAxisBackStepByStep) {
  const Result result = propagated(kDot);
  AxisHistory history(result.module, result.context.provenance);
  const OpId tanh = result.module.region(result.module.main().body).ops.back();
  const TensorRef value{result.module.result(tanh)};
  const AxisRef a{.axis = 0, .pre = 1, .size = 2};
  const auto arrival = history.arrival(value, 0, a, history.now());
  ASSERT_TRUE(arrival.has_value());
  EXPECT_EQ(history.next_arrival(value, 0, a, 0), arrival);
  EXPECT_FALSE(history.has(history.at(value, *arrival), 0, a));
  EXPECT_TRUE(history.has(history.at(value, *arrival + 1), 0, a));
  const auto sources = history.sources(*arrival, 0, a);
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].from, TensorRef{result.module.operands(tanh)[0]});
  EXPECT_EQ(history.arrival({result.module.region(result.module.main().body).arguments[0]}, 0, a, history.now()),
            std::nullopt);  // from the start
}

}  // namespace
}  // namespace shardwise
