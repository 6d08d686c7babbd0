// SPDX-License-Identifier: Apache-2.0
//
// gather and scatter: slices read, and windows written, at positions that are operands.
//
//   %1 = "stablehlo.gather"(%table, %ids)
//          <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
//            start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}>
//          : (tensor<512x32xf32>, tensor<64x1xi32>) -> tensor<64x32xf32>
//   ([k, j], [i, l])->([i, j]) need_replication={l} reduction={k}
//
// This is table[ids]. Starts are clamped so that a slice fits; a scatter drops the parts of its windows that are out of
// bounds.
//
// With the table sharded {"x"} on its rows, a device clamps the global ids, subtracts the index of its first row, reads
// the rows it has and puts zeros elsewhere: the result is unreduced over x. A scatter subtracts the same offset; what
// is then out of bounds belongs to another device. With the ids sharded {"x"}, each device scatters its own updates.
// All devices but the first start from the neutral element, and the result is unreduced over x.
#pragma once

#include <optional>
#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_builder.h"

namespace shardwise {

std::span<const OpDef> indexing_ops();

// The dimension numbers of either op, under gather's names. "out" is gather's result or scatter's updates.
struct IndexingDims {
  Dims offset;            // dims of out that run over a slice (scatter: update_window_dims)
  Dims collapsed;         // dims of the operand that out does not have (scatter: inserted_window_dims)
  Dims operand_batching;  // dims of the operand that pair with …
  Dims indices_batching;  // … these of the indices
  Dims index_map;         // the operand dim of each index component (scatter: scatter_dims_to_operand_dims)
  int64_t index_vector_dim = 0;
};
// The op's dimension_numbers attribute, and its names for the lists of IndexingDims, in StableHLO's order.
struct IndexingNames {
  std::string_view attribute, offset, collapsed, operand_batching, indices_batching, index_map;
};
inline constexpr IndexingNames kGatherNames{
    "stablehlo.gather", "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
    "start_index_map"};
inline constexpr IndexingNames kScatterNames{"stablehlo.scatter",
                                             "update_window_dims",
                                             "inserted_window_dims",
                                             "input_batching_dims",
                                             "scatter_indices_batching_dims",
                                             "scatter_dims_to_operand_dims"};
IndexingDims gather_dims(const Attrs& attrs);
IndexingDims scatter_dims(const Attrs& attrs);
StructAttr gather_attribute(const IndexingDims& dims);
StructAttr scatter_attribute(const IndexingDims& dims);

// Dimension numbers with the shapes that they refer to.
struct Indexing {
  IndexingDims dims;
  Dims operand, indices, out;
  Dims slice;  // size of a slice (window) in each operand dim

  int64_t components() const { return static_cast<int64_t>(dims.index_map.size()); }
  Dims window_dims() const;                            // the operand dim of each of dims.offset
  Dims batch_dims() const;                             // dims of out that are not in dims.offset …
  Dims indices_dims() const;                           // … and the dim of the indices of each
  std::optional<size_t> component(int64_t dim) const;  // the index component of an operand dim
  std::optional<size_t> paired(int64_t dim) const;     // the operand dim of a batching dim of the indices
};
// The dimension numbers after the operand, the indices, or both get a new leading dim.
IndexingDims with_leading_batch(const IndexingDims& dims, bool operand, bool indices);
Indexing gather_indexing(const OpView& op);
Indexing scatter_indexing(const OpView& op);
// The same op on other types.
Indexing gather_indexing(const Attrs& attrs, const KernelTypes& types);
Indexing scatter_indexing(const Attrs& attrs, const KernelTypes& types);

// The region of a scatter applies one reducer to every result, or returns the update.
struct Combiner {
  Reducer reducer = Reducer::kNone;
  bool replaces = false;
  bool known() const { return replaces || reducer != Reducer::kNone; }
};
Combiner scatter_combiner(const OpView& op);

struct GatherOptions {
  bool indices_are_sorted = false;
};
struct ScatterOptions {
  bool unique_indices = false;
};
ValueId build_gather(Builder& builder, ValueId operand, ValueId indices, const IndexingDims& dims, DimSpan slice_sizes,
                     GatherOptions options = {});
// Takes a single input. `combiner` must be known.
ValueId build_scatter(Builder& builder, ValueId operand, ValueId indices, ValueId updates, const IndexingDims& dims,
                      Combiner combiner, ScatterOptions options = {});

// An index is a vector of all its components, so that the dim which holds them is whole.
void map_index_vector(RuleBuilder& rule, size_t indices, const Indexing& indexing);

// Fields of the two OpDefs: gather.cpp, fold_indexing.cpp, scatter.cpp, scatter_vjp.cpp, gather_kernels.cpp, scatter_kernels.cpp.
void infer_gather(const InferContext& op, std::vector<TypeId>& results);
ShardingRule rule_gather(const OpView& op);
ValueId fold_gather(Builder& builder, const OpView& op);
void partition_gather(PartitionContext& context);
// Dims of which an index reads one row: its owner reads it.
std::vector<FactorId> gathered_factors(const OpView& op, const ShardingRule& rule);
// Dims of which an index reads a window: each device reads the rows of it that it has.
std::vector<FactorId> factors_of_read_windows(const OpView& op, const ShardingRule& rule);
void placements_of_read_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                std::vector<OpPlacement>& found);
std::optional<Kernel> prepare_gather(const OpView& op, const KernelTypes& types);
void vjp_gather(VjpContext& context);
void batch_gather(BatchContext& context);
void infer_scatter(const InferContext& op, std::vector<TypeId>& results);
ShardingRule rule_scatter(const OpView& op);
ValueId fold_scatter(Builder& builder, const OpView& op);
void partition_scatter(PartitionContext& context);
// Updates that are sharded where the input is: each device combines its updates with its shard of the input, which is
// neutral elsewhere. The result is unreduced, and nothing is gathered.
void placements_of_added_shards(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                std::vector<OpPlacement>& found);
void partition_added_shards(PartitionContext& context);
// Dims of which an index writes one row: its owner writes it.
std::vector<FactorId> scattered_factors(const OpView& op, const ShardingRule& rule);
// Dims of which an index writes a window: each device writes the rows of it that it has. The updates are whole there.
std::vector<FactorId> factors_of_written_windows(const OpView& op, const ShardingRule& rule);
void placements_of_written_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                   std::vector<OpPlacement>& found);
std::optional<Kernel> prepare_scatter(const OpView& op, const KernelTypes& types);
void vjp_scatter(VjpContext& context);
void batch_scatter(BatchContext& context);

}  // namespace shardwise
