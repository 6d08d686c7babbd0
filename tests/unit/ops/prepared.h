// SPDX-License-Identifier: Apache-2.0
//
// The kernel of an op for its own types:
//
//   prepared(op)(context)
#pragma once

#include <gtest/gtest.h>

#include "shardwise/ir/op_def.h"

namespace shardwise {

struct OwnTypes {
  explicit OwnTypes(const OpView& op) {
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result_type(i));
  }
  KernelTypes types() const { return {operands, results}; }

  std::vector<TensorType> operands, results;
};

inline Kernel prepared(const OpView& op) {
  std::optional<Kernel> kernel = op.def().prepare(op, OwnTypes(op).types());
  EXPECT_TRUE(kernel.has_value()) << op.name();
  return kernel.value_or([](KernelContext&) {});
}

}  // namespace shardwise
