// SPDX-License-Identifier: Apache-2.0
//
// A program at one stage: the graph of its ops, with the context of its types, attributes and shardings, its meshes,
// and the parts of global values that local values hold.
//
//   Module module(std::make_shared<Context>());
//   Builder b(module, module.add_region());                 // builder.h
//   OpView(module, op).operand_type(0).shape                // reads an op together with its module
//
// Edits keep the uses of each value up to date.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/base/ndarray.h"
#include "shardwise/ir/context.h"
#include "shardwise/ir/graph.h"
#include "shardwise/ir/ids.h"
#include "shardwise/ir/placement/padding.h"
#include "shardwise/ir/placement/placed_type.h"
#include "shardwise/ir/stage.h"
#include "shardwise/ir/use_lists.h"

namespace shardwise {

// The part of a global value that a value of the local program holds. In the assigned and resharded stages only the
// placement is set, and only if the value's sharding does not tell it: blocks are not ceil(size / shards), or the value
// is owned.
struct GlobalPart {
  TypeId type = {};            // of the global value; none: the value's own type
  PlacementId placement = {};  // none: replicated, or as the value's sharding
  Padding padding = {};
  PlacedType placed() const { return {type, placement}; }
  friend bool operator==(const GlobalPart&, const GlobalPart&) = default;
};

class Module : public Graph {
 public:
  explicit Module(std::shared_ptr<Context> context);

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }

  std::string name = "main_module";
  Stage stage = Stage::kGlobal;                    // set by the passes
  // Integer arrays that the traced function closes over, by their place among the arguments of main. Not in the text.
  std::unordered_map<uint32_t, NdArray> known_arguments;
  std::vector<MeshPtr> meshes;                     // declared meshes, in order
  MeshPtr find_mesh(std::string_view name) const;  // null when not declared
  MeshPtr declare_mesh(const MeshPtr& mesh);       // adds it once; a different mesh of that name is a MeshError

  // Appends an op whose result types are known. Only Builder checks types.
  OpId append_op(RegionId region, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                 std::span<const TypeId> result_types, LocId loc, std::span<const RegionId> regions = {});

  const TensorType& type(ValueId id) const { return context_->type(value(id).type); }
  const Attrs& attrs(OpId id) const { return context_->attrs(op(id).attrs); }

  // Edits; rewrite/rewrite.h has more. Results of a region that an op owns already are changed by set_region_result
  // alone.
  void set_attribute(OpId id, std::string_view attribute, Attribute value);  // replaces it or appends it
  void set_operand(OpId id, uint32_t index, ValueId value);
  void set_region_result(RegionId id, uint32_t index, ValueId value);
  // The op becomes another one without operands that has the same results.
  void become_constant(OpId id, const OpDef& def, AttrsId attrs);
  void drop_uses(OpId id);  // removes the uses of a deleted op and its regions
  // The lists are built by the first call, kept up to date by append_op and edits, and not copied with the module.
  UseRange uses(ValueId value);

  // Values without a global value, such as offsets, have an empty part.
  const GlobalPart& part(ValueId id) const;
  void set_part(ValueId id, GlobalPart part);
  const TensorType& global_type(ValueId id) const;
  PlacedType placed_type(ValueId id) const;  // the global type with the placement of the part
  bool holds_whole(ValueId id) const;        // every device holds the entire global value, as without a part

 private:
  struct Uses {  // a copy has none
    Uses() = default;
    Uses(const Uses&) {}
    Uses(Uses&&) = default;
    Uses& operator=(const Uses&) {
      lists.reset();
      return *this;
    }
    Uses& operator=(Uses&&) = default;
    std::unique_ptr<UseLists> lists;
  };

  std::shared_ptr<Context> context_;
  std::vector<GlobalPart> parts_;  // by value; shorter where the last values have none
  Uses uses_;
};

// Reads one op together with its module. Cheap to copy.
class OpView {
 public:
  OpView(const Module& module, OpId id) : module_(&module), id_(id) {}

  const Module& module() const { return *module_; }
  OpId id() const { return id_; }
  const OpDef& def() const { return *module_->op(id_).def; }
  std::string_view name() const;
  const Attrs& attrs() const { return module_->attrs(id_); }
  LocId loc() const { return module_->op(id_).loc; }
  size_t operand_count() const { return module_->op(id_).operand_count; }
  size_t result_count() const { return module_->op(id_).result_count; }
  std::span<const ValueId> operands() const { return module_->operands(id_); }
  ValueId operand(size_t i) const { return operands()[i]; }
  ValueId result(size_t i = 0) const { return module_->result(id_, static_cast<uint32_t>(i)); }
  const TensorType& operand_type(size_t i) const { return module_->type(operand(i)); }
  const TensorType& result_type(size_t i = 0) const { return module_->type(result(i)); }
  std::span<const RegionId> regions() const { return module_->regions(id_); }

 private:
  const Module* module_;
  OpId id_;
};

}  // namespace shardwise
