// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/folding.h"

namespace shardwise {
namespace {

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

int64_t elements_in(DimSpan dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies()); }

// A stack whose new dim is merged into the next one joins along that dim:
//
//   reshape (concatenate x[None], y[None]) : 2x64x32 -> 128x32      concatenate x, y
//
// The operands of the concatenate must be reshapes of the values that are then joined, and nothing else may read it: it would
// be made anyway.
ValueId join_of_reshaped(Builder& builder, const OpView& op) {
  Module& module = builder.module();
  const std::optional<OpView> joined = skippable(module, op.operand(0), "stablehlo.concatenate", 1);
  if (!joined || !only_use(module, op.operand(0))) return {};
  const auto dim = static_cast<size_t>(joined->attrs().get_int("dimension"));
  const Dims from = joined->result_type().shape, to = op.result_type().shape;
  // The dim of the result with as many elements before it.
  const int64_t before = elements_in(DimSpan(from).first(dim));
  size_t place = 0;
  while (place < to.size() && (elements_in(DimSpan(to).first(place)) != before || to[place] == 1)) ++place;
  if (place == to.size()) return {};
  const int64_t row = elements_in(DimSpan(to).subspan(place + 1));
  std::vector<ValueId> operands;
  for (size_t i = 0; i < joined->operand_count(); ++i) {
    const ValueId operand = before_reshape(module, joined->operand(i));
    Dims shape = to;
    shape[place] = elements_in(joined->operand_type(i).shape) / (before * row);
    if (operand == joined->operand(i) || module.type(operand).shape != shape) return {};
    operands.push_back(operand);
  }
  return build_concatenate(builder, operands, static_cast<int64_t>(place));
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
  if (const ValueId joined = join_of_reshaped(builder, op)) return joined;
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
