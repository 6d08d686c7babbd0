// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/module.h"

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

Module::Module(std::shared_ptr<Context> context) : context_(std::move(context)) {
  // Index 0 of every array is "none".
  values_.emplace_back();
  ops_.emplace_back();
  regions_.emplace_back();
}

MeshPtr Module::find_mesh(std::string_view mesh_name) const {
  for (const MeshPtr& mesh : meshes) {
    if (mesh->name() == mesh_name) return mesh;
  }
  return nullptr;
}

// Declaring an equal mesh again is a no-op, so that passes need not know which meshes the program has.
MeshPtr Module::declare_mesh(const MeshPtr& mesh) {
  if (MeshPtr known = find_mesh(mesh->name())) {
    if (!(*known == *mesh)) {
      fail<MeshError>("mesh @" + mesh->name(), "a name must denote one mesh", known->text() + " and " + mesh->text(),
                      "give one of them another name");
    }
    return known;
  }
  meshes.push_back(mesh);
  return mesh;
}

const Function& Module::main() const {
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

Function& Module::main() { return const_cast<Function&>(std::as_const(*this).main()); }

RegionId Module::add_region() {
  regions_.emplace_back();
  return RegionId{static_cast<uint32_t>(regions_.size() - 1)};
}

ValueId Module::add_argument(RegionId region_id, TypeId type, LocId loc) {
  Region& target = region(region_id);
  const ValueId id{static_cast<uint32_t>(values_.size())};
  values_.push_back(
      Value{.type = type, .region = region_id, .index = static_cast<uint32_t>(target.arguments.size()), .loc = loc});
  target.arguments.push_back(id);
  return id;
}

OpId Module::append_op(RegionId region_id, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
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
  // Only after the first edit; building a module keeps no lists.
  if (uses_.lists) uses_.lists->add(*this, id);
  return id;
}

std::span<const ValueId> Module::operands(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const ValueId>(operand_pool_).subspan(operation.operand_begin, operation.operand_count);
}

std::span<const RegionId> Module::regions(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const RegionId>(region_pool_).subspan(operation.region_begin, operation.region_count);
}

void Module::set_attribute(OpId id, std::string_view attribute, Attribute value) {
  Attrs changed = attrs(id);
  changed.set(attribute, std::move(value));
  op(id).attrs = context_->intern(changed);
}

void Module::set_operand(OpId id, uint32_t index, ValueId value) {
  if (uses_.lists) uses_.lists->set_operand(*this, id, index, value);
  operand_pool_[op(id).operand_begin + index] = value;
}

void Module::set_region_result(RegionId id, uint32_t index, ValueId value) {
  if (uses_.lists) uses_.lists->set_region_result(*this, id, index, value);
  region(id).results[index] = value;
}

void Module::become_constant(OpId id, const OpDef& def, AttrsId attrs) {
  drop_uses(id);
  // In place, so that the op's result, its users and its place in the region stay.
  Operation& operation = op(id);
  operation.def = &def;
  operation.attrs = attrs;
  operation.operand_count = operation.region_count = 0;
}

// For a pass that hands the regions to another op: a region has one owner.
void Module::release_regions(OpId id) {
  for (const RegionId owned : regions(id)) region(owned).op = {};
  op(id).region_count = 0;
}

void Module::drop_uses(OpId id) {
  if (uses_.lists) uses_.lists->remove(*this, id);
}

UseRange Module::uses(ValueId value) {
  if (!uses_.lists) uses_.lists = std::make_unique<UseLists>(*this);
  return {*this, *uses_.lists, value};
}

// In the traced module every value is its own origin; copies and replacements keep the number.
void Module::mark_origins() {
  for (uint32_t i = 1; i < values_.size(); ++i) values_[i].origin = ValueId{i};
  for (uint32_t i = 1; i < ops_.size(); ++i) ops_[i].origin = OpId{i};
}

const GlobalPart& Module::part(ValueId id) const {
  static const GlobalPart none;
  return id.index < parts_.size() ? parts_[id.index] : none;
}

void Module::set_part(ValueId id, GlobalPart part) {
  // The column is empty until a program is partitioned.
  if (id.index >= parts_.size()) parts_.resize(values_.size());
  parts_[id.index] = part;
}

const TensorType& Module::global_type(ValueId id) const {
  const TypeId type = part(id).type;
  return context_->type(type ? type : value(id).type);
}

bool Module::holds_whole(ValueId id) const {
  const GlobalPart& held = part(id);
  return !held.placement || (held.type == value(id).type && context_->placement(held.placement).is_fully_replicated());
}

std::string_view OpView::name() const { return def().name; }

}  // namespace shardwise
