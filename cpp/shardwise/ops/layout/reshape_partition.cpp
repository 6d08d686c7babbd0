// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/shared/padding.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// Dims [begin, end) of each side, which have the same elements in the same order.
struct Side {
  size_t begin = 0, end = 0;
};
struct Group {
  Side from, to;
};

std::vector<Group> groups_of(const Dims& from, const Dims& to) {
  std::vector<Group> groups;
  size_t i = 0, o = 0;
  while (i < from.size() || o < to.size()) {
    Group group{.from = {i, i}, .to = {o, o}};
    int64_t left = i < from.size() ? from[i++] : 1, right = o < to.size() ? to[o++] : 1;
    while (left != right) {
      if (left < right) {
        left *= from[i++];
      } else {
        right *= to[o++];
      }
    }
    group.from.end = i;
    group.to.end = o;
    groups.push_back(group);
  }
  return groups;
}

// The dim whose shards are consecutive elements of the group: the first of more than one element. `end` if there is none.
size_t major_dim(const Dims& shape, Side side) {
  size_t dim = side.begin;
  while (dim < side.end && shape[dim] == 1) ++dim;
  return dim;
}

int64_t elements_below(const Dims& shape, Side side, size_t dim) {
  int64_t count = 1;
  for (size_t d = dim + 1; d < side.end; ++d) count *= shape[d];
  return count;
}

// Whether a shard of the group's first dim has a part of a row of the other side's dims.
bool is_uneven(const OpView& op, ValueId value, const Dims& shape, Side side, Side other) {
  const ShardingId id = op.module().value(value).sharding;
  if (!id || side.end - side.begin + other.end - other.begin < 3) return false;
  const TensorSharding& sharding = op.module().context().sharding(id);
  for (size_t d = side.begin; d < side.end; ++d) {
    const int64_t shards = product(sharding.dims[d].axes);
    if (shards > 1 && shape[d] % shards != 0) return true;
  }
  return false;
}

class RowsOfReshape {
 public:
  explicit RowsOfReshape(PartitionContext& context)
      : context_(context),
        builder_(context.builder()),
        from_(context.op().operand_type(0).shape),
        to_(context.op().result_type().shape),
        groups_(groups_of(from_, to_)) {}

  ValueId run() {
    const ValueId rows = gathered();
    ExchangeMap map{.to = {}, .from = {{}}};
    Dims flat;
    for (const Group& group : groups_) {
      const auto [from, have] = flattened(context_.operand_layout(0), from_, group.from);
      const auto [to, want] = flattened(context_.result_layout(0), to_, group.to);
      flat.push_back(have);
      map.from[0].push_back({.axes = from.axes, .block = have, .size = from.size});
      map.to.push_back({.axes = to.axes, .rows = want, .step = want, .size = to.size});
    }
    const ValueId operand = build_reshape(builder_, rows, flat);
    const ValueId moved = explained(create_exchange(builder_, context_.mesh(), {&operand, 1}, {}, map));
    Dims shape = to_;
    for (const Group& group : groups_) {
      const size_t major = major_dim(to_, group.to);
      if (major < group.to.end) shape[major] = context_.result_layout(0).dims[major].block;
    }
    return sliced(build_reshape(builder_, moved, shape));
  }

 private:
  struct Flat {
    DimLayout layout;
    int64_t block = 1;
  };

  // A group as one dim.
  static Flat flattened(const LocalLayout& layout, const Dims& shape, Side side) {
    const size_t major = major_dim(shape, side);
    if (major == side.end) return {.layout = {.size = 1, .axes = {}, .shards = 1, .block = 1}, .block = 1};
    const int64_t below = elements_below(shape, side, major);
    Flat flat{.layout = layout.dims[major], .block = layout.dims[major].block * below};
    flat.layout.size *= below;
    return flat;
  }

  bool is_major(const std::vector<Group>& groups, const Dims& shape, size_t dim, Side Group::* side) const {
    return std::ranges::any_of(groups, [&](const Group& group) { return major_dim(shape, group.*side) == dim; });
  }

  ValueId explained(ValueId collective) {
    size_t dim = 0;
    while (dim + 1 < from_.size() && context_.operand_layout(0).dims[dim].axes.empty()) ++dim;
    context_.explain(collective, static_cast<int64_t>(dim));
    return collective;
  }

  // The operand, whole along dims that do not hold consecutive elements.
  ValueId gathered() {
    const LocalLayout& layout = context_.operand_layout(0);
    std::vector<AxisList> axes(from_.size());
    Dims limit = layout.local_shape();
    bool gathers = false;
    for (size_t d = 0; d < from_.size(); ++d) {
      if (layout.dims[d].axes.empty() || is_major(groups_, from_, d, &Group::from)) continue;
      axes[d] = layout.dims[d].axes;
      limit[d] = from_[d];
      gathers = true;
    }
    if (!gathers) return context_.operand(0);
    const ValueId whole = explained(create_all_gather(builder_, context_.mesh(), context_.operand(0), axes));
    return build_slice(builder_, whole, Dims(limit.size(), 0), limit, Dims(limit.size(), 1));
  }

  // This device's part along such dims of the result.
  ValueId sliced(ValueId value) {
    const LocalLayout& layout = context_.result_layout(0);
    Dims high(to_.size(), 0);
    std::vector<ValueId> starts;
    bool slices = false;
    for (size_t d = 0; d < to_.size(); ++d) {
      const DimLayout& dim = layout.dims[d];
      const bool is_part = !dim.axes.empty() && !is_major(groups_, to_, d, &Group::to);
      if (is_part) high[d] = dim.block * dim.shards - dim.size;
      starts.push_back(is_part ? build_convert(builder_, context_.shard_offset(dim), DType::kI64)
                               : build_scalar(builder_, scalar_of(DType::kI64, 0)));
      slices = slices || is_part;
    }
    if (!slices) return value;
    const ValueId zero = build_scalar(builder_, scalar_of(builder_.module().type(value).dtype, 0));
    const Dims none(to_.size(), 0);
    return build_dynamic_slice(builder_, build_pad(builder_, value, zero, none, high, none), starts,
                               layout.local_shape());
  }

  PartitionContext& context_;
  Builder& builder_;
  const Dims from_, to_;
  std::vector<Group> groups_;
};

}  // namespace

void partition_by_rows(PartitionContext& context) {
  context.set_result(0, RowsOfReshape(context).run(), result_padding(context.result_layout(0)));
}

std::vector<FactorId> uneven_factors_of_reshape(const OpView& op, const ShardingRule& rule) {
  if (op.module().meshes.empty() || rule.empty()) return {};
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  const bool is_assigned = op.attrs().find(kMethodAttr) != nullptr;
  std::vector<FactorId> factors;
  for (const Group& group : groups_of(from, to)) {
    const bool moves = is_assigned || is_uneven(op, op.operand(0), from, group.from, group.to) ||
                       is_uneven(op, op.result(), to, group.to, group.from);
    if (!moves) continue;
    for (size_t d = group.from.begin; d < group.from.end; ++d) factors.push_back(rule.dim(0, d)[0]);
    for (size_t d = group.to.begin; d < group.to.end; ++d) factors.push_back(rule.dim(rule.result_tensor(0), d)[0]);
  }
  return factors;
}

}  // namespace shardwise
