// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/explain.h"

#include <gtest/gtest.h>

#include "passes/program_text.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/passes/counterfactual.h"
#include "shardwise/passes/propagate.h"
#include "shardwise/passes/value_names.h"

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
  Program program;
  Explanation why(const std::string& name) const {
    return explain(program.module, program.provenance, find_values(program.module, name).at(0).value);
  }
};

Result propagated(const std::string& text) {
  const Module module = parse_program(kMesh + text);
  Result result{.before = module, .program = {.module = module}};
  propagate(result.program);
  return result;
}

TEST(Explain, NamesTheAnnotationAndThePath) {
  const Explanation why = propagated(kDot).why("h");
  ASSERT_EQ(why.axes.size(), 2u);
  EXPECT_EQ(why.axes[0].axis_text, "\"a\"");
  EXPECT_EQ(why.axes[0].origin.text, "argument 0");
  ASSERT_EQ(why.axes[0].path.size(), 2u);
  EXPECT_EQ(why.axes[0].path[0].name, "stablehlo.dot_general");
  EXPECT_EQ(why.axes[0].path[0].from, "operand 0 dim 0");
  EXPECT_EQ(why.axes[0].path[0].factor, "i");
  EXPECT_EQ(why.axes[0].path[0].location, "model.py:3");
  EXPECT_EQ(why.axes[0].path[0].round, 2);
  EXPECT_EQ(why.axes[0].path[1].name, "stablehlo.tanh");
  EXPECT_EQ(why.axes[1].origin.text, "argument 1");
}

TEST(Explain, NamesWhatLostToWhatAndWhy) {
  const Explanation why = propagated(kConflict).why("dot_general");
  ASSERT_EQ(why.lost.size(), 1u);
  EXPECT_EQ(why.lost[0].dim, 0);
  EXPECT_EQ(why.lost[0].op, "stablehlo.dot_general");
  EXPECT_EQ(why.lost[0].reason, "the axis shards result 0 dim 1");
  EXPECT_EQ(why.lost[0].rule,
            "of two factors that want an axis, the one whose axes come from the larger tensor goes first");
  ASSERT_EQ(why.lost[0].winner.size(), 1u);
  EXPECT_EQ(why.lost[0].winner[0].origin.text, "argument 1");
}

TEST(AxisHistory, ListsWhoCarriedWhat) {
  const Result result = propagated(kDot);
  AxisHistory history(result.program.module, result.program.provenance);
  Texts texts;
  for (const AxisEdge& edge : axis_edges(history, result.program.module)) {
    const std::string op(edge.op ? result.program.module.op(edge.op).def->name : "results");
    texts.push_back(op + " " + std::to_string(edge.source) + " " + std::to_string(edge.target));
  }
  EXPECT_EQ(texts, (Texts{"stablehlo.dot_general 0 2", "stablehlo.dot_general 1 2", "stablehlo.tanh 0 1",
                          "stablehlo.tanh 0 1", "results 0 1", "results 0 1"}));
}

TEST(Counterfactual, PropagatesWithoutTheAnnotation) {
  const Result result = propagated(kConflict);
  const Explanation why = result.why("dot_general");
  const auto found = counterfactuals(result.before, result.program.module, {}, why);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].without.text, "argument 1");
  EXPECT_EQ(found[0].sharding, R"([{"a"}, {}])");
  EXPECT_EQ(found[0].others, 1);
}

TEST(ValueNames, FindsNamesOpsAndLines) {
  const Module module = parse_program(kMesh + kDot);
  const auto count = [&](const std::string& query) { return find_values(module, query).size(); };
  EXPECT_EQ(count("h"), 1u);
  EXPECT_EQ(count("tanh"), 1u);
  EXPECT_EQ(count("stablehlo.tanh[0]"), 1u);
  EXPECT_EQ(count("model.py:3"), 1u);
  for (const char* query : {"tanh[1]", "anh", "odel.py:3", "model.py:5", "model.py:", "tanh[]", "tanh[-1]", ":3", ""}) {
    EXPECT_EQ(count(query), 0u) << query;
  }
  EXPECT_EQ(value_names(module), Texts{"h"});
  EXPECT_EQ(op_names(module), (Texts{"stablehlo.dot_general", "stablehlo.tanh"}));
}

}  // namespace
}  // namespace shardwise
