// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/index_checks.h"
#include "shardwise/ops/indexing/index_values.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_inputs(const InferContext& op, size_t inputs) {
  expect_dtype(op, is_integer(op.operand(inputs).dtype), "indices must be integers", "convert them first");
  for (size_t i = 0; i < inputs; ++i) {
    const TensorType &input = op.operand(i), &updates = op.operand(inputs + 1 + i);
    expect_dtype(op, input.dtype == updates.dtype, "an input and its updates must have the same dtype",
                 "convert the updates");
    expect_shape(op, input.shape == op.operand(0).shape && updates.shape == op.operand(inputs + 1).shape,
                 "all inputs must have one shape, and all updates", "broadcast them first");
  }
}

void expect_region(const InferContext& op, size_t inputs) {
  op.expect_regions(1);
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  if (region.arguments.size() != 2 * inputs || region.results.size() != inputs) {
    op.fail_shape(str("the region must take ", 2 * inputs, " arguments and return ", inputs),
                  str(region.arguments.size(), " arguments and ", region.results.size(), " results"),
                  "give it one scalar per input for each side");
  }
  for (size_t i = 0; i < region.arguments.size() + inputs; ++i) {
    const bool result = i >= region.arguments.size();
    const TensorType& type = module.type(result ? region.results[i - 2 * inputs] : region.arguments[i]);
    if (type != TensorType{op.operand(i % inputs).dtype, {}}) {
      op.fail_dtype("the region's arguments and results must be scalars of the inputs' dtypes",
                    str(type.text(), " for ", op.operand_types_text()), "correct its type");
    }
  }
  expect_elementwise_region(op);
}

void expect_updates(const InferContext& op, const Indexing& indexing) {
  const Dims window = indexing.window_dims(), batch = batch_sizes(indexing);
  const auto ndim = static_cast<int64_t>(indexing.out.size());
  expect_dims(op, "update_window_dims", indexing.dims.offset, ndim);
  const Dims batch_dims = indexing.batch_dims();
  bool fits = batch_dims.size() == batch.size() && indexing.dims.offset.size() == window.size();
  for (size_t i = 0; fits && i < window.size(); ++i) {
    fits =
        indexing.out[static_cast<size_t>(indexing.dims.offset[i])] <= indexing.operand[static_cast<size_t>(window[i])];
  }
  for (size_t i = 0; fits && i < batch.size(); ++i) fits = indexing.out[static_cast<size_t>(batch_dims[i])] == batch[i];
  if (fits) return;
  op.fail_shape("updates must have the indices' batch dims and windows that are not larger than the input",
                str("update_window_dims = ", indexing.dims.offset, " for ", op.operand_types_text()),
                "reshape the updates");
}

}  // namespace

void infer_scatter(const InferContext& op, std::vector<TypeId>& results) {
  const size_t inputs = op.operand_count() / 2;
  expect_shape(op, op.operand_count() % 2 != 0, "operands must be one or more inputs, the indices, and as many updates",
               "give one tensor of updates per input");
  expect_shape(op, inputs > 0, "takes inputs, indices and updates");
  op.attr<StructAttr>("scatter_dimension_numbers");
  expect_inputs(op, inputs);
  const Indexing indexing{
      scatter_dims(op.attrs()), op.operand(0).shape, op.operand(inputs).shape, op.operand(inputs + 1).shape, {}};
  expect_indexing(op, indexing, kScatterNames);
  expect_updates(op, indexing);
  expect_region(op, inputs);
  for (size_t i = 0; i < inputs; ++i) results.push_back(result_or_declared(op, op.operand(i), i));
}

// ---- rule ----------------------------------------------------------------------------------------------------------

namespace {

// The reducer that combines scatters of parts of the updates.
std::optional<Reducer> partial_reducer(const OpView& op) {
  const Reducer reducer = scatter_combiner(op).reducer;
  // float8_e8m0fnu has no zero, which a device without a part of a sum would hold.
  const bool has_neutral = reducer != Reducer::kSum || op.operand_type(0).dtype != DType::kF8E8M0FNU;
  return reducer == Reducer::kNone || !has_neutral ? std::nullopt : std::optional(reducer);
}

}  // namespace

// A window as large as its dim is clipped if its start is not 0, so a dim with an index component must be whole.
ShardingRule rule_scatter(const OpView& op) {
  RuleBuilder rule(op);
  const size_t inputs = op.result_count();
  const auto map_inputs = [&](int64_t dim, FactorId factor) {
    const auto d = static_cast<size_t>(dim);
    for (size_t i = 0; i < inputs; ++i) rule.map(i, d, factor).map(rule.result_tensor(i), d, factor);
  };
  const auto map_updates = [&](size_t dim, FactorId factor) {
    for (size_t i = 0; i < inputs; ++i) rule.map(inputs + 1 + i, dim, factor);
  };
  const Indexing indexing = scatter_indexing(op);
  const IndexingDims& dims = indexing.dims;
  const std::optional<Reducer> reducer = partial_reducer(op);
  const Dims window = indexing.window_dims(), indices_dims = indexing.indices_dims();
  size_t window_dim = 0, batch_dim = 0;
  for (size_t out_dim = 0; out_dim < indexing.out.size(); ++out_dim) {
    const int64_t size = indexing.out[out_dim];
    if (contains_dim(dims.offset, static_cast<int64_t>(out_dim))) {
      const int64_t dim = window[window_dim++];
      const int64_t whole = indexing.operand[static_cast<size_t>(dim)];
      if (size == whole) {
        const bool may_be_cut = size > 1 && indexing.component(dim);
        const FactorId factor = may_be_cut ? rule.need_replication(size) : rule.factor(size);
        map_inputs(dim, factor);
        map_updates(out_dim, factor);
      } else {
        // A window of a part of the dim begins anywhere in it: neither the input nor the window can be cut into shards.
        map_inputs(dim, rule.need_replication(whole));
        map_updates(out_dim, rule.need_replication(size));
      }
      continue;
    }
    const int64_t indices_dim = indices_dims[batch_dim++];
    const std::optional<size_t> paired = indexing.paired(indices_dim);
    // Each device scatters its own updates, and the results combine by the reducer. Without a reducer, order matters.
    const FactorId factor = paired    ? rule.factor(size)
                            : reducer ? rule.reduction(size, *reducer)
                                      : rule.need_replication(size);
    if (paired) map_inputs(static_cast<int64_t>(*paired), factor);
    rule.map(inputs, static_cast<size_t>(indices_dim), factor);
    map_updates(out_dim, factor);
  }
  for (const int64_t dim : dims.collapsed) {
    // The updates lack this dim: each device keeps the updates of its own rows (local_indices).
    map_inputs(dim, rule.factor(indexing.operand[static_cast<size_t>(dim)]));
  }
  map_index_vector(rule, inputs, indexing);
  return rule.build();
}

std::vector<FactorId> scattered_factors(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  for (const int64_t dim : scatter_dims(op.attrs()).collapsed) {
    factors.push_back(rule.dim(0, static_cast<size_t>(dim))[0]);
  }
  return factors;
}

std::vector<FactorId> factors_of_written_windows(const OpView& op, const ShardingRule& rule) {
  const Indexing indexing = scatter_indexing(op);
  std::vector<FactorId> factors;
  for (const int64_t dim : indexing.window_dims()) {
    const FactorId factor = rule.dim(0, static_cast<size_t>(dim))[0];
    if (rule.factors()[factor].kind == FactorKind::kNeedReplication) factors.push_back(factor);
  }
  return factors;
}

void placements_of_written_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                   std::vector<OpPlacement>& found) {
  OpPlacement placement = placement_by_rule(rule, axes);
  const std::vector<FactorId> windows = factors_of_written_windows(op, rule);
  for (size_t i = op.result_count() + 1; i < op.operand_count(); ++i) {
    for (size_t dim = 0; dim < rule.ndim(i); ++dim) {
      if (std::ranges::find(windows, rule.dim(i, dim)[0]) != windows.end()) placement.tensors[i][dim].clear();
    }
  }
  found.push_back(std::move(placement));
}

// ---- partition -----------------------------------------------------------------------------------------------------

namespace {

// The updates, with neutral elements in the padding of uneven batch dims.
ValueId padded_updates(PartitionContext& context, size_t operand, std::optional<Reducer> reducer) {
  ValueId updates = context.operand(operand);
  const ShardingRule& rule = context.rule();
  for (size_t f = 0; reducer && f < rule.factors().size(); ++f) {
    if (rule.factors()[f].kind != FactorKind::kReduction) continue;
    // Indices in the padding may point to any row, so what they add must not count.
    const Scalar neutral = exact_neutral(*reducer, context.op().operand_type(operand).dtype);
    updates = context.masked_operand(operand, static_cast<FactorId>(f), neutral);
  }
  return updates;
}

// The signed dtype in which subtracting an offset cannot wrap an out-of-bounds index into the valid range.
DType local_index_dtype(DType indices, DType offset) {
  const bool wide = item_size(indices) > 4 || indices == DType::kU32 || offset == DType::kI64;
  return wide ? DType::kI64 : DType::kI32;
}

// Appends an index component for an operand dim without one. Its value is the same for all index vectors.
ValueId with_component(Builder& builder, ValueId indices, IndexingDims& dims, int64_t dim, ValueId start) {
  const TensorType type = builder.module().type(indices);
  if (dims.index_vector_dim == type.ndim()) {
    Dims shape = type.shape;
    shape.push_back(1);
    indices = build_reshape(builder, indices, shape);
  }
  Dims column = builder.module().type(indices).shape;
  column[static_cast<size_t>(dims.index_vector_dim)] = 1;
  dims.index_map.push_back(dim);
  return build_concatenate(builder, {indices, build_broadcast(builder, start, column, {})}, dims.index_vector_dim);
}

// Whether devices share the windows along this dim: each has some of the rows that an index may write.
bool shares_windows(const PartitionContext& context, size_t dim) {
  const FactorKind kind = context.rule().factors()[context.rule().dim(0, dim)[0]].kind;
  return kind == FactorKind::kNeedReplication && !context.operand_layout(0).axes(dim).empty();
}

// Indices relative to this device's rows; scatter drops the others. May extend the index vectors.
ValueId local_indices(PartitionContext& context, const Indexing& indexing, IndexingDims& dims) {
  const size_t inputs = context.op().result_count();
  Builder& builder = context.builder();
  ValueId indices = context.operand(inputs);
  const DType own = builder.module().type(indices).dtype;
  std::vector<std::pair<int64_t, ValueId>> offsets;  // of the sharded dims
  DType dtype = own;
  for (size_t d = 0; d < indexing.operand.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    const DimLayout layout = context.operand_layout(0).dim(d);
    const bool is_row = contains_dim(dims.collapsed, dim) && !layout.axes.empty();
    if (!is_row && !shares_windows(context, d)) continue;
    const ValueId offset = context.shard_offset(layout);
    offsets.emplace_back(dim, offset);
    dtype = local_index_dtype(dtype, builder.module().type(offset).dtype);
  }
  if (offsets.empty()) return indices;
  indices = build_convert(builder, indices, dtype);
  const ValueId zero = build_scalar(builder, scalar_of(dtype, 0));
  std::vector<ValueId> by_component(static_cast<size_t>(indexing.components()), zero);
  bool shifts = false;
  for (auto& [dim, offset] : offsets) {
    offset = build_convert(builder, offset, dtype);
    const std::optional<size_t> component = indexing.component(dim);
    if (component) by_component[*component] = offset;
    shifts = shifts || component;
  }
  if (shifts) indices = build_shifted(builder, indices, dims, by_component);
  for (const auto& [dim, offset] : offsets) {
    // A dim without a component is written at row 0, which is row -offset of this shard: the first one has it.
    if (indexing.component(dim)) continue;
    const ValueId start = builder.create("stablehlo.subtract", {zero, offset});
    indices = with_component(builder, indices, dims, dim, start);
  }
  return indices;
}

// The shard of an input, with room for windows that are larger. What is written there belongs to other devices.
ValueId with_room(PartitionContext& context, ValueId input, const Indexing& indexing) {
  Builder& builder = context.builder();
  const TensorType type = builder.module().type(input);
  Dims none(type.shape.size(), 0), room = none;
  bool is_shared = false;
  for (size_t d = 0; d < room.size(); ++d) {
    if (!shares_windows(context, d)) continue;
    is_shared = true;
    room[d] = std::max<int64_t>(indexing.slice[d] - type.shape[d], 0);
  }
  // Also if there is room already, so that the program is the same text for every number of devices.
  if (!is_shared) return input;
  return create_pad(builder, input, build_scalar(builder, scalar_of(type.dtype, 0)), none, room);
}

// The scatter of one device; the indices suit `dims`.
void set_local_scatter(PartitionContext& context, const std::vector<ValueId>& operands, const IndexingDims& dims) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  Attrs attrs = op.attrs();
  attrs.set("scatter_dimension_numbers", scatter_attribute(dims));
  attrs.erase("indices_are_sorted");  // the padding of the indices may contain any values
  attrs.erase("unique_indices");
  attrs.erase(kMethodAttr);
  const OpId made = create_again(builder, op, operands, builder.context().intern(std::move(attrs)));
  for (size_t i = 0; i < op.result_count(); ++i) {
    const Dims shape = context.result_layout(i).local_shape();
    ValueId result = builder.module().result(made, static_cast<uint32_t>(i));
    bool is_shared = false;
    for (size_t d = 0; d < shape.size(); ++d) is_shared = is_shared || shares_windows(context, d);
    if (is_shared) result = create_slice(builder, result, Dims(shape.size(), 0), shape);
    context.set_result(i, result, result_padding(context.result_layout(i)));
  }
}

}  // namespace

void partition_scatter(PartitionContext& context) {
  const size_t inputs = context.op().result_count();
  const Indexing indexing = scatter_indexing(context.op());
  const std::optional<Reducer> reducer = partial_reducer(context.op());
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs; ++i) {
    const AxisList& unreduced = context.result_layout(i).unreduced();
    // The input counts once: a device that added it to its own updates would add it again.
    const ValueId input = reducer ? counted_once(context, i, unreduced, *reducer) : context.operand(i);
    operands.push_back(with_room(context, input, indexing));
  }
  IndexingDims dims = indexing.dims;
  operands.push_back(local_indices(context, indexing, dims));
  for (size_t i = 0; i < inputs; ++i) operands.push_back(padded_updates(context, inputs + 1 + i, reducer));
  set_local_scatter(context, operands, dims);
}

// ---- shards of the input as addends ---------------------------------------------------------------------------------

namespace {

// The factor of the updates that takes the axes of the input: the one that has them, or the largest without axes.
std::optional<FactorId> factor_of_updates(const ShardingRule& rule, std::span<const AxisList> axes,
                                          const AxisList& of_input) {
  std::optional<FactorId> found;
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = rule.factors()[f];
    if (factor.kind != FactorKind::kReduction) continue;
    if (axes[f] == of_input) return static_cast<FactorId>(f);
    if (axes[f].empty() && (!found || factor.size > rule.factors()[*found].size)) found = static_cast<FactorId>(f);
  }
  return found;
}

// The shard at its place in the whole input.
ValueId build_spread(PartitionContext& context, size_t operand, Reducer reducer) {
  Builder& builder = context.builder();
  const LayoutView layout = context.operand_layout(operand);
  const Dims size = context.result_layout(operand).local_shape();
  Dims padded = size;
  std::vector<ValueId> starts;
  for (size_t d = 0; d < size.size(); ++d) {
    const bool is_spread = layout.axes(d) != context.result_layout(operand).axes(d);
    // Shards of 3 rows of 8 end at 9: the last one would be clamped to start at 5 in 8 rows. The slice drops row 8.
    if (is_spread) padded[d] = layout.block(d) * layout.dim(d).shards;
    starts.push_back(is_spread ? build_convert(builder, context.shard_offset(layout.dim(d)), DType::kI64)
                               : build_scalar(builder, scalar_of(DType::kI64, 0)));
  }
  const DType dtype = context.op().operand_type(operand).dtype;
  const ValueId neutral = build_splat(builder, padded, exact_neutral(reducer, dtype));
  const ValueId whole = build_dynamic_update_slice(builder, neutral, context.operand(operand), starts);
  return build_slice(builder, whole, Dims(size.size(), 0), size);
}

}  // namespace

void placements_of_added_shards(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                std::vector<OpPlacement>& found) {
  const std::optional<Reducer> reducer = partial_reducer(op);
  std::optional<FactorId> scattered;
  for (const FactorId id : scattered_factors(op, rule)) {
    if (axes[id].empty()) continue;
    // Two dims of the input would need two dims of the updates that take their axes.
    if (scattered) return;
    scattered = id;
  }
  if (!reducer || !scattered) return;
  const std::optional<FactorId> updates = factor_of_updates(rule, axes, axes[*scattered]);
  if (!updates) return;
  std::vector<AxisList> moved(axes.begin(), axes.end());
  // The axes go over to the updates; the input keeps them in its own dim, where its shards are.
  moved[*updates] = std::exchange(moved[*scattered], {});
  OpPlacement placement = placement_by_rule(rule, moved);
  // Over other axes the input is whole, and would be added once for each device.
  if (placement.unreduced != sort_and_merge(moved[*updates])) return;
  for (size_t i = 0; i < op.result_count(); ++i) {
    for (size_t d = 0; d < rule.ndim(i); ++d) {
      if (rule.dim(i, d)[0] == *scattered) placement.tensors[i][d] = moved[*updates];
    }
  }
  found.push_back(std::move(placement));
}

void partition_added_shards(PartitionContext& context) {
  const size_t inputs = context.op().result_count();
  const std::optional<Reducer> reducer = partial_reducer(context.op());
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs; ++i) operands.push_back(build_spread(context, i, *reducer));
  operands.push_back(context.operand(inputs));
  for (size_t i = 0; i < inputs; ++i) operands.push_back(padded_updates(context, inputs + 1 + i, reducer));
  set_local_scatter(context, operands, scatter_dims(context.op().attrs()));
}

// ---- batch ---------------------------------------------------------------------------------------------------------

void batch_scatter(BatchContext& context) {
  const OpView op = context.op();
  const size_t inputs = op.result_count();
  Builder& builder = context.builder();
  const bool indices = context.is_batched(inputs);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs; ++i) operands.push_back(context.batched(i));
  operands.push_back(context.operand(inputs));
  for (size_t i = 0; i < inputs; ++i) operands.push_back(context.batched(inputs + 1 + i));
  Attrs attrs = op.attrs();
  attrs.set("scatter_dimension_numbers", scatter_attribute(with_leading_batch(scatter_dims(attrs), true, indices)));
  if (indices) attrs.erase("indices_are_sorted");
  set_results(context, create_again(builder, op, operands, builder.context().intern(std::move(attrs))));
}

}  // namespace shardwise
