// SPDX-License-Identifier: Apache-2.0
//
// vmap: copies the ops of a traced function, with a new leading dim on batched values.
//
//   body(%x: tensor<4xf32>, %w: tensor<4xf32>) { %0 = multiply %x, %w; return %0 }
//   append_batched(builder, body, {%xs: tensor<8x4xf32>, %w}, {true, false}, {.size = 8})
//
//   %1 = broadcast_in_dim %w, dims = [1] : tensor<8x4xf32>
//   %2 = multiply %xs, %1                                       returns {%2}, {true}
//
// OpDef::batch defines how each op handles the new dim; an op that others make up may leave that to them. An op without
// batched operands is copied unchanged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

struct Examples {
  int64_t size = 0;
  MeshPtr named = {};                       // of one axis, which collectives in the function name
  std::vector<std::string> mesh_axes = {};  // that shard the new dim of annotated values
};

struct BatchedResults {
  std::vector<ValueId> values;
  std::vector<bool> batched;  // whether a value has the leading dim
};

// Appends to the builder's region. `body` is a region of the builder's module; a batched argument has a leading dim of
// the size of the examples. Values that the body captures are not batched. Throws ShapeError for an argument that does not fit.
BatchedResults append_batched(Builder& builder, RegionId body, std::span<const ValueId> arguments,
                              const std::vector<bool>& batched, const Examples& examples);

// The value with a leading dim of `size`, whose rows are all equal.
ValueId append_leading_dim(Builder& builder, ValueId value, int64_t size);

}  // namespace shardwise
