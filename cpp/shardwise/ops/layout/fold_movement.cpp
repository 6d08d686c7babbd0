// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// Whether the op has its own attributes and no others: a sharding rule of the user numbers the dims of this very op.
// A tensor without elements has no rule as a reshape, but one as a broadcast.
bool may_change(const OpView& op, size_t own_attributes) {
  return op.attrs().entries().size() == own_attributes && op.result_type().size() != 0;
}

// The op of this name that makes the value. None if its user must not skip it.
std::optional<OpView> skippable(const Module& module, ValueId value, std::string_view name, size_t own_attributes) {
  const std::optional<OpView> made = made_by(module, value, name);
  // A sharding on the value between two ops is an annotation of the user, which must not vanish.
  if (!made || module.value(value).sharding || !may_change(*made, own_attributes)) return std::nullopt;
  return made;
}

Dims without_ones(Dims shape) {
  std::erase(shape, 1);
  return shape;
}

// The operand of the reshape that makes the value, else the value.
ValueId before_reshape(Module& module, ValueId value) {
  const std::optional<OpView> made = skippable(module, value, "stablehlo.reshape", 0);
  if (!made) return value;
  // Dims that are merged or split have other shardings. If others read the value, they give it one, which its reader
  // would no longer receive.
  const bool same_dims = without_ones(made->operand_type(0).shape) == without_ones(made->result_type().shape);
  return same_dims || only_use(module, value) ? made->operand(0) : value;
}

ValueId reshape_from_source(Builder& builder, ValueId operand, const Dims& shape) {
  return build_reshape(builder, before_reshape(builder.module(), operand), shape);
}

// Whether the dims that `places` gives to the dims of a tensor are in order, if those of size 1 do not count: elements
// then keep their order.
bool keeps_order(const Dims& shape, const Dims& places) {
  int64_t last = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (places[i] < last) return false;
    last = places[i];
  }
  return true;
}

bool repeats_nothing(const OpView& broadcast) {
  return broadcast.operand_type(0).size() == broadcast.result_type().size() &&
         keeps_order(broadcast.operand_type(0).shape, dims_attr(broadcast, "broadcast_dimensions"));
}

// What a broadcast repeats, before another broadcast and without the dims of size 1 that a reshape has added; and the
// dims of the result that its dims become.
std::pair<ValueId, Dims> source_of_broadcast(Module& module, const OpView& op) {
  ValueId source = op.operand(0);
  Dims dims = dims_attr(op, "broadcast_dimensions");
  if (const auto made = skippable(module, source, op.name(), 1)) {
    dims = sizes_at(dims, dims_attr(*made, "broadcast_dimensions"));
    source = made->operand(0);
  }
  const Dims shape = module.type(source).shape;
  const ValueId before = before_reshape(module, source);
  if (module.type(before).shape != without_ones(shape)) return {source, dims};
  size_t dim = 0;
  std::erase_if(dims, [&](int64_t) { return shape[dim++] == 1; });
  return {before, dims};
}

}  // namespace

ValueId fold_transpose(Builder& builder, const OpView& op) {
  Module& module = builder.module();
  if (!may_change(op, 1)) return {};
  const Dims shape = op.result_type().shape;
  Dims permutation = dims_attr(op, "permutation");
  ValueId source = op.operand(0);
  if (const auto made = skippable(module, source, op.name(), 1)) {
    permutation = sizes_at(dims_attr(*made, "permutation"), permutation);
    source = made->operand(0);
  }
  if (keeps_order(shape, permutation)) return reshape_from_source(builder, source, shape);
  return source == op.operand(0) ? ValueId{} : build_transpose(builder, source, permutation);
}

ValueId fold_reshape(Builder& builder, const OpView& op) {
  if (!may_change(op, 0)) return {};
  const Dims shape = op.result_type().shape;
  const ValueId source = before_reshape(builder.module(), op.operand(0));
  if (source == op.operand(0) && op.operand_type(0).shape != shape) return {};
  return build_reshape(builder, source, shape);
}

ValueId fold_broadcast_in_dim(Builder& builder, const OpView& op) {
  if (!may_change(op, 1)) return {};
  const Dims shape = op.result_type().shape;
  if (repeats_nothing(op)) return reshape_from_source(builder, op.operand(0), shape);
  const auto [source, dims] = source_of_broadcast(builder.module(), op);
  return source == op.operand(0) ? ValueId{} : build_broadcast(builder, source, shape, dims);
}

}  // namespace shardwise
