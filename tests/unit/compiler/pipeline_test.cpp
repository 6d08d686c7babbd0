// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/pipeline.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
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
    compile(parse_program(text));
  } catch (const ShardingError& error) {
    return error.message();
  }
  return "no error";
}

TEST(Pipeline, ThreadsCompileOneProgram) {
  for (int round = 0; round < 20; ++round) {
    const Module traced = parse_program(kLayer);
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (std::string& text : texts) {
      threads.emplace_back([&] { text = print(compile(traced).local) + print(traced); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

TEST(Pipeline, RefusesAPartitionedProgram) {
  const Module local = compile(parse_program(kLayer)).local;
  const std::string message = message_of(print(local));
  EXPECT_NE(message.find("compile: the program must not have been through localize, got shardwise."), std::string::npos)
      << message;
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

TEST(Pipeline, NeedsAFunction) { EXPECT_THROW(compile(Module(std::make_shared<Context>())), UnsupportedError); }

TEST(Pipeline, KeepsTheProgramThatAPassFailedOn) {
  const Pass broken{"broken", "finds a bug", [](Program& program) {
                      program.module.name = "changed";
                      check_internal(false, "two is one");
                    }};
  Program program{.module = parse_program(kLayer)};
  const std::string before = print(program.module, {.locations = true});
  std::string message;
  try {
    run_pass(broken, program, 1);
  } catch (const InternalError& error) {
    message = error.message();
  }
  EXPECT_EQ(message.find("a bug in shardwise: two is one"), 0) << message;
  const std::string words = ", in the pass broken; please report it with the program before the pass, ";
  ASSERT_NE(message.find(words), std::string::npos) << message;
  const std::filesystem::path path = message.substr(message.find(words) + words.size());
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), before);
  std::filesystem::remove_all(path.parent_path());
}

}  // namespace
}  // namespace shardwise
