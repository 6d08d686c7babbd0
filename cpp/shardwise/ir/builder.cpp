// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/builder.h"

#include <algorithm>
#include <array>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {
namespace {

// ops/ links ir, not the other way round: the registry of ops installs itself here.
OpLookup installed_lookup = nullptr;

std::string types_text(const Context& context, std::span<const TypeId> types) {
  return join(types, ", ", [&](TypeId type) { return context.type(type).text(); });
}

// The scalar constants that a combiner captures become constants of its own.
void copy_captured_constants(Module& module, RegionId region) {
  const std::ptrdiff_t known = std::ssize(module.region(region).ops);
  Redirection own(module);
  for (const ValueId value : captures_of(module, region)) {
    const OpId id = module.value(value).op;
    // Any other capture stays, and the op's infer refuses it.
    if (!id || module.op(id).operand_count != 0 || module.type(value).ndim() != 0) continue;
    // A copy, because append_op may move the module's ops.
    const Operation constant = module.op(id);
    if (!constant.def->traits.constant_like) continue;
    const std::array type{module.value(value).type};
    const OpId made = module.append_op(region, *constant.def, {}, constant.attrs, type, constant.loc);
    module.op(made).origin = constant.origin;
    own.add(value, module.result(made));
  }
  if (own.empty()) return;
  own.apply(region);
  // The appended constants go to the front, before the ops that read them.
  std::vector<OpId>& ops = module.region(region).ops;
  std::ranges::rotate(ops, ops.begin() + known);
}

}  // namespace

void install_op_lookup(OpLookup lookup) { installed_lookup = lookup; }

const OpDef* find_op(std::string_view name) { return installed_lookup == nullptr ? nullptr : installed_lookup(name); }

const OpDef& get_op(std::string_view name) {
  const OpDef* def = find_op(name);
  if (def == nullptr) fail<ShapeError>(name, "the op must be one that shardwise knows", "an unknown op");
  return *def;
}

std::string_view InferContext::name() const { return def_.name; }

void InferContext::expect_operands(size_t count) const {
  if (operand_count() == count) return;
  fail_shape(str("takes ", count, " operands"), std::to_string(operand_count()));
}

void InferContext::expect_same_dtype(size_t a, size_t b) const {
  if (operand(a).dtype == operand(b).dtype) return;
  fail_dtype("operands must have the same dtype", operand_types_text(), "convert one of them first");
}

void InferContext::expect_regions(size_t count) const {
  if (regions_.size() == count) return;
  fail_shape(str("takes ", count, " regions"), std::to_string(regions_.size()));
}

std::string types_text(const Module& module, std::span<const ValueId> values) {
  return join(values, ", ", [&](ValueId value) { return module.type(value).text(); });
}

const TensorType& InferContext::declared_result(size_t i) const {
  if (i >= declared_.size()) {
    fail_shape("the result type must be given", "none", "its operands do not imply it");
  }
  return context().type(declared_[i]);
}

std::string InferContext::operand_types_text() const { return types_text(module_, operands_); }

void InferContext::fail_shape(std::string_view must_hold, std::string_view got, std::string_view way_out) const {
  fail<ShapeError>(name(), must_hold, got, way_out);
}

void InferContext::fail_dtype(std::string_view must_hold, std::string_view got, std::string_view way_out) const {
  fail<DTypeError>(name(), must_hold, got, way_out);
}

void InferContext::fail_attr(std::string_view attr_name) const {
  fail_shape(str("attribute '", attr_name, "' must be given and of the right kind"),
             attrs_.find(attr_name) == nullptr ? "none" : "another kind");
}

void Builder::expect_tensors(const OpDef& def, std::span<const ValueId> operands,
                             std::span<const TypeId> results) const {
  const auto is_token = [](const TensorType& type) { return type.dtype == DType::kToken; };
  const bool any = std::ranges::any_of(operands, [&](ValueId id) { return is_token(module_->type(id)); }) ||
                   std::ranges::any_of(results, [&](TypeId id) { return is_token(context().type(id)); });
  // Once here rather than in each op: only ops that order effects, or pass values into regions, take tokens.
  if (any) fail<DTypeError>(def.name, "operands and results must be tensors", mlir_name(DType::kToken));
}

OpId Builder::create_op(const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                        std::span<const TypeId> declared, std::span<const RegionId> regions) {
  if (def.regions == Regions::kCombiner) {
    // Before the types are inferred, which checks that the combiner is closed.
    for (const RegionId region : regions) copy_captured_constants(*module_, region);
  }
  std::vector<TypeId> results;
  // infer knows the op, but not the user's line.
  located(*module_, loc_, [&] {
    const InferContext inferred(*module_, def, operands, context().attrs(attrs), declared, regions);
    if (def.regions == Regions::kNone || def.regions == Regions::kCall) inferred.expect_regions(0);
    def.infer(inferred, results);
    // Values that pass into regions may be tokens.
    if (!inferred.accepts_tokens() && def.flow == nullptr) expect_tensors(def, operands, results);
    // A text declares result types; a pass usually declares none and takes what is inferred.
    if (!declared.empty() && !std::ranges::equal(declared, results)) {
      fail<ShapeError>(def.name, "the declared result types must be " + types_text(context(), results),
                       types_text(context(), declared));
    }
  });
  const OpId made = module_->append_op(region_, def, operands, attrs, results, loc_, regions);
  module_->op(made).origin = origin_;
  return made;
}

OpId Builder::create_op(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
                        std::span<const TypeId> declared, std::span<const RegionId> regions) {
  return create_op(get_op(name), operands, context().intern(attrs), declared, regions);
}

ValueId Builder::create(const OpDef& def, std::span<const ValueId> operands, AttrsId attrs,
                        std::span<const TypeId> declared, std::span<const RegionId> regions) {
  const OpId op = create_op(def, operands, attrs, declared, regions);
  check_internal(module_->op(op).result_count == 1, "create() is for ops with one result");
  return module_->result(op);
}

ValueId Builder::create(std::string_view name, std::span<const ValueId> operands, const Attrs& attrs,
                        std::span<const TypeId> declared, std::span<const RegionId> regions) {
  return create(get_op(name), operands, context().intern(attrs), declared, regions);
}

ValueId Builder::create(const OpDef& def, std::initializer_list<ValueId> operands, const Attrs& attrs,
                        std::initializer_list<TypeId> declared) {
  return create(def, std::span(operands.begin(), operands.size()), context().intern(attrs),
                std::span(declared.begin(), declared.size()));
}

ValueId Builder::create(std::string_view name, std::initializer_list<ValueId> operands, const Attrs& attrs,
                        std::initializer_list<TypeId> declared) {
  return create(get_op(name), operands, attrs, declared);
}

}  // namespace shardwise
