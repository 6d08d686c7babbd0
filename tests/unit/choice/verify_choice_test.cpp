// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/verify_choice.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/choice/choose.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/propagation/propagate.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr std::string_view kPrograms[] = {
    // A product whose reduction an add passes on, an annotation, and a result elsewhere.
    R"(sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %3 = stablehlo.tanh %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
})",
    // Two branches.
    R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = "stablehlo.case"(%arg0) ({
    %1 = stablehlo.negate %arg1 : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %arg1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
})",
    // A loop that doubles a carry, and a call.
    R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %2 = stablehlo.constant dense<3> : tensor<i32>
  %3:2 = stablehlo.while(%arg1 = %0, %arg2 = %arg0) : tensor<i32>, tensor<8xf32>
    cond {
    %5 = stablehlo.compare LT, %arg1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  } do {
    %5 = stablehlo.add %arg1, %1 : tensor<i32>
    %6 = stablehlo.add %arg2, %arg2 : tensor<8xf32>
    stablehlo.return %5, %6 : tensor<i32>, tensor<8xf32>
  }
  %4 = call @double(%3#1) : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
func.func private @double(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
})"};
enum Program : uint8_t { kProduct, kBranches, kLoop };

// A program and the choice that a walk makes of it.
struct Chosen {
  explicit Chosen(Program program) : module(parse_program(std::string(kPrograms[program]))) {
    module = kChoose.run(kPropagate.run(std::move(module), context), context);
    choice = *context.choice;
    placements.emplace(module);
  }

  // The first op of that name in the program.
  OpView op(std::string_view name) const {
    OpId found;
    walk(module, [&](OpId id) {
      if (!found && OpView(module, id).name() == name) found = id;
    });
    check_internal(static_cast<bool>(found), "the program has the op");
    return OpView(module, found);
  }
  OpChoice& of(std::string_view name) { return choice.ops[op(name).id().index]; }
  PlacementId placement(ValueId value, std::vector<AxisList> dims, const MeshPtr& mesh = nullptr) {
    return placements->of(module.value(value).type, std::move(dims), {}, Reducer::kNone, mesh);
  }
  AxisList axis(int i) const { return {full_axis(*placements->mesh(), i)}; }

  // What is wrong with the choice; "" if nothing is.
  std::string wrong() const {
    try {
      verify_choice(module, choice);
    } catch (const ShardingError& error) {
      return error.message();
    }
    return "";
  }

  PassContext context;
  Module module;
  Choice choice;
  std::optional<ProgramPlacements> placements;
};

void expect_in(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no\n" << part;
}

TEST(VerifyChoice, TakesWhatWalksChoose) {
  for (const Program program : {kProduct, kBranches, kLoop}) EXPECT_EQ(Chosen(program).wrong(), "");
}

TEST(VerifyChoice, EachOpHasAnEntryOfItsTensors) {
  Chosen chosen(kProduct);
  chosen.of("stablehlo.tanh") = {};
  expect_in(chosen.wrong(), "stablehlo.tanh: choices: must have a placement for each operand and result, got 0 and 0");
  Chosen short_of_one(kProduct);
  short_of_one.of("stablehlo.dot_general").operands.pop_back();
  expect_in(short_of_one.wrong(), "got 1 and 1");
  Chosen without_ops(kProduct);
  without_ops.choice.ops.clear();
  expect_in(without_ops.wrong(), "got 0 and 0");
}

TEST(VerifyChoice, PlacementsFitTheTypesAndTheMesh) {
  Chosen other_rank(kProduct);
  OpChoice& tanh = other_rank.of("stablehlo.tanh");
  tanh.operands[0] = tanh.results[0] =
      other_rank.module.context().intern(replicated_placement(other_rank.placements->mesh(), Dims{8}));
  expect_in(other_rank.wrong(), "it must have one entry per dim of the tensor, got 1");
  Chosen no_placement(kProduct);
  no_placement.of("stablehlo.tanh").operands[0] = {};
  expect_in(no_placement.wrong(), "each placement must be on a mesh of the program, got none");
  Chosen other_mesh(kProduct);
  const auto mesh = std::make_shared<const Mesh>("other", std::vector<MeshAxis>{{"z", 8}});
  const OpView op = other_mesh.op("stablehlo.tanh");
  other_mesh.of("stablehlo.tanh").operands[0] = other_mesh.placement(op.operand(0), {{full_axis(*mesh, 0)}, {}}, mesh);
  expect_in(other_mesh.wrong(), "each placement must be on a mesh of the program, got <[\"z\"=8]>");
}

TEST(VerifyChoice, TheRuleAllowsThePlacements) {
  // Split along the contraction, with a result that is whole, as if each device had all terms.
  Chosen chosen(kProduct);
  const OpView dot = chosen.op("stablehlo.dot_general");
  OpChoice& choice = chosen.of("stablehlo.dot_general");
  choice.operands = {chosen.placement(dot.operand(0), {{}, chosen.axis(0)}),
                     chosen.placement(dot.operand(1), {chosen.axis(0), {}})};
  choice.results = {chosen.placement(dot.result(), {{}, {}})};
  expect_in(chosen.wrong(), "its operands and results must have placements that its sharding rule or a method allows");
  // A tanh distributes over no sum.
  Chosen unreduced(kProduct);
  const OpView tanh = unreduced.op("stablehlo.tanh");
  OpChoice& passed = unreduced.of("stablehlo.tanh");
  passed.operands[0] = passed.results[0] =
      unreduced.placements->of(unreduced.module.value(tanh.result()).type, {{}, {}}, unreduced.axis(0), Reducer::kSum);
  expect_in(unreduced.wrong(), "its operands and results must have placements");
}

TEST(VerifyChoice, AnAnnotationIsFollowed) {
  Chosen chosen(kProduct);
  const OpView op = chosen.op("sdy.sharding_constraint");
  OpChoice& choice = chosen.of("sdy.sharding_constraint");
  choice.operands[0] = choice.results[0] = chosen.placement(op.result(), {chosen.axis(1), {}});
  expect_in(chosen.wrong(), "must be placed as annotated");
}

TEST(VerifyChoice, VersionsAreMadeFromWhatIsThere) {
  Chosen chosen(kProduct);
  ASSERT_FALSE(chosen.choice.versions.empty());
  Chosen none(kProduct);
  none.choice.versions.clear();
  expect_in(none.wrong(), "must be there, or a version must bring it there");
  // Two versions that are made from each other.
  Chosen cycle(kProduct);
  const auto [key, version] = *cycle.choice.versions.begin();
  const PlacementId other = cycle.placement(key.value, {cycle.axis(0), cycle.axis(1)});
  cycle.choice.versions[key] = {VersionChoice::kReshard, other};
  cycle.choice.versions[{key.value, other, key.region}] = {VersionChoice::kReshard, key.placement};
  expect_in(cycle.wrong(), "must be there, or a version must bring it there");
  // A product is no constant that could be made again.
  Chosen made(kProduct);
  for (auto& [of, how] : made.choice.versions) how = {VersionChoice::kMade, {}};
  expect_in(made.wrong(), "must be there, or a version must bring it there");
}

TEST(VerifyChoice, ResultsOfBranchesAgree) {
  Chosen chosen(kBranches);
  const OpView op = chosen.op("stablehlo.case");
  chosen.of("stablehlo.case").results[0] = chosen.placement(op.result(), {{}});
  expect_in(chosen.wrong(), "stablehlo.case: choices: each of its regions must return result 0 placed alike");
}

TEST(VerifyChoice, ACarryStaysWhereItIs) {
  Chosen elsewhere(kLoop);
  const OpView loop = elsewhere.op("stablehlo.while");
  elsewhere.of("stablehlo.while").results[1] = elsewhere.placement(loop.result(1), {{}});
  expect_in(elsewhere.wrong(), "a carry must enter the loop as it is placed in it");
  Chosen both(kLoop);
  OpChoice& choice = both.of("stablehlo.while");
  choice.operands[1] = choice.results[1] = both.placement(both.op("stablehlo.while").result(1), {{}});
  EXPECT_NE(both.wrong(), "");
  Chosen forgotten(kLoop);
  forgotten.choice.loops.clear();
  expect_in(forgotten.wrong(), "each carry must have an entry");
  Chosen unreduced(kLoop);
  OpChoice& pending = unreduced.of("stablehlo.while");
  // The counter, which the condition reads.
  const TypeId counter = unreduced.module.value(loop.result(0)).type;
  pending.results[0] = unreduced.placements->of(counter, {}, unreduced.axis(0), Reducer::kSum);
  expect_in(unreduced.wrong(), "a carry that is read must be reduced");
}

TEST(VerifyChoice, ACallPlacesItsOperandsAsTheArguments) {
  Chosen chosen(kLoop);
  const OpView call = chosen.op("func.call");
  chosen.of("func.call").operands[0] = chosen.placement(call.operand(0), {{}});
  expect_in(chosen.wrong(), "operands must be placed as the arguments");
  Chosen result(kLoop);
  OpChoice& choice = result.of("func.call");
  choice.results[0] = choice.results[0] == result.placement(call.result(), {{}})
                          ? result.placement(call.result(), {result.axis(0)})
                          : result.placement(call.result(), {{}});
  expect_in(result.wrong(), "results must be placed as those of the function");
}

}  // namespace
}  // namespace shardwise
