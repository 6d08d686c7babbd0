// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/inlined_regions.h"

#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/sharding/manual_computation_verify.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {

void infer_region(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  // A region that captured values would have more arguments than operands.
  if (region.arguments.size() != op.operand_count() || region.results.size() != op.declared().size()) {
    op.fail_shape("the region must have an argument for each operand and return a value for each result",
                  str(region.arguments.size(), " arguments for ", op.operand_count(), " operands, ",
                      region.results.size(), " values for ", op.declared().size(), " results"));
  }
  infer_declared(op, results);
}

void flow_region(const OpView& op, std::vector<DataFlowEdge>& edges) {
  const Region& region = op.module().region(op.regions()[0]);
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    // Shardy's edges: a sharding flows from an operand to its argument, and from a returned value to its result.
    edges.push_back({.owner = region.arguments[i], .sources = {op.operand(i)}, .targets = {region.arguments[i]}});
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    edges.push_back({.owner = op.result(i), .sources = {region.results[i]}, .targets = {op.result(i)}});
  }
}

namespace {

void infer_inlined(const InferContext& op, std::vector<TypeId>& results) {
  infer_region(op, results);
  const Region& region = op.module().region(op.regions()[0]);
  // Unlike a manual computation, it changes no shapes.
  const auto expect_type = [&](ValueId inside, TypeId type, std::string_view what, size_t i, std::string_view rest) {
    if (op.module().value(inside).type == type) return;
    op.fail_shape(str(what, i, rest), str(op.module().type(inside).text(), " for ", op.context().type(type).text()));
  };
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    expect_type(region.arguments[i], op.operand_type(i), "argument ", i,
                " of the region must have the type of its operand");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    expect_type(region.results[i], results[i], "value ", i,
                " that the region returns must have the type of its result");
  }
}

void infer_named(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>("name");
  infer_inlined(op, results);
}

void infer_checkpoint(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>(kPolicyAttr);
  infer_inlined(op, results);
}

void infer_custom_derivative(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<IntAttr>(kDerivativeAttr);
  infer_named(op, results);
}

constexpr OpDef inlined(std::string_view name, InferFn infer, RegionGradient gradient, std::string_view format,
                        std::string_view doc) {
  OpDef def = region_op(name, infer, Regions::kInline, flow_region, verify_isolated, format, doc);
  def.region_gradient = gradient;
  return def;
}

constexpr OpDef kInlinedRegionOps[] = {
    inlined("sdy.named_computation", infer_named, RegionGradient::kAsItsOps, "custom<named_computation>($name)",
            "A region with a name, such as an inlined function (Shardy named_computation)."),
    inlined("shardwise.checkpoint", infer_checkpoint, RegionGradient::kComputedAgain, "region-shardings",
            "A region whose values the gradient computes again, except for those that its policy keeps."),
    inlined("shardwise.custom_derivative", infer_custom_derivative, RegionGradient::kGiven, "region-shardings",
            "A region whose derivative is given, by a number within the program that is being traced."),
};
static_assert(all_complete(kInlinedRegionOps));
constexpr const OpDef& kNamedComputation = kInlinedRegionOps[0];

OpId create_inlined(Builder& builder, const OpDef& def, Attrs attrs, std::span<const ValueId> operands, RegionId body) {
  const std::vector<TypeId> types = types_of(builder.module(), builder.module().region(body).results);
  return builder.create_op(def.name, operands, std::move(attrs), types, {&body, 1});
}

}  // namespace

std::span<const OpDef> inlined_region_ops() { return kInlinedRegionOps; }

bool is_inlined_region(const Module& module, OpId id) { return module.op(id).def->regions == Regions::kInline; }

bool is_named_computation(const Module& module, OpId id) { return module.op(id).def == &kNamedComputation; }

OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body) {
  return create_inlined(builder, kNamedComputation, Attrs{{"name", name}}, operands, body);
}

OpId create_custom_derivative(Builder& builder, const std::string& name, int64_t derivative,
                              std::span<const ValueId> operands, RegionId body) {
  Attrs attrs{{"name", name}, {std::string(kDerivativeAttr), IntAttr{derivative}}};
  return create_inlined(builder, kInlinedRegionOps[2], std::move(attrs), operands, body);
}

void make_named_computation(Module& module, OpId custom_derivative) {
  Attrs attrs = module.attrs(custom_derivative);
  attrs.erase(kDerivativeAttr);
  module.op(custom_derivative).def = &kNamedComputation;
  module.op(custom_derivative).attrs = module.context().intern(std::move(attrs));
}

}  // namespace shardwise
