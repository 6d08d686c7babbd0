// SPDX-License-Identifier: Apache-2.0
//
// Reads a sharding rule (ir/rule/rule_attribute.h prints it, and checks it against an op):
//
//   <([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}, custom>
#pragma once

#include "shardwise/ir/attribute.h"
#include "shardwise/mesh/sdy_cursor.h"

namespace shardwise {

// Throws ParseError, with line and column, for text that is not a rule.
RuleAttr parse_rule(SdyCursor& cursor);
RuleAttr parse_rule(std::string_view text);  // with its name, #sdy.op_sharding_rule

}  // namespace shardwise
