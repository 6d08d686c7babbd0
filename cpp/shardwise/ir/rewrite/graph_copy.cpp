// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/graph_copy.h"

#include "shardwise/base/error.h"

namespace shardwise {

ValueId GraphCopy::operator()(ValueId from) const {
  if (auto it = values_.find(from); it != values_.end()) return it->second;
  // Ids of one module mean nothing in another.
  check_internal(from_ == to_, "a value is used that was not copied");
  return from;
}

OpId GraphCopy::op(OpId from, RegionId into) {
  std::vector<ValueId> operands;
  operands.reserve(from_->op(from).operand_count);
  for (const ValueId operand : from_->operands(from)) operands.push_back((*this)(operand));
  const OpId made = op(from, into, operands);
  for (uint32_t i = 0; i < to_->op(made).result_count; ++i) map(from_->result(from, i), to_->result(made, i));
  return made;
}

// Source and target may be one module, whose arrays move as they grow: everything is read before the op is made.
OpId GraphCopy::op(OpId from, RegionId into, std::span<const ValueId> operands) {
  const Operation original = from_->op(from);
  std::vector<TypeId> types;
  types.reserve(original.result_count);
  for (uint32_t i = 0; i < original.result_count; ++i) types.push_back(from_->value(from_->result(from, i)).type);
  std::vector<RegionId> regions;
  for (uint32_t i = 0; i < original.region_count; ++i) regions.push_back(region(from_->regions(from)[i]));

  const OpId made = to_->append_op(into, *original.def, operands, original.attrs, types, original.loc, regions);
  to_->op(made).origin = original.origin;
  for (uint32_t i = 0; i < original.result_count; ++i) columns(from_->result(from, i), to_->result(made, i));
  return made;
}

void GraphCopy::columns(ValueId from, ValueId to) {
  const Value& value = from_->value(from);
  to_->value(to).sharding = value.sharding;
  to_->value(to).origin = value.origin;
  to_->value(to).loc = value.loc;
  // set_part makes the whole column, which most modules do not have.
  if (const GlobalPart& part = from_->part(from); part.type || part.placement) to_->set_part(to, part);
}

std::vector<OpId> GraphCopy::ops(RegionId from, RegionId into) {
  std::vector<OpId> ops = from_->region(from).ops;
  for (OpId& id : ops) id = op(id, into);
  return ops;
}

RegionId GraphCopy::region(RegionId from) {
  const RegionId made = to_->add_region();
  // Copies, because the module's regions move when one is added to the same module.
  const std::vector<ValueId> arguments = from_->region(from).arguments;
  for (ValueId argument : arguments) {
    const Value value = from_->value(argument);
    const ValueId image = to_->add_argument(made, value.type, value.loc);
    columns(argument, image);
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

Module empty_copy(const Module& source) {
  Module target(source.shared_context());
  target.name = source.name;
  target.stage = source.stage;
  target.meshes = source.meshes;
  target.functions.push_back(source.main());
  target.main().body = target.add_region();
  return target;
}

}  // namespace shardwise
