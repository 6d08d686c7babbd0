// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/device_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/collectives/device_groups.h"
#include "shardwise/ops/collectives/device_numbers.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/collectives/row_moves.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The dims of an operand whose rows are [groups, members, row …].
constexpr int64_t kMembers = 1, kRow = 2;

// One operand with its rows in groups, and the way back.
class GroupedRows {
 public:
  GroupedRows(RowContext& context, size_t operand, RowGroups groups)
      : context_(context), builder_(context.builder()), axes_(context.axes()), groups_(std::move(groups)) {
    set_ = context.varies(operand) | groups_.axes;
    const ValueId rows = context.operand(operand, set_);
    const Dims row = shape_of_row(module(), rows, set_);
    const int64_t count = axes_.rows(set_);
    value_ = build_transpose(builder_, build_reshape(builder_, rows, joined(axes_.sizes(set_), row)), in_groups(row));
    if (!groups_.rows.empty()) {
      value_ = move_rows(builder_, build_reshape(builder_, value_, listed(row)), kListed, groups_.rows);
    }
    value_ = build_reshape(builder_, value_, joined(Dims{count / groups_.size, groups_.size}, row));
  }

  ValueId value() const { return value_; }  // [groups, members, row …]

  // A result that all members of a group share: [groups, row …].
  void set_shared(size_t result, ValueId value) {
    Dims row = module().type(value).shape;
    const int64_t count = row[0];
    row.erase(row.begin());
    if (!groups_.rows.empty()) {
      const Dims shape = joined(Dims{count, groups_.size}, row);
      const Dims dims = joined(Dims{0}, identity_dims(std::ssize(row), kRow));
      return set_apart(result, build_broadcast(builder_, value, shape, dims));
    }
    const AxisSet rest = set_ & ~groups_.axes;
    set(result, rest == 0 ? build_reshape(builder_, value, row) : value, rest);
  }

  // A result of each member: [groups, members, row …].
  void set_apart(size_t result, ValueId value) {
    const Dims& shape = module().type(value).shape;
    const Dims row(shape.begin() + kRow, shape.end());
    const Dims rows = axes_.with_rows(set_, row);
    if (!groups_.rows.empty()) {
      const ValueId flat = build_reshape(builder_, value, listed(row));
      value = move_rows(builder_, flat, kListed, inverse_permutation(groups_.rows));
    }
    const Dims places = in_groups(row);
    const Dims known = joined(axes_.sizes(set_), row);
    const ValueId split = build_reshape(builder_, value, sizes_at(known, places));
    set(result, build_reshape(builder_, build_transpose(builder_, split, inverse_permutation(places)), rows), set_);
  }

 private:
  const Module& module() const { return builder_.module(); }
  void set(size_t result, ValueId rows, AxisSet along) { context_.set_result(result, rows, along); }

  // A permutation: axes outside the groups, then group axes, then the row's dims.
  Dims in_groups(DimSpan row) const {
    const std::vector<size_t> known = axes_.members(set_);
    const auto place = [&](size_t axis) { return std::ranges::find(known, axis) - known.begin(); };
    Dims places;
    for (const size_t axis : axes_.members(set_ & ~groups_.axes)) places.push_back(place(axis));
    const std::vector<size_t> order = groups_.rows.empty() ? groups_.order : axes_.members(groups_.axes);
    for (const size_t axis : order) places.push_back(place(axis));
    return joined(places, identity_dims(std::ssize(row), std::ssize(known)));
  }

  // Of groups that are lists: the rows along their axes are one dim.
  static constexpr int64_t kListed = 1;
  Dims listed(DimSpan row) const {
    const int64_t count = std::ssize(groups_.rows);
    return joined(Dims{axes_.rows(set_) / count, count}, row);
  }

  RowContext& context_;
  Builder& builder_;
  const BatchAxes& axes_;
  RowGroups groups_;
  AxisSet set_ = 0;
  ValueId value_;
};

RowGroups groups_of(const OpView& op, const BatchAxes& axes) {
  return read_groups(op, axes, GroupIds::kGlobalIfAttribute);
}
RowGroups partitions_of(const OpView& op, const BatchAxes& axes) {
  return read_groups(op, axes, GroupIds::kPartitions);
}

// A dim that grows or shrinks does so by the size of a group.
void expect_ratio(const OpView& op, const RowGroups& groups, int64_t large, int64_t small) {
  if (large == small * groups.size) return;
  fail<ShapeError>(op.name(), str("sizes must differ by the size of the groups, ", groups.size),
                   str(large, " and ", small));
}

Dims with_split(DimSpan shape, int64_t dim, int64_t count) {
  Dims split = to_dims(shape);
  split[static_cast<size_t>(dim)] /= count;
  split.insert(split.begin() + dim, count);
  return split;
}

// Moves a dim; `to` is its place afterwards.
ValueId place_dim(Builder& builder, ValueId value, int64_t from, int64_t to) {
  Dims places = identity_dims(builder.module().type(value).ndim());
  places.erase(places.begin() + from);
  places.insert(places.begin() + to, from);
  return build_transpose(builder, value, places);
}

// The dim joins the next one, as its major part.
ValueId join_dim(Builder& builder, ValueId value, int64_t dim) {
  Dims shape = builder.module().type(value).shape;
  const auto at = shape.begin() + dim;
  *(at + 1) *= *at;
  shape.erase(at);
  return build_reshape(builder, value, shape);
}

ValueId cut_dim(Builder& builder, ValueId value, int64_t dim, int64_t count) {
  const Dims shape = builder.module().type(value).shape;
  return build_reshape(builder, value, with_split(shape, dim, count));
}

// Throws for groups of other replicas than the one that there is.
AxisSet varies_in_replicas(const OpView& op, const BatchAxes& axes, AxisSet operand) {
  return operand | groups_of(op, axes).axes;
}

// ---- reductions ----------------------------------------------------------------------------------------------------

// Any combiner: it has no neutral element, so that a flag tells where there is something to combine.
ValueId reduce_by_region(Builder& builder, ValueId value, RegionId combiner) {
  const TensorType type = builder.module().type(value);
  const std::array operands{value, build_splat(builder, type.shape, scalar_of(DType::kBool, 1)),
                            build_zeros(builder, {type.dtype, {}}), build_zeros(builder, {DType::kBool, {}})};
  return build_region_reduce(builder, builder.module(), combiner, operands, Dims{kMembers}, true)[0];
}

// [groups, members, row …] -> [groups, row …]
ValueId reduce_members(RowContext& context, ValueId value, DType result) {
  Builder& builder = context.builder();
  const RegionId region = context.op().regions()[0];
  const DType dtype = builder.module().type(builder.module().region(region).arguments[0]).dtype;
  const ValueId wide = build_convert(builder, value, dtype);
  const std::optional<Reducer> reducer = region_reducer(builder.module(), region);
  if (!reducer) return build_convert(builder, reduce_by_region(builder, wide, region), result);
  // A sum of -0.0 alone is -0.0: a collective has no initial value.
  const ValueId nothing = build_scalar(builder, exact_neutral(*reducer, dtype));
  return build_convert(builder, build_reduce(builder, wide, nothing, *reducer, Dims{kMembers}), result);
}

void expand_all_reduce(RowContext& context) {
  const RowGroups groups = groups_of(context.op(), context.axes());
  for (size_t i = 0; i < context.op().operand_count(); ++i) {
    GroupedRows rows(context, i, groups);
    rows.set_shared(i, reduce_members(context, rows.value(), context.op().result_type(i).dtype));
  }
}

void expand_reduce_scatter(RowContext& context) {
  const OpView op = context.op();
  const RowGroups groups = groups_of(op, context.axes());
  const int64_t dim = op.attrs().get_int("scatter_dimension");
  const auto d = static_cast<size_t>(dim);
  expect_ratio(op, groups, op.operand_type(0).shape[d], op.result_type().shape[d]);
  GroupedRows rows(context, 0, groups);
  const ValueId reduced = reduce_members(context, rows.value(), op.result_type().dtype);
  const ValueId parts = cut_dim(context.builder(), reduced, 1 + dim, groups.size);
  rows.set_apart(0, place_dim(context.builder(), parts, 1 + dim, kMembers));
}

// ---- movement ------------------------------------------------------------------------------------------------------

void expand_all_gather(RowContext& context) {
  const OpView op = context.op();
  const RowGroups groups = groups_of(op, context.axes());
  const int64_t dim = op.attrs().get_int("all_gather_dim");
  const auto d = static_cast<size_t>(dim);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    expect_ratio(op, groups, op.result_type(i).shape[d], op.operand_type(i).shape[d]);
    GroupedRows rows(context, i, groups);
    const ValueId beside = place_dim(context.builder(), rows.value(), kMembers, 1 + dim);
    rows.set_shared(i, join_dim(context.builder(), beside, 1 + dim));
  }
}

// Part p of member m becomes part m of member p.
void expand_all_to_all(RowContext& context) {
  const OpView op = context.op();
  const RowGroups groups = partitions_of(op, context.axes());
  const int64_t split = op.attrs().get_int("split_dimension"), concat = op.attrs().get_int("concat_dimension");
  Builder& builder = context.builder();
  expect_ratio(op, groups, op.attrs().get_int("split_count"), 1);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    GroupedRows rows(context, i, groups);
    const ValueId parts = cut_dim(builder, rows.value(), kRow + split, groups.size);
    // [groups, members, …, parts, …] -> [groups, parts, …, members, …]: a dim of a row keeps its number.
    const ValueId front = place_dim(builder, parts, kRow + split, kMembers);
    const ValueId beside = place_dim(builder, front, kMembers + 1, kRow + concat);
    rows.set_apart(i, join_dim(builder, beside, kRow + concat));
  }
}

void expand_permute(RowContext& context) {
  const RowMoves moves = read_moves(context.op(), context.axes());
  RowGroups groups{.axes = moves.axes, .order = moves.order, .rows = {}, .size = std::ssize(moves.sources)};
  GroupedRows rows(context, 0, std::move(groups));
  rows.set_apart(0, move_rows(context.builder(), rows.value(), kMembers, moves.sources));
}

void expand_broadcast(RowContext& context) {
  GroupedRows rows(context, 0, partitions_of(context.op(), context.axes()));
  Builder& builder = context.builder();
  Dims shared = builder.module().type(rows.value()).shape;
  shared.erase(shared.begin() + kMembers);
  rows.set_shared(0, build_reshape(builder, build_slice_along(builder, rows.value(), kMembers, 0, 1), shared));
}

void expand_vary(RowContext& context) {
  context.set_result(0, context.operand(0, context.varies(0)), context.varies(0));
}

// Its ids name replicas, of which there is one.
void expand_replica_sum(RowContext& context) {
  const AxisSet set = varies_in_replicas(context.op(), context.axes(), context.varies(0));
  context.set_result(0, context.operand(0, set), set);
}

// ---- device numbers ------------------------------------------------------------------------------------------------

ValueId build_partition_ids(Builder& builder, const OpView& op, const BatchAxes& axes) {
  if (axes.mesh() == nullptr) return build_zeros(builder, {DType::kU32, {}});
  const Mesh& mesh = *axes.mesh();
  const AxisList all = axes.refs(axes.all());
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const AxisRef ref = full_axis(mesh, axis);
    if (ref.size == 1 || axes.rows(axes.inside(ref)) == ref.size) continue;
    fail<UnsupportedError>(op.name(), "all axes of the mesh must be manual where a device asks for its number",
                           str(axis_text(mesh, ref), " is not"), "make it manual, too");
  }
  const Dims sizes = axes.sizes(axes.all());
  // Rows that are devices in order need no table.
  const bool counts = mesh.device_ids().empty() || names_positions(op);
  if (counts && all == sort_and_merge(all)) {
    return build_iota(builder, DType::kU32, Dims{element_count(sizes)}, 0);
  }
  Dims numbers, position(sizes.size(), 0);
  do {
    int64_t index = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis) index += position[axis] * axes.stride_in_mesh(axis);
    numbers.push_back(counts ? index : mesh.device_at(index));
  } while (next_index(position, sizes));
  return build_list(builder, DType::kU32, numbers);
}

void expand_partition_id(RowContext& context) {
  context.set_result(0, build_partition_ids(context.builder(), context.op(), context.axes()), context.axes().all());
}

// The position along some manual axes.
DeviceNumber position_of(const OpView& op, const BatchAxes& axes) {
  DeviceNumber number;
  int64_t scale = 1;
  for (const AxisRef& ref : collective_axes(op) | std::views::reverse) {
    const AxisSet set = axes.inside(ref);
    if (axes.mesh() == nullptr || axes.rows(set) != ref.size) {
      fail<UnsupportedError>(op.name(), "the axes of a device's position must be manual",
                             axes.mesh() == nullptr ? std::string(op.name()) : axis_text(*axes.mesh(), ref),
                             "make the axis manual; of an axis of vmap, differentiate around the vmap");
    }
    for (const size_t axis : axes.members(set) | std::views::reverse) {
      number.digits.push_back({axis, scale});
      scale *= axes.size(axis);
    }
  }
  return number;
}

void expand_axis_index(RowContext& context) {
  const DeviceNumber number = position_of(context.op(), context.axes());
  context.set_result(0, build_device_number(context.builder(), number, context.axes(), DType::kI32), number.axes());
}

void expand_replica_id(RowContext& context) {
  context.set_result(0, build_zeros(context.builder(), {DType::kU32, {}}), 0);
}

// ---- along which axes results differ -------------------------------------------------------------------------------

AxisSet apart_in(const RowGroups& groups, AxisSet operand) { return operand | groups.axes; }
AxisSet shared_in(const RowGroups& groups, AxisSet operand) {
  return groups.rows.empty() ? operand & ~groups.axes : operand | groups.axes;
}

template <RowGroups Groups(const OpView&, const BatchAxes&), AxisSet Set(const RowGroups&, AxisSet)>
AxisSet varies(const OpView& op, const BatchAxes& axes, AxisSet operand) {
  return Set(Groups(op, axes), operand);
}
AxisSet varies_permuted(const OpView& op, const BatchAxes& axes, AxisSet operand) {
  return operand | read_moves(op, axes).axes;
}
AxisSet varies_by_position(const OpView& op, const BatchAxes& axes, AxisSet) { return position_of(op, axes).axes(); }
AxisSet varies_as_operand(const OpView&, const BatchAxes&, AxisSet operand) { return operand; }
AxisSet varies_nowhere(const OpView&, const BatchAxes&, AxisSet) { return 0; }
AxisSet varies_everywhere(const OpView&, const BatchAxes& axes, AxisSet) { return axes.all(); }

constexpr DeviceOp kDeviceOps[] = {
    {"shardwise.axis_index", varies_by_position, expand_axis_index},
    {"shardwise.vary", varies_as_operand, expand_vary, varies<groups_of, apart_in>},
    {"stablehlo.all_gather", varies<groups_of, shared_in>, expand_all_gather, varies<groups_of, apart_in>},
    {"stablehlo.all_reduce", varies<groups_of, shared_in>, expand_all_reduce},
    {"stablehlo.all_to_all", varies<partitions_of, apart_in>, expand_all_to_all},
    {"stablehlo.collective_broadcast", varies<partitions_of, shared_in>, expand_broadcast},
    {"stablehlo.collective_permute", varies_permuted, expand_permute},
    {"stablehlo.cross-replica-sum", varies_in_replicas, expand_replica_sum},
    {"stablehlo.partition_id", varies_everywhere, expand_partition_id},
    {"stablehlo.reduce_scatter", varies<groups_of, apart_in>, expand_reduce_scatter},
    {"stablehlo.replica_id", varies_nowhere, expand_replica_id},
};

// The program of one device, where no axis is manual.
class OneDevice final : public RowContext {
 public:
  explicit OneDevice(DecomposeContext& context) : context_(context) {}

  OpView op() const override { return context_.op(); }
  Builder& builder() override { return context_.builder(); }
  const BatchAxes& axes() const override { return axes_; }
  AxisSet varies(size_t) const override { return 0; }
  ValueId operand(size_t i, AxisSet) override { return context_.operand(i); }
  void set_result(size_t i, ValueId value, AxisSet) override { context_.set_result(i, value); }

 private:
  DecomposeContext& context_;
  const BatchAxes axes_;
};

}  // namespace

void decompose_on_one_device(DecomposeContext& context) {
  OneDevice device(context);
  find_device_op(context.op().def())->expand(device);
}

void verify_on_one_device(const OpView& op) { find_device_op(op.def())->varies(op, BatchAxes(), 0); }

const DeviceOp* find_device_op(const OpDef& def) {
  const auto* found = std::ranges::find(kDeviceOps, def.name, &DeviceOp::name);
  return found == std::end(kDeviceOps) ? nullptr : found;
}

const DeviceOp* find_device_op(const OpView& op, const BatchAxes& axes) {
  if (!axes.are_examples()) return find_device_op(op.def());
  if (axes.mesh() == nullptr) return nullptr;
  for (const std::string_view name : {"replica_groups", "shardwise.along"}) {
    const auto* along = op.attrs().find<StructAttr>(name);
    if (along == nullptr) continue;
    const Attrs fields(along->fields);
    const auto* mesh = fields.find<Symbol>("mesh");
    return mesh != nullptr && mesh->name == axes.mesh()->name() ? find_device_op(op.def()) : nullptr;
  }
  return nullptr;
}

}  // namespace shardwise
