// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/scalars.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"

namespace shardwise {

Scalar scalar_of(DType dtype, int64_t value) { return Scalar::of_int(dtype, value); }

int64_t clamped(const Scalar& integer, int64_t limit) {
  if (!is_unsigned_integer(integer.dtype)) return std::clamp<int64_t>(integer.integer, 0, limit);
  return static_cast<int64_t>(std::min(integer.natural, static_cast<uint64_t>(limit)));
}

std::optional<Scalar> splat_value(const Module& module, ValueId value) {
  OpId id = module.value(value).op;
  // Moving equal elements leaves them equal. A pad has two operands, and may add others.
  while (id && module.op(id).def->traits.movement && module.op(id).operand_count == 1) {
    id = module.value(module.operands(id)[0]).op;
  }
  if (!id || !module.op(id).def->traits.constant_like) return std::nullopt;
  const auto* dense = module.attrs(id).find<DenseAttr>("value");
  if (dense == nullptr || dense->data.size() == 0 || !dense->data.is_splat()) return std::nullopt;
  return dense->data.scalar_at(0);
}

}  // namespace shardwise
