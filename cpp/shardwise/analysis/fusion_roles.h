// SPDX-License-Identifier: Apache-2.0
//
// What an op is for fusion, by its definition and its rule:
//
//   kView          a name or a view of one operand: annotations, transpose, broadcast_in_dim, slice, a widening convert
//   kFree          made where it is used: splats, iota, and elementwise ops of them, such as a causal mask
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

// What an operand is a view of. Broadcasts make a kEnlarged view, slices a kPart.
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
  // Of a product: a dim that both operands and the result have, such as the heads of an attention.
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
