// SPDX-License-Identifier: Apache-2.0
//
// The SSA graph: ops, values and regions in contiguous arrays, addressed by 32-bit ids.
//
//   func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//     %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//     return %0 : tensor<4xf32>
//   }
//
// This text is one Function whose body Region has arguments {%arg0}, ops {add} and results {%0}. A region is a single
// block, and the operands of its terminator are the region's `results`, so there are no terminator ops. A value's
// sharding is a column of the value (`#sdy.sharding` on arguments and ops, the sharding of a constraint or reshard), so
// it exists only once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/context.h"
#include "shardwise/ir/ids.h"
#include "shardwise/ir/padding.h"
#include "shardwise/ir/stage.h"
#include "shardwise/ir/use_lists.h"

namespace shardwise {

struct OpDef;

struct Value {
  TypeId type = {};
  ShardingId sharding = {};
  OpId op = {};          // the defining op, or none for a region argument
  RegionId region = {};  // for an argument: its region
  uint32_t index = 0;    // which result or argument
  LocId loc = {};        // for an argument: its name and place
  ValueId origin = {};   // the value of the traced module that this one holds (Module::mark_origins), or none
};

// The part of a global value that a value of the local program holds. In the resharded stage only the placement is set,
// and only where blocks are not ceil(size / shards).
struct GlobalPart {
  TypeId type = {};            // of the global value; none: the value's own type
  PlacementId placement = {};  // none: replicated, or as the value's sharding
  Padding padding = {};
  friend bool operator==(const GlobalPart&, const GlobalPart&) = default;
};

struct Operation {
  const OpDef* def = nullptr;
  AttrsId attrs;
  LocId loc;
  OpId origin = {};  // the op of the traced module that this one was made for, or none
  RegionId parent;
  uint32_t operand_begin = 0, operand_count = 0;
  uint32_t first_result = 0, result_count = 0;  // results are consecutive values
  uint32_t region_begin = 0, region_count = 0;
};

struct Region {
  std::vector<ValueId> arguments;
  std::vector<OpId> ops;
  std::vector<ValueId> results;
  OpId op;  // owner, or none for a function body
};

// As written. A function without visibility is public, too.
enum class Visibility : uint8_t { kUnspecified, kPublic, kPrivate, kNested };

struct Function {
  std::string name;
  Visibility visibility = Visibility::kPublic;
  RegionId body;
  std::vector<ShardingId> result_shardings;  // one per result; none where not given
  std::vector<LocId> result_locs = {};       // if the text has them; empty: unknown

  bool is_public() const { return visibility == Visibility::kUnspecified || visibility == Visibility::kPublic; }
};

class Module {
 public:
  explicit Module(std::shared_ptr<Context> context);

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }

  std::string name = "main_module";
  Stage stage = Stage::kGlobal;  // set by the passes
  std::vector<MeshPtr> meshes;   // declared meshes, in order
  std::vector<Function> functions;
  MeshPtr find_mesh(std::string_view name) const;  // null when not declared
  MeshPtr declare_mesh(const MeshPtr& mesh);       // adds it once; a different mesh of that name is a MeshError
  Function& main();                                // the function named main, or the only one
  const Function& main() const;

  RegionId add_region();
  ValueId add_argument(RegionId region, TypeId type, LocId loc = {});
  // Appends an op whose result types are known. Only Builder checks types.
  OpId append_op(RegionId region, const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                 std::span<const TypeId> result_types, LocId loc, std::span<const RegionId> regions = {});

  Value& value(ValueId id) { return values_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  Operation& op(OpId id) { return ops_[id.index]; }
  const Operation& op(OpId id) const { return ops_[id.index]; }
  Region& region(RegionId id) { return regions_[id.index]; }
  const Region& region(RegionId id) const { return regions_[id.index]; }

  const TensorType& type(ValueId id) const { return context_->type(value(id).type); }
  std::span<const ValueId> operands(OpId id) const;
  std::span<const ValueId> operand_pool() const { return operand_pool_; }  // indexed by operand_begin
  std::span<const RegionId> regions(OpId id) const;
  ValueId result(OpId id, uint32_t index = 0) const { return ValueId{ops_[id.index].first_result + index}; }
  const Attrs& attrs(OpId id) const { return context_->attrs(op(id).attrs); }

  // Edits; rewrite/rewrite.h has more. Results of a region that an op owns already are changed by set_region_result
  // alone.
  void set_attribute(OpId id, std::string_view attribute, Attribute value);  // replaces it or appends it
  void set_operand(OpId id, uint32_t index, ValueId value);
  void set_region_result(RegionId id, uint32_t index, ValueId value);
  // The op becomes another one without operands that has the same results.
  void become_constant(OpId id, const OpDef& def, AttrsId attrs);
  // The regions leave the op and stay as they are: bodies of functions, for example.
  void release_regions(OpId id);
  void drop_uses(OpId id);  // removes the uses of a deleted op and its regions
  // The lists are built by the first call, kept up to date by append_op and edits, and not copied with the module.
  UseRange uses(ValueId value);

  // Makes every op and value its own origin; replacing, cloning and localizing keep origins.
  void mark_origins();

  // Values without a global value, such as offsets, have an empty part.
  const GlobalPart& part(ValueId id) const;
  void set_part(ValueId id, GlobalPart part);
  const TensorType& global_type(ValueId id) const;
  bool holds_whole(ValueId id) const;  // every device holds the entire global value, as without a part

  size_t value_count() const { return values_.size(); }  // ids are below these counts
  size_t op_count() const { return ops_.size(); }
  size_t region_count() const { return regions_.size(); }

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
  std::vector<Value> values_;
  std::vector<Operation> ops_;
  std::vector<Region> regions_;
  std::vector<ValueId> operand_pool_;
  std::vector<RegionId> region_pool_;
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
