// SPDX-License-Identifier: Apache-2.0
//
// reduce_window: combines the elements under a window that moves over the dims, by a region of two scalars.
//
//   window 3 over 5 elements, padding (1, 1), stride 2           [a b c d e]  ->  [0+a+b, b+c+d, d+e+0]
//   %1 = "stablehlo.reduce_window"(%0, %cst) <{padding = dense<[[1, 1]]>, window_dimensions = array<i64: 3>,
//        window_strides = array<i64: 2>, …}> ({…add…}) : (tensor<5xf32>, tensor<f32>) -> tensor<3xf32>
//
// Padding and the holes of a base dilation are init values, and one more init value starts each window. A sum over 3
// elements of which one is padding counts the init value twice (StableHLO's pad, slice and reduce).
//
// Cumulative ops have the prefix form: a window as long as the dim, padded on one side so that it ends (or starts) at
// each element in turn. Such a dim may stay sharded: each device combines its own rows, and the totals of the shards
// before it (cumulative.h).
//
//   cumsum of n elements       window n, padding (n-1, 0)         ([i])->([i]) {i=n} permutation={i}
//   from the other end         window n, padding (0, n-1)
//
// A dim with a window of 1, stride 1 and no padding passes through; other dims are whole on every device.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> window_ops();

std::optional<Kernel> prepare_reduce_window(const OpView& op, const KernelTypes& types);
void vjp_reduce_window(VjpContext& context);

enum class Prefix : uint8_t { kNone, kForward, kReverse };

struct Window {
  Dims sizes, strides, base_dilations, dilations, low, high;  // one entry per dim; padding may be negative

  static Window trivial(int64_t ndim);  // the identity
  static Window of(const OpView& op);   // missing attributes are trivial
  static Window of(const Attrs& attrs, int64_t ndim);
  int64_t padded_size(size_t dim, int64_t size) const;  // of a dim of `size` elements, with padding and holes
  int64_t result_size(size_t dim, int64_t size) const;  // how many windows there are over it
  bool is_trivial(size_t dim) const;
  bool is_padded(size_t dim) const { return low[dim] != 0 || high[dim] != 0 || base_dilations[dim] != 1; }
  // The prefix form of dim `dim` with `size` elements, if it has one. A single element never has.
  Prefix prefix(size_t dim, int64_t size) const;
  void set_prefix(size_t dim, int64_t size, Prefix prefix);
  Window only(size_t dim) const;  // trivial in the other dims
  Dims interior() const;          // of the pad op that is equivalent to the base dilation
};

// The number of windows over dims of these sizes, from the attributes of a reduce_window. Throws if they are invalid
// for `op`.
Dims infer_windows(const InferContext& op, const Attrs& attrs, const Dims& shape);

// No init means the neutral element. An identity window without init returns the operand.
ValueId build_reduce_window(Builder& builder, ValueId operand, ValueId init, Reducer reducer, const Window& window);
// Along one dim, inclusive.
ValueId build_prefix(Builder& builder, ValueId operand, Reducer reducer, int64_t dim, Prefix prefix);
// The combined init values of each window: reduce_window of neutral elements, with padding and holes.
ValueId build_init_share(Builder& builder, ValueId init, Reducer reducer, const Window& window, DimSpan shape);

}  // namespace shardwise
