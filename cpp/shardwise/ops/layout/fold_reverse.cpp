// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {
namespace {

// Windows over x instead of those of `made` over its reverse, which `reverse` undoes.
ValueId turn_windows(Builder& builder, const OpView& made, const OpView& reverse) {
  Module& module = builder.module();
  if (made.def().name != "stablehlo.reduce_window" || !op_reducer(made)) return {};
  const std::optional<OpView> before = made_by(module, made.operand(0), reverse.name());
  // A sharding on the value between them is an annotation of the user, which must not vanish.
  if (!before || module.value(made.operand(0)).sharding) return {};
  // The order in which the dims are listed does not matter.
  const Dims dims = ascending(dims_attr(reverse, "dimensions")), own = ascending(dims_attr(*before, "dimensions"));
  // Another user needs the windows over the reverse as they are, and they would be computed twice.
  if (dims != own || !only_use(module, made.result())) return {};
  Window window = Window::of(made);
  for (const int64_t entry : dims) {
    const auto dim = static_cast<size_t>(entry);
    // Otherwise the last window ends before the last element.
    const int64_t rest = window.padded_size(dim, made.operand_type(0).shape[dim]) - window.spanned(dim);
    if (rest < 0 || rest % window.strides[dim] != 0) return {};
    // The first window over the reverse is the last one over x.
    std::swap(window.low[dim], window.high[dim]);
  }
  const ValueId operands[] = {before->operand(0), made.operand(1)};
  return module.result(create_again(builder, made, operands, builder.context().intern(window_attrs(window))));
}

}  // namespace

// reverse(reverse(x)) is x; windows between two reverses begin at the other end.
ValueId fold_reverse(Builder& builder, const OpView& op) {
  const Module& module = builder.module();
  const OpId maker = module.value(op.operand(0)).op;
  if (!maker || module.value(op.operand(0)).sharding) return {};
  const OpView made(module, maker);
  if (&made.def() != &op.def()) return turn_windows(builder, made, op);
  const bool undoes = ascending(dims_attr(op, "dimensions")) == ascending(dims_attr(made, "dimensions"));
  return undoes ? made.operand(0) : ValueId{};
}

}  // namespace shardwise
