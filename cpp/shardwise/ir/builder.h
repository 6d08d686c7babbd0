// SPDX-License-Identifier: Apache-2.0
//
// Creates ops. Every op passes through its `infer`, so every existing graph is well-typed:
//
//   Builder b(module, module.main().body);
//   ValueId sum = b.create("stablehlo.add", {x, y});                       // result type inferred
//   ValueId col = b.create("stablehlo.reshape", {x}, {}, {column_type});   // result type declared, then checked
//
// A wrong operand is a ShapeError, DTypeError, … that names the op and, if known, the user's line.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

std::string types_text(const Module& module, std::span<const ValueId> values);  // "tensor<4xf32>, tensor<5xf32>"

// The context of `infer`: the op does not exist yet.
class InferContext {
 public:
  InferContext(const Module& module, const OpDef& def, std::span<const ValueId> operands, const Attrs& attrs,
               std::span<const TypeId> declared, std::span<const RegionId> regions)
      : module_(module), def_(def), operands_(operands), attrs_(attrs), declared_(declared), regions_(regions) {}

  const Module& module() const { return module_; }
  Context& context() const { return module_.context(); }
  std::string_view name() const;
  size_t operand_count() const { return operands_.size(); }
  const TensorType& operand(size_t i) const { return module_.type(operands_[i]); }
  TypeId operand_type(size_t i) const { return module_.value(operands_[i]).type; }
  const Attrs& attrs() const { return attrs_; }
  // A required attribute. A missing or differently typed one is a ShapeError that names it.
  template <class T>
  const T& attr(std::string_view attr_name) const {
    const T* value = attrs_.find<T>(attr_name);
    if (value == nullptr) fail_attr(attr_name);
    return *value;
  }
  std::span<const TypeId> declared() const { return declared_; }
  std::span<const RegionId> regions() const { return regions_; }
  void accept_tokens() const { accepts_tokens_ = true; }  // other ops take and give tensors only
  bool accepts_tokens() const { return accepts_tokens_; }

  // Checks of common requirements. Errors name the op and the values found.
  void expect_operands(size_t count) const;
  void expect_regions(size_t count) const;
  void expect_same_dtype(size_t a, size_t b) const;       // of two operands
  const TensorType& declared_result(size_t i = 0) const;  // for ops whose result type is not implied
  std::string operand_types_text() const;                 // "tensor<4xf32>, tensor<5xf32>"
  [[noreturn]] void fail_shape(std::string_view must_hold, std::string_view got = {},
                               std::string_view way_out = {}) const;
  [[noreturn]] void fail_dtype(std::string_view must_hold, std::string_view got = {},
                               std::string_view way_out = {}) const;

 private:
  [[noreturn]] void fail_attr(std::string_view attr_name) const;
  const Module& module_;
  const OpDef& def_;
  std::span<const ValueId> operands_;
  const Attrs& attrs_;
  std::span<const TypeId> declared_;
  std::span<const RegionId> regions_;
  mutable bool accepts_tokens_ = false;
};

class Builder {
 public:
  Builder(Module& module, RegionId region, LocId loc = {}) : module_(&module), region_(region), loc_(loc) {}

  Module& module() const { return *module_; }
  Context& context() const { return module_->context(); }
  RegionId region() const { return region_; }
  LocId loc() const { return loc_; }
  OpId origin() const { return origin_; }
  // Sets the location and the origin of the ops that are created next.
  void set_loc(LocId loc, OpId origin = {}) { loc_ = loc, origin_ = origin; }

  // The general form, with any number of results. `declared` may be empty when the operands imply the types.
  OpId create_op(const OpDef& def, std::span<const ValueId> operands, AttrsId attrs = {},
                 std::span<const TypeId> declared = {}, std::span<const RegionId> regions = {});
  OpId create_op(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs = {},
                 std::span<const TypeId> declared = {}, std::span<const RegionId> regions = {});
  // Returns the single result of an op.
  ValueId create(const OpDef& def, std::span<const ValueId> operands, AttrsId attrs = {},
                 std::span<const TypeId> declared = {}, std::span<const RegionId> regions = {});
  ValueId create(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs = {},
                 std::span<const TypeId> declared = {}, std::span<const RegionId> regions = {});
  ValueId create(const OpDef& def, std::initializer_list<ValueId> operands, const Attrs& attrs = {},
                 std::initializer_list<TypeId> declared = {});
  ValueId create(std::string_view name, std::initializer_list<ValueId> operands, const Attrs& attrs = {},
                 std::initializer_list<TypeId> declared = {});

 private:
  void expect_tensors(const OpDef& def, std::span<const ValueId> operands, std::span<const TypeId> results) const;

  Module* module_;
  RegionId region_;
  LocId loc_;
  OpId origin_;
};

// The definition of an op by name, from the registry of ops/; null if there is none. ir/ is below ops/, so the registry
// installs its lookup here once (see ops/registry.h).
const OpDef* find_op(std::string_view name);
const OpDef& get_op(std::string_view name);  // an unknown name is a ShapeError that names it
using OpLookup = const OpDef* (*)(std::string_view);
void install_op_lookup(OpLookup lookup);

}  // namespace shardwise
