// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/rule_attribute.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/text/rule_parser.h"

namespace shardwise {
namespace {

constexpr const char* kDot = "([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}";

RuleAttr parsed(const std::string& body) {
  const std::string text = "<" + body + ">";
  SdyCursor cursor(text);
  RuleAttr rule = parse_rule(cursor);
  cursor.expect_end();
  return rule;
}

TEST(RuleAttribute, IsPrintedAsRead) {
  for (const std::string& body :
       {std::string(kDot), std::string("([])->([])"), std::string("([ij], [zz_1])->([i, j]) {i=2, j=3}, custom"),
        std::string("([i, j])->([i, j]) {i=2, j=3} need_replication={i} permutation={j} blocked_propagation={i, j}")}) {
    EXPECT_EQ(text(parsed(body)), body);
  }
}

TEST(RuleAttribute, IsTheRuleOfItsFactors) {
  const ShardingRule rule = to_rule(parsed(kDot));
  EXPECT_EQ(text(rule), kDot);
  EXPECT_EQ(rule.operand_count(), 2u);
  EXPECT_EQ(rule.factors()[2].kind, FactorKind::kReduction);
  EXPECT_EQ(text(to_attribute(rule, false)), kDot);
  EXPECT_EQ(text(to_attribute(rule, true)), std::string(kDot) + ", custom");
}

TEST(RuleAttribute, KeepsWhatIsBlocked) {
  const char* blocked = "([i, j])->([i]) {i=8, j=4} reduction={j} blocked_propagation={i, j}";
  const ShardingRule rule = to_rule(parsed(blocked));
  EXPECT_TRUE(rule.factors()[0].blocked && rule.factors()[1].blocked);
  EXPECT_EQ(text(rule), blocked);
}

TEST(RuleAttribute, NumbersBeyondTheLettersFollowThem) {
  EXPECT_EQ(factor_symbol(17), "z");
  EXPECT_EQ(factor_symbol(18), "z_1");
  EXPECT_EQ(parsed("([zz_1])->([z_2])").operands[0][0], (Dims{17, 18}));
  EXPECT_THROW(parsed("([z_0])->([i])"), ParseError);
}

}  // namespace
}  // namespace shardwise
