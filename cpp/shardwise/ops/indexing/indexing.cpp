// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/indexing.h"

#include <algorithm>
#include <array>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/partitioning/owned_rows.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/region_tiles.h"

namespace shardwise {
namespace {

// StableHLO prints no empty lists and no zero, so a missing field is one of these.
IndexingDims read(const StructAttr& numbers, const IndexingNames& names) {
  const Attrs fields(numbers.fields);
  const IntAttr* vector_dim = fields.find<IntAttr>("index_vector_dim");
  return {list_field(numbers, names.offset),           list_field(numbers, names.collapsed),
          list_field(numbers, names.operand_batching), list_field(numbers, names.indices_batching),
          list_field(numbers, names.index_map),        vector_dim == nullptr ? 0 : vector_dim->value};
}

StructAttr write(const IndexingDims& dims, const IndexingNames& names) {
  StructAttr numbers{std::string(names.attribute), {}};
  add_list_field(numbers, names.offset, dims.offset);
  add_list_field(numbers, names.collapsed, dims.collapsed);
  add_list_field(numbers, names.operand_batching, dims.operand_batching);
  add_list_field(numbers, names.indices_batching, dims.indices_batching);
  add_list_field(numbers, names.index_map, dims.index_map);
  if (dims.index_vector_dim != 0) numbers.fields.emplace_back("index_vector_dim", IntAttr{dims.index_vector_dim});
  return numbers;
}

// What it takes of the operand, not all of it.
OpCost cost_gather(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  cost.touched[0] = std::min(cost.touched[0], cost.touched[2]);
  return cost;
}

// An operation for each element of the updates, in place: inputs are read where the updates are written. Updates that
// only replace elements read none.
OpCost cost_scatter(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  cost.vector = 0;
  const size_t inputs = op.result_count();
  const bool replaces = scatter_combiner(op).replaces;
  for (size_t i = 0; i < inputs; ++i) {
    const TensorType& updates = types.operand(inputs + 1 + i);
    const int64_t written = std::min(types.result(i).byte_quantity(), updates.byte_quantity());
    cost.touched[i] = replaces ? 0 : written;
    cost.touched[2 * inputs + 1 + i] = written;
    if (!replaces) cost.vector = saturated_sum(cost.vector, updates.element_quantity());
  }
  return cost;
}

constexpr std::string_view kOwnedWindows = "owned windows";  // of which a device has a part

constexpr Method kGatherMethods[] = {
    {kOwnedRows, gathered_factors, placements_by_rule, partition_gather},
    {kOwnedWindows, factors_of_read_windows, placements_of_read_windows, partition_gather}};
constexpr Method kScatterMethods[] = {
    {kOwnedRows, scattered_factors, placements_by_rule, partition_scatter},
    {kOwnedWindows, factors_of_written_windows, placements_of_written_windows, partition_scatter},
    {"shards as addends", scattered_factors, placements_of_added_shards, partition_added_shards}};

constexpr OpDef kIndexingOps[] = {
    moving({.name = "stablehlo.gather",
            .infer = infer_gather,
            .rule = rule_gather,
            .fold = fold_gather,
            .partition = partition_gather,
            .methods = kGatherMethods,
            .prepare = prepare_gather,
            .cost = cost_gather,
            .vjp = vjp_gather,
            .batch = batch_gather,
            .doc = "Slices at computed places, which are clamped (StableHLO gather)."}),
    {.name = "stablehlo.scatter",
     .infer = infer_scatter,
     .rule = rule_scatter,
     .fold = fold_scatter,
     .partition = partition_scatter,
     .methods = kScatterMethods,
     .prepare = prepare_scatter,
     .cost = cost_scatter,
     .vjp = vjp_scatter,
     .batch = batch_scatter,
     .linear = {Linear::kJoint, kAllReducers},
     .regions = Regions::kCombiner,
     .joint = 0b101,
     .addends = Addends::kWideOperands,
     .verify_runnable = verify_region_tiles,
     .doc = "Combines updates into an array at computed places, in order; what lies outside is dropped (StableHLO "
            "scatter).",
     .traits = {.shares_memory = true}},
};
static_assert(all_complete(kIndexingOps));

RegionId replacing_region(Builder& builder, DType dtype) {
  Module& module = builder.module();
  const RegionId region = module.add_region();
  const TypeId scalar = builder.context().tensor(dtype, {});
  module.add_argument(region, scalar);
  const ValueId update = module.add_argument(region, scalar);
  module.region(region).results = {update};
  return region;
}

}  // namespace

std::span<const OpDef> indexing_ops() { return kIndexingOps; }

StructAttr gather_attribute(const IndexingDims& dims) { return write(dims, kGatherNames); }
StructAttr scatter_attribute(const IndexingDims& dims) { return write(dims, kScatterNames); }

IndexingDims gather_dims(const Attrs& attrs) { return read(attrs.get<StructAttr>("dimension_numbers"), kGatherNames); }
IndexingDims scatter_dims(const Attrs& attrs) {
  return read(attrs.get<StructAttr>("scatter_dimension_numbers"), kScatterNames);
}

Dims Indexing::window_dims() const {
  return other_dims(static_cast<int64_t>(operand.size()), dims.collapsed, dims.operand_batching);
}
Dims Indexing::batch_dims() const { return other_dims(static_cast<int64_t>(out.size()), dims.offset); }
Dims Indexing::indices_dims() const {
  return other_dims(static_cast<int64_t>(indices.size()), DimSpan(&dims.index_vector_dim, 1));
}
std::optional<size_t> Indexing::component(int64_t dim) const {
  const auto it = std::find(dims.index_map.begin(), dims.index_map.end(), dim);
  if (it == dims.index_map.end()) return std::nullopt;
  return static_cast<size_t>(it - dims.index_map.begin());
}
std::optional<size_t> Indexing::paired(int64_t dim) const {
  const auto it = std::ranges::find(dims.indices_batching, dim);
  if (it == dims.indices_batching.end()) return std::nullopt;
  return static_cast<size_t>(dims.operand_batching[static_cast<size_t>(it - dims.indices_batching.begin())]);
}

// The new dim of out is the first one in each case:
//   operand alone     each index reads or writes all examples: an offset dim
//   indices alone     more index vectors: a batch dim, which needs no number
//   both              example i of the indices belongs to example i of the operand: batching dims
IndexingDims with_leading_batch(const IndexingDims& dims, bool operand, bool indices) {
  IndexingDims batched = dims;
  batched.offset = shifted(dims.offset);
  if (operand) {
    batched.collapsed = shifted(dims.collapsed);
    batched.operand_batching = shifted(dims.operand_batching);
    batched.index_map = shifted(dims.index_map);
  }
  if (indices) {
    batched.indices_batching = shifted(dims.indices_batching);
    ++batched.index_vector_dim;
  }
  if (operand && indices) {
    batched.operand_batching.insert(batched.operand_batching.begin(), 0);
    batched.indices_batching.insert(batched.indices_batching.begin(), 0);
  } else if (operand) {
    batched.offset.insert(batched.offset.begin(), 0);
  }
  return batched;
}

namespace {

Indexing gather_indexing(const Attrs& attrs, const Dims& operand, const Dims& indices, const Dims& out) {
  return {gather_dims(attrs), operand, indices, out, attrs.get<IntArray>("slice_sizes")};
}

Indexing scatter_indexing(const Attrs& attrs, const Dims& operand, const Dims& indices, const Dims& out) {
  // scatter has no slice_sizes: windows have the sizes of the updates, and 1 in the dims that the updates lack.
  Indexing indexing{scatter_dims(attrs), operand, indices, out, Dims(operand.size(), 1)};
  const Dims window = indexing.window_dims();
  for (size_t i = 0; i < window.size(); ++i) {
    const auto out_dim = static_cast<size_t>(indexing.dims.offset[i]);
    indexing.slice[static_cast<size_t>(window[i])] = indexing.out[out_dim];
  }
  return indexing;
}

}  // namespace

Indexing gather_indexing(const OpView& op) {
  return gather_indexing(op.attrs(), op.operand_type(0).shape, op.operand_type(1).shape, op.result_type().shape);
}

Indexing gather_indexing(const Attrs& attrs, const KernelTypes& types) {
  return gather_indexing(attrs, types.operands[0].shape, types.operands[1].shape, types.results[0].shape);
}

Indexing scatter_indexing(const OpView& op) {
  const size_t inputs = op.result_count();
  return scatter_indexing(op.attrs(), op.operand_type(0).shape, op.operand_type(inputs).shape,
                          op.operand_type(inputs + 1).shape);
}

Indexing scatter_indexing(const Attrs& attrs, const KernelTypes& types) {
  const size_t inputs = types.results.size();
  return scatter_indexing(attrs, types.operands[0].shape, types.operands[inputs].shape,
                          types.operands[inputs + 1].shape);
}

Combiner scatter_combiner(const OpView& op) {
  const Region& region = op.module().region(op.regions()[0]);
  const size_t inputs = op.result_count();
  std::optional<Combiner> common;
  for (size_t i = 0; i < inputs; ++i) {
    const ValueId old = region.arguments[i], update = region.arguments[inputs + i];
    Combiner combiner{.replaces = region.results[i] == update};
    if (!combiner.replaces) {
      combiner.reducer = value_reducer(op.module(), region.results[i], old, update).value_or(Reducer::kNone);
    }
    if (!combiner.known()) return {};
    // Kernels and gradients know one combiner for all inputs.
    if (common && (common->replaces != combiner.replaces || common->reducer != combiner.reducer)) return {};
    common = combiner;
  }
  return common.value_or(Combiner{});
}

ValueId build_gather(Builder& builder, ValueId operand, ValueId indices, const IndexingDims& dims, DimSpan slice_sizes,
                     GatherOptions options) {
  Attrs attrs{{"dimension_numbers", gather_attribute(dims)}};
  if (options.indices_are_sorted) attrs.set("indices_are_sorted", true);
  attrs.set("slice_sizes", to_dims(slice_sizes));
  return builder.create(kIndexingOps[0], {operand, indices}, attrs);
}

ValueId build_scatter(Builder& builder, ValueId operand, ValueId indices, ValueId updates, const IndexingDims& dims,
                      Combiner combiner, ScatterOptions options) {
  check_internal(combiner.known(), "a scatter must have a known combiner");
  const DType dtype = builder.module().type(operand).dtype;
  const RegionId region =
      combiner.replaces ? replacing_region(builder, dtype) : build_reducer_region(builder, combiner.reducer, dtype);
  Attrs attrs{{"scatter_dimension_numbers", scatter_attribute(dims)}};
  if (options.unique_indices) attrs.set("unique_indices", true);
  const std::array operands{operand, indices, updates};
  return builder.create(kIndexingOps[1], operands, builder.context().intern(std::move(attrs)), {}, {&region, 1});
}

}  // namespace shardwise
