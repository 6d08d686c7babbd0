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

MeshPtr Module::declare_mesh(const MeshPtr& mesh) {
  if (MeshPtr known = find_mesh(mesh->name())) {
    if (!(*known == *mesh)) {
      fail<MeshError>("mesh @" + mesh->name(), "one name stands for one mesh", known->text() + " and " + mesh->text(),
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
  for (RegionId owned : regions) region(owned).op = id;
  for (size_t i = 0; i < result_types.size(); ++i) {
    values_.push_back(Value{.type = result_types[i], .op = id, .index = static_cast<uint32_t>(i)});
  }
  region(region_id).ops.push_back(id);
  return id;
}

std::span<ValueId> Module::operands(OpId id) {
  const Operation& operation = op(id);
  return std::span<ValueId>(operand_pool_).subspan(operation.operand_begin, operation.operand_count);
}

std::span<const ValueId> Module::operands(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const ValueId>(operand_pool_).subspan(operation.operand_begin, operation.operand_count);
}

std::span<const RegionId> Module::regions(OpId id) const {
  const Operation& operation = op(id);
  return std::span<const RegionId>(region_pool_).subspan(operation.region_begin, operation.region_count);
}

const Dims* Module::blocks(ValueId id) const {
  auto it = blocks_.find(id);
  return it == blocks_.end() ? nullptr : &it->second;
}

void Module::set_blocks(ValueId id, Dims blocks) { blocks_[id] = std::move(blocks); }

std::string_view OpView::name() const { return def().name; }

std::string_view OpView::maker(size_t operand) const {
  const OpId maker = module_->value(this->operand(operand)).op;
  return maker ? module_->op(maker).def->name : std::string_view();
}

UseLists::UseLists(const Module& module) : begin_(module.value_count() + 1, 0) {
  // Counting sort by value: first the counts, then the positions.
  size_t total = 0;
  for (uint32_t op = 1; op < module.op_count(); ++op) {
    for (ValueId operand : module.operands(OpId{op})) ++begin_[operand.index + 1], ++total;
  }
  for (size_t v = 1; v < begin_.size(); ++v) begin_[v] += begin_[v - 1];
  uses_.resize(total);
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (uint32_t op = 1; op < module.op_count(); ++op) {
    uint32_t index = 0;
    for (ValueId operand : module.operands(OpId{op})) uses_[next[operand.index]++] = Use{OpId{op}, index++};
  }
}

std::span<const Use> UseLists::uses(ValueId value) const {
  return std::span<const Use>(uses_).subspan(begin_[value.index], begin_[value.index + 1] - begin_[value.index]);
}

}  // namespace shardwise
