// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/graph_copy.h"

#include "shardwise/base/error.h"

namespace shardwise {

ValueId GraphCopy::operator()(ValueId from) const {
  if (auto it = values_.find(from); it != values_.end()) return it->second;
  check_internal(from_ == to_, "a value is used that was not copied");
  return from;
}

// Source and target may be one module, whose arrays move when they grow, so everything is read before the op is
// created.
OpId GraphCopy::op(OpId from, RegionId into) {
  const Operation original = from_->op(from);
  std::vector<ValueId> operands;
  for (ValueId operand : from_->operands(from)) operands.push_back((*this)(operand));
  std::vector<TypeId> types;
  for (uint32_t i = 0; i < original.result_count; ++i) types.push_back(from_->value(from_->result(from, i)).type);
  std::vector<RegionId> regions;
  for (uint32_t i = 0; i < original.region_count; ++i) regions.push_back(region(from_->regions(from)[i]));

  const OpId made = to_->append_op(into, *original.def, operands, original.attrs, types, original.loc, regions);
  for (uint32_t i = 0; i < original.result_count; ++i) {
    const ValueId result = from_->result(from, i);
    to_->value(to_->result(made, i)).sharding = from_->value(result).sharding;
    map(result, to_->result(made, i));
  }
  return made;
}

void GraphCopy::ops(RegionId from, RegionId into) {
  const std::vector<OpId> originals = from_->region(from).ops;
  for (OpId original : originals) op(original, into);
}

RegionId GraphCopy::region(RegionId from) {
  const RegionId made = to_->add_region();
  const std::vector<ValueId> arguments = from_->region(from).arguments;
  for (ValueId argument : arguments) {
    const Value value = from_->value(argument);
    const ValueId image = to_->add_argument(made, value.type, value.loc);
    to_->value(image).sharding = value.sharding;
    map(argument, image);
  }
  ops(from, made);
  const std::vector<ValueId> results = from_->region(from).results;
  for (ValueId result : results) to_->region(made).results.push_back((*this)(result));
  return made;
}

Function& GraphCopy::function(const Function& from) {
  Function made = from;
  made.body = region(from.body);
  to_->functions.push_back(std::move(made));
  return to_->functions.back();
}

}  // namespace shardwise
