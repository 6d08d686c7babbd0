// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/varying.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

constexpr std::string_view kAllReduce = "stablehlo.all_reduce";

// ---- ops -----------------------------------------------------------------------------------------------------------

void infer_match(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  if (op.operand(0).shape != op.operand(1).shape) {
    op.fail_shape("a cotangent must have the shape of its value", op.operand_types_text());
  }
  results.push_back(op.operand_type(0));
}

void infer_vary(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  results.push_back(op.operand_type(0));
}

void decompose_to_first(DecomposeContext& context) { context.set_result(0, context.operand(0)); }

void batch_same_op(BatchContext& context) {
  const OpView op = context.op();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(context.batched(i));
  const AttrsId attrs = op.module().op(op.id()).attrs;
  Builder& builder = context.builder();
  context.set_result(0, builder.module().result(builder.create_op(op.def(), operands, attrs)));
}

// Each part of a cotangent adds to the sum, so that the cotangent of the sum goes to each part.
void vjp_match(VjpContext& context) {
  if (context.needs(0)) context.set(0, context.cotangent());
}

void vjp_vary(VjpContext& context);

constexpr OpDef varying_op(std::string_view name, InferFn infer, DecomposeFn decompose, VjpFn vjp,
                           std::string_view doc) {
  OpDef def = composed_op(name, infer, rule_like_first_result, decompose, {}, doc);
  def.vjp = vjp;
  def.batch = batch_same_op;
  return def;
}

constexpr OpDef kVaryingOps[] = {
    varying_op("shardwise.match_varying", infer_match, decompose_to_first, vjp_match,
               "A cotangent, summed over the devices of a manual computation along which its value is equal."),
    varying_op("shardwise.vary", infer_vary, decompose_on_one_device, vjp_vary,
               "A value that is equal along manual axes, and counts as different along them (JAX pvary)."),
};
static_assert(all_complete(kVaryingOps));

// ---- derivatives ---------------------------------------------------------------------------------------------------

Attrs without(Attrs attrs, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) attrs.erase(name);
  return attrs;
}

ValueId create_sum(Builder& builder, ValueId value, const Attrs& attrs, TypeId type,
                   std::string_view name = kAllReduce) {
  Module& module = builder.module();
  const std::array regions{build_reducer_region(builder, Reducer::kSum, module.type(value).dtype)};
  return module.result(builder.create_op(name, std::array{value}, attrs, std::array{type}, regions));
}

void expect_sum(const OpView& op) {
  if (region_reducer(op.module(), op.regions()[0]) == Reducer::kSum) return;
  fail<UnsupportedError>(op.name(), "only sums over devices have a derivative inside a manual region or a vmap",
                         "another reduction", "differentiate around the region, or use psum, pmean or all_gather");
}

bool is_over_axes(const OpView& op) {
  return op.attrs().find<StructAttr>("replica_groups") != nullptr && op.attrs().find(kVaryingAttr) == nullptr;
}

// Calls `back(i, cotangent)` for each operand whose cotangent is wanted.
template <class Back>
void pull_back_each(VjpContext& context, Back&& back) {
  for (size_t i = 0; i < context.op().operand_count(); ++i) {
    if (context.needs(i)) context.set(i, back(i, context.cotangent(i)));
  }
}

TypeId operand_type(const VjpContext& context, size_t i) {
  return context.op().module().value(context.operand(i)).type;
}

void vjp_vary(VjpContext& context) {
  const Attrs attrs = context.op().attrs();
  pull_back_each(context, [&](size_t i, ValueId cotangent) {
    return create_sum(context.builder(), cotangent, attrs, operand_type(context, i));
  });
}

thread_local bool matches_varying = false;

}  // namespace

std::span<const OpDef> varying_ops() { return kVaryingOps; }

ValueId create_match_varying(Builder& builder, ValueId cotangent, ValueId value) {
  return builder.create(kVaryingOps[0], {cotangent, value});
}

bool is_match_varying(const OpDef& def) { return &def == &kVaryingOps[0]; }

ValueId create_sum_over(Builder& builder, const Mesh& mesh, ValueId value, AxisSpan axes) {
  AttrArray refs;
  for (const AxisRef& ref : axes) {
    std::vector<NamedAttribute> fields{{"name", mesh.axis_name(ref.axis)}};
    if (!is_full(mesh, ref)) {
      const std::vector<NamedAttribute> part{{"pre_size", IntAttr{ref.pre}}, {"size", IntAttr{ref.size}}};
      fields.emplace_back("sub_axis_info", StructAttr{"stablehlo.sub_axis_info", part});
    }
    refs.emplace_back(StructAttr{"stablehlo.axis_ref", fields});
  }
  const std::vector<NamedAttribute> fields{{"mesh", Symbol{mesh.name()}}, {"axes", std::move(refs)}};
  const Attrs attrs{{"replica_groups", StructAttr{"stablehlo.replica_group_mesh_axes", fields}}};
  return create_sum(builder, value, attrs, builder.module().value(value).type);
}

void vjp_all_reduce(VjpContext& context) {
  const OpView op = context.op();
  expect_sum(op);
  const Attrs attrs = op.attrs();
  pull_back_each(context, [&](size_t i, ValueId cotangent) {
    // Its result is equal along the axes; that of lists of devices is not.
    if (is_over_axes(op)) return context.builder().create("shardwise.vary", {cotangent}, attrs);
    return create_sum(context.builder(), cotangent, attrs, operand_type(context, i));
  });
}

void vjp_all_gather(VjpContext& context) {
  Attrs attrs = without(context.op().attrs(), {"all_gather_dim"});
  attrs.set("scatter_dimension", IntAttr{context.op().attrs().get_int("all_gather_dim")});
  pull_back_each(context, [&](size_t i, ValueId cotangent) {
    return create_sum(context.builder(), cotangent, attrs, operand_type(context, i), "stablehlo.reduce_scatter");
  });
}

void vjp_reduce_scatter(VjpContext& context) {
  expect_sum(context.op());
  Attrs attrs = without(context.op().attrs(), {"scatter_dimension"});
  attrs.set("all_gather_dim", IntAttr{context.op().attrs().get_int("scatter_dimension")});
  pull_back_each(context, [&](size_t i, ValueId cotangent) {
    Builder& builder = context.builder();
    const std::array types{operand_type(context, i)};
    return builder.module().result(builder.create_op("stablehlo.all_gather", std::array{cotangent}, attrs, types));
  });
}

void vjp_all_to_all(VjpContext& context) {
  Attrs attrs = context.op().attrs();
  const int64_t split = attrs.get_int("split_dimension"), concat = attrs.get_int("concat_dimension");
  attrs.set("split_dimension", IntAttr{concat});
  attrs.set("concat_dimension", IntAttr{split});
  pull_back_each(context, [&](size_t, ValueId cotangent) {
    return context.builder().create("stablehlo.all_to_all", {cotangent}, attrs);
  });
}

// Each device sends back to the one that it received from.
void vjp_permute(VjpContext& context) {
  constexpr std::string_view kPairs = "source_target_pairs";
  Attrs attrs = context.op().attrs();
  const NdArray& pairs = attrs.get<DenseAttr>(kPairs).data;
  NdArray swapped = NdArray::empty(DType::kI64, pairs.shape());
  for (int64_t i = 0; i < pairs.size(); ++i) {
    store(pairs.scalar_at(i ^ 1), swapped.data() + i * item_size(DType::kI64));
  }
  attrs.set(kPairs, DenseAttr{std::move(swapped)});
  pull_back_each(context, [&](size_t, ValueId cotangent) {
    return context.builder().create("stablehlo.collective_permute", {cotangent}, attrs);
  });
}

MatchesVarying::MatchesVarying(bool is_on) : outer_(std::exchange(matches_varying, is_on)) {}
MatchesVarying::~MatchesVarying() { matches_varying = outer_; }
bool MatchesVarying::is_on() { return matches_varying; }

}  // namespace shardwise
