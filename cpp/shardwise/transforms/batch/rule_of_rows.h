// SPDX-License-Identifier: Apache-2.0
//
// The user's sharding rule of an op (ir/rule/rule_attribute.h) that is batched: a dim of rows gets a factor of its own.
//
//   tanh tensor<2xf32>, ([i])->([j]) {i=2, j=2}      on 4 rows: ([k, i])->([k, j]) {i=2, j=2, k=4}
#pragma once

#include <cstdint>
#include <optional>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// While it lives, the op is without the rule, because ops that get its attributes would be refused: the rule does not
// fit their dims.
class RuleOfExample {
 public:
  RuleOfExample(Module& module, OpId example);
  ~RuleOfExample();
  RuleOfExample(const RuleOfExample&) = delete;
  RuleOfExample& operator=(const RuleOfExample&) = delete;

  // Does nothing if there is no rule, or if batching changed the op or its dims, as in a convolution that joins rows
  // and features. Such an op follows the rule of its OpDef.
  void add_to(OpId of_rows, int64_t rows) const;

 private:
  Module& module_;
  OpId example_;
  AttrsId attrs_;
  std::optional<RuleAttr> rule_;
};

}  // namespace shardwise
