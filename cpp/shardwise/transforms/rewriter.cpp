// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/rewriter.h"

#include "shardwise/base/error.h"
#include "shardwise/ir/graph_copy.h"

namespace shardwise {
namespace {

Module empty_copy(const Module& source) {
  Module target(source.shared_context());
  target.name = source.name;
  target.stage = source.stage;
  target.meshes = source.meshes;
  target.functions.push_back(source.main());
  target.main().body = target.add_region();
  return target;
}

}  // namespace

Rewriter::Rewriter(const Module& source)
    : source_(source),
      target_(empty_copy(source)),
      builder_(target_, target_.main().body),
      values_(source.value_count()) {}

ValueId Rewriter::add_argument(ValueId source_argument, TypeId type) {
  const ValueId argument = target_.add_argument(target_.main().body, type, source_.value(source_argument).loc);
  set(source_argument, argument);
  return argument;
}

void Rewriter::copy_arguments() {
  for (const ValueId argument : source_body().arguments) {
    const ValueId copy = add_argument(argument, source_.value(argument).type);
    target_.value(copy).sharding = source_.value(argument).sharding;
  }
}

ValueId Rewriter::get(ValueId source) const {
  const ValueId target = values_[source.index];
  check_internal(static_cast<bool>(target), "a value is used before it is made");
  return target;
}

void Rewriter::set(ValueId source, ValueId target) { values_[source.index] = target; }

OpId Rewriter::copy(const OpView& op, std::vector<ValueId> operands) {
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(source_.value(op.result(i)).type);
  GraphCopy regions_copy(source_, target_);
  std::vector<RegionId> regions;
  for (const RegionId region : op.regions()) regions.push_back(regions_copy.region(region));
  const OpId made =
      target_.append_op(builder_.region(), op.def(), operands, source_.op(op.id()).attrs, types, op.loc(), regions);
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId result = target_.result(made, static_cast<uint32_t>(i));
    target_.value(result).sharding = source_.value(op.result(i)).sharding;
    if (const Dims* blocks = source_.blocks(op.result(i))) target_.set_blocks(result, *blocks);
    set(op.result(i), result);
  }
  return made;
}

OpId Rewriter::copy(const OpView& op) {
  std::vector<ValueId> operands;
  for (const ValueId operand : op.operands()) operands.push_back(get(operand));
  return copy(op, std::move(operands));
}

void Rewriter::return_mapped_results() {
  for (const ValueId result : source_body().results) {
    target_.region(target_.main().body).results.push_back(get(result));
  }
}

}  // namespace shardwise
