// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/unused_results.h"

#include <gtest/gtest.h>

#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"
#include "shardwise/transforms/import_program.h"
#include "shardwise/transforms/simplify.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string simplified_functions(const std::string& text) {
  PassContext context;
  return print(simplify(parse_program(text), context));
}

const std::string kPairFunctions = R"(
  func.func private @pair(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = func.call @inner(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @inner(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1 = stablehlo.cosine %x : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  })";
const std::string kCall = "func.call @pair(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n";

TEST(UnusedResults, GoThroughAllFunctions) {
  const std::string text =
      simplified_functions("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0:2 = " + kCall +
                           "return %0#1 : tensor<4xf32>\n}" + kPairFunctions);
  EXPECT_EQ(text.find("sine %"), text.find("cosine %") + 2) << text;  // cosine alone
  EXPECT_EQ(count(text, "(tensor<4xf32>, tensor<4xf32>)"), 0U) << text;
  verify(parse_program(text));
}

// @f0 calls @f1, and so on; each returns the row of the last one, and the sine of its second result, which main drops.
TEST(UnusedResults, GoThroughAChainOfFunctionsInOnePass) {
  constexpr int kLength = 30;
  std::string text = R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a:2 = func.call @f0(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %a#0 : tensor<4xf32>
  })";
  for (int f = 0; f < kLength; ++f) {
    const bool is_last = f + 1 == kLength;
    const std::string call =
        "%c:2 = func.call @f" + std::to_string(f + 1) + "(%t) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n";
    text += "func.func private @f" + std::to_string(f) + "(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n" +
            "%t = stablehlo.tanh %x : tensor<4xf32>\n" + (is_last ? "" : call) + "%u = stablehlo.sine " +
            (is_last ? "%t" : "%c#1") + " : tensor<4xf32>\nreturn " + (is_last ? "%t" : "%c#0") +
            ", %u : tensor<4xf32>, tensor<4xf32>\n}";
  }
  Module module = parse_program(text);
  EXPECT_EQ(drop_unused_results(module), kLength);
  verify(module);
  const std::string made = print(module);
  EXPECT_EQ(count(made, "sine"), 0U) << made;
  EXPECT_EQ(count(made, "tanh"), static_cast<size_t>(kLength)) << made;
}

TEST(UnusedResults, OfFunctionsThatCallEachOtherStay) {
  const std::string text = R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = func.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0 : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = func.call @g(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @g(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = func.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %x : tensor<4xf32>, tensor<4xf32>
  })";
  Module module = parse_program(text);
  EXPECT_EQ(drop_unused_results(module), 0);
  EXPECT_EQ(count(print(module), "(tensor<4xf32>, tensor<4xf32>)"), 5U);
}

// A call that nothing reads goes before its function is looked at, so that it keeps no result.
TEST(UnusedResults, OfDeadCallsGo) {
  Module module = parse_program(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = func.call @inner(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1:2 = func.call @inner(%0#0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %2 = stablehlo.abs %1#1 : tensor<4xf32>
    return %0#0 : tensor<4xf32>
  }
  func.func private @inner(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1 = stablehlo.cosine %x : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  })");
  EXPECT_EQ(drop_unused_results(module), 1);
  verify(module);
  const std::string made = print(module);
  EXPECT_EQ(count(made, "call @inner"), 1U) << made;
  EXPECT_EQ(count(made, "cosine"), 0U) << made;
}

TEST(UnusedResults, StayIfOneCallUsesThem) {
  const std::string text =
      simplified_functions("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0:2 = " + kCall +
                           "%y = stablehlo.abs %0#0 : tensor<4xf32>\n"
                           "%1:2 = func.call @pair(%y) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n"
                           "return %1#1 : tensor<4xf32>\n}" +
                           kPairFunctions);
  EXPECT_EQ(count(text, "sine %"), 2U) << text;
}

TEST(Calls, WithoutEffectGoAndAreMerged) {
  const std::string unused =
      simplified_functions("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0:2 = " + kCall +
                           "return %x : tensor<4xf32>\n}" + kPairFunctions);
  EXPECT_EQ(count(unused, "call @pair"), 0U) << unused;
  const std::string equal = simplified_functions(
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0:2 = " + kCall + "%1:2 = " + kCall +
      "%2 = stablehlo.add %0#0, %1#1 : tensor<4xf32>\n" + "return %2 : tensor<4xf32>\n}" + kPairFunctions);
  // The ops of the function take the place of the only call that is left.
  EXPECT_EQ(count(equal, "@pair"), 0U) << equal;
  EXPECT_EQ(count(equal, "sine %"), 2U) << equal;
}

TEST(Calls, WithEffectStay) {
  const std::string text = simplified_functions(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %x : tensor<4xf32>
  }
  func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @logged(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @logged(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })");
  EXPECT_EQ(count(text, "call @outer"), 1U) << text;
}

TEST(Captures, AreTheValuesFromAround) {
  const Module module = parse_program(R"(func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.sine %x : tensor<4xf32>
    %0 = "stablehlo.case"(%i) ({
      %1 = "stablehlo.case"(%i) ({
        %2 = stablehlo.add %y, %x : tensor<4xf32>
        stablehlo.return %2 : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })");
  const Region& body = module.region(module.main().body);
  const std::vector<ValueId> expected{body.arguments[0], module.result(body.ops[0]), body.arguments[1]};
  EXPECT_EQ(captures_of(module, body.ops[1]), expected);
  EXPECT_EQ(captures_of(module, module.regions(body.ops[1])[1]), std::vector{body.arguments[1]});
}

// ---- functions of an imported program ------------------------------------------------------------------------------

std::string layers(const std::string& op) {
  std::string text = R"(func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = func.call @small(%1) : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func private @small(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.abs %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
)";
  std::string value = "%x";
  for (int i = 0; i < 13; ++i) {
    const std::string next = "%v" + std::to_string(i);
    text += next + " = stablehlo." + op + " " + value + " : tensor<4xf32>\n";
    value = next;
  }
  return text + "return " + value + " : tensor<4xf32>\n}";
}

TEST(ImportProgram, KeepsFunctionsThatAreCalledSeveralTimes) {
  Module into = parse_program("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\nreturn %x : tensor<4xf32>\n}");
  const auto import = [&](const std::string& op) {
    return import_program(parse(layers(op), into.shared_context()), into);
  };
  const RegionId first = import("sine");
  EXPECT_EQ(into.region(first).ops.size(), 3U);
  import("sine");
  EXPECT_EQ(into.functions.size(), 2U);
  const RegionId other = import("cosine");
  ASSERT_EQ(into.functions.size(), 3U);
  EXPECT_EQ(into.functions[1].name, "layer");
  EXPECT_EQ(into.functions[2].name, "layer_0");
  EXPECT_EQ(callee_of(into, into.region(other).ops[0]), "layer_0");
}

}  // namespace
}  // namespace shardwise
