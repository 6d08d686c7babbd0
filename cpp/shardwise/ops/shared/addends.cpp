// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/addends.h"

#include "shardwise/ops/shared/reducers.h"

namespace shardwise {

DType wide_addend(DType dtype) {
  const bool is_narrow = is_float(dtype) && item_size(dtype) <= 2 && dtype != DType::kBF16;
  return is_narrow ? DType::kF32 : dtype;
}

DType addend_dtype(const OpView& op, size_t result) {
  const DType dtype = op.result_type(result).dtype;
  switch (op.def().addends) {
    case Addends::kNarrow: break;
    case Addends::kWideResult: return wide_addend(dtype);
    case Addends::kWideOperands: return op_reducer(op) == Reducer::kSum ? wide_addend(dtype) : dtype;
  }
  return dtype;
}

}  // namespace shardwise
