// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explain.h"

#include <gtest/gtest.h>

#include "shardwise/explanation/axis_edges.h"
#include "shardwise/explanation/counterfactual.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/text/parser.h"
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
  Explanation why(const std::string& name) const {
    return explain(module, context.provenance, find_values(module, context.provenance, name).at(0).value);
  }
};

Result propagated(const std::string& text) {
  const Module module = parse_program(kMesh + text);
  Result result{.before = module, .module = module, .context = {}};
  result.module = propagate(std::move(result.module), result.context);
  return result;
}

TEST(Explain, NamesTheAnnotationAndThePath) {
  const Explanation why = propagated(kDot).why("h");
  ASSERT_EQ(why.axes.size(), 2u);
  EXPECT_EQ(why.axes[0].axis_text, "\"a\"");
  EXPECT_EQ(why.axes[0].origin.text, "argument 0");
  ASSERT_EQ(why.axes[0].path->size(), 2u);
  EXPECT_EQ(why.axes[0].path->at(0)->name, "stablehlo.dot_general");
  EXPECT_EQ(why.axes[0].path->at(0)->from, "operand 0 dim 0");
  EXPECT_EQ(why.axes[0].path->at(0)->factor, "i");
  EXPECT_EQ(why.axes[0].path->at(0)->location, "model.py:3");
  EXPECT_EQ(why.axes[0].path->at(0)->round, 2);
  EXPECT_EQ(why.axes[0].path->at(1)->name, "stablehlo.tanh");
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
    const std::string op(edge.op ? result.module.op(edge.op).def->name : "results");
    texts.push_back(op + " " + std::to_string(edge.source) + " " + std::to_string(edge.target));
  }
  EXPECT_EQ(texts, (Texts{"stablehlo.dot_general 0 2", "stablehlo.dot_general 1 2", "stablehlo.tanh 0 1",
                          "stablehlo.tanh 0 1", "results 0 1", "results 0 1"}));
}

TEST(Counterfactual, PropagatesWithoutTheAnnotation) {
  const Result result = propagated(kConflict);
  const Explanation why = result.why("dot_general");
  const auto found = counterfactuals(result.before, result.module, kPropagate, {}, why);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].without.text, "argument 1");
  EXPECT_EQ(found[0].sharding, R"([{"a"}, {}])");
  EXPECT_EQ(found[0].others, 1);
}

TEST(ValueNames, FindsNamesOpsAndLines) {
  const Module module = parse_program(kMesh + kDot);
  const auto count = [&](const std::string& query) { return find_values(module, {}, query).size(); };
  EXPECT_EQ(count("h"), 1u);
  EXPECT_EQ(count("tanh"), 1u);
  EXPECT_EQ(count("stablehlo.tanh[0]"), 1u);
  EXPECT_EQ(count("model.py:3"), 1u);
  for (const char* query : {"tanh[1]", "anh", "odel.py:3", "model.py:5", "model.py:", "tanh[]", "tanh[-1]", ":3", ""}) {
    EXPECT_EQ(count(query), 0u) << query;
  }
  EXPECT_EQ(value_names(module), Texts{"h"});
  EXPECT_EQ(op_names(module, {}), (Texts{"stablehlo.dot_general", "stablehlo.tanh"}));
}

TEST(ValueNames, AreThoseOfTheText) {
  const std::string text = R"(func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = func.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %r:2 = stablehlo.optimization_barrier %0, %x : tensor<8xf32>, tensor<8xf32>
    return %r#1 : tensor<8xf32>
  }
  func.func private @f(%y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %y : tensor<8xf32>
    return %0 : tensor<8xf32>
  })";
  const Module module = parse(text, std::make_shared<Context>(), {.file = "t.mlir", .name_values = true});
  const auto names = [&](const std::string& query) {
    Texts found;
    for (const NamedValue& value : find_values(module, {}, query)) {
      found.push_back(value.name);
      EXPECT_EQ(shown_name(module, value.value), value.name);
    }
    return found;
  };
  EXPECT_EQ(names("%x"), Texts{"%x"});
  EXPECT_EQ(names("@main %x"), Texts{"%x"});
  EXPECT_EQ(names("%y"), Texts{"@f %y"});
  EXPECT_EQ(names("%r"), (Texts{"%r#0", "%r#1"}));
  EXPECT_EQ(names("@main %r#1"), Texts{"%r#1"});
  EXPECT_EQ(names("@f %0"), Texts{"@f %0"});
  EXPECT_EQ(names("t.mlir:7"), Texts{"@f %0"});
  EXPECT_EQ(names("@f %x"), Texts{});
  EXPECT_EQ(meanings(module, "%0"), (Texts{"@main %0", "@f %0"}));
  EXPECT_EQ(meanings(module, "%x"), Texts{});
  EXPECT_EQ(meanings(module, "@f %0"), Texts{});
}

}  // namespace
}  // namespace shardwise
