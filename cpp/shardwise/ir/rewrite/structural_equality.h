// SPDX-License-Identifier: Apache-2.0
//
// Whether two modules are the same program: the same functions, ops in the same order, corresponding operands, and
// equal types, attributes (in any order), shardings, block sizes and meshes, and arguments and results that hold equal
// parts of global values. Ids, contexts and locations may differ.
//
//   structurally_equal(module, parse(print(module), context))   // always
//
// A result without a sharding equals one with an open sharding if another result of the op has a sharding, because
// their text is the same.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

bool structurally_equal(const Module& a, const Module& b);

// The same of two regions of one module. A value from around them corresponds only to itself.
class SameRegions {
 public:
  explicit SameRegions(const Module& module) : module_(module) {}
  bool operator()(RegionId a, RegionId b);

 private:
  const Module& module_;
  std::vector<ValueId> partner_;  // by value; empty between two questions
};

}  // namespace shardwise
