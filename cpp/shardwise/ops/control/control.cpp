// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/control.h"

#include <algorithm>
#include <ranges>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

std::string returned_text(const Module& module, const std::vector<ValueId>& values) {
  return values.empty() ? "no values" : types_text(module, values);
}

void infer_as_operands(const InferContext& op, std::vector<TypeId>& results) {
  for (size_t i = 0; i < op.operand_count(); ++i) results.push_back(op.operand_type(i));
}

bool are_of_operand_types(const InferContext& op, const std::vector<ValueId>& values) {
  std::vector<TypeId> wanted;
  infer_as_operands(op, wanted);
  return types_of(op.module(), values) == wanted;
}

void expect_arguments(const InferContext& op, size_t region) {
  const std::vector<ValueId>& arguments = op.module().region(op.regions()[region]).arguments;
  if (!are_of_operand_types(op, arguments)) {
    op.fail_shape(str("region ", region, " must have arguments of the operands' types"),
                  str(types_text(op.module(), arguments), " for ", op.operand_types_text()), "correct its arguments");
  }
}

void infer_while(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_regions(2);
  expect_arguments(op, 0);
  expect_arguments(op, 1);
  const std::vector<ValueId>& condition = op.module().region(op.regions()[0]).results;
  if (condition.size() != 1 || op.module().type(condition[0]) != TensorType{DType::kBool, {}}) {
    op.fail_dtype("the condition must return one tensor<i1>", returned_text(op.module(), condition),
                  "return a comparison");
  }
  const std::vector<ValueId>& next = op.module().region(op.regions()[1]).results;
  if (!are_of_operand_types(op, next)) {
    op.fail_shape("the body must return values of the operands' types",
                  str(returned_text(op.module(), next), " for ", op.operand_types_text()), "correct what it returns");
  }
  infer_as_operands(op, results);
}

// For case and if: every branch returns the same types.
void infer_branches(const InferContext& op, DType selector, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (op.operand(0) != TensorType{selector, {}}) {
    op.fail_dtype(str("the operand must be ", TensorType{selector, {}}.text()), op.operand(0).text(), "convert it");
  }
  if (op.regions().empty()) op.fail_shape("takes at least one region", "none");
  for (size_t branch = 0; branch < op.regions().size(); ++branch) {
    const Region& region = op.module().region(op.regions()[branch]);
    if (!region.arguments.empty()) {
      op.fail_shape("a branch must have no arguments", str(region.arguments.size(), " in branch ", branch),
                    "use the values from around it");
    }
    const std::vector<TypeId> types = types_of(op.module(), region.results);
    if (branch == 0) results = types;
    if (types != results) {
      op.fail_shape("all branches must return values of the same types",
                    str(returned_text(op.module(), region.results), " in branch ", branch, " for ",
                        returned_text(op.module(), op.module().region(op.regions()[0]).results)),
                    "convert or reshape them");
    }
  }
}

void infer_case(const InferContext& op, std::vector<TypeId>& results) { infer_branches(op, DType::kI32, results); }

void infer_if(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_regions(2);
  infer_branches(op, DType::kBool, results);
}

void infer_call(const InferContext& op, std::vector<TypeId>& results) {
  op.accept_tokens();
  op.attr<Symbol>("callee");
  // The callee may come later in the text, so only verify_call compares the types.
  results.assign(op.declared().begin(), op.declared().end());
}

void verify_calls(const OpView& op, const std::string& callee) {
  const Module& module = op.module();
  const auto it = std::ranges::find(module.functions, callee, &Function::name);
  if (it == module.functions.end()) {
    fail<ShapeError>(op.name(), "the function called must be one of the module", "@" + callee, "define it");
  }
  const Region& body = module.region(it->body);
  const auto same_type = [&](ValueId a, ValueId b) { return module.value(a).type == module.value(b).type; };
  bool same = std::ranges::equal(op.operands(), body.arguments, same_type) && op.result_count() == body.results.size();
  for (size_t i = 0; same && i < body.results.size(); ++i) same = same_type(op.result(i), body.results[i]);
  if (!same) {
    fail<ShapeError>(op.name(), str("operands and results must have the types of @", callee),
                     str("(", types_text(module, {op.operands().begin(), op.operands().end()}), ") for (",
                         types_text(module, body.arguments), ") -> (", types_text(module, body.results), ")"),
                     "correct the call");
  }
}

void verify_call(const OpView& op) { verify_calls(op, op.attrs().get<Symbol>("callee").name); }

// ---- regions of one element, of one step, and named functions ------------------------------------------------------

void infer_map(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("must have operands");
  const Dims& shape = op.operand(0).shape;
  const auto ndim = static_cast<int64_t>(shape.size());
  if (op.attr<IntArray>("dimensions") != identity_dims(ndim)) {
    op.fail_shape("dimensions must be all dims, in order", str(op.attr<IntArray>("dimensions")));
  }
  expect_same_shapes(op);
  op.expect_regions(1);
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  bool fits = region.arguments.size() == op.operand_count() && region.results.size() == 1 &&
              module.type(region.results[0]).ndim() == 0;
  for (size_t i = 0; fits && i < region.arguments.size(); ++i) {
    fits = module.type(region.arguments[i]) == TensorType{op.operand(i).dtype, {}};
  }
  if (!fits) op.fail_dtype("the region must make one scalar from a scalar of each operand", op.operand_types_text());
  // The dtype of the result is the region's: a region that compares makes a map of booleans.
  results.push_back(result_or_declared(op, {module.type(region.results[0]).dtype, shape}));
}

void infer_composite(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>("name");
  op.attr<Symbol>("decomposition");
  infer_declared(op, results);
}

// A composite names its function in an attribute: only the whole module shows whether it exists.
void verify_composite(const OpView& op) { verify_calls(op, op.attrs().get<Symbol>("decomposition").name); }

void decompose_composite(DecomposeContext& context) {
  const OpView op = context.op();
  verify_composite(op);
  const std::string& callee = op.attrs().get<Symbol>("decomposition").name;
  const std::vector<ValueId> results = list_of_results(op.module(), op.id());
  set_results(context, create_call(context.builder(), callee, op.operands(), results));
}

// The region becomes ops on whole tensors, so each of its ops must be the same for a tensor as for its elements.
void verify_map(const OpView& op) {
  const Module& module = op.module();
  for (const OpId inner : module.region(op.regions()[0]).ops) {
    const OpDef& def = *module.op(inner).def;
    if (def.traits.elementwise || (module.op(inner).operand_count == 0 && splat_value(module, module.result(inner)))) {
      continue;
    }
    fail<UnsupportedError>(op.name(), "its region must hold elementwise ops and constants", def.name,
                           "write it with other ops");
  }
}

void decompose_map(DecomposeContext& context) {
  const OpView op = context.op();
  context.set_result(0, apply_region(context.builder(), op.module(), op.regions()[0], op.operands())[0]);
}

// ---- data flow -----------------------------------------------------------------------------------------------------

// The condition's argument receives the carry, but is no source of it: a condition returns only the predicate.
void flow_while(const OpView& op, std::vector<DataFlowEdge>& edges) {
  for (const LoopParts::Carry& carry : loop_parts(op).carries) {
    edges.push_back({.owner = carry.result,
                     .sources = {carry.entry, carry.next},
                     .targets = {carry.result, carry.tested, carry.argument}});
  }
}

// The selector has no edge: it is a scalar. Each branch is a source, so that branches that are sharded alike need no
// reshard before the result.
void flow_branches(const OpView& op, std::vector<DataFlowEdge>& edges) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    DataFlowEdge edge{.owner = op.result(i), .sources = {}, .targets = {op.result(i)}};
    for (const RegionId branch : op.regions()) edge.sources.push_back(op.module().region(branch).results[i]);
    edges.push_back(std::move(edge));
  }
}

void flow_barrier(const OpView& op, std::vector<DataFlowEdge>& edges) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    edges.push_back({.owner = op.result(i), .sources = {op.operand(i)}, .targets = {op.result(i)}});
  }
}

// ---- optimization_barrier ------------------------------------------------------------------------------------------

// Pairs each result with its operand. Propagation follows the edges instead.
ShardingRule rule_barrier(const OpView& op) {
  RuleBuilder rule(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Dims& shape = op.operand_type(i).shape;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      const FactorId factor = rule.factor(shape[dim]);
      rule.map(i, dim, factor).map(rule.result_tensor(i), dim, factor);
    }
  }
  return rule.has_independent_pairs().build();
}

void partition_barrier(PartitionContext& context) {
  const OpView op = context.op();
  const OpId local = context.builder().create_op(op.def(), operands_of(context));
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const ValueId result = context.builder().module().result(local, static_cast<uint32_t>(i));
    // Each pair is its own identity: its padding stays as it is.
    context.set_result(i, result, context.operand_padding(i));
  }
}

std::optional<Kernel> prepare_barrier(const OpView& op, const KernelTypes&) {
  // A barrier is for compilers: at run time the results are the operands' own buffers.
  return [count = op.operand_count()](KernelContext& context) {
    for (size_t i = 0; i < count; ++i) context.set_result(i, context.operand(i));
  };
}

void vjp_barrier(VjpContext& context) {
  for (size_t i = 0; i < context.op().operand_count(); ++i) {
    if (context.needs(i)) context.set(i, context.cotangent(i));
  }
}

// A side effect, because the function may have one; Effects (ir/rewrite/dce.h) looks into it.
constexpr OpDef call() {
  OpDef def = region_op(kCallName, infer_call, Regions::kCall, nullptr, verify_call,
                        "$callee `(` operands `)` attr-dict `:` functional-type",
                        "The results of a function of the module (MLIR func.call).");
  def.traits.side_effect = true;
  return def;
}

// A side effect, because the function may have one, which the composite does not show.
constexpr OpDef composite() {
  OpDef def =
      composed_op("stablehlo.composite", infer_composite, no_rule, decompose_composite,
                  "$name operands attr-dict `:` functional-type",
                  "A named op that a function of the module defines (StableHLO composite).", {.side_effect = true});
  def.regions = Regions::kCall;
  def.cost = costs_nothing;  // its function's ops are counted
  return runnable_if(def, verify_composite);
}

constexpr OpDef kControlOps[] = {
    region_op("stablehlo.while", infer_while, Regions::kLoop, flow_while, nullptr, "custom<while>",
              "Repeats its body while its condition holds (StableHLO while)."),
    region_op("stablehlo.case", infer_case, Regions::kBranches, flow_branches, nullptr, {},
              "The results of the region that an index selects (StableHLO case)."),
    region_op("stablehlo.if", infer_if, Regions::kBranches, flow_branches, nullptr, {},
              "The results of the first region if true, else of the second (StableHLO if)."),
    call(),
    runnable_if(with_combiner(composed_op("stablehlo.map", infer_map, rule_like_first_result, decompose_map, {},
                                          "A region applied to each element (StableHLO map).")),
                verify_map),
    composite(),
    {.name = "stablehlo.optimization_barrier",
     .infer = infer_as_operands,
     .rule = rule_barrier,
     .partition = partition_barrier,
     .prepare = prepare_barrier,
     .cost = costs_nothing,
     .vjp = vjp_barrier,
     .batch = batch_by_leading_dim,
     .flow = flow_barrier,
     .format = "attr-dict operands `:` result-type",
     .doc = "The identity of several values that compilers do not look through (StableHLO optimization_barrier).",
     .traits = {.shares_memory = true}},
};
static_assert(all_complete(kControlOps));

}  // namespace

std::span<const OpDef> control_ops() { return kControlOps; }

bool is_composite(const OpDef& def) { return def.regions == Regions::kCall && !def.is_call(); }

ValueId create_optimization_barrier(Builder& builder, ValueId value) {
  return builder.create("stablehlo.optimization_barrier", {value});
}

bool is_call(const Module& module, OpId id) { return module.op(id).def->is_call(); }

OpId create_call(Builder& builder, const std::string& callee, std::span<const ValueId> operands,
                 std::span<const ValueId> results) {
  // infer_call takes the declared types.
  return builder.create_op(kCallName, operands, Attrs{{"callee", Symbol{callee}}}, types_of(builder.module(), results));
}

}  // namespace shardwise
