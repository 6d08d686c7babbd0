// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/float_precision.h"

#include "shardwise/base/narrow_float.h"

namespace shardwise {
namespace {

using Precision = std::optional<DType>;

// The implicit leading bit is included.
int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return 8;
    case DType::kF16: return 11;
    case DType::kF32: return 24;
    case DType::kF64: return 53;
    default: return narrow_format(dtype)->mantissa + 1;
  }
}

Precision precision_of(DType dtype) {
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  return is_float(part) ? Precision(part) : std::nullopt;
}

Precision coarser(Precision a, Precision b) {
  if (!a || !b) return a ? a : b;
  // bfloat16 is coarser than float16, although both have 16 bits: the significand bounds the rounding error.
  return significand_bits(*a) <= significand_bits(*b) ? a : b;
}

Precision inside(const Module& module, RegionId id) {
  const Region& region = module.region(id);
  Precision found;
  for (ValueId argument : region.arguments) found = coarser(found, precision_of(module.type(argument).dtype));
  for (OpId op : region.ops) {
    const OpView view(module, op);
    for (size_t i = 0; i < view.result_count(); ++i) found = coarser(found, precision_of(view.result_type(i).dtype));
    for (RegionId inner : view.regions()) found = coarser(found, inside(module, inner));
  }
  return found;
}

}  // namespace

std::vector<std::optional<DType>> coarsest_floats(const Module& module) {
  const Region& body = module.region(module.main().body);
  std::vector<Precision> known(module.value_count());
  for (ValueId argument : body.arguments) known[argument.index] = precision_of(module.type(argument).dtype);
  for (OpId op : body.ops) {
    const OpView view(module, op);
    Precision found;
    for (ValueId operand : view.operands()) found = coarser(found, known[operand.index]);
    // A reduce may sum in a narrower type than its operands and results have.
    for (RegionId region : view.regions()) found = coarser(found, inside(module, region));
    for (size_t i = 0; i < view.result_count(); ++i) {
      known[view.result(i).index] = coarser(found, precision_of(view.result_type(i).dtype));
    }
  }
  std::vector<Precision> results;
  for (ValueId result : body.results) results.push_back(known[result.index]);
  return results;
}

}  // namespace shardwise
