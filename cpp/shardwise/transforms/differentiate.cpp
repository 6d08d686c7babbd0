// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/differentiate.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/decompose.h"

namespace shardwise {
namespace {

// Adds the user's line to errors of an op.
template <class F>
void located(const Module& module, OpId id, F&& body) {
  try {
    body();
  } catch (Error& error) {
    error.at(module.context().location_text(module.op(id).loc));
    throw;
  }
}

// Puts the ops that make up an op without a gradient of its own in front of it, and lets later ops read their results.
// The op stays: its results may be known outside. What nobody reads goes when the program is simplified.
class InPlaceExpansion {
 public:
  InPlaceExpansion(Builder& builder, std::span<const ValueId> wrt)
      : builder_(builder), module_(builder.module()), wrt_(wrt), active_(wrt.begin(), wrt.end()) {}

  void run() {
    const std::vector<OpId> ops = module_.region(builder_.region()).ops;
    if (std::ranges::none_of(ops, [&](OpId id) { return is_composed(id); })) return;
    for (const OpId id : ops) visit(id);
    module_.region(builder_.region()).ops = std::move(kept_);
  }

  ValueId operator()(ValueId value) const {
    const auto found = expanded_.find(value);
    return found == expanded_.end() ? value : found->second;
  }

 private:
  bool is_composed(OpId id) const { return module_.op(id).def->vjp == nullptr; }

  void visit(OpId id) {
    if (!expanded_.empty()) redirect(id);
    if (std::ranges::any_of(module_.operands(id), [&](ValueId operand) { return active_.contains(operand); })) {
      if (is_composed(id)) {
        located(module_, id, [&] { expand(id); });
      } else {
        for (uint32_t i = 0; i < module_.op(id).result_count; ++i) active_.insert(module_.result(id, i));
      }
    }
    kept_.push_back(id);
  }

  // Operands and captured values.
  void redirect(OpId id) {
    for (uint32_t i = 0; i < module_.op(id).operand_count; ++i) {
      const ValueId operand = module_.operands(id)[i];
      if (const ValueId by = (*this)(operand); by != operand) module_.set_operand(id, i, by);
    }
    for (uint32_t r = 0; r < module_.op(id).region_count; ++r) {
      const RegionId region = module_.regions(id)[r];
      for (const OpId inner : module_.region(region).ops) redirect(inner);
      for (uint32_t i = 0; i < module_.region(region).results.size(); ++i) {
        const ValueId result = module_.region(region).results[i];
        if (const ValueId by = (*this)(result); by != result) module_.set_region_result(region, i, by);
      }
    }
  }

  void expand(OpId id) {
    const size_t known = module_.region(builder_.region()).ops.size();
    const OpView op(module_, id);
    const std::vector<ValueId> results = append_decomposition(builder_, op);
    if (results.empty()) refuse_to_decompose(op, "differentiated");
    std::vector<OpId>& ops = module_.region(builder_.region()).ops;
    const std::vector<OpId> made(ops.begin() + static_cast<std::ptrdiff_t>(known), ops.end());
    ops.resize(known);
    for (const OpId inner : made) visit(inner);
    for (size_t i = 0; i < results.size(); ++i) {
      if (std::ranges::find(wrt_, op.result(i)) == wrt_.end()) expanded_[op.result(i)] = (*this)(results[i]);
    }
  }

  Builder& builder_;
  Module& module_;
  std::span<const ValueId> wrt_;
  std::unordered_set<ValueId> active_;             // they depend on wrt
  std::unordered_map<ValueId, ValueId> expanded_;  // results of composed ops
  std::vector<OpId> kept_;                         // of the region, in order
};

class ReverseWalk {
 public:
  ReverseWalk(Builder& builder, std::span<const ValueId> wrt)
      : builder_(builder),
        module_(builder.module()),
        ops_(module_.region(builder.region()).ops),
        is_wrt_(module_.value_count()),
        active_(module_.value_count()),
        cotangents_(module_.value_count()) {
    for (ValueId value : wrt) {
      check_float(value);
      is_wrt_[value.index] = active_[value.index] = true;
    }
    for (OpId id : ops_) located(module_, id, [&] { activate(id); });
  }

  void seed(ValueId output, ValueId cotangent) {
    if (!active_[output.index]) return;
    const TypeId wanted = module_.value(output).type;
    if (module_.value(cotangent).type != wanted) {
      fail<ShapeError>("vjp", "a cotangent must have the type of its output",
                       str(module_.type(cotangent).text(), " for ", module_.type(output).text()));
    }
    accumulate(output, cotangent);
  }

  void run() {
    const LocId loc = builder_.loc();
    for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) {
      if (!flows_into(*it)) continue;
      builder_.set_loc(module_.op(*it).loc);
      located(module_, *it, [&] { pull_back(*it); });
    }
    builder_.set_loc(loc);
  }

  ValueId cotangent_or_zeros(ValueId value) {
    const ValueId known = cotangents_[value.index];
    return known ? known : build_zeros(builder_, module_.type(value));
  }

 private:
  class Context;

  void check_float(ValueId value) const {
    if (is_float(module_.type(value).dtype)) return;
    fail<DTypeError>("grad", "what is differentiated with respect to must be floating point",
                     module_.type(value).text(), "convert it to a float first, or leave it out of argnums");
  }

  // Marks the op's results active if their cotangent would reach a wrt value.
  void activate(OpId id) {
    const auto operands = module_.operands(id);
    bool active = std::ranges::any_of(operands, [&](ValueId operand) { return active_[operand.index]; });
    for (RegionId region : module_.regions(id)) check_no_capture(id, region);
    if (!active) return;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const ValueId result = module_.result(id, i);
      if (is_float(module_.type(result).dtype)) active_[result.index] = true;
    }
  }

  void check_no_capture(OpId owner, RegionId region) const {
    const auto check = [&](ValueId value) {
      if (!active_[value.index]) return;
      fail<ShapeError>(module_.op(owner).def->name,
                       "a value that is differentiated must reach the region as an operand", "a captured value",
                       "pass it as an argument");
    };
    for (OpId id : module_.region(region).ops) {
      std::ranges::for_each(module_.operands(id), check);
      for (RegionId inner : module_.regions(id)) check_no_capture(owner, inner);
    }
    std::ranges::for_each(module_.region(region).results, check);
  }

  bool flows_into(OpId id) const {
    bool any_operand =
        std::ranges::any_of(module_.operands(id), [&](ValueId operand) { return active_[operand.index]; });
    if (!any_operand) return false;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const ValueId result = module_.result(id, i);
      if (cotangents_[result.index] && !is_wrt_[result.index]) return true;
    }
    return false;
  }

  void pull_back(OpId id);

  void accumulate(ValueId value, ValueId cotangent) {
    ValueId& sum = cotangents_[value.index];
    sum = sum ? builder_.create("stablehlo.add", {sum, cotangent}) : cotangent;
  }

  Builder& builder_;
  Module& module_;
  std::vector<OpId> ops_;            // of the region, before anything is appended
  std::vector<bool> is_wrt_;         // by value
  std::vector<bool> active_;         // by value: depends on wrt, and a float
  std::vector<ValueId> cotangents_;  // by value: the sum so far
};

class ReverseWalk::Context final : public VjpContext {
 public:
  Context(ReverseWalk& walk, OpId id) : walk_(walk), id_(id) {}

  OpView op() const override { return OpView(walk_.module_, id_); }
  Builder& builder() override { return walk_.builder_; }
  ValueId operand(size_t i) const override { return walk_.module_.operands(id_)[i]; }
  ValueId result(size_t i) const override { return walk_.module_.result(id_, static_cast<uint32_t>(i)); }
  ValueId cotangent(size_t i) override {
    const ValueId value = result(i);
    if (walk_.is_wrt_[value.index]) return build_zeros(builder(), walk_.module_.type(value));
    ValueId& known = walk_.cotangents_[value.index];
    if (!known) known = build_zeros(builder(), walk_.module_.type(value));
    return known;
  }
  bool needs(size_t i) const override { return walk_.active_[operand(i).index]; }
  void set(size_t i, ValueId cotangent) override {
    if (!needs(i)) return;
    check_internal(walk_.module_.value(cotangent).type == walk_.module_.value(operand(i)).type,
                   str("the cotangent of operand ", i, " of ", op().name(), " is ",
                       walk_.module_.type(cotangent).text(), ", not ", walk_.module_.type(operand(i)).text()));
    walk_.accumulate(operand(i), cotangent);
  }

 private:
  ReverseWalk& walk_;
  OpId id_;
};

void ReverseWalk::pull_back(OpId id) {
  Context context(*this, id);
  module_.op(id).def->vjp(context);
}

}  // namespace

std::vector<ValueId> append_vjp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                                std::span<const ValueId> wrt) {
  check_internal(outputs.size() == cotangents.size(), "one cotangent per output");
  InPlaceExpansion expansion(builder, wrt);
  expansion.run();
  ReverseWalk walk(builder, wrt);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (cotangents[i]) walk.seed(expansion(outputs[i]), cotangents[i]);
  }
  walk.run();
  std::vector<ValueId> gradients;
  for (ValueId value : wrt) gradients.push_back(walk.cotangent_or_zeros(value));
  return gradients;
}

}  // namespace shardwise
