// SPDX-License-Identifier: Apache-2.0
//
// gather and scatter: slices read, and windows written, at computed places.
//
//   %1 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
//            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1,
//            32>}> : (tensor<512x32xf32>, tensor<64x1xi32>) -> tensor<64x32xf32>
//                                                      ([k, j], [i, l])->([i, j]) need_replication={l} reduction={k}
//
// is table[ids]. Starts are clamped so that a slice lies inside; the parts of a scatter's windows that lie outside are
// dropped. With the table {"x"} on its rows a device clamps the global ids, subtracts the first row it holds, reads
// what it has and puts neutral zeros elsewhere: the result is unreduced over x. A scatter subtracts the same offset,
// and what then lies outside is another device's. With the ids {"x"} each device scatters its own updates; all but the
// first start from the neutral element, and the result is unreduced over x.
#pragma once

#include <optional>
#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> indexing_ops();

// The dimension numbers of either op, under gather's names. "out" is gather's result, and scatter's updates.
struct IndexingDims {
  Dims offset;            // dims of out that run over a slice (scatter: update_window_dims)
  Dims collapsed;         // dims of the operand that out leaves out (scatter: inserted_window_dims)
  Dims operand_batching;  // dims of the operand that pair with …
  Dims indices_batching;  // … these of the indices
  Dims index_map;         // the operand dim of each index component (scatter: scatter_dims_to_operand_dims)
  int64_t index_vector_dim = 0;
};
IndexingDims gather_dims(const Attrs& attrs);
IndexingDims scatter_dims(const Attrs& attrs);
StructAttr gather_attribute(const IndexingDims& dims);
StructAttr scatter_attribute(const IndexingDims& dims);

// Dimension numbers with the shapes that they are about.
struct Indexing {
  IndexingDims dims;
  Dims operand, indices, out;
  Dims slice;  // size of a slice (window) in each operand dim

  int64_t components() const { return static_cast<int64_t>(dims.index_map.size()); }
  Dims window_dims() const;                            // the operand dim of each of dims.offset
  Dims batch_dims() const;                             // dims of out that are not in dims.offset …
  Dims indices_dims() const;                           // … and the dim of the indices of each
  std::optional<size_t> component(int64_t dim) const;  // which index component is about an operand dim
};
// The dimension numbers of the op with a new leading dim on the operand, on the indices, or on both.
IndexingDims with_leading_batch(const IndexingDims& dims, bool operand, bool indices);
Indexing gather_indexing(const OpView& op);
Indexing scatter_indexing(const OpView& op);

// What a scatter's region does to every result alike: one of the reducers, or it returns the update.
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
  bool indices_are_sorted = false;
  bool unique_indices = false;
};
ValueId build_gather(Builder& builder, ValueId operand, ValueId indices, const IndexingDims& dims, DimSpan slice_sizes,
                     GatherOptions options = {});
// A single input; `combiner` must be known.
ValueId build_scatter(Builder& builder, ValueId operand, ValueId indices, ValueId updates, const IndexingDims& dims,
                      Combiner combiner, ScatterOptions options = {});

// The fields of the two ops: gather.cpp, scatter.cpp, scatter_vjp.cpp, gather_kernels.cpp, scatter_kernels.cpp.
void infer_gather(const InferContext& op, std::vector<TypeId>& results);
ShardingRule rule_gather(const OpView& op);
void partition_gather(PartitionContext& context);
void kernel_gather(KernelContext& context);
void vjp_gather(VjpContext& context);
void batch_gather(BatchContext& context);
void infer_scatter(const InferContext& op, std::vector<TypeId>& results);
ShardingRule rule_scatter(const OpView& op);
void partition_scatter(PartitionContext& context);
void kernel_scatter(KernelContext& context);
void vjp_scatter(VjpContext& context);
void batch_scatter(BatchContext& context);

}  // namespace shardwise
