// SPDX-License-Identifier: Apache-2.0
//
// Classifies ops for fusion, by their definitions and rules:
//
//   kView          a name or a view of one operand: annotations, transpose, broadcast_in_dim, slice, a widening convert
//   kFree          made where it is used: splats, iota, axis_index, and elementwise ops of them: a causal mask, or that of
//                  the one device that adds a replicated term to a sum
//   kElementwise   exponential, add, select
//   kRowReduction  a reduction of the last dims of several rows
//   kReduction     any other one, such as a sum over columns
//   kProduct       a contraction: dot_general, convolution
//   kOther         sort, gather, dynamic_update_slice, concatenate
//   kBorder        no kernel of its own: collectives, reshards, loops, branches, calls, and ops without results
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

enum class FusionRole : uint8_t { kView, kFree, kElementwise, kRowReduction, kReduction, kProduct, kOther, kBorder };

// How an operand relates to the value that it is a view of. A broadcast is a kEnlarged view, a slice a kPart.
enum class ViewKind : uint8_t { kWhole, kEnlarged, kPart };
struct ViewedValue {
  ValueId value;
  ViewKind kind = ViewKind::kWhole;
  bool is_widened = false;
};

class FusionRoles {
 public:
  explicit FusionRoles(const Module& module);

  FusionRole of(OpId op) const { return roles_[op.index]; }
  // Through all views and names.
  const ViewedValue& viewed(ValueId value) const { return viewed_[value.index]; }
  // Through the views that are the same memory, as an annotation or a reshape is, and not a transpose.
  ValueId before_aliases(ValueId value) const { return before_aliases_[value.index]; }
  bool is_free(ValueId value) const;
  // Whether both operands and the result of a product share a dim, such as the heads of an attention.
  bool has_batch(OpId product) const;

 private:
  FusionRole find(const OpView& op) const;
  void add_view(const OpView& op);

  const Module& module_;
  std::vector<FusionRole> roles_;  // by op
  // By value, made in the order of the program: a chain of views is never walked.
  std::vector<ViewedValue> viewed_;
  std::vector<ValueId> before_aliases_;
};

}  // namespace shardwise
