// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/window/select_and_scatter.h"

#include <array>
#include <limits>

#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/build/along_last_dim.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {
namespace {

void expect_region(const InferContext& op, size_t index, DType result) {
  const Region& region = op.module().region(op.regions()[index]);
  const TensorType scalar{op.operand(0).dtype, {}};
  bool fits = region.arguments.size() == 2 && region.results.size() == 1;
  for (ValueId argument : region.arguments) fits = fits && op.module().type(argument) == scalar;
  fits = fits && op.module().type(region.results[0]) == TensorType{result, {}};
  expect_dtype(op, fits,
               index == 0 ? "the first region must compare two scalars of the operand"
                          : "the second region must combine two scalars of the operand into one");
}

void infer_select_and_scatter(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.expect_regions(2);
  const DType dtype = op.operand(0).dtype;
  expect_dtype(op, op.operand(1).dtype == dtype, "operand and source must have the same dtype",
               "convert one of them first");
  expect_scalar(op, 2, dtype);
  expect_region(op, 0, DType::kBool);
  expect_region(op, 1, dtype);
  const Attrs window = op.attrs().find("window_dimensions") != nullptr
                           ? op.attrs()
                           : Attrs{{"window_dimensions", Dims(op.operand(0).shape.size(), 1)}};
  const Dims windows = infer_windows(op, window, op.operand(0).shape);
  if (windows != op.operand(1).shape) {
    op.fail_shape("the source must have one element per window",
                  str(op.operand(1).text(), " for windows ", dims_text(windows)), "correct its shape");
  }
  results.push_back(result_or_declared(op, op.operand(0)));
}

ShardingRule rule_select_and_scatter(const OpView& op) {
  RuleBuilder rule(op);
  const Window window = Window::of(op);
  const Dims& from = op.operand_type(0).shape;
  const Dims& source = op.operand_type(1).shape;
  const size_t result = rule.result_tensor(0);
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (window.is_trivial(dim)) {
      const FactorId factor = rule.factor(from[dim]);
      rule.map(0, dim, factor).map(1, dim, factor).map(result, dim, factor);
      continue;
    }
    // A window may select an element on another device: the source is whole along windowed dims, or exchanged.
    const FactorId of_source = rule.need_replication(source[dim]);
    rule.map(1, dim, of_source);
    const FactorId factor = rule.permutation(from[dim]);
    rule.map(0, dim, factor).map(result, dim, factor);
  }
  return rule.build();
}

// ---- decomposition: the place that each window selects, then a scatter ----------------------------------------------

// Rows of a value and its place in the windowed dims; a negative place is padding, which no window selects.
RegionId build_selecting_region(Builder& builder, const OpView& op, DType place) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  const TypeId value_type = builder.context().tensor(op.operand_type(0).dtype, {});
  const TypeId place_type = builder.context().tensor(place, {});
  std::array<ValueId, 4> rows;
  for (size_t k = 0; k < 4; ++k) rows[k] = module.add_argument(id, k % 2 == 0 ? value_type : place_type);
  const auto [a, i, b, j] = rows;
  Builder inner(module, id, builder.loc());
  const ValueId keeps = apply_region(inner, op.module(), op.regions()[0], std::array{a, b})[0];
  const ValueId none = build_scalar(inner, scalar_of(place, 0));
  // The left one stays if the region selects it, or if the right one is padding. Padding never wins over data.
  const ValueId is_first = inner.create("stablehlo.and", {keeps, build_compare(inner, "GE", i, none, "SIGNED")});
  const ValueId left = inner.create("stablehlo.or", {is_first, build_compare(inner, "LT", j, none, "SIGNED")});
  module.region(id).results = {inner.create("stablehlo.select", {left, a, b}),
                               inner.create("stablehlo.select", {left, i, j})};
  return id;
}

// The windowed dims last, as one.
ValueId build_rows(Builder& builder, ValueId value, const Dims& order, size_t kept) {
  const ValueId moved = build_transpose(builder, value, order);
  Dims shape = builder.module().type(moved).shape;
  const int64_t count = element_count(DimSpan(shape).subspan(kept));
  shape.resize(kept);
  shape.push_back(count);
  return build_reshape(builder, moved, shape);
}

// `places` with none where a dim's mask is false.
ValueId build_masked(Builder& builder, ValueId places, ValueId none, const std::vector<ValueId>& masks) {
  const Dims shape = builder.module().type(places).shape;
  for (size_t d = 0; d < masks.size(); ++d) {
    if (!masks[d]) continue;
    const ValueId inside = build_broadcast(builder, masks[d], shape, Dims{static_cast<int64_t>(d)});
    places = builder.create("stablehlo.select", {inside, places, build_broadcast(builder, none, shape, {})});
  }
  return places;
}

void decompose_select_and_scatter(DecomposeContext& context) {
  const OpView op = context.op();
  const std::vector<ValueId> all(static_cast<size_t>(op.operand_type(0).ndim()));
  context.set_result(0, build_select_and_scatter(context.builder(), op,
                                                 {.operand = context.operand(0),
                                                  .source = context.operand(1),
                                                  .init = context.operand(2),
                                                  .window = Window::of(op),
                                                  .rows_inside = all,
                                                  .windows_inside = all}));
}

// A comparison for each element of a window, and an addition for each window.
OpCost cost_select_and_scatter(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  const int64_t elements = saturated_sum(element_count(Window::of(op).sizes), 1);
  cost.vector = saturated_product(types.operand(1).element_quantity(), elements);
  return cost;
}

constexpr Method kSelectAndScatterMethods[] = {
    {kExchange, moved_factors_of_select_and_scatter, placements_of_select_and_scatter, partition_select_and_scatter}};

constexpr OpDef kSelectAndScatterOps[] = {{
    .name = "stablehlo.select_and_scatter",
    .infer = infer_select_and_scatter,
    .rule = rule_select_and_scatter,
    .runs = Runs::kOps,
    .decompose = decompose_select_and_scatter,
    .partition = partition_select_and_scatter,
    .methods = kSelectAndScatterMethods,
    .cost = cost_select_and_scatter,
    .regions = Regions::kCombiner,
    .doc = "Adds to the place that each window selects (StableHLO select_and_scatter).",
}};
static_assert(all_complete(kSelectAndScatterOps));

}  // namespace

ValueId build_select_and_scatter(Builder& builder, const OpView& op, const SelectedWindows& parts) {
  const Window windowed_dims = Window::of(op);
  const Dims shape = builder.module().type(parts.operand).shape;
  Dims order, windowed;
  for (size_t d = 0; d < shape.size(); ++d) {
    (windowed_dims.is_trivial(d) ? order : windowed).push_back(static_cast<int64_t>(d));
  }
  //   operand [4, 8], windows over dim 0     places [0, 1, 2, 3] down each column; rows of the scatter are [8, 4]
  const size_t kept = order.size();
  order.insert(order.end(), windowed.begin(), windowed.end());

  const Dims moved = sizes_at(shape, order);
  const int64_t count = element_count(DimSpan(moved).subspan(kept));
  const DType place = count <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
  const ValueId iota =
      build_reshape(builder, build_iota(builder, place, Dims{count}, 0), to_dims(DimSpan(moved).subspan(kept)));
  const ValueId none = build_scalar(builder, scalar_of(place, -1));
  const ValueId places =
      build_masked(builder, build_broadcast(builder, iota, shape, windowed), none, parts.rows_inside);
  // No window selects an init value, which has no place: any number will do, and vmap batches no scalar.
  const ValueId unused = build_scalar(builder, scalar_of(op.operand_type(0).dtype, 0));
  const std::array operands{parts.operand, places, unused, none};
  const RegionId selecting = build_selecting_region(builder, op, place);
  const OpId selected =
      builder.create_op("stablehlo.reduce_window", operands, window_attrs(parts.window), {}, {&selecting, 1});

  // The scatter drops what has place -1: windows that do not exist, or that lack any row to select.
  const ValueId chosen = build_masked(builder, builder.module().result(selected, 1), none, parts.windows_inside);
  const ValueId found = build_rows(builder, chosen, order, kept);
  const ValueId updates = build_rows(builder, parts.source, order, kept);
  Dims rows = to_dims(DimSpan(moved).first(kept));
  rows.push_back(count);
  const ValueId start = build_broadcast(builder, parts.init, rows, {});
  const RegionId combining = GraphCopy(op.module(), builder.module()).region(op.regions()[1]);
  // Overlapping windows may select one element, so places are not unique.
  const ValueId scattered = build_scatter_along_last(builder, start, found, updates, combining, false);
  return build_transpose(builder, build_reshape(builder, scattered, moved), inverse_permutation(order));
}

std::span<const OpDef> select_and_scatter_ops() { return kSelectAndScatterOps; }

}  // namespace shardwise
