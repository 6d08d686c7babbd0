// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/reduce_window.h"

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {

ValueId build_reduce_window(Builder& builder, ValueId operand, ValueId init, Reducer reducer, const Window& window) {
  // An init changes the operand even if its windows have one element.
  bool nothing = !init;
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) nothing = nothing && window.is_trivial(dim);
  if (nothing) return operand;
  return create_reduction(builder, "stablehlo.reduce_window", operand, init, reducer, window_attrs(window));
}

ValueId build_prefix(Builder& builder, ValueId operand, Reducer reducer, int64_t dim, Prefix prefix) {
  const Dims shape = builder.module().type(operand).shape;
  // A cumulative op is a window over the whole dim with padding on one side (windows.h).
  Window window = Window::trivial(static_cast<int64_t>(shape.size()));
  window.set_prefix(static_cast<size_t>(dim), shape[static_cast<size_t>(dim)], prefix);
  return build_reduce_window(builder, operand, {}, reducer, window);
}

ValueId build_init_share(Builder& builder, ValueId init, Reducer reducer, const Window& window, DimSpan shape) {
  const DType dtype = builder.module().type(init).dtype;
  // The same windows over neutral elements: only the init is left in each result.
  const ValueId neutral = build_splat(builder, shape, neutral_element(reducer, dtype));
  return build_reduce_window(builder, neutral, init, reducer, window);
}

}  // namespace shardwise
