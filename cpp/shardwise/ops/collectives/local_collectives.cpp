// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/local_collectives.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

// ---- reading attributes; used before an op exists (infer) and after ------------------------------------------------

// These take a module and attributes, not an op, because infer runs before the op exists.
MeshPtr mesh_of(const Module& module, const Attrs& attrs, std::string_view op) {
  const Symbol* symbol = attrs.find<Symbol>("mesh");
  if (symbol == nullptr) fail<MeshError>(op, "attribute 'mesh' must name a mesh", "none");
  MeshPtr mesh = module.find_mesh(symbol->name);
  if (mesh == nullptr) fail<MeshError>(op, "the mesh must be declared in the module", "@" + symbol->name);
  return mesh;
}

AxisList axes_of(const Mesh& mesh, const Attrs& attrs, std::string_view name, std::string_view op) {
  const AxesAttr* axes = attrs.find<AxesAttr>(name);
  if (axes == nullptr) {
    fail<ShardingError>(op, std::string("attribute '").append(name).append("' must be a list of axes"), "none");
  }
  return resolve(mesh, axes->axes);
}

std::vector<AxisList> dim_axes_of(const Mesh& mesh, const Attrs& attrs, std::string_view name, std::string_view op) {
  const AxesPerDimAttr* lists = attrs.find<AxesPerDimAttr>(name);
  if (lists == nullptr) {
    fail<ShardingError>(op, std::string("attribute '").append(name).append("' must be one list of axes per dim"),
                        "none");
  }
  return resolve(mesh, *lists);
}

std::vector<AllToAllMove> moves_of(const Mesh& mesh, const Attrs& attrs, std::string_view op) {
  const AttrArray* entries = attrs.find<AttrArray>("moves");
  if (entries == nullptr) fail<ShardingError>(op, "attribute 'moves' must be a list of moves", "none");
  std::vector<AllToAllMove> moves;
  for (const Attribute& entry : *entries) {
    std::optional<AllToAllMove> move = move_of(mesh, entry);
    if (!move) fail<ShardingError>(op, "a move must have 'axes', 'from_dim' and 'to_dim'");
    moves.push_back(*std::move(move));
  }
  return moves;
}

Reducer reducer_of(const Attrs& attrs, std::string_view op) {
  const std::string* text = attrs.find<std::string>("reducer");
  const auto reducer = text == nullptr ? std::nullopt : reducer_from_name(*text);
  if (!reducer || *reducer == Reducer::kNone) {
    fail<ShardingError>(op, "attribute 'reducer' must be sum, prod, max, min, and or or",
                        text == nullptr ? "none" : *text);
  }
  return *reducer;
}

// ---- infer ---------------------------------------------------------------------------------------------------------

void infer_axis_index(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  axes_of(*mesh, op.attrs(), "axes", op.name());
  // A scalar that differs between devices. All offsets of shards are computed from
  // it, so no table of devices is needed.
  results.push_back(op.context().tensor(DType::kI32, {}));
}

void infer_local_all_reduce(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  axes_of(*mesh, op.attrs(), "axes", op.name());
  reducer_of(op.attrs(), op.name());
  results.push_back(op.operand_type(0));
}

// Checks that `parts` divides dim d of the operand, and returns the size of a part.
int64_t split_dim(const InferContext& op, const Dims& shape, size_t d, int64_t parts) {
  if (shape[d] % parts != 0) {
    op.fail_shape("dim " + std::to_string(d) + " must divide by " + std::to_string(parts) + " devices",
                  op.operand_types_text(), "pad it first");
  }
  return shape[d] / parts;
}

// The size of a dim after `parts` shards of it are gathered.
int64_t gathered_dim(const InferContext& op, int64_t size, int64_t parts) {
  if (size > kMaxElements / parts) {
    op.fail_shape("a gathered dim must have fewer than 2^56 elements", str(size, " on each of ", parts, " devices"));
  }
  return size * parts;
}

void expect_one_list_per_dim(const InferContext& op, size_t lists) {
  if (lists == op.operand(0).shape.size()) return;
  op.fail_shape("takes one list of axes per dim", std::to_string(lists) + " for " + op.operand_types_text());
}

void infer_local_all_gather(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  const auto gather = dim_axes_of(*mesh, op.attrs(), "gather", op.name());
  expect_one_list_per_dim(op, gather.size());
  Dims shape = op.operand(0).shape;
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = gathered_dim(op, shape[d], product(gather[d]));
  results.push_back(op.context().tensor(op.operand(0).dtype, shape));
}

void infer_local_reduce_scatter(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  axes_of(*mesh, op.attrs(), "axes", op.name());
  reducer_of(op.attrs(), op.name());
  const auto scatter = dim_axes_of(*mesh, op.attrs(), "scatter", op.name());
  expect_one_list_per_dim(op, scatter.size());
  Dims shape = op.operand(0).shape;
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = split_dim(op, shape, d, product(scatter[d]));
  results.push_back(op.context().tensor(op.operand(0).dtype, shape));
}

void infer_local_all_to_all(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  Dims shape = op.operand(0).shape;
  const auto ndim = static_cast<int64_t>(shape.size());
  // All moves are one collective; each changes two sizes of the same shape.
  for (const AllToAllMove& move : moves_of(*mesh, op.attrs(), op.name())) {
    if (move.from_dim < 0 || move.from_dim >= ndim || move.to_dim < 0 || move.to_dim >= ndim ||
        move.from_dim == move.to_dim) {
      op.fail_shape("a move must name two different dims of the operand",
                    std::to_string(move.from_dim) + " and " + std::to_string(move.to_dim));
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
  const MeshPtr mesh = mesh_of(op.module(), op.attrs(), op.name());
  if (op.attrs().find("shift") != nullptr) {
    axes_of(*mesh, op.attrs(), "axes", op.name());
    const int64_t shift = op.attr<IntAttr>("shift").value;
    const bool wrap = op.attr<bool>("wrap");
    if (op.attrs().find("reducer") != nullptr) {
      reducer_of(op.attrs(), op.name());
      // A chain folds the parts of all devices in order, so it goes from neighbour to neighbour and has a first device.
      if (wrap || (shift != 1 && shift != -1)) {
        fail<ShardingError>(op.name(), "with a reducer, 'shift' must be 1 or -1, without 'wrap'",
                            std::to_string(shift));
      }
    }
  } else {
    const AxisList from = axes_of(*mesh, op.attrs(), "from", op.name());
    const AxisList to = axes_of(*mesh, op.attrs(), "to", op.name());
    // Two orders of the same number of devices: each device sends once and receives once.
    if (product(from) != product(to)) {
      op.fail_shape("'from' and 'to' must have the same product",
                    std::to_string(product(from)) + " and " + std::to_string(product(to)));
    }
  }
  results.push_back(op.operand_type(0));
}

// ---- the other fields ----------------------------------------------------------------------------------------------

// The executor runs it on a communicator.
std::optional<Kernel> no_kernel(const OpView&, const KernelTypes&) { return std::nullopt; }

constexpr OpDef local_collective(std::string_view name, CollectiveKind kind, InferFn infer, std::string_view doc) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = no_rule,
               .prepare = no_kernel,
               .cost = collective_cost,
               .vjp = not_differentiable,
               .batch = batch_collective,
               .no_vjp_reason = kAfterGradients,
               .doc = doc,
               .traits = {.collective = kind}};
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

OpCost collective_cost(const OpView& op) {
  // The bytes that are written. Communication is priced by the kind of the collective, not here.
  return {.bytes = static_cast<double>(op.result_count() == 0 ? 0 : op.result_type().nbytes())};
}

MeshPtr collective_mesh(const OpView& op) { return mesh_of(op.module(), op.attrs(), op.name()); }

AxisList collective_axes(const OpView& op) { return axes_of(*collective_mesh(op), op.attrs(), "axes", op.name()); }

std::vector<AxisList> collective_dim_axes(const OpView& op, std::string_view name) {
  return dim_axes_of(*collective_mesh(op), op.attrs(), name, op.name());
}

std::vector<AllToAllMove> all_to_all_moves(const OpView& op) {
  return moves_of(*collective_mesh(op), op.attrs(), op.name());
}

PermuteAttrs permute_attrs(const OpView& op) {
  const MeshPtr mesh = collective_mesh(op);
  PermuteAttrs permute;
  if (op.attrs().find("shift") != nullptr) {
    permute.axes = axes_of(*mesh, op.attrs(), "axes", op.name());
    permute.shift = op.attrs().get_int("shift");
    permute.wrap = op.attrs().get<bool>("wrap");
    if (op.attrs().find("reducer") != nullptr) permute.reducer = reducer_of(op.attrs(), op.name());
  } else {
    permute.from = axes_of(*mesh, op.attrs(), "from", op.name());
    permute.to = axes_of(*mesh, op.attrs(), "to", op.name());
  }
  return permute;
}

Reducer collective_reducer(const OpView& op) { return reducer_of(op.attrs(), op.name()); }

}  // namespace shardwise
