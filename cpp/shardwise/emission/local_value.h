// SPDX-License-Identifier: Apache-2.0
//
// A value of a local program, with the part of a global value that it holds:
//
//   {.value = %5, .part = {tensor<17x4xf32>, <@mesh, [{"x"}: 5, {}: 4]>, padding 0}}        %5 : tensor<5x4xf32>
#pragma once

#include "shardwise/ir/module.h"
#include "shardwise/ops/partitioning/padding.h"

namespace shardwise {

struct LocalValue {
  ValueId value = {};  // none: not emitted yet
  GlobalPart part = {};

  LayoutView layout(const Context& context) const { return {context, part.placed()}; }
};

// A value that is not emitted yet. Its padding, if any, is garbage.
inline LocalValue local_value(const Context& context, PlacedType placed) {
  return {.part = {placed.type, placed.placement, result_padding({context, placed})}};
}

}  // namespace shardwise
