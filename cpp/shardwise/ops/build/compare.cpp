// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/compare.h"

#include <string>

#include "shardwise/ops/build/layout.h"

namespace shardwise {

ValueId build_compare(Builder& builder, std::string_view direction, ValueId lhs, ValueId rhs, std::string_view type) {
  Attrs attrs{{"comparison_direction", EnumAttr{"stablehlo", "comparison_direction", std::string(direction)}}};
  // Optional in StableHLO. Without it the type follows from the dtype; TOTALORDER must be given.
  if (!type.empty()) attrs.set("compare_type", EnumAttr{"stablehlo", "comparison_type", std::string(type)});
  return builder.create("stablehlo.compare", {lhs, rhs}, attrs);
}

ValueId build_equal_as_number(Builder& builder, ValueId lhs, ValueId rhs) {
  const DType dtype = builder.module().type(lhs).dtype;
  // 1 where both are equal and 0 elsewhere: a mask to multiply with.
  return build_convert(builder, build_compare(builder, "EQ", lhs, rhs), dtype);
}

}  // namespace shardwise
