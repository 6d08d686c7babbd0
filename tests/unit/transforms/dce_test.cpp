// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/dce.h"

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "shardwise/ir/builder.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// @f0 calls @f1, which calls @f2, …; each is called twice, and the last one is `last`.
Module chain(int length, const std::string& last) {
  const std::string type = "tensor<f32>", call = str(" : (", type, ") -> ", type, "\n");
  std::string text;
  for (int k = 0; k < length; ++k) {
    text += str(k == 0 ? "func.func @main" : str("func.func private @f", k), "(%x: ", type, ") -> ", type, " {\n");
    if (k + 1 < length) {
      text += str("%0 = func.call @f", k + 1, "(%x)", call, "%1 = func.call @f", k + 1, "(%0)", call);
    } else {
      text += str("%1 = ", last, "\n");
    }
    text += str("return %1 : ", type, "\n}\n");
  }
  return parse_program(text);
}

constexpr const char* kPure = "stablehlo.tanh %x : tensor<f32>";
constexpr const char* kSink = "stablehlo.custom_call @sink(%x) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>";

TEST(Effects, OfNestedCallsAreFoundInOneWalk) {
  constexpr int kLength = 10'000;
  for (const std::string last : {kPure, kSink}) {
    const Module module = chain(kLength, last);
    Effects effects(module, UnusedConstraints::kRemove);
    for (const Function& function : module.functions) {
      for (const OpId op : module.region(function.body).ops) {
        if (!module.op(op).def->is_call()) continue;
        EXPECT_EQ(effects(op), last == kSink);
      }
    }
    // Each op once by the walk, and each call once by its question.
    EXPECT_LE(effects.visits(), int64_t{4} * kLength);
  }
}

TEST(Effects, ANestedCallWithoutOneIsRemoved) {
  Module pure = chain(3, kPure), sink = chain(3, kSink);
  for (Module* module : {&pure, &sink}) {
    // main: an unused call beside the used ones.
    Builder builder(*module, module->main().body);
    const OpId first = module->region(module->main().body).ops.front();
    builder.create_op(*module->op(first).def, module->operands(first), module->op(first).attrs,
                      {&module->value(module->result(first)).type, 1});
  }
  EXPECT_EQ(dce(pure), 1);
  EXPECT_EQ(dce(sink), 0);
}

TEST(Effects, OfFunctionsThatCallEachOtherAreFound) {
  const Module module = parse_program(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.custom_call @sink(%0) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  })");
  Effects effects(module, UnusedConstraints::kRemove);
  EXPECT_TRUE(effects(module.region(module.main().body).ops.front()));
}

TEST(Effects, OfNestedRegionsAreFoundInOneWalk) {
  // A branch in a branch in a branch …
  constexpr int kDepth = 100;
  std::string text = "func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {\n";
  for (int k = 0; k < kDepth; ++k) text += str("%r", k, " = \"stablehlo.if\"(%p) ({\n");
  text += "%t = stablehlo.tanh %x : tensor<f32>\nstablehlo.return %t : tensor<f32>\n";
  for (int k = kDepth; k-- > 0;) {
    text += str("}, {\nstablehlo.return %x : tensor<f32>\n}) : (tensor<i1>) -> tensor<f32>\n");
    text += k == 0 ? "return %r0 : tensor<f32>\n}" : str("stablehlo.return %r", k, " : tensor<f32>\n");
  }
  const Module module = parse_program(text);
  Effects effects(module, UnusedConstraints::kRemove);
  int64_t asked = 0;
  walk(module, [&](OpId op) {
    EXPECT_FALSE(effects(op));
    ++asked;
  });
  EXPECT_EQ(asked, kDepth + 1);
  EXPECT_LE(effects.visits(), 2 * asked);
}

}  // namespace
}  // namespace shardwise
