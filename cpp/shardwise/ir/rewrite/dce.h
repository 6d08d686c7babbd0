// SPDX-License-Identifier: Apache-2.0
//
// Removes the ops that nothing depends on, in linear time:
//
//   %1 = sine %0         ->   return %0
//   %2 = cosine %1
//   return %0
//
// Ops with a side effect stay, and those with such an op in a region or in a function that they call. A constraint
// stays even when unused, since propagation reads it, unless kRemove is given.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/called.h"

namespace shardwise {

enum class UnusedConstraints : uint8_t { kKeep, kRemove };

// kKeep until shardings have been propagated.
UnusedConstraints unused_constraints(const Module& module);

// The op's own side effect; a constraint that is kept counts as one. A call has those of its function only.
struct OwnEffect {
  const Module* module;
  UnusedConstraints constraints;
  bool operator()(OpId id) const;
};

// Whether an op, or one that it executes, has a side effect.
class Effects : public AnyExecuted<OwnEffect> {
 public:
  Effects(const Module& module, UnusedConstraints constraints) : AnyExecuted(module, OwnEffect{&module, constraints}) {}
};

// Removes the unused ops of one region after the other. The values of functions are their own, so that one marking
// serves all: used(value) is known once the function of the value has been swept.
class UnusedOps {
 public:
  UnusedOps(Module& module, UnusedConstraints constraints)
      : module_(module), effects_(module, constraints), used_(module.value_count()) {}

  int64_t sweep(RegionId region);  // and the regions inside; returns the number of ops that went
  bool used(ValueId value) const { return used_[value.index]; }

 private:
  bool is_needed(OpId id);

  Module& module_;
  Effects effects_;
  std::vector<bool> used_;  // by value
};

// Returns the number of ops that went, without those in their regions.
int64_t dce(Module& module, UnusedConstraints constraints = UnusedConstraints::kKeep);

}  // namespace shardwise
