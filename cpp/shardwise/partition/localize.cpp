// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/localize.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "shardwise/base/error.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/emission/local_partition_context.h"
#include "shardwise/emission/localize_collectives.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/partitioning/linearity.h"

namespace shardwise {
namespace {

// The method that `assign` wrote down; null: the op is computed by its rule.
const Method* method_of(const OpView& op) {
  const auto* name = op.attrs().find<std::string>(kMethodAttr);
  if (name == nullptr) return nullptr;
  const std::span<const Method> methods = op.def().methods;
  const auto found = std::ranges::find(methods, *name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

// The axes of the result's reduction over which the op itself reduces: they shard its reduction factors.
AxisList own_reduction(const Context& context, const ShardingRule& rule, const std::vector<LocalValue>& operands) {
  AxisList axes;
  for (size_t i = 0; i < operands.size(); ++i) {
    const LayoutView layout = operands[i].layout(context);
    for (size_t d = 0; d < rule.ndim(i); ++d) {
      const auto factors = rule.dim(i, d);
      if (factors.size() != 1 || rule.factors()[factors[0]].kind != FactorKind::kReduction) continue;
      axes.insert(axes.end(), layout.axes(d).begin(), layout.axes(d).end());
    }
  }
  return axes;
}

// If an op passes on a reduction jointly, its reduced operands become parts of the reduction.
void make_parts(LocalEmitter& emitter, const OpView& op, const std::vector<LocalValue>& results,
                std::vector<LocalValue>& operands) {
  const Context& context = emitter.builder().context();
  if (results.size() != 1) return;
  const LayoutView result = results[0].layout(context);
  const ShardingRule& rule = sharding_rule(op);
  if (result.unreduced().empty() || linear_in(op, rule, result.reducer()) != Linear::kJoint) return;
  const AxisList passed = difference(result.unreduced(), own_reduction(context, rule, operands));
  if (passed.empty()) return;
  for (size_t i = 0; i < operands.size(); ++i) {
    LocalValue& operand = operands[i];
    const LayoutView layout = operand.layout(context);
    if (!op.def().is_joint(i) || !layout.unreduced().empty()) continue;
    const ValueId part = emitter.as_parts(operand.value, passed, result.reducer(), result.is_owned());
    if (part != operand.value) operand.part.padding = result_padding(layout);
    operand.value = part;
  }
}

// The emitters of a function, one for each mesh.
class Emitters {
 public:
  // The builder's region is the body of the function.
  Emitters(Builder& builder, const ProgramPlacements& placements) : context_(builder.context()) {
    emitters_.emplace_back(builder, placements.mesh());
    // Each mesh has its own axis indices, and an op has one mesh.
    for (const MeshPtr& mesh : placements.other_meshes()) emitters_.emplace_back(builder, mesh);
  }

  // The one on the mesh of an op with these tensors.
  LocalEmitter& of(std::span<const PlacementId> tensors) {
    if (emitters_.size() == 1) return emitters_.front();
    const MeshPtr& mesh = working_mesh(context_, tensors);
    return *std::ranges::find_if(emitters_,
                                 [&](const LocalEmitter& emitter) { return emitter.mesh()->same_devices(*mesh); });
  }

  LocalEmitter& of(const std::vector<LocalValue>& operands, const std::vector<LocalValue>& results) {
    if (emitters_.size() == 1) return emitters_.front();
    std::vector<PlacementId> tensors;
    for (const LocalValue& result : results) tensors.push_back(result.part.placement);
    for (const LocalValue& operand : operands) tensors.push_back(operand.part.placement);
    return of(tensors);
  }

 private:
  const Context& context_;
  std::deque<LocalEmitter> emitters_;
};

// A function is made local once for all of its calls, so that a call cannot choose where its operands are. Each
// function has emitters of its own, because the offsets and masks that they keep are values of its body. Local values
// have parts in place of shardings. A program is taken as it is placed: `assign` makes no other, and of a text
// verify_assigned checks it.
class Localization {
 public:
  explicit Localization(const Module& source)
      : source_(source),
        calls_(source),
        target_(empty_copy(source, calls_)),
        placements_(source),
        builder_(target_, target_.main().body),
        values_(source.value_count()) {}

  Module run() {
    for (const size_t f : calls_.reached()) add_function(source_.functions[f]);
    target_.stage = Stage::kLocal;
    return std::move(target_);
  }

 private:
  void add_function(const Function& function) {
    Function& made = *std::ranges::find(target_.functions, function.name, &Function::name);
    builder_ = Builder(target_, made.body);
    emitters_.emplace(builder_, placements_);
    const Region& body = source_.region(function.body);
    for (const ValueId argument : body.arguments) add_argument(argument, expected(argument));
    for (const OpId id : body.ops) add_op(OpView(source_, id));
    for (const ValueId result : body.results) {
      target_.region(made.body).results.push_back(values_[result.index].value);
    }
    made.result_shardings.assign(made.result_shardings.size(), ShardingId{});
  }

  // The local form of a value of the source, before it is created.
  LocalValue expected(ValueId global) {
    return local_value(context(), {source_.value(global).type, placements_.at(global)});
  }

  std::vector<LocalValue> expected_results(const OpView& op) {
    std::vector<LocalValue> results;
    for (const ValueId result : results_of(source_, op.id())) results.push_back(expected(result));
    return results;
  }

  void add_argument(ValueId global, LocalValue local) {
    const TypeId type = local_type(context(), local.part.placed());
    local.value = target_.add_argument(builder_.region(), type, source_.value(global).loc);
    keep(global, local);
  }

  void add_op(const OpView& op) {
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    if (op.def().is_control_flow()) return add_control_flow(op);
    if (is_call(source_, op.id())) return add_call(op);
    const Traits& traits = op.def().traits;
    if (traits.collective != CollectiveKind::kNone) {
      LocalValue result = expected(op.result());
      const LocalValue& operand = values_[op.operand(0).index];
      const PlacementId tensors[] = {result.part.placement, operand.part.placement};
      localize_collective(emitters_->of(tensors), op, operand, result);
      keep(op.result(), result);
      return;
    }
    check_internal(!traits.reshard && !traits.constraint, "a program that is made local has collectives alone");
    std::vector<LocalValue> results = expected_results(op);
    std::vector<LocalValue> operands;
    for (const ValueId operand : op.operands()) operands.push_back(values_[operand.index]);
    LocalEmitter& emitter = emitters_->of(operands, results);
    make_parts(emitter, op, results, operands);
    LocalPartitionContext partition(emitter, op, sharding_rule(op), method_of(op), std::move(operands),
                                    std::move(results));
    const std::vector<LocalValue> made = partition.run();
    for (size_t i = 0; i < made.size(); ++i) keep(op.result(i), made[i]);
  }

  // Operands and results are placed like the arguments and results of the function.
  void add_call(const OpView& op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands()) operands.push_back(values_[operand.index].value);
    create(op, operands, {}, expected_results(op));
  }

  // Every carry, and every result of branches, is placed like the result of the op.
  void add_control_flow(const OpView& op) {
    const RegionId condition = op.def().regions == Regions::kLoop ? loop_parts(op).condition : RegionId{};
    const std::vector<LocalValue> results = expected_results(op);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const LocalValue& operand = values_[op.operand(i).index];
      operands.push_back(condition ? entry_value(operand, results[i]) : operand.value);
    }
    std::vector<RegionId> regions;
    for (const RegionId region : op.regions()) regions.push_back(add_region(source_.region(region), results));
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);  // the ops of the regions have set others
    create(op, operands, regions, results);
  }

  // An op with the same attributes.
  void create(const OpView& op, std::span<const ValueId> operands, std::span<const RegionId> regions,
              std::vector<LocalValue> results) {
    std::vector<TypeId> types;
    for (size_t i = 0; i < results.size(); ++i) types.push_back(local_type(context(), results[i].part.placed()));
    const OpId made = builder_.create_op(op.def(), operands, source_.op(op.id()).attrs, types, regions);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].value = target_.result(made, static_cast<uint32_t>(i));
      keep(op.result(i), results[i]);
    }
  }

  // The entry value of an unreduced carry may be reduced: then one device counts it.
  ValueId entry_value(const LocalValue& entry, const LocalValue& carry) {
    const LayoutView layout = carry.layout(context());
    if (layout.unreduced().empty() || !entry.layout(context()).unreduced().empty()) return entry.value;
    LocalEmitter& emitter = emitters_->of({&carry.part.placement, 1});
    return emitter.as_parts(entry.value, layout.unreduced(), layout.reducer(), false);
  }

  RegionId add_region(const Region& region, const std::vector<LocalValue>& carries) {
    const Builder outside = builder_;
    builder_ = Builder(target_, target_.add_region());
    for (size_t i = 0; i < region.arguments.size(); ++i) add_argument(region.arguments[i], carries[i]);
    for (const OpId id : region.ops) add_op(OpView(source_, id));
    for (const ValueId result : region.results) {
      target_.region(builder_.region()).results.push_back(values_[result.index].value);
    }
    const RegionId made = builder_.region();
    builder_ = outside;
    return made;
  }

  void keep(ValueId global, const LocalValue& local) {
    // A value that an op returns unchanged keeps its part.
    if (!target_.part(local.value).type) {
      target_.set_part(local.value, local.part);
      target_.value(local.value).origin = source_.value(global).origin;
    }
    values_[global.index] = local;
  }

  Context& context() { return target_.context(); }

  const Module& source_;
  const CallGraph calls_;
  Module target_;
  ProgramPlacements placements_;
  Builder builder_;
  std::optional<Emitters> emitters_;  // of the function at hand
  std::vector<LocalValue> values_;    // by global value
};

}  // namespace

Module localize(Module module, PassContext&) { return Localization(module).run(); }

}  // namespace shardwise
