// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice_key.h"

#include <string>

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

std::string program(std::string_view axis, int rows, std::string_view op) {
  return str("sdy.mesh @mesh = <[\"", axis, "\"=", rows, "]>\nfunc.func @main(%arg0: tensor<", rows,
             "x4xf32>) -> tensor<", rows, "x4xf32> {\n  %0 = stablehlo.", op, " %arg0 : tensor<", rows,
             "x4xf32>\n  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"", axis,
             "\"}, {}]>]>} : tensor<", rows, "x4xf32>\n  return %1 : tensor<", rows, "x4xf32>\n}\n");
}

uint64_t fingerprint(const std::string& text) {
  const Module module = parse_program(text);
  return OpKeys(module, CallGraph(module)).fingerprint();
}

TEST(OpKeys, TheFingerprintIsNotOfSizes) {
  EXPECT_EQ(fingerprint(program("x", 8, "sine")), fingerprint(program("x", 4096, "sine")));
  EXPECT_NE(fingerprint(program("x", 8, "sine")), fingerprint(program("x", 8, "cosine")));
  EXPECT_NE(fingerprint(program("x", 8, "sine")), fingerprint(program("y", 8, "sine")));
}

TEST(OpKeys, SeveralOpsThatWereMadeForOneAreNumbered) {
  Module module = parse_program(program("x", 8, "sine"));
  module.mark_origins();
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  module.op(ops[1]).origin = ops[0];
  const OpKeys keys(module, CallGraph(module));
  const std::string first = str(ops[0].index);
  EXPECT_EQ(keys.of(ops[0]).text(), first);
  EXPECT_EQ(keys.of(ops[1]).text(), first + ".1");
}

TEST(OpKeys, AFingerprintIsWrittenWithAllItsDigits) {
  EXPECT_EQ(fingerprint_text(0), "0000000000000000");
  EXPECT_EQ(fingerprint_text(0x1f3a00000000000c), "1f3a00000000000c");
}

TEST(DecisionKeys, TheSecondDecisionAboutOneThingIsNumbered) {
  DecisionKeys keys;
  EXPECT_EQ(keys.next("12"), "12");
  EXPECT_EQ(keys.next("13"), "13");
  EXPECT_EQ(keys.next("12"), "12.1");
}

}  // namespace
}  // namespace shardwise
