// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/module.h"

#include "shardwise/base/error.h"

namespace shardwise {

Module::Module(std::shared_ptr<Context> context) : context_(std::move(context)) {}

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

OpId Module::append_op(RegionId region, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                       std::span<const TypeId> result_types, LocId loc, std::span<const RegionId> regions) {
  const OpId id = append(region, def, operands, attrs, result_types, loc, regions);
  // Only after the first edit; building a module keeps no lists.
  if (uses_.lists) uses_.lists->add(*this, id);
  return id;
}

void Module::set_attribute(OpId id, std::string_view attribute, Attribute value) {
  Attrs changed = attrs(id);
  changed.set(attribute, std::move(value));
  op(id).attrs = context_->intern(changed);
}

void Module::set_operand(OpId id, uint32_t index, ValueId value) {
  if (uses_.lists) uses_.lists->set_operand(*this, id, index, value);
  write_operand(id, index, value);
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

void Module::drop_uses(OpId id) {
  if (uses_.lists) uses_.lists->remove(*this, id);
}

UseRange Module::uses(ValueId value) {
  if (!uses_.lists) uses_.lists = std::make_unique<UseLists>(*this);
  return {*this, *uses_.lists, value};
}

const GlobalPart& Module::part(ValueId id) const {
  static const GlobalPart none;
  return id.index < parts_.size() ? parts_[id.index] : none;
}

void Module::set_part(ValueId id, GlobalPart part) {
  // The column is empty until a program is partitioned.
  if (id.index >= parts_.size()) parts_.resize(value_count());
  parts_[id.index] = part;
}

const TensorType& Module::global_type(ValueId id) const { return context_->type(placed_type(id).type); }

PlacedType Module::placed_type(ValueId id) const {
  const GlobalPart& held = part(id);
  return {held.type ? held.type : value(id).type, held.placement};
}

bool Module::holds_whole(ValueId id) const {
  const GlobalPart& held = part(id);
  return !held.placement || (held.type == value(id).type && context_->placement(held.placement).is_fully_replicated());
}

}  // namespace shardwise
