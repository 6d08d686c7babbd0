// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwise/base/dims.h"
#include "shardwise/base/dtype.h"

namespace shardwise {

// The only type of values: a tensor with static shape, such as `tensor<4x8xf32>`. A scalar is `tensor<f32>`. A token
// has no dims: `!stablehlo.token`.
struct TensorType {
  DType dtype = DType::kF32;
  Dims shape;

  int64_t ndim() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const { return element_count(shape); }
  int64_t nbytes() const { return size() * item_size(dtype); }
  // As `size` and `nbytes`, for types that no array has: they saturate (base/quantity.h).
  int64_t element_quantity() const;
  int64_t byte_quantity() const;
  std::string text() const;  // "tensor<4x8xf32>"
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

size_t hash_value(const TensorType& type);

}  // namespace shardwise
