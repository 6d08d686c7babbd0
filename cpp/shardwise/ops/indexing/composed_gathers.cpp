// SPDX-License-Identifier: Apache-2.0
//
// Other forms of gather, which become it: torch_index_select, the rows at the places of an index, and dynamic_gather,
// whose slice sizes are an operand. They take no part in propagation.
#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// Dim `dim` of the operand becomes the dims of the index past the first `batch_dims`, which pair with the operand's.
void infer_torch_index_select(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  const Dims& operand = op.operand(0).shape;
  const Dims& index = op.operand(1).shape;
  const int64_t dim = expect_dim(op, "dim", op.operand(0).ndim());
  const int64_t batch = op.attr<IntAttr>("batch_dims").value;
  expect_dtype(op, is_integer(op.operand(1).dtype), "the index must be integers", "convert it first");
  const bool fits = batch >= 0 && batch <= std::min(dim, op.operand(1).ndim()) &&
                    std::equal(index.begin(), index.begin() + batch, operand.begin());
  if (!fits) {
    op.fail_shape("batch_dims must be at most dim, and count leading dims of equal sizes",
                  str("batch_dims = ", batch, ", dim = ", dim, " for ", op.operand_types_text()));
  }
  //   operand [8, 6, 5], index [8, 3], dim 1, batch_dims 1     [8], then [3] of the index in place of 6, then [5]
  Dims shape(operand.begin(), operand.begin() + dim);
  shape.insert(shape.end(), index.begin() + batch, index.end());
  shape.insert(shape.end(), operand.begin() + dim + 1, operand.end());
  results.push_back(result_or_declared(op, {op.operand(0).dtype, shape}));
}

// Indices out of bounds are clamped.
void decompose_torch_index_select(DecomposeContext& context) {
  const OpView op = context.op();
  const Dims& operand = op.operand_type(0).shape;
  const int64_t dim = op.attrs().get_int("dim"), batch = op.attrs().get_int("batch_dims");
  const int64_t index_ndim = op.operand_type(1).ndim(), added = index_ndim - batch - 1;
  IndexingDims dims;
  dims.collapsed = dims.index_map = {dim};
  dims.operand_batching = dims.indices_batching = identity_dims(batch);
  // An index vector dim past the last one: each element of the index is a vector of one component.
  dims.index_vector_dim = index_ndim;
  Dims sizes(operand);
  for (int64_t d = 0; d < op.operand_type(0).ndim(); ++d) {
    if (d < batch || d == dim) {
      // An empty dim has slices of size 0, the only ones that fit.
      sizes[static_cast<size_t>(d)] = std::min<int64_t>(operand[static_cast<size_t>(d)], 1);
    } else {
      dims.offset.push_back(d < dim ? d : d + added);
    }
  }
  context.set_result(0, build_gather(context.builder(), context.operand(0), context.operand(1), dims, sizes));
}

// The declared type has the sizes, so that the operand that also has them need not be a constant.
void infer_dynamic_gather(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<StructAttr>("dimension_numbers");
  infer_shape_operand<3>(op, results);
}

// The result has the sizes of a slice, but for the dims that it does not have.
void decompose_gather(DecomposeContext& context) {
  const OpView op = context.op();
  const IndexingDims dims = gather_dims(op.attrs());
  Dims sizes = op.operand_type(0).shape;
  for (int64_t& size : sizes) size = std::min<int64_t>(size, 1);
  const Dims window = other_dims(op.operand_type(0).ndim(), dims.collapsed, dims.operand_batching);
  for (size_t i = 0; i < std::min(window.size(), dims.offset.size()); ++i) {
    const auto from = static_cast<size_t>(dims.offset[i]);
    if (from < op.result_type().shape.size()) sizes[static_cast<size_t>(window[i])] = op.result_type().shape[from];
  }
  const ValueId result = build_gather(context.builder(), context.operand(0), context.operand(1), dims, sizes,
                                      {.indices_are_sorted = is_set(op.attrs(), "indices_are_sorted")});
  const TensorType& type = context.builder().module().type(result);
  if (type != op.result_type()) {
    fail<ShapeError>(op.name(), str("the result must have type ", type.text(), " for these dimension_numbers"),
                     op.result_type().text(), "correct the declared type");
  }
  context.set_result(0, result);
}

constexpr OpDef kComposedGatherOps[] = {
    composed_op("stablehlo.torch_index_select", infer_torch_index_select, no_rule, decompose_torch_index_select, {},
                "Rows at the places of an index (StableHLO torch_index_select)."),
    composed_op("stablehlo.dynamic_gather", infer_dynamic_gather, no_rule, decompose_gather, {},
                "gather whose slice sizes are an operand (StableHLO dynamic_gather)."),
};
static_assert(all_complete(kComposedGatherOps));

}  // namespace

std::span<const OpDef> composed_gather_ops() { return kComposedGatherOps; }

}  // namespace shardwise
