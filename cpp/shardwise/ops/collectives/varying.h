// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of collectives inside a manual computation, as JAX takes them. A cotangent differs between devices as its
// value does (JAX's "varying manual axes", vma):
//
//   %y = multiply %w, %x            %w is equal along x, %x and %y differ
//   %0 = multiply %dy, %x           differs along x, so that it is a part of the cotangent of %w
//   %dw = "shardwise.match_varying"(%0, %w)      the sum of %0 over x: "stablehlo.all_reduce"(%0) over {x}
//
//   %y = psum(%x)                   %y is equal along x, and so is %dy
//   %dx = "shardwise.vary"(%dy)     %dy itself, which counts as different along x
//
// transforms/batch/cotangent_sums.h replaces match_varying once the whole computation is recorded: only then is it known which
// values differ.
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

std::span<const OpDef> varying_ops();

// The cotangent with the variation of its value.
ValueId create_match_varying(Builder& builder, ValueId cotangent, ValueId value);
bool is_match_varying(const OpDef& def);

// The sum over the devices along these axes.
ValueId create_sum_over(Builder& builder, const Mesh& mesh, ValueId value, AxisSpan axes);

// Marks an all_reduce whose result counts as different on each device. Its transpose is a sum, too.
inline constexpr std::string_view kVaryingAttr = "shardwise.varying";

// OpDef::vjp of the collectives, inside a manual computation or a vmap.
void vjp_all_reduce(VjpContext& context);
void vjp_all_gather(VjpContext& context);
void vjp_reduce_scatter(VjpContext& context);
void vjp_all_to_all(VjpContext& context);
void vjp_permute(VjpContext& context);

// While it lives, reverse mode on this thread matches cotangents with their values, or does not.
class MatchesVarying {
 public:
  explicit MatchesVarying(bool is_on);
  ~MatchesVarying();
  MatchesVarying(const MatchesVarying&) = delete;
  MatchesVarying& operator=(const MatchesVarying&) = delete;
  static bool is_on();

 private:
  bool outer_;
};

}  // namespace shardwise
