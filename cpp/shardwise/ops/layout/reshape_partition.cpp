// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/padding.h"

namespace shardwise {
namespace {

// Dims [begin, end) of each side, which have the same elements in the same order.
struct Side {
  size_t begin = 0, end = 0;
};
struct Group {
  Side from, to;
};

// (2, 3, 4) and (6, 2, 2) have the groups {2, 3 | 6} and {4 | 2, 2}. The walk ends because both sides have the same
// number of elements, which is not 0: an empty reshape has no rule, and no caller passes it.
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

// The first dim of more than one element: its shards are consecutive elements of the group. `end` if there is none.
size_t major_dim(const Dims& shape, Side side) {
  size_t dim = side.begin;
  while (dim < side.end && shape[dim] == 1) ++dim;
  return dim;
}

int64_t size_of(const Dims& shape, size_t begin, size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                         shape.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1}, std::multiplies());
}

// Whether a shard of the group is not a range of rows that divides the other side's dims: the sharded dim does not
// divide, or it is not the first one that could be sharded.
bool is_uneven(const OpView& op, ValueId value, const Dims& shape, Side side, Side other) {
  const ShardingId id = op.module().value(value).sharding;
  if (!id || side.end - side.begin + other.end - other.begin < 3) return false;
  const TensorSharding& sharding = op.module().context().sharding(id);
  bool is_split = false;  // all dims before have one element on each device
  for (size_t d = side.begin; d < side.end; ++d) {
    const int64_t shards = product(sharding.dims[d].axes);
    if (shards > 1 && (is_split || shape[d] % shards != 0)) return true;
    is_split = is_split || shape[d] > shards;
  }
  return false;
}

// Whether an axis of the mesh does not divide the first dim of a side with several.
bool may_be_uneven(const OpView& op, const Group& group) {
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  const auto is_cut = [&](const Dims& shape, Side side) {
    const size_t major = major_dim(shape, side);
    if (major + 1 >= side.end) return false;
    return std::ranges::any_of(op.module().meshes, [&](const auto& mesh) {
      return std::ranges::any_of(mesh->axes(), [&](const auto& axis) { return shape[major] % axis.size != 0; });
    });
  };
  return is_cut(from, group.from) || is_cut(to, group.to);
}

// One side of a group, as rows of a line of consecutive elements that is sharded:
//
//   (24,) [{"x"}]            1 row of 24
//   (3, 8) [{}, {"x"}]       3 rows of 8
//   (4, 6, 5) [{}, {"x"}, {}]   4 rows of 30
struct Line {
  int64_t rows = 1;
  DimLayout layout;
};

using Layouts = std::vector<DimLayout>;

// None if several dims are sharded.
std::optional<Line> line_of(const Layouts& layouts, const Dims& shape, Side side) {
  const auto is_sharded = [&](size_t d) { return !layouts[d].axes.empty(); };
  size_t dim = side.begin;
  while (dim < side.end && !is_sharded(dim)) ++dim;
  const int64_t size = size_of(shape, side.begin, side.end);
  if (dim == side.end) return Line{.rows = 1, .layout = {.size = size, .axes = {}, .shards = 1, .block = size}};
  for (size_t d = dim + 1; d < side.end; ++d) {
    if (is_sharded(d)) return std::nullopt;
  }
  Line line{.rows = size_of(shape, side.begin, dim), .layout = layouts[dim]};
  const int64_t below = size_of(shape, dim + 1, side.end);
  line.layout.size *= below;
  line.layout.block *= below;
  return line;
}

// By group.
struct Lines {
  std::vector<Line> from, to;
};

// Each row is an operand of the exchange.
constexpr int64_t kMostRows = 16;

int64_t row_count(const Lines& lines) {
  int64_t count = 1;
  for (size_t g = 0; g < lines.from.size(); ++g) count *= lines.from[g].rows * lines.to[g].rows;
  return count;
}

Dims local_shape(const Layouts& layouts) {
  Dims shape;
  for (const DimLayout& dim : layouts) shape.push_back(dim.block);
  return shape;
}

// One exchange if at most one side of each group has several rows, and they are few. Otherwise the shards of a group
// with several rows become ranges of its first dim, before or after that exchange.
class ExchangedReshape {
 public:
  explicit ExchangedReshape(PartitionContext& context)
      : context_(context),
        builder_(context.builder()),
        from_(context.op().operand_type(0).shape),
        to_(context.op().result_type().shape),
        groups_(groups_of(from_, to_)) {}

  ValueId run() {
    const Layouts have = context_.operand_layout(0).dims(), want = context_.result_layout(0).dims();
    if (const auto lines = lines_between(have, want)) return exchanged(context_.operand(0), *lines, want);
    const Layouts given = in_rows(have, from_, &Group::from), made = in_rows(want, to_, &Group::to);
    // One side may be read as it is.
    if (const auto lines = lines_between(given, want))
      return exchanged(moved(context_.operand(0), have, given), *lines, want);
    if (const auto lines = lines_between(have, made))
      return moved(exchanged(context_.operand(0), *lines, made), made, want);
    const ValueId rows = moved(context_.operand(0), have, given);
    return moved(exchanged(rows, *lines_between(given, made), made), made, want);
  }

 private:
  // None if one exchange cannot go from one to the other.
  std::optional<Lines> lines_between(const Layouts& from, const Layouts& to) const {
    Lines lines;
    for (const Group& group : groups_) {
      auto source = line_of(from, from_, group.from), target = line_of(to, to_, group.to);
      if (!source || !target || (source->rows > 1 && target->rows > 1)) return std::nullopt;
      lines.from.push_back(std::move(*source));
      lines.to.push_back(std::move(*target));
    }
    return row_count(lines) <= kMostRows ? std::optional(std::move(lines)) : std::nullopt;
  }

  // The first dim of each group gets all axes of the group if another dim has some.
  Layouts in_rows(Layouts layouts, const Dims& shape, Side Group::* side) const {
    for (const Group& group : groups_) {
      const auto [begin, end] = group.*side;
      if (const auto line = line_of(layouts, shape, group.*side); line && line->rows == 1) continue;
      AxisList axes;
      for (size_t d = begin; d < end; ++d) {
        append_merged(axes, layouts[d].axes);
        layouts[d] = {.size = shape[d], .axes = {}, .shards = 1, .block = shape[d]};
      }
      DimLayout& major = layouts[std::min(major_dim(shape, group.*side), end - 1)];
      major.shards = product(axes);
      major.block = ceil_div(major.size, major.shards);
      major.axes = std::move(axes);
    }
    return layouts;
  }

  ValueId explained(ValueId collective) {
    size_t dim = 0;
    while (dim + 1 < from_.size() && context_.operand_layout(0).axes(dim).empty()) ++dim;
    return context_.explain(collective, static_cast<int64_t>(dim));
  }

  // In other shards of the same dims.
  ValueId moved(ValueId value, const Layouts& have, const Layouts& want) {
    if (have == want) return value;
    ExchangeMap map{.to = {}, .from = {{}}};
    for (size_t d = 0; d < have.size(); ++d) {
      map.to.push_back(target_of(want[d]));
      map.from[0].push_back(source_of(have[d]));
    }
    return explained(create_exchange(builder_, context_.mesh(), {&value, 1}, {}, map));
  }

  ValueId exchanged(ValueId value, const Lines& lines, const Layouts& want) {
    Dims rows;  // of the operand: each group is one dim, or rows of one
    ExchangeMap map;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto &from = lines.from[g], &to = lines.to[g];
      if (from.rows > 1) rows.push_back(from.rows);
      rows.push_back(from.layout.block);
      if (to.rows > 1) map.to.push_back({.axes = {}, .rows = to.rows, .step = to.rows, .size = to.rows});
      map.to.push_back(target_of(to.layout));
    }
    const ValueId whole = build_reshape(builder_, value, rows);
    std::vector<ValueId> operands;
    for (int64_t k = 0; k < row_count(lines); ++k) {
      operands.push_back(row(whole, lines, k));
      map.from.push_back(sources(lines, k));
    }
    const ValueId made = explained(create_exchange(builder_, context_.mesh(), operands, {}, map));
    return build_reshape(builder_, made, local_shape(want));
  }

  // The row that operand k has of a group with so many, and k without it.
  static int64_t next_row(int64_t& k, const Line& from, const Line& to) {
    const int64_t count = from.rows * to.rows, found = k % count;
    k /= count;
    return found;
  }

  ValueId row(ValueId whole, const Lines& lines, int64_t k) {
    const Dims shape = builder_.module().type(whole).shape;
    Dims start(shape.size(), 0), limit = shape, result;
    size_t d = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const int64_t at = next_row(k, lines.from[g], lines.to[g]);
      if (lines.from[g].rows > 1) {
        start[d] = at;
        limit[d++] = at + 1;
      }
      if (lines.to[g].rows > 1) result.push_back(1);
      result.push_back(shape[d++]);
    }
    return build_reshape(builder_, build_slice(builder_, whole, start, limit), result);
  }

  std::vector<ExchangeSource> sources(const Lines& lines, int64_t k) const {
    std::vector<ExchangeSource> sources;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto &from = lines.from[g], &to = lines.to[g];
      const int64_t at = next_row(k, from, to);
      ExchangeSource source = source_of(from.layout);
      if (from.rows > 1) {
        source.offset = -at * from.layout.size;
        source.begin = at * from.layout.size;
        source.end = source.begin + from.layout.size;
      }
      if (to.rows > 1) {
        sources.push_back({.axes = {}, .block = 1, .size = 1, .offset = -at, .begin = at, .end = at + 1});
        source.offset = at * to.layout.size;
        source.end = to.layout.size;
      }
      sources.push_back(std::move(source));
    }
    return sources;
  }

  PartitionContext& context_;
  Builder& builder_;
  const Dims from_, to_;
  std::vector<Group> groups_;
};

}  // namespace

void partition_by_rows(PartitionContext& context) {
  context.set_result(0, ExchangedReshape(context).run(), result_padding(context.result_layout(0)));
}

std::vector<AxisList> result_of_rows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> operand) {
  if (rule.empty()) return {};
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  std::vector<AxisList> result(to.size());
  bool is_uneven = false;
  for (const Group& group : groups_of(from, to)) {
    AxisList axes;
    bool is_even = true;
    for (size_t d = group.from.begin; d < group.from.end; ++d) {
      is_even = is_even && from[d] % product(operand[d]) == 0;
      append_merged(axes, operand[d]);
    }
    const size_t major = major_dim(to, group.to);
    if (axes.empty() || major == group.to.end) continue;
    const bool is_one_dim = group.from.end - group.from.begin == 1 && group.to.end - group.to.begin == 1;
    is_uneven = is_uneven || (!is_one_dim && (!is_even || to[major] % product(axes) != 0));
    result[major] = std::move(axes);
  }
  return is_uneven ? result : std::vector<AxisList>{};
}

std::vector<FactorId> uneven_factors_of_reshape(const OpView& op, const ShardingRule& rule) {
  if (op.module().meshes.empty() || rule.empty()) return {};
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  // An assigned program may have lost the annotations that led to this method.
  const bool is_assigned = op.attrs().find(kMethodAttr) != nullptr;
  std::vector<FactorId> factors;
  for (const Group& group : groups_of(from, to)) {
    const bool moves = is_assigned || is_uneven(op, op.operand(0), from, group.from, group.to) ||
                       is_uneven(op, op.result(), to, group.to, group.from) || may_be_uneven(op, group);
    if (!moves) continue;
    for (size_t d = group.from.begin; d < group.from.end; ++d) factors.push_back(rule.dim(0, d)[0]);
    for (size_t d = group.to.begin; d < group.to.end; ++d) factors.push_back(rule.dim(rule.result_tensor(0), d)[0]);
  }
  return factors;
}

}  // namespace shardwise
