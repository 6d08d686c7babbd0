// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/compile.h"

#include <thread>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/compiler/passes.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kLayer = R"(sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                  %w: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x6xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    return %1 : tensor<8x6xf32>
  })";

std::string message_of(const std::string& text) {
  try {
    compile(std::make_shared<Module>(parse_program(text)));
  } catch (const ShardingError& error) {
    return error.message();
  }
  return "no error";
}

TEST(Pipeline, ThreadsCompileOneProgram) {
  for (int round = 0; round < 20; ++round) {
    const auto traced = std::make_shared<const Module>(parse_program(kLayer));
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (std::string& text : texts) {
      threads.emplace_back([&] { text = print(*compile(traced).module) + print(*traced); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

TEST(Pipeline, KeepsTheStagesAndTheTimes) {
  const CompileUnit unit = compile(std::make_shared<Module>(parse_program(kLayer)));
  EXPECT_EQ(unit.global->stage, Stage::kGlobal);
  EXPECT_EQ(unit.propagated->stage, Stage::kPropagated);
  EXPECT_EQ(unit.resharded->stage, Stage::kResharded);
  EXPECT_EQ(unit.module->stage, Stage::kLocal);
  ASSERT_EQ(unit.log.size(), pipeline().size());
  for (size_t i = 0; i < unit.log.size(); ++i) {
    EXPECT_EQ(unit.log[i].name, pipeline()[i].name);
    EXPECT_EQ(unit.log[i].steps.empty(), pipeline()[i].steps == nullptr);
  }
}

TEST(Pipeline, OpsAndValuesOfEachStageNameThoseOfTheTracedProgram) {
  const auto traced = std::make_shared<const Module>(parse_program(kLayer));
  const CompileUnit unit = compile(traced);
  const Region& written = traced->region(traced->main().body);
  for (const SharedModule& stage : {unit.global, unit.propagated, unit.resharded, unit.module}) {
    const Region& body = stage->region(stage->main().body);
    std::vector<OpId> products;
    for (const OpId op : body.ops) {
      ASSERT_TRUE(stage->op(op).origin) << print(*stage);
      if (OpView(*stage, op).name() == "stablehlo.dot_general") products.push_back(stage->op(op).origin);
    }
    EXPECT_EQ(products, written.ops) << print(*stage);
    for (size_t i = 0; i < body.arguments.size(); ++i) {
      EXPECT_EQ(stage->value(body.arguments[i]).origin, written.arguments[i]);
    }
    EXPECT_EQ(stage->value(body.results[0]).origin, written.results[0]);
  }
  // The operands of the second product are gathered for it.
  for (const OpId op : unit.module->region(unit.module->main().body).ops) {
    if (!is_local_collective(OpView(*unit.module, op))) continue;
    EXPECT_EQ(unit.module->op(op).origin, written.ops[1]);
  }
}

TEST(Pipeline, RefusesAPartitionedProgram) {
  const CompileUnit unit = compile(std::make_shared<Module>(parse_program(kLayer)));
  EXPECT_EQ(message_of(print(*unit.module)),
            "compile: the program must not have been through localize, got a program at stage local; give it the "
            "program before that");
  EXPECT_EQ(message_of(print(*unit.resharded)),
            "compile: the program must not have been through plan_reshards, got a program at stage resharded; give it "
            "the program before that");
}

TEST(Pipeline, RefusesAnUnreducedResult) {
  EXPECT_EQ(
      message_of(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<f32>) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], unreduced={"x"}>}) {
    return %x : tensor<f32>
  })"),
      "compile: a result cannot be left unreduced, got [], unreduced={\"x\"}; drop unreduced= or shard a dim of the "
      "result over these axes");
}

TEST(Pipeline, NeedsAFunction) {
  EXPECT_THROW(compile(std::make_shared<Module>(std::make_shared<Context>())), UnsupportedError);
}

}  // namespace
}  // namespace shardwise
