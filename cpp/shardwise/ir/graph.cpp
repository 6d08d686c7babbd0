// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/graph.h"

#include <utility>

#include "shardwise/base/error.h"

namespace shardwise {

Graph::Graph() {
  // Index 0 of every array is "none".
  values_.emplace_back();
  ops_.emplace_back();
  regions_.emplace_back();
}

const Function& Graph::main() const {
  if (functions.empty()) {
    fail<UnsupportedError>("program", "must have a function @main", "a module without functions",
                           "add func.func @main(...) {...}");
  }
  for (const Function& function : functions) {
    // A text may hold a single function of any name, which is then the program.
    if (function.name == "main") return function;
  }
  return functions.front();
}

Function& Graph::main() { return const_cast<Function&>(std::as_const(*this).main()); }

RegionId Graph::add_region() {
  regions_.emplace_back();
  return RegionId{static_cast<uint32_t>(regions_.size() - 1)};
}

ValueId Graph::add_argument(RegionId region_id, TypeId type, LocId loc) {
  Region& target = region(region_id);
  const ValueId id{static_cast<uint32_t>(values_.size())};
  values_.push_back(
      Value{.type = type, .region = region_id, .index = static_cast<uint32_t>(target.arguments.size()), .loc = loc});
  target.arguments.push_back(id);
  return id;
}

OpId Graph::append(RegionId region_id, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                   std::span<const TypeId> result_types, LocId loc, std::span<const RegionId> regions) {
  const OpId id{static_cast<uint32_t>(ops_.size())};
  ops_.push_back(Operation{.def = &def,
                           .attrs = attrs,
                           .loc = loc,
                           .parent = region_id,
                           .operand_begin = static_cast<uint32_t>(operand_pool_.size()),
                           .operand_count = static_cast<uint32_t>(operands.size()),
                           .first_result = static_cast<uint32_t>(values_.size()),
                           .result_count = static_cast<uint32_t>(result_types.size()),
                           .region_begin = static_cast<uint32_t>(region_pool_.size()),
                           .region_count = static_cast<uint32_t>(regions.size())});
  operand_pool_.insert(operand_pool_.end(), operands.begin(), operands.end());
  region_pool_.insert(region_pool_.end(), regions.begin(), regions.end());
  // Regions are built before the op that owns them.
  for (RegionId owned : regions) region(owned).op = id;
  for (size_t i = 0; i < result_types.size(); ++i) {
    values_.push_back(Value{.type = result_types[i], .op = id, .index = static_cast<uint32_t>(i)});
  }
  region(region_id).ops.push_back(id);
  return id;
}

std::span<const ValueId> Graph::operands(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const ValueId>(operand_pool_).subspan(operation.operand_begin, operation.operand_count);
}

std::span<const RegionId> Graph::regions(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const RegionId>(region_pool_).subspan(operation.region_begin, operation.region_count);
}

// For a pass that hands the regions to another op: a region has one owner.
void Graph::release_regions(OpId id) {
  for (const RegionId owned : regions(id)) region(owned).op = {};
  op(id).region_count = 0;
}

// In the traced module every value is its own origin; copies and replacements keep the number.
void Graph::mark_origins() {
  for (uint32_t i = 1; i < values_.size(); ++i) values_[i].origin = ValueId{i};
  for (uint32_t i = 1; i < ops_.size(); ++i) ops_[i].origin = OpId{i};
}

}  // namespace shardwise
