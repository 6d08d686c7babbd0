// SPDX-License-Identifier: Apache-2.0
//
// Shardy's collectives: identities on global values that describe data movement between devices. Each is checked
// against the shardings of its operand and its result (OpDef::verify):
//
//   %0 [{"x", "y"}, {}]
//   %1 = sdy.all_gather [{"y"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]>   "y" must be the last axis of dim 0 of %0
//   %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"x"}]> "x" moves from dim 0 to the end of dim 1
//   %3 = sdy.all_slice [{"y"}, {}] %2 out_sharding=<@mesh, [{"y"}, {"x"}]>
//
//   all_reduce               drops axes from unreduced: {"x"}
//   reduce_scatter           the same, and each device keeps its part along these axes
//   collective_permute       other axes, or another device order, with shards of the same sizes
//   replicated_to_unreduced, sharded_to_unreduced   axes become unreduced: one device keeps its copy or part, the
//                            others get zeros
#include <string>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/identity.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// ---- what the checks read ------------------------------------------------------------------------------------------

// Shardy lets some collectives take an operand without a sharding, which is then whole on every device.
enum class Operand { kMustBeSharded, kWholeByDefault };
enum class Meshes { kEqual, kSameAxes };

[[noreturn]] void refuse(const OpView& op, std::string_view must_hold, std::string_view got,
                         std::string_view way_out = {}) {
  fail<ShardingError>(op.name(), must_hold, got, way_out);
}

// The shardings of operand and result, on compatible meshes.
struct Sides {
  Sides(const OpView& view, Operand operand, Meshes meshes) : op(view), out(of(view.result())) {
    const ShardingId id = op.module().value(op.operand(0)).sharding;
    if (!id && operand == Operand::kMustBeSharded) {
      refuse(op, "its operand must have a sharding", "none", "annotate it");
    }
    in = id ? op.module().context().sharding(id) : TensorSharding::fully_replicated(out.mesh, out.ndim());
    // A whole value is on every mesh over its devices.
    if (in.axes_used().empty() && are_over_same_devices(*in.mesh, *out.mesh)) in.mesh = out.mesh;
    if (meshes == Meshes::kEqual) {
      verify_same_mesh();
    } else {
      verify_same_axes();
    }
  }

  const TensorSharding& of(ValueId value) const {
    const ShardingId id = op.module().value(value).sharding;
    check_internal(static_cast<bool>(id), "a collective must have the sharding of its result");
    return op.module().context().sharding(id);
  }

  void verify_same_mesh() const {
    if (equal(in.mesh, out.mesh)) return;
    refuse(op, "operand and result must be on one mesh", str(in.mesh->reference(), " and ", out.mesh->reference()));
  }

  void verify_same_axes() const {
    if (!in.mesh->same_ignoring_order(*out.mesh)) {
      refuse(op, "the meshes of operand and result must have the same axes",
             str(in.mesh->text(), " and ", out.mesh->text()));
    }
    // Two names of one mesh would make the permute a no-op that looks like communication.
    if (in.mesh->name() != out.mesh->name() && in.mesh->same_devices(*out.mesh)) {
      refuse(op, "two meshes must have their devices in different orders",
             str(in.mesh->reference(), " and ", out.mesh->reference()), "use one of them");
    }
  }

  void verify_dim_axes(size_t dim, const AxisList& expected) const {
    const AxisList& found = out.dims[dim].axes;
    if (found == expected) return;
    refuse(op, str("dim ", dim, " of the result must be sharded along ", axis_list_text(*out.mesh, expected)),
           axis_list_text(*out.mesh, found));
  }

  void verify_equal_dims() const {
    for (size_t d = 0; d < out.dims.size(); ++d) {
      if (in.dims[d].axes != out.dims[d].axes) {
        refuse(op, "the dims of operand and result must be sharded alike",
               str(axis_list_text(*in.mesh, in.dims[d].axes), " and ", axis_list_text(*out.mesh, out.dims[d].axes),
                   " in dim ", d));
      }
    }
  }

  // Dim `dim` of the operand without `axes`, which must be its last axes.
  AxisList without(size_t dim, const AxisList& axes) const {
    // {"x", "y"} without {"y"} is {"x"}: the minor axes are gathered first, or the shards would not be contiguous rows.
    if (std::optional<AxisList> rest = without_suffix(in.dims[dim].axes, axes)) return *std::move(rest);
    refuse(op, str(axis_list_text(*in.mesh, axes), " must be the last axes of dim ", dim, " of the operand"),
           axis_list_text(*in.mesh, in.dims[dim].axes));
  }

  AxisList with(size_t dim, const AxisList& axes) const {
    AxisList all = in.dims[dim].axes;
    // A sub-axis that continues the last one becomes one with it: "x":(1)2 and "x":(2)2 of x=4 are "x".
    append_merged(all, axes);
    return all;
  }

  OpView op;
  TensorSharding in;
  const TensorSharding& out;
};

AxisList axes_of(const Sides& sides, std::string_view name) {
  const AxesAttr* axes = sides.op.attrs().find<AxesAttr>(name);
  if (axes == nullptr) refuse(sides.op, str("attribute '", name, "' must be a list of axes"), "none");
  return resolve(*sides.out.mesh, axes->axes);
}

std::vector<AxisList> dim_axes_of(const Sides& sides, std::string_view name) {
  const AxesPerDimAttr* lists = sides.op.attrs().find<AxesPerDimAttr>(name);
  if (lists == nullptr) refuse(sides.op, str("attribute '", name, "' must be a list of axes for each dim"), "none");
  if (lists->dims.size() != sides.out.dims.size()) {
    refuse(sides.op, "there must be a list of axes for each dim of the result",
           str(lists->dims.size(), " for ", sides.out.dims.size()));
  }
  std::vector<AxisList> dims = resolve(*sides.out.mesh, *lists);
  // The lists must be legal together, as the dims of one sharding: no axis twice.
  verify_axis_lists(sides.out.mesh, dims);
  return dims;
}

// ---- one check for each collective ---------------------------------------------------------------------------------

void verify_all_gather(const OpView& op) {
  const Sides sides(op, Operand::kMustBeSharded, Meshes::kEqual);
  const auto gathered = dim_axes_of(sides, "gathering_axes");
  // The sharding of the result is not free: each collective checks that it follows from the operand's.
  for (size_t d = 0; d < gathered.size(); ++d) sides.verify_dim_axes(d, sides.without(d, gathered[d]));
}

void verify_all_slice(const OpView& op) {
  const Sides sides(op, Operand::kWholeByDefault, Meshes::kEqual);
  const auto sliced = dim_axes_of(sides, "slicing_axes");
  for (size_t d = 0; d < sliced.size(); ++d) sides.verify_dim_axes(d, sides.with(d, sliced[d]));
}

std::vector<AllToAllMove> moves_of(const Sides& sides) {
  const AttrArray* params = sides.op.attrs().find<AttrArray>("params");
  if (params == nullptr || params->empty()) refuse(sides.op, "there must be a move", "none");
  const auto ndim = static_cast<int64_t>(sides.out.dims.size());
  std::vector<AllToAllMove> moves;
  for (const Attribute& param : *params) {
    std::optional<AllToAllMove> move = move_of(*sides.out.mesh, param);
    if (!move) refuse(sides.op, "a move must have axes, from_dim and to_dim", "another attribute");
    if (move->axes.empty()) refuse(sides.op, "a move must have axes", "none");
    for (const int64_t dim : {move->from_dim, move->to_dim}) {
      if (dim < 0 || dim >= ndim) {
        refuse(sides.op, str("the dims of a move must be from 0 to ", ndim - 1), std::to_string(dim));
      }
    }
    moves.push_back(*std::move(move));
  }
  return moves;
}

void verify_all_to_all(const OpView& op) {
  const Sides sides(op, Operand::kMustBeSharded, Meshes::kEqual);
  const std::vector<AllToAllMove> moves = moves_of(sides);
  std::vector<AxisList> expected, lists;
  for (const DimSharding& dim : sides.in.dims) expected.push_back(dim.axes);
  std::vector<bool> seen(expected.size(), false);
  for (size_t i = 0; i < moves.size(); ++i) {
    for (const int64_t dim : {moves[i].from_dim, moves[i].to_dim}) {
      const auto d = static_cast<size_t>(dim);
      if (seen[d]) refuse(op, "a dim must be in one move, as its source or its target", str("dim ", dim, " again"));
      seen[d] = true;
    }
    // As Shardy verifies, so that one exchange has one text.
    if (i > 0 && moves[i - 1].from_dim > moves[i].from_dim) {
      refuse(op, "moves must be in the order of their source dims",
             str(moves[i].from_dim, " after ", moves[i - 1].from_dim));
    }
    lists.push_back(moves[i].axes);
  }
  verify_axis_lists(sides.out.mesh, lists);
  for (const AllToAllMove& move : moves) {
    const auto from = static_cast<size_t>(move.from_dim), to = static_cast<size_t>(move.to_dim);
    expected[from] = sides.without(from, move.axes);
    expected[to] = sides.with(to, move.axes);
  }
  for (size_t d = 0; d < expected.size(); ++d) sides.verify_dim_axes(d, expected[d]);
}

void verify_collective_permute(const OpView& op) {
  const Sides sides(op, Operand::kMustBeSharded, Meshes::kSameAxes);
  for (size_t d = 0; d < sides.out.dims.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    // A permute changes which device holds a shard, not the shards.
    if (sides.in.shard_count(dim) == sides.out.shard_count(dim)) continue;
    refuse(op, str("dim ", d, " must be in as many shards before and after"),
           str(sides.in.shard_count(dim), " and ", sides.out.shard_count(dim)));
  }
}

// Checks that `axes` can be reduced: they neither shard the operand nor replicate it, and are not unreduced afterwards.
void verify_reduction(const Sides& sides, const AxisList& axes) {
  for (const AxisRef& axis : axes) {
    // Devices along a reduced axis hold addends of the same elements: neither different
    // elements nor, by annotation, copies.
    if (overlaps(sides.in.axes_sharding(), axis) || overlaps(sides.in.replicated, axis)) {
      refuse(sides.op, "an axis of the reduction must neither shard the operand nor be replicated there",
             str(axis_text(*sides.in.mesh, axis), " with ", short_text(sides.in)));
    }
    if (overlaps(sides.out.unreduced, axis)) {
      refuse(sides.op, "an axis of the reduction must not stay unreduced",
             str(axis_text(*sides.in.mesh, axis), " with ", short_text(sides.out)));
    }
  }
  // A reduction over some axes leaves the others pending, by the same reducer.
  if (sides.out.unreduced.empty() || sides.in.unreduced.empty() ||
      sides.in.pending_reducer() == sides.out.pending_reducer()) {
    return;
  }
  refuse(sides.op, "what stays unreduced must be reduced as the operand is",
         str(name(sides.in.pending_reducer()), " and ", name(sides.out.pending_reducer())));
}

void verify_all_reduce(const OpView& op) {
  const Sides sides(op, Operand::kWholeByDefault, Meshes::kEqual);
  sides.verify_equal_dims();
  const AxisList axes = axes_of(sides, "reduction_axes");
  verify_sorted_axes(sides.out.mesh, axes, "reduction");
  verify_reduction(sides, axes);
}

void verify_reduce_scatter(const OpView& op) {
  const Sides sides(op, Operand::kWholeByDefault, Meshes::kEqual);
  const auto scattered = dim_axes_of(sides, "reduce_scatter_axes");
  AxisList axes;
  for (const AxisList& list : scattered) axes.insert(axes.end(), list.begin(), list.end());
  for (size_t d = 0; d < scattered.size(); ++d) sides.verify_dim_axes(d, sides.with(d, scattered[d]));
  verify_reduction(sides, axes);
}

// Checks that the result is also unreduced over `axes`, and that the pending reductions are sums.
void verify_unreduced(const Sides& sides, const AxisList& axes) {
  AxisList expected = sides.in.unreduced;
  expected.insert(expected.end(), axes.begin(), axes.end());
  expected = sort_and_merge(expected);
  if (sides.out.unreduced != expected) {
    refuse(sides.op, str("the result must be unreduced over ", axis_list_text(*sides.out.mesh, expected)),
           axis_list_text(*sides.out.mesh, sides.out.unreduced));
  }
  for (const TensorSharding* side : {&sides.in, &sides.out}) {
    // The parts that a device does not have become zeros, which are neutral only for sums.
    if (side->unreduced.empty() || side->pending_reducer() == Reducer::kSum) continue;
    refuse(sides.op, "what is unreduced must be a sum", name(side->pending_reducer()));
  }
}

void verify_replicated_to_unreduced(const OpView& op) {
  const Sides sides(op, Operand::kMustBeSharded, Meshes::kEqual);
  const AxisList axes = axes_of(sides, "axes");
  if (axes.empty()) refuse(op, "there must be an axis", "none");
  verify_sorted_axes(sides.out.mesh, axes, "unreduced");
  sides.verify_equal_dims();
  for (const AxisRef& axis : axes) {
    // One device along the axis keeps the value and the others take zeros: all must have held the same.
    if (!overlaps(sides.in.axes_sharding(), axis) && !overlaps(sides.in.unreduced, axis)) continue;
    refuse(op, "an axis must hold copies of the operand before", axis_text(*sides.in.mesh, axis));
  }
  verify_unreduced(sides, axes);
}

void verify_sharded_to_unreduced(const OpView& op) {
  const Sides sides(op, Operand::kMustBeSharded, Meshes::kEqual);
  const auto lists = dim_axes_of(sides, "axes");
  AxisList axes;
  for (size_t d = 0; d < lists.size(); ++d) {
    sides.verify_dim_axes(d, sides.without(d, lists[d]));
    axes.insert(axes.end(), lists[d].begin(), lists[d].end());
  }
  verify_unreduced(sides, axes);
}

// ---- the other fields ----------------------------------------------------------------------------------------------

constexpr OpDef global_collective(std::string_view name, CollectiveKind kind, VerifyFn verify, std::string_view format,
                                  std::string_view doc) {
  OpDef def = collective_op(name, kind, doc);
  def.infer = infer_identity;
  def.rule = rule_like_first_result;
  def.prepare = prepare_identity;
  def.traits.shares_memory = true;
  def.verify = verify;
  def.format = format;
  return def;
}

constexpr OpDef kGlobalCollectiveOps[] = {
    global_collective("sdy.all_gather", CollectiveKind::kAllGather, verify_all_gather,
                      "custom<axes_per_dim>($gathering_axes) operands `out_sharding=` sharding($out_sharding) "
                      "attr-dict `:` result-type",
                      "Gathers the shards of dims along axes (Shardy all_gather)."),
    global_collective("sdy.all_slice", CollectiveKind::kAllSlice, verify_all_slice,
                      "custom<axes_per_dim>($slicing_axes) operands `out_sharding=` sharding($out_sharding) attr-dict "
                      "`:` result-type",
                      "Keeps each device's part of dims along axes, without communication (Shardy all_slice)."),
    global_collective(
        "sdy.all_to_all", CollectiveKind::kAllToAll, verify_all_to_all,
        "custom<all_to_all_params>($params) operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type",
        "Moves axes from the end of one dim's sharding to the end of another's (Shardy all_to_all)."),
    global_collective("sdy.collective_permute", CollectiveKind::kCollectivePermute, verify_collective_permute,
                      "operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type",
                      "Replaces axes by others of the same total size (Shardy collective_permute)."),
    global_collective(
        "sdy.all_reduce", CollectiveKind::kAllReduce, verify_all_reduce,
        "custom<axes>($reduction_axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type",
        "Completes a pending reduction over axes (Shardy all_reduce)."),
    global_collective("sdy.reduce_scatter", CollectiveKind::kReduceScatter, verify_reduce_scatter,
                      "custom<axes_per_dim>($reduce_scatter_axes) operands `out_sharding=` sharding($out_sharding) "
                      "attr-dict `:` result-type",
                      "Completes a pending reduction over axes, each device keeping its part (Shardy reduce_scatter)."),
    global_collective(
        "sdy.replicated_to_unreduced", CollectiveKind::kToUnreduced, verify_replicated_to_unreduced,
        "custom<axes>($axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:` result-type",
        "Turns copies along axes into addends, all but one of them zeros (Shardy replicated_to_unreduced)."),
    global_collective("sdy.sharded_to_unreduced", CollectiveKind::kToUnreduced, verify_sharded_to_unreduced,
                      "custom<axes_per_dim>($axes) operands `out_sharding=` sharding($out_sharding) attr-dict `:` "
                      "result-type",
                      "Turns shards along axes into addends, zeros outside them (Shardy sharded_to_unreduced)."),
};

static_assert(all_complete(kGlobalCollectiveOps));

}  // namespace

std::span<const OpDef> shardy_collective_ops() { return kGlobalCollectiveOps; }

}  // namespace shardwise
