// SPDX-License-Identifier: Apache-2.0
//
// StableHLO's collectives, over lists of devices. In a manual computation they exchange the shards of its axes, and
// become ops on whole values (device_ops.h). A text that contains them elsewhere is the program of one device, in which
// groups of one device are identities. Shardwise's own collectives name axes (collectives.h).
//
//   %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
//          : (tensor<4x8xf32>) -> tensor<4x16xf32>
//   ([i, j])->([i, k]) {i=4, j=8, k=16} need_replication={j, k}
#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_some_operands(const InferContext& op) {
  if (op.operand_count() == 0) op.fail_shape("must have operands");
}

// Groups of devices: one row per group, filled with -1 if it has fewer devices than others.
void expect_lists(const InferContext& op, std::string_view name) {
  // The devices in it are checked where the mesh is known (device_groups.h).
  const NdArray& groups = op.attr<DenseAttr>(name).data;
  if (groups.dtype() == DType::kI64 && groups.ndim() == 2) return;
  op.fail_shape(str(name, " must be a row of devices per group"), TensorType{groups.dtype(), groups.shape()}.text(),
                "give a tensor<GROUPSxSIZExi64>");
}

// By mesh axes, or as lists.
void expect_groups(const InferContext& op) {
  const auto* along = op.attrs().find<StructAttr>("replica_groups");
  if (along == nullptr) return expect_lists(op, "replica_groups");
  const auto is_axis = [](const Attribute& attribute) {
    const auto* axis = std::get_if<StructAttr>(&attribute.base());
    if (axis == nullptr) return false;
    const Attrs named(axis->fields);
    return named.find<std::string>("name") != nullptr;
  };
  const Attrs fields(along->fields);
  const auto* axes = fields.find<AttrArray>("axes");
  if (axes != nullptr && std::ranges::all_of(*axes, is_axis)) return;
  op.fail_shape("replica_groups must be lists of devices, or #stablehlo.replica_group_mesh_axes", along->name);
}

void expect_pairs(const InferContext& op) {
  expect_lists(op, "source_target_pairs");
  const NdArray& pairs = op.attr<DenseAttr>("source_target_pairs").data;
  if (pairs.shape()[1] != 2) op.fail_shape("source_target_pairs must have a source and a target in each row");
}

void expect_combiner(const InferContext& op) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  if (region.arguments.size() == 2 && region.results.size() == 1) return;
  op.fail_shape("the region must combine two scalars into one",
                str(region.arguments.size(), " arguments and ", region.results.size(), " results"));
}

void same_as_operands(const InferContext& op, std::vector<TypeId>& results) {
  for (size_t i = 0; i < op.operand_count(); ++i) results.push_back(result_or_declared(op, op.operand(i), i));
}

void infer_all_reduce(const InferContext& op, std::vector<TypeId>& results) {
  expect_some_operands(op);
  expect_groups(op);
  expect_combiner(op);
  same_as_operands(op, results);
}

void infer_in_groups(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_groups(op);
  same_as_operands(op, results);
}

void infer_permute(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_pairs(op);
  same_as_operands(op, results);
}

// Checks that result i has operand i's shape except along `dim`, where one size divides the other.
void expect_scaled(const InferContext& op, int64_t dim, bool grows, std::vector<TypeId>& results) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const TensorType& from = op.operand(i);
    const TensorType& to = op.declared_result(i);
    const auto d = static_cast<size_t>(dim);
    bool fits = dim >= 0 && dim < from.ndim() && from.ndim() == to.ndim() && from.dtype == to.dtype;
    for (size_t k = 0; fits && k < from.shape.size(); ++k) fits = k == d || from.shape[k] == to.shape[k];
    if (fits) {
      const int64_t small = grows ? from.shape[d] : to.shape[d], large = grows ? to.shape[d] : from.shape[d];
      // The size of a group is not compared with the quotient: its number of devices also depends on the
      // mode and on the number of partitions.
      fits = small == 0 ? large == 0 : large % small == 0;
    }
    if (!fits) {
      op.fail_shape(str("results must have the operands' types, with dim ", dim, grows ? " a multiple" : " a part"),
                    str(from.text(), " -> ", to.text()));
    }
    results.push_back(op.declared()[i]);
  }
}

void infer_all_gather(const InferContext& op, std::vector<TypeId>& results) {
  expect_some_operands(op);
  expect_groups(op);
  expect_scaled(op, op.attr<IntAttr>("all_gather_dim").value, true, results);
}

void infer_reduce_scatter(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_groups(op);
  expect_combiner(op);
  expect_scaled(op, op.attr<IntAttr>("scatter_dimension").value, false, results);
}

void infer_all_to_all(const InferContext& op, std::vector<TypeId>& results) {
  expect_some_operands(op);
  expect_groups(op);
  const int64_t count = op.attr<IntAttr>("split_count").value;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const TensorType& operand = op.operand(i);
    const auto split = static_cast<size_t>(expect_dim(op, "split_dimension", operand.ndim()));
    const auto concat = static_cast<size_t>(expect_dim(op, "concat_dimension", operand.ndim()));
    Dims shape = operand.shape;
    // The product is checked because split_count comes from the text.
    if (count < 1 || shape[split] % count != 0 || __builtin_mul_overflow(shape[concat], count, &shape[concat])) {
      op.fail_shape("split_count must divide the dim that is split",
                    str("split_count = ", count, " for ", operand.text()));
    }
    shape[split] /= count;
    results.push_back(result_or_declared(op, {operand.dtype, shape}, i));
  }
}

void infer_device_number(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  results.push_back(result_or_declared(op, {DType::kU32, {}}));
}

// ---- rules ---------------------------------------------------------------------------------------------------------

const Dims& shape_of(const OpView& op, size_t tensor) {
  return tensor < op.operand_count() ? op.operand_type(tensor).shape
                                     : op.result_type(tensor - op.operand_count()).shape;
}

// A dim whose sizes in operand and result differ: both are whole, with separate factors.
void map_apart(RuleBuilder& rule, const OpView& op, size_t dim) {
  // all_gather of 4 rows to 8: ([i])->([j]) {i=4, j=8} need_replication={i, j}. Shards of i are no shards of j.
  const FactorId from = rule.need_replication(op.operand_type(0).shape[dim]);
  const FactorId to = rule.need_replication(op.result_type().shape[dim]);
  for (size_t t = 0; t < rule.tensor_count(); ++t) rule.map(t, dim, t < op.operand_count() ? from : to);
}

ShardingRule rule_but_for(const OpView& op, std::initializer_list<size_t> apart) {
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (std::find(apart.begin(), apart.end(), dim) != apart.end()) continue;
    const FactorId factor = rule.factor(shape[dim]);
    for (size_t t = 0; t < rule.tensor_count(); ++t) rule.map(t, dim, factor);
  }
  for (size_t dim : apart) map_apart(rule, op, dim);
  return rule.build();
}

// Operands of one shape share their factors, so that a sharding of one reaches all of them.
bool have_one_shape(const OpView& op) {
  for (size_t t = 1; t < op.operand_count(); ++t) {
    if (shape_of(op, t) != shape_of(op, 0)) return false;
  }
  return true;
}

using DimList = std::initializer_list<size_t>;

// Operands of different shapes are independent, so each pair of operand and result has its own factors.
ShardingRule rule_of_each(const OpView& op, DimList apart) {
  RuleBuilder rule(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Dims& from = shape_of(op, i);
    const Dims& to = shape_of(op, op.operand_count() + i);
    for (size_t dim = 0; dim < from.size(); ++dim) {
      const bool whole = std::find(apart.begin(), apart.end(), dim) != apart.end();
      const FactorId factor = whole ? rule.need_replication(from[dim]) : rule.factor(from[dim]);
      rule.map(i, dim, factor);
      rule.map(rule.result_tensor(i), dim, whole ? rule.need_replication(to[dim]) : factor);
    }
  }
  return rule.build();
}

ShardingRule rule_of_operands(const OpView& op, DimList apart) {
  return have_one_shape(op) ? rule_but_for(op, apart) : rule_of_each(op, apart);
}

ShardingRule rule_all_reduce(const OpView& op) { return rule_of_operands(op, {}); }

ShardingRule rule_all_gather(const OpView& op) {
  return rule_of_operands(op, {static_cast<size_t>(op.attrs().get_int("all_gather_dim"))});
}

ShardingRule rule_reduce_scatter(const OpView& op) {
  return rule_of_operands(op, {static_cast<size_t>(op.attrs().get_int("scatter_dimension"))});
}

ShardingRule rule_all_to_all(const OpView& op) {
  const auto split = static_cast<size_t>(op.attrs().get_int("split_dimension"));
  const auto concat = static_cast<size_t>(op.attrs().get_int("concat_dimension"));
  // A dim that is split and concatenated again is one dim of the rule.
  return split == concat ? rule_of_operands(op, {split}) : rule_of_operands(op, {split, concat});
}

// Other devices wait for it, so it is kept even if its result is unused.
constexpr Traits kSynchronizing{.side_effect = true};

// In a vmap, the op works on all examples at once: the rows are one more dim of what each device has.
void batch_collective_of_others(BatchContext& context) {
  const OpView op = context.op();
  Attrs attrs = op.attrs();
  for (const std::string_view name : {"all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension"}) {
    if (op.attrs().find(name) != nullptr) attrs.set(name, IntAttr{op.attrs().get_int(name) + 1});
  }
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(context.batched(i));
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const TensorType& type = op.result_type(i);
    types.push_back(op.module().context().tensor(type.dtype, with_leading(context.size(), type.shape)));
  }
  std::vector<RegionId> regions;
  GraphCopy copy(op.module(), context.builder().module());
  const std::vector<RegionId> originals(op.regions().begin(), op.regions().end());
  for (const RegionId region : originals) regions.push_back(copy.region(region));
  const OpId made =
      context.builder().create_op(op.def(), operands, op.module().context().intern(attrs), types, regions);
  for (uint32_t i = 0; i < types.size(); ++i) context.set_result(i, context.builder().module().result(made, i));
}

constexpr OpDef device_op(std::string_view name, InferFn infer, RuleFn rule, std::string_view doc, Traits traits) {
  OpDef def = composed_op(name, infer, rule, decompose_on_one_device, {}, doc, traits);
  def.batch = batch_collective_of_others;
  return runnable_if(def, verify_on_one_device);
}

// Inside a manual computation or a vmap; around it, the ops on rows are differentiated.
constexpr OpDef with_vjp(OpDef def, VjpFn vjp) {
  def.vjp = vjp;
  return def;
}

constexpr OpDef number_op(std::string_view name, std::string_view doc) {
  return composed_op(name, infer_device_number, no_rule, decompose_on_one_device, "attr-dict `:` result-type", doc);
}

constexpr OpDef kDeviceCollectiveOps[] = {
    with_vjp(device_op("stablehlo.all_gather", infer_all_gather, rule_all_gather,
                       "Concatenates over groups of devices (StableHLO all_gather).", kSynchronizing),
             vjp_all_gather),
    with_vjp(with_combiner(device_op("stablehlo.all_reduce", infer_all_reduce, rule_all_reduce,
                                     "Reduces over groups of devices (StableHLO all_reduce).", kSynchronizing)),
             vjp_all_reduce),
    with_vjp(with_combiner(device_op("stablehlo.reduce_scatter", infer_reduce_scatter, rule_reduce_scatter,
                                     "Reduces over groups of devices and keeps a part (StableHLO reduce_scatter).",
                                     kSynchronizing)),
             vjp_reduce_scatter),
    with_vjp(device_op("stablehlo.all_to_all", infer_all_to_all, rule_all_to_all,
                       "Exchanges parts in groups of devices (StableHLO all_to_all).", kSynchronizing),
             vjp_all_to_all),
    with_vjp(device_op("stablehlo.collective_permute", infer_permute, rule_like_first_result,
                       "Sends from device to device (StableHLO collective_permute).", kSynchronizing),
             vjp_permute),
    device_op("stablehlo.collective_broadcast", infer_in_groups, rule_like_first_result,
              "Sends from the first device of each group (StableHLO collective_broadcast).", kSynchronizing),
    device_op("stablehlo.cross-replica-sum", infer_in_groups, rule_like_first_result,
              "Sums over groups of devices (StableHLO cross-replica-sum).", {}),
    number_op("stablehlo.partition_id", "The number of this partition (StableHLO partition_id)."),
    number_op("stablehlo.replica_id", "The number of this replica (StableHLO replica_id)."),
};
static_assert(all_complete(kDeviceCollectiveOps));

}  // namespace

std::span<const OpDef> stablehlo_collective_ops() { return kDeviceCollectiveOps; }

}  // namespace shardwise
