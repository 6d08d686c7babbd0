// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/local_collectives.h"

#include "shardwise/base/error.h"
#include "shardwise/base/size_error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// ---- reading attributes --------------------------------------------------------------------------------------------

// Reads the attributes of an op that exists (OpView), or of one that is being made (InferContext).
class CollectiveAttrs {
 public:
  explicit CollectiveAttrs(const auto& op)
      : attrs_(op.attrs()), op_(op.name()), mesh_(named_mesh(op.module(), op.attrs(), "mesh", op.name())) {}

  const MeshPtr& mesh() const { return mesh_; }

  AxisList axes(std::string_view name = "axes") const {
    const AxesAttr* axes = attrs_.find<AxesAttr>(name);
    if (axes == nullptr) fail<ShardingError>(op_, str("attribute '", name, "' must be a list of axes"), "none");
    return resolve(*mesh_, axes->axes);
  }

  std::vector<AxisList> dim_axes(std::string_view name) const {
    const AxesPerDimAttr* lists = attrs_.find<AxesPerDimAttr>(name);
    if (lists == nullptr)
      fail<ShardingError>(op_, str("attribute '", name, "' must be one list of axes per dim"), "none");
    return resolve(*mesh_, *lists);
  }

  std::vector<AllToAllMove> moves() const {
    const AttrArray* entries = attrs_.find<AttrArray>("moves");
    if (entries == nullptr) fail<ShardingError>(op_, "attribute 'moves' must be a list of moves", "none");
    std::vector<AllToAllMove> moves;
    for (const Attribute& entry : *entries) {
      std::optional<AllToAllMove> move = move_of(*mesh_, entry);
      if (!move) fail<ShardingError>(op_, "a move must have 'axes', 'from_dim' and 'to_dim'");
      moves.push_back(*std::move(move));
    }
    return moves;
  }

  Reducer reducer() const {
    const std::string* text = attrs_.find<std::string>("reducer");
    const auto reducer = text == nullptr ? std::nullopt : reducer_from_name(*text);
    if (!reducer || *reducer == Reducer::kNone) {
      fail<ShardingError>(op_, "attribute 'reducer' must be sum, prod, max, min, and or or",
                          text == nullptr ? "none" : *text);
    }
    return *reducer;
  }

  PermuteAttrs permute() const {
    PermuteAttrs permute;
    if (attrs_.find("shift") == nullptr) {
      permute.from = axes("from");
      permute.to = axes("to");
      return permute;
    }
    permute.axes = axes();
    permute.shift = attrs_.get_int("shift");
    permute.wrap = attrs_.get<bool>("wrap");
    if (attrs_.find("reducer") != nullptr) permute.reducer = reducer();
    return permute;
  }

 private:
  const Attrs& attrs_;
  std::string_view op_;
  MeshPtr mesh_;
};

// ---- infer ---------------------------------------------------------------------------------------------------------

void infer_axis_index(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const int64_t count = product(CollectiveAttrs(op).axes());
  if (count > int64_t{1} << 31) {
    fail<ShardingError>(op.name(), "a position along axes must fit into 31 bits", str(count, " devices along the axes"),
                        "use smaller axes");
  }
  // A scalar that differs between devices. All offsets of shards are computed from it, so no table of devices is needed.
  results.push_back(op.context().tensor(DType::kI32, {}));
}

// They travel as one message, whose elements have one size and are reduced alike.
void expect_one_message(const InferContext& op) {
  if (op.operand_count() == 0) op.fail_shape("takes at least one operand", "none");
  for (size_t i = 1; i < op.operand_count(); ++i) op.expect_same_dtype(0, i);
}

void infer_local_all_reduce(const InferContext& op, std::vector<TypeId>& results) {
  expect_one_message(op);
  const CollectiveAttrs attrs(op);
  attrs.axes();
  attrs.reducer();
  for (size_t i = 0; i < op.operand_count(); ++i) results.push_back(op.operand_type(i));
}

// Checks that `parts` divides dim d of the operand, and returns the size of a part.
int64_t split_dim(const InferContext& op, const Dims& shape, size_t d, int64_t parts) {
  if (shape[d] % parts != 0) {
    op.fail_shape(str("dim ", d, " must divide by ", parts, " devices"), op.operand_types_text(), "pad it first");
  }
  return shape[d] / parts;
}

// The size of a dim after `parts` shards of it are gathered.
int64_t gathered_dim(const InferContext& op, int64_t size, int64_t parts) {
  if (size > kMaxElements / parts) {
    fail<SizeError>(op.name(), "a gathered dim must have fewer than 2^56 elements",
                    str(size, " on each of ", parts, " devices"));
  }
  return size * parts;
}

void expect_one_list_per_dim(const InferContext& op, size_t lists) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (lists == op.operand(i).shape.size()) continue;
    op.fail_shape("takes one list of axes per dim", str(lists, " for ", op.operand_types_text()));
  }
}

void infer_local_all_gather(const InferContext& op, std::vector<TypeId>& results) {
  expect_one_message(op);
  const auto gather = CollectiveAttrs(op).dim_axes("gather");
  expect_one_list_per_dim(op, gather.size());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    Dims shape = op.operand(i).shape;
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = gathered_dim(op, shape[d], product(gather[d]));
    results.push_back(op.context().tensor(op.operand(i).dtype, shape));
  }
}

void infer_local_reduce_scatter(const InferContext& op, std::vector<TypeId>& results) {
  expect_one_message(op);
  const CollectiveAttrs attrs(op);
  attrs.axes();
  attrs.reducer();
  const auto scatter = attrs.dim_axes("scatter");
  expect_one_list_per_dim(op, scatter.size());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    Dims shape = op.operand(i).shape;
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = split_dim(op, shape, d, product(scatter[d]));
    results.push_back(op.context().tensor(op.operand(i).dtype, shape));
  }
}

void infer_local_all_to_all(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  Dims shape = op.operand(0).shape;
  const auto ndim = static_cast<int64_t>(shape.size());
  // All moves are one collective; each changes two sizes of the same shape.
  for (const AllToAllMove& move : CollectiveAttrs(op).moves()) {
    if (move.from_dim < 0 || move.from_dim >= ndim || move.to_dim < 0 || move.to_dim >= ndim ||
        move.from_dim == move.to_dim) {
      op.fail_shape("a move must name two different dims of the operand", str(move.from_dim, " and ", move.to_dim));
    }
    const auto to = static_cast<size_t>(move.to_dim);
    // The axes leave from_dim, which is gathered, and split to_dim.
    shape[to] = split_dim(op, shape, to, product(move.axes));
    int64_t& gathered = shape[static_cast<size_t>(move.from_dim)];
    gathered = gathered_dim(op, gathered, product(move.axes));
  }
  results.push_back(op.context().tensor(op.operand(0).dtype, shape));
}

void infer_collective_permute(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (op.attrs().find("shift") != nullptr) {
    op.attr<IntAttr>("shift");
    op.attr<bool>("wrap");
  }
  const PermuteAttrs permute = CollectiveAttrs(op).permute();
  // So that the place of a sender can be computed in 64 bits.
  constexpr int64_t kFarthest = int64_t{1} << 62;
  if (permute.shift < -kFarthest || permute.shift > kFarthest) {
    fail<ShardingError>(op.name(), "'shift' must lie from -2^62 to 2^62", str(permute.shift));
  }
  // A chain folds the parts of all devices in order, so it goes from neighbour to neighbour and has a first device.
  if (permute.reducer != Reducer::kNone && (permute.wrap || (permute.shift != 1 && permute.shift != -1))) {
    fail<ShardingError>(op.name(), "with a reducer, 'shift' must be 1 or -1, without 'wrap'", str(permute.shift));
  }
  // Two orders of the same number of devices: each device sends once and receives once.
  if (product(permute.from) != product(permute.to)) {
    op.fail_shape("'from' and 'to' must have the same product",
                  str(product(permute.from), " and ", product(permute.to)));
  }
  results.push_back(op.operand_type(0));
}

// ---- the other fields ----------------------------------------------------------------------------------------------

constexpr OpDef local_collective(std::string_view name, CollectiveKind kind, InferFn infer, std::string_view doc) {
  OpDef def = collective_op(name, kind, doc);
  def.infer = infer;
  def.rule = no_rule;
  def.runs = Runs::kCollective;
  return def;
}

constexpr OpDef kCollectiveOps[] = {
    local_collective("shardwise.axis_index", CollectiveKind::kAxisIndex, infer_axis_index,
                     "Row-major position of this device along mesh axes."),
    local_collective("shardwise.all_reduce", CollectiveKind::kAllReduce, infer_local_all_reduce,
                     "Reduction over the devices that differ along mesh axes only (StableHLO all_reduce)."),
    local_collective("shardwise.all_gather", CollectiveKind::kAllGather, infer_local_all_gather,
                     "Concatenation of the shards along mesh axes, several dims at once (StableHLO all_gather)."),
    local_collective("shardwise.reduce_scatter", CollectiveKind::kReduceScatter, infer_local_reduce_scatter,
                     "Reduction over mesh axes, each device keeping its part (StableHLO reduce_scatter)."),
    local_collective("shardwise.all_to_all", CollectiveKind::kAllToAll, infer_local_all_to_all,
                     "Exchange that moves mesh axes from one dim to another (StableHLO all_to_all)."),
    local_collective("shardwise.collective_permute", CollectiveKind::kCollectivePermute, infer_collective_permute,
                     "Permutation of devices: reordered digits, or a shift along axes (StableHLO collective_permute)."),
    local_collective("shardwise.exchange", CollectiveKind::kExchange, infer_exchange,
                     "Elements that each device reads at another place, from the devices that hold them, in one step."),
};

static_assert(all_complete(kCollectiveOps));

}  // namespace

std::span<const OpDef> local_collective_ops() { return kCollectiveOps; }

// Passes create collectives after batching.
void batch_collective(BatchContext& context) {
  check_internal(false, std::string(context.op().name()).append(" is created after batching"));
}

OpCost collective_cost(const OpView& op, const LocalTypes& types) {
  // The bytes that are written. Communication is priced by the kind of the collective, not here.
  OpCost cost = costs_nothing(op, types);
  for (size_t t = op.operand_count(); t < types.count(); ++t) cost.touched[t] = types.tensor(t).byte_quantity();
  return cost;
}

bool may_combine(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

std::string_view collective_cause(const OpView& op, size_t operand) {
  const Attribute* cause = op.attrs().find(kCauseAttr);
  if (cause == nullptr) return {};
  const auto* list = std::get_if<AttrArray>(cause);
  if (list != nullptr && operand < list->size()) cause = &(*list)[operand];
  const auto* text = std::get_if<std::string>(cause);
  return text == nullptr ? std::string_view() : *text;
}

MeshPtr collective_mesh(const OpView& op) { return CollectiveAttrs(op).mesh(); }
AxisList collective_axes(const OpView& op) { return CollectiveAttrs(op).axes(); }
std::vector<AxisList> collective_dim_axes(const OpView& op, std::string_view name) {
  return CollectiveAttrs(op).dim_axes(name);
}
std::vector<AllToAllMove> all_to_all_moves(const OpView& op) { return CollectiveAttrs(op).moves(); }
PermuteAttrs permute_attrs(const OpView& op) { return CollectiveAttrs(op).permute(); }
Reducer collective_reducer(const OpView& op) { return CollectiveAttrs(op).reducer(); }

PermuteAttrs completed(PermuteAttrs permute) {
  const AxisList missing = difference(permute.to, permute.from);
  append(permute.to, difference(permute.from, permute.to));
  append(permute.from, missing);
  return permute;
}

std::optional<int64_t> sender_of(const PermuteAttrs& permute, int64_t position) {
  return shifted(position, -permute.shift, product(permute.axes), permute.wrap);
}

std::optional<int64_t> shifted(int64_t position, int64_t by, int64_t count, bool wrap) {
  const int64_t result = position + by;
  // C++ rounds towards zero, so that -1 % 4 is -1; the place before the first one is the last one, 3.
  if (wrap) return (result % count + count) % count;
  return result < 0 || result >= count ? std::nullopt : std::optional(result);
}

}  // namespace shardwise
