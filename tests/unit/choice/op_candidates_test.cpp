// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/op_candidates.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// The candidates of the last op of a program, with its operands and results where propagation has them.
struct Candidates {
  explicit Candidates(const std::string& text) : module(parse_program(text)), placements(module) {
    const OpView op(module, module.region(module.main().body).ops.back());
    std::vector<TensorPlacements> tensors;
    for (const ValueId operand : op.operands()) tensors.push_back({placements.declared(operand)});
    for (size_t i = 0; i < op.result_count(); ++i) tensors.push_back({placements.declared(op.result(i))});
    set = op_candidates(placements, op, sharding_rule(op), tensors, {});
  }

  std::string text(const OpChoice& choice) {
    std::string text = choice.method == nullptr ? "" : str(choice.method->name, ": ");
    for (const PlacementId id : choice.operands) text += placements.text(id) + " ";
    text += "->";
    for (const PlacementId id : choice.results) text += " " + placements.text(id);
    return text;
  }
  std::set<std::string> texts() {
    std::set<std::string> all;
    for (const Candidate& candidate : set.candidates) all.insert(text(candidate.choice));
    return all;
  }

  Module module;
  ProgramPlacements placements;
  CandidateSet set;
};

// Megatron's output projection: both operands split along the contraction, the result whole.
std::string projection(std::string_view mesh, std::string_view x, std::string_view w, std::string_view result) {
  return str("sdy.mesh @mesh = <[", mesh, R"(]>
func.func @main(%arg0: tensor<32768x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, )",
             x, R"(>},
                %arg1: tensor<8192x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, )",
             w, R"(>}) -> tensor<32768x8192xbf16> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, )",
             result, R"(>]>} : (tensor<32768x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<32768x8192xbf16>
  return %0 : tensor<32768x8192xbf16>
}
)");
}

TEST(OpCandidates, AProductIsReducedOrMovedToRowsOrColumnsOrRepeated) {
  Candidates found(projection(R"("t"=8)", R"([{}, {"t"}])", R"([{"t"}, {}])", "[{}, {}]"));
  const std::set<std::string> expected{
      R"([{}, {"t"}] [{"t"}, {}] -> [{}, {}], unreduced={"t"})",
      R"([{"t"}, {}] [{}, {}] -> [{"t"}, {}])",
      R"([{}, {}] [{}, {"t"}] -> [{}, {"t"}])",
      "[{}, {}] [{}, {}] -> [{}, {}]",
  };
  EXPECT_EQ(found.texts(), expected);
  EXPECT_EQ(found.set.left_out, 0);
  // Propagation's own comes first: the contraction is split.
  EXPECT_EQ(found.text(found.set.candidates[0].choice), R"([{}, {"t"}] [{"t"}, {}] -> [{}, {}], unreduced={"t"})");
}

TEST(OpCandidates, EachAxisGoesToEachFactor) {
  Candidates found(projection(R"("a"=2, "b"=4)", R"([{"a"}, {"b"}])", R"([{"b"}, {}])", R"([{"a"}, {}])"));
  EXPECT_EQ(found.set.candidates.size(), 16u);  // two axes, each along rows, contraction, columns or none
  EXPECT_TRUE(found.texts().contains(R"([{"b"}, {"a"}] [{"a"}, {}] -> [{"b"}, {}], unreduced={"a"})"));
  EXPECT_TRUE(found.texts().contains(R"([{"a", "b"}, {}] [{}, {}] -> [{"a", "b"}, {}])"));
}

TEST(OpCandidates, AxesAreCutWhereATensorCutsThem) {
  Candidates found(projection(R"("a"=8)", R"([{"a":(1)2}, {}])", R"([{}, {"a":(2)4}])", "[{}, {}]"));
  EXPECT_TRUE(found.texts().contains(R"([{"a":(1)2}, {}] [{}, {"a":(2)4}] -> [{"a":(1)2}, {"a":(2)4}])"));
  EXPECT_TRUE(found.texts().contains(R"([{"a"}, {}] [{}, {}] -> [{"a"}, {}])"));
}

TEST(OpCandidates, WorkIsThatOfOneDevice) {
  Candidates found(projection(R"("t"=8)", R"([{}, {"t"}])", R"([{"t"}, {}])", "[{}, {}]"));
  const double all = 32768.0 * 8192 * 8192;
  for (const Candidate& candidate : found.set.candidates) {
    const bool repeats = found.text(candidate.choice) == "[{}, {}] [{}, {}] -> [{}, {}]";
    EXPECT_EQ(candidate.work, repeats ? all : all / 8) << found.text(candidate.choice);
  }
}

TEST(OpCandidates, TheSetDoesNotDependOnTheSizesOfAxes) {
  const auto count = [](std::string_view mesh) {
    return Candidates(projection(mesh, R"([{"a"}, {"b"}])", R"([{"b"}, {"c"}])", R"([{"a"}, {"c"}])"))
        .set.candidates.size();
  };
  EXPECT_EQ(count(R"("a"=2, "b"=2, "c"=2)"), 64u);
  EXPECT_EQ(count(R"("a"=16, "b"=32, "c"=64)"), 64u);
}

TEST(OpCandidates, BeyondTheMostTheNearestToPropagationStay) {
  Candidates found(projection(R"("a"=2, "b"=2, "c"=2, "d"=2, "e"=2)", R"([{"a", "b"}, {"c"}])",
                              R"([{"c"}, {"d", "e"}])", R"([{"a", "b"}, {"d", "e"}])"));
  EXPECT_EQ(found.set.candidates.size(), CandidateSet::kMost);
  EXPECT_GT(found.set.left_out, 0);
  EXPECT_EQ(found.text(found.set.candidates[0].choice),
            R"([{"a", "b"}, {"c"}] [{"c"}, {"d", "e"}] -> [{"a", "b"}, {"d", "e"}], unreduced={"c"})");
}

// An operand whose sum is pending: each way to compute the op with it reduced, and each that passes it on.
TEST(OpCandidates, APendingSumIsPassedOnOrReducedFirst) {
  const Module module = parse_program(R"(
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2, "e"=2]>
func.func @main(%arg0: tensor<64x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {"c"}], unreduced={"d"}>},
                %arg1: tensor<64x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {"c"}], unreduced={"d"}>})
    -> tensor<64x64x64xf32> {
  %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"e"}, {"b"}, {"c"}]>]>} : tensor<64x64x64xf32>
  return %0 : tensor<64x64x64xf32>
}
)");
  ProgramPlacements placements(module);
  const OpView op(module, module.region(module.main().body).ops.front());
  const Value& x = module.value(op.operand(0));
  const PlacementId pending_at = placements.of(x.sharding, x.type), reduced = placements.declared(op.operand(0));
  const TensorPlacements operand{reduced, pending_at};
  const Placement* home[] = {placements.find(pending_at), placements.find(pending_at)};
  const Pending pending = pending_of(op, ProgramLinearity(module), home);
  ASSERT_FALSE(pending.axes.empty());
  const CandidateSet set =
      op_candidates(placements, op, sharding_rule(op), {operand, operand, {placements.declared(op.result())}}, pending);
  // More than kMost: those that pass the sum on are among the nearest, as those that do not.
  EXPECT_EQ(set.candidates.size(), CandidateSet::kMost);
  EXPECT_GT(set.left_out, 0);
  const auto passing = std::ranges::count_if(set.candidates, &Candidate::passes);
  EXPECT_GT(passing, 16);
  EXPECT_LT(passing, 240);
  const auto first = std::ranges::find_if(set.candidates, &Candidate::passes);
  EXPECT_LT(first - set.candidates.begin(), 4);
  EXPECT_EQ(first->choice.operands[0], first->choice.operands[1]);
  EXPECT_EQ(placements.find(first->choice.results[0])->unreduced, pending.axes);
}

TEST(OpCandidates, EachVersionOfAnOperandGivesAxes) {
  const Module module = parse_program(projection(R"("t"=8)", "[{}, {}]", "[{}, {}]", "[{}, {}]"));
  ProgramPlacements placements(module);
  const OpView op(module, module.region(module.main().body).ops.back());
  const AxisList t{full_axis(*placements.mesh(), 0)};
  const TypeId type = module.value(op.operand(0)).type;
  const auto count = [&](TensorPlacements x) {
    const TensorPlacements w{placements.declared(op.operand(1))}, result{placements.declared(op.result())};
    return op_candidates(placements, op, sharding_rule(op), {std::move(x), w, result}, {}).candidates.size();
  };
  const PlacementId whole = placements.declared(op.operand(0)), rows = placements.of(type, {t, {}}, {}, Reducer::kNone);
  EXPECT_EQ(count({whole}), 1u);        // no tensor has an axis
  EXPECT_EQ(count({whole, rows}), 4u);  // a version has one: rows, contraction, columns, none
}

TEST(OpCandidates, AMethodThatExchangesTakesItsTensorsWhereTheyAre) {
  Candidates found(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<12xf32> {
  %0 = stablehlo.slice %arg0 [2:14] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
)");
  EXPECT_TRUE(found.texts().contains(R"(exchange: [{"x"}] -> [{"x"}])"));
  EXPECT_TRUE(found.texts().contains("[{}] -> [{}]"));
}

}  // namespace
}  // namespace shardwise
