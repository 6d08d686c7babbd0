// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {

std::optional<Kernel> prepare_transpose(const OpView& op, const KernelTypes&) {
  return [permutation = op.attrs().get<IntArray>("permutation")](KernelContext& context) {
    context.set_result(0, permuted(context.operand(0), permutation));
  };
}

std::optional<Kernel> prepare_reshape(const OpView&, const KernelTypes& types) {
  return [shape = types.results[0].shape](KernelContext& context) {
    const NdArray& operand = context.operand(0);
    // Strides are known only when the kernel runs: the same reshape is a view of one buffer and a copy of another one.
    if (auto strides = reshaped_strides(operand, shape)) {
      return context.set_result(0, restrided(operand, shape, std::move(*strides)));
    }
    const NdArray result = context.allocate_result();
    // A row-major buffer has the same order under both shapes, so the copy writes it under the operand's.
    const Dims rows = row_major_strides(operand.shape(), item_size(operand.dtype()));
    copy_array(context, restrided(result, operand.shape(), rows), operand);
  };
}

std::optional<Kernel> prepare_broadcast_in_dim(const OpView& op, const KernelTypes& types) {
  return [dims = op.attrs().get<IntArray>("broadcast_dimensions"),
          shape = types.results[0].shape](KernelContext& context) {
    const NdArray& operand = context.operand(0);
    // Stride 0 repeats an element: in new dims, and in dims of size 1 that the result enlarges.
    Dims strides(shape.size(), 0);
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto dim = static_cast<size_t>(dims[i]);
      if (operand.shape()[i] == shape[dim]) strides[dim] = operand.strides()[i];
    }
    context.set_result(0, restrided(operand, shape, std::move(strides)));
  };
}

std::optional<Kernel> prepare_reverse(const OpView& op, const KernelTypes&) {
  return [dims = op.attrs().get<IntArray>("dimensions")](KernelContext& context) {
    const NdArray& operand = context.operand(0);
    Dims strides = operand.strides();
    int64_t offset = 0;
    for (int64_t reversed : dims) {
      const auto dim = static_cast<size_t>(reversed);
      // The view begins at the last row and walks back. The negative offset of an empty dim has no effect (restrided).
      offset += (operand.shape()[dim] - 1) * strides[dim];
      strides[dim] = -strides[dim];
    }
    context.set_result(0, restrided(operand, operand.shape(), std::move(strides), offset));
  };
}

}  // namespace shardwise
