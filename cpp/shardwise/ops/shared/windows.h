// SPDX-License-Identifier: Apache-2.0
//
// The window of reduce_window as data, read from its attributes and written to them.
//
//   Window::of(op).prefix(0, 5)      kForward for window 5 with padding (4, 0): a cumulative op
#pragma once

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

enum class Prefix : uint8_t { kNone, kForward, kReverse };

struct Window {
  Dims sizes, strides, base_dilations, dilations, low, high;  // one entry per dim; padding may be negative

  static Window trivial(int64_t ndim);  // the identity
  static Window of(const OpView& op);   // attributes that are not there are trivial
  static Window of(const Attrs& attrs, int64_t ndim);
  int64_t padded_size(size_t dim, int64_t size) const;  // of a dim of `size` elements, with padding and holes
  int64_t result_size(size_t dim, int64_t size) const;  // how many windows there are over it
  int64_t spanned(size_t dim) const { return (sizes[dim] - 1) * dilations[dim] + 1; }  // by one window
  Range range(size_t dim) const;                                                       // read by window i
  bool is_trivial(size_t dim) const;
  bool is_padded(size_t dim) const { return low[dim] != 0 || high[dim] != 0 || base_dilations[dim] != 1; }
  // How dim `dim` of `size` elements is a cumulative op; a single element never is.
  Prefix prefix(size_t dim, int64_t size) const;
  void set_prefix(size_t dim, int64_t size, Prefix prefix);
  Window only(size_t dim) const;  // trivial in the others
  Dims interior() const;          // of the pad op that the base dilation is
};

// How many windows there are over dims of these sizes, by the attributes of a reduce_window; an error where they are
// wrong for `op`.
Dims infer_windows(const InferContext& op, const Attrs& attrs, const Dims& shape);

Attrs window_attrs(const Window& window);

}  // namespace shardwise
