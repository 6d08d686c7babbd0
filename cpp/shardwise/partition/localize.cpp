// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/localize.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/candidates/compute_sharding.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/emission/local_partition_context.h"
#include "shardwise/emission/localize_collectives.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/partitioning/owned_rows.h"
#include "shardwise/ops/partitioning/padding.h"

namespace shardwise {
namespace {

// A reduction over a sharded factor must leave its result unreduced.
void check_left_unreduced(const PartitionContext& context) {
  const ShardingRule& rule = context.rule();
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f].kind != FactorKind::kReduction) continue;
    const auto factor = static_cast<FactorId>(f);
    for (size_t i = 0; i < context.op().operand_count(); ++i) {
      const LayoutView operand = context.operand_layout(i);
      for (size_t d = 0; d < operand.ndim(); ++d) {
        const auto factors = rule.dim(i, d);
        if (factors.size() != 1 || factors[0] != factor) continue;
        for (const AxisRef& axis : operand.axes(d)) {
          const auto has = [&](const AxisRef& left) { return contains(left, axis); };
          if (context.op().result_count() == 0 || std::ranges::any_of(context.result_layout(0).unreduced(), has))
            continue;
          fail<ShardingError>(context.op().name(), "a reduced dim must be unsharded, or the result must be unreduced",
                              str("dim ", d, " of operand ", i, " over ", axis_text(context.mesh(), axis)));
        }
      }
    }
  }
}

LayoutView layout_of_tensor(const PartitionContext& context, size_t tensor) {
  const size_t operands = context.op().operand_count();
  return tensor < operands ? context.operand_layout(tensor) : context.result_layout(tensor - operands);
}

std::string dim_text(const PartitionContext& context, size_t tensor, size_t dim) {
  const size_t operands = context.op().operand_count();
  return str(tensor_text(operands, tensor, dim), " over ",
             axis_list_text(context.mesh(), layout_of_tensor(context, tensor).axes(dim)));
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

void check_local(const PartitionContext& context, FactorId factor, size_t tensor, size_t dim) {
  const DimLayout layout = layout_of_tensor(context, tensor).dim(dim);
  if (layout.axes.empty() || context.rule().factors()[factor].kind != FactorKind::kPermutation) return;
  // Each shard reads only its own block, so nothing has to move.
  if (has_range(context.rule(), factor) && stays_local(context.op(), context.rule(), factor, layout.shards)) return;
  fail<ShardingError>(context.op().name(), "a shifted dim must be unsharded", dim_text(context, tensor, dim),
                      "run assign on the program before");
}

// A text may claim that it has been assigned: along each factor, all tensors of an op must be sharded alike, and a dim
// with a range must stay local.
void check_sharded_alike(const PartitionContext& context) {
  const ShardingRule& rule = context.rule();
  std::vector<std::pair<size_t, size_t>> first(rule.factors().size(), {kNone, 0});  // tensor and dim, by factor
  rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
    // The axes of a compound dim may belong to any of its factors, so that it is not compared.
    if (factors.size() != 1) return;
    auto& [known_tensor, known_dim] = first[factors[0]];
    if (known_tensor == kNone) {
      known_tensor = tensor;
      known_dim = dim;
      return check_local(context, factors[0], tensor, dim);
    }
    const AxisList& known = layout_of_tensor(context, known_tensor).axes(known_dim);
    const AxisList& axes = layout_of_tensor(context, tensor).axes(dim);
    if (known == axes) return;
    fail<ShardingError>(context.op().name(), "its operands and results must be sharded alike along each factor",
                        str(dim_text(context, known_tensor, known_dim), ", ", dim_text(context, tensor, dim)),
                        "run assign on the program before");
  });
}

// The axes of each factor: those of the first dim that has no other factor, or its part of the first dim, whose first
// factors are fully sharded before the next: [{"x", "y"}] of factors 4·6 with x=4, y=2 has "x" and "y".
std::vector<AxisList> factor_axes(const PartitionContext& context) {
  const ShardingRule& rule = context.rule();
  std::vector<AxisList> found(rule.factors().size());
  std::vector<bool> is_known(found.size());
  // Dims of one factor first, since they have exactly its axes, even if these do not divide it.
  for (const bool is_compound : {false, true}) {
    rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
      if ((factors.size() > 1) != is_compound) return;
      AxisList axes = layout_of_tensor(context, tensor).axes(dim);
      for (const FactorId id : factors) {
        if (!is_known[id]) found[id] = is_compound ? dividing_prefix(axes, rule.factors()[id].size) : axes;
        is_known[id] = true;
        axes = difference(axes, found[id]);
      }
    });
  }
  return found;
}

// A text may claim that it has been assigned: the tensors must be where the method can be for these axes.
bool is_placed(const PartitionContext& context, const Method& method, std::span<const AxisList> axes) {
  std::vector<OpPlacement> placements;
  method.placements(context.op(), context.rule(), axes, placements);
  const LayoutView result = context.result_layout(0);
  return std::ranges::any_of(placements, [&](const OpPlacement& placement) {
    for (size_t tensor = 0; tensor < placement.tensors.size(); ++tensor) {
      const LayoutView layout = layout_of_tensor(context, tensor);
      if (!std::ranges::equal(layout.dims(), placement.tensors[tensor], {}, &DimLayout::axes)) return false;
    }
    return placement.unreduced.empty() ||
           (result.reducer() == placement.reducer && difference(placement.unreduced, result.unreduced()).empty());
  });
}

// The method that `assign` wrote down; none: the op is computed by its rule, and no method's factor is sharded.
const Method* chosen_method(const PartitionContext& context) {
  const OpView op = context.op();
  if (op.def().methods.empty()) return nullptr;
  const auto* name = op.attrs().find<std::string>(kMethodAttr);
  bool is_needed = name != nullptr;
  std::vector<AxisList> axes;
  for (const Method& method : op.def().methods) {
    const std::vector<FactorId> factors = method.factors(op, context.rule());
    const bool is_anywhere = method.placements == nullptr;  // each tensor may be
    if (!is_anywhere && axes.empty()) axes = factor_axes(context);
    if (name != nullptr && *name == method.name && method.partition != nullptr) {
      if (is_anywhere ? !factors.empty() : is_placed(context, method, axes)) return &method;
    }
    const auto is_sharded = [&](FactorId id) { return !axes[id].empty(); };
    is_needed = is_needed || (!is_anywhere && std::ranges::any_of(factors, is_sharded));
  }
  if (!is_needed) return nullptr;
  fail<ShardingError>(op.name(), "its operands and results must be sharded as one of its methods needs them",
                      name != nullptr ? "method " + *name : "none", "run assign on the program before");
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
    const ValueId part = emitter.as_parts(operand.value, passed, result.reducer(), results[0].is_owned);
    if (part != operand.value) operand.part.padding = result_padding(layout);
    operand.value = part;
  }
}

// Whether one device has each element of the result, until it is reduced.
bool is_owned(const Context& context, const OpView& op, const LocalValue& result,
              const std::vector<LocalValue>& operands) {
  const LayoutView layout = result.layout(context);
  if (layout.unreduced().empty() || layout.reducer() != Reducer::kSum) return false;
  const auto* method = op.attrs().find<std::string>(kMethodAttr);
  std::vector<AddendOperand> addends;
  for (const LocalValue& operand : operands)
    addends.push_back({!operand.layout(context).unreduced().empty(), operand.is_owned});
  return gives_owned(op.def(), method == nullptr ? std::string_view() : std::string_view(*method), addends);
}

// A text may claim that it has been assigned: its results must be where the function declares them.
void check_results(const Module& source, const Function& function, const std::vector<LocalValue>& values) {
  const std::vector<ShardingId>& declared = function.result_shardings;
  const std::vector<ValueId>& results = source.region(function.body).results;
  for (size_t i = 0; i < std::min(declared.size(), results.size()); ++i) {
    if (!declared[i]) continue;
    const LayoutView layout = values[results[i].index].layout(source.context());
    const TensorSharding& wanted = source.context().sharding(declared[i]);
    const bool is_there = layout.unreduced().empty() &&
                          std::ranges::equal(layout.dims(), wanted.dims, {}, &DimLayout::axes, &DimSharding::axes);
    if (is_there) continue;
    const ShardingId found = source.value(results[i]).sharding;
    const std::string got = found ? short_text(source.context().sharding(found)) : "no sharding";
    fail<ShardingError>("localize", str("result ", i, " must be sharded as declared, ", short_text(wanted)), got,
                        "run assign on the program before");
  }
}

void expect_placed(const OpView& op, const LocalValue& found, const LocalValue& wanted, const std::string& rule) {
  if (found.part.placement == wanted.part.placement) return;
  const Context& context = op.module().context();
  const auto text = [&](const LocalValue& value) {
    return value.part.placement ? shardwise::text(context.placement(value.part.placement)) : std::string("whole");
  };
  fail_at<ShardingError>(
      op.module(), op.loc(),
      error_message(op.name(), str(rule, ", ", text(wanted)), text(found), "run assign on the program before"));
}

constexpr std::string_view kLikeResult = " must be placed like the result";

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

// A replicated value is on every mesh.
bool is_same(const Placement& a, const Placement& b) {
  return a == b || (a.is_fully_replicated() && b.is_fully_replicated());
}

// A function is made local once for all of its calls, so that a call cannot choose where its operands are. Each
// function has emitters of its own, because the offsets and masks that they keep are values of its body. Local values
// have parts in place of shardings.
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
    check_results(source_, function, values_);
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
      result.is_owned = operand.is_owned;  // until it is reduced
      localize_collective(emitters_->of(tensors), op, operand, result);
      keep(op.result(), result);
      return;
    }
    check_internal(!traits.reshard && !traits.constraint, "a program that is made local has collectives alone");
    std::vector<LocalValue> results = expected_results(op);
    std::vector<LocalValue> operands;
    for (const ValueId operand : op.operands()) operands.push_back(values_[operand.index]);
    for (LocalValue& result : results) result.is_owned = is_owned(context(), op, result, operands);
    LocalEmitter& emitter = emitters_->of(operands, results);
    make_parts(emitter, op, results, operands);
    LocalPartitionContext partition(emitter, op, sharding_rule(op), std::move(operands), std::move(results));
    located(source_, op.id(), [&] {
      const Method* method = chosen_method(partition);
      partition.set_method(method);
      if (method == nullptr) check_left_unreduced(partition);
      if (method == nullptr) check_sharded_alike(partition);
    });
    const std::vector<LocalValue> made = partition.run();
    for (size_t i = 0; i < made.size(); ++i) keep(op.result(i), made[i]);
  }

  // Operands and results are placed like the arguments and results of the function.
  void add_call(const OpView& op) {
    const Function& called = source_.functions[calls_.callee(op.id())];
    const Region& body = source_.region(called.body);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const LocalValue& operand = values_[op.operand(i).index];
      expect_placed(op, operand, expected(body.arguments[i]),
                    str("operand ", i, " must be placed like the argument of @", called.name));
      operands.push_back(operand.value);
    }
    const std::vector<LocalValue> results = expected_results(op);
    for (size_t i = 0; i < results.size(); ++i) {
      expect_placed(op, results[i], expected(body.results[i]),
                    str("result ", i, " must be placed like that of @", called.name));
    }
    create(op, operands, {}, results);
  }

  // Every carry, and every result of branches, is placed like the result of the op.
  void add_control_flow(const OpView& op) {
    const RegionId condition = op.def().regions == Regions::kLoop ? loop_parts(op).condition : RegionId{};
    const std::vector<LocalValue> results = expected_results(op);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const LocalValue& operand = values_[op.operand(i).index];
      operands.push_back(condition ? entry_value(op, i, operand, results[i]) : operand.value);
    }
    std::vector<RegionId> regions;
    for (const RegionId region : op.regions()) {
      const bool is_condition = region == condition;
      regions.push_back(add_region(op, source_.region(region), results, is_condition));
    }
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
  ValueId entry_value(const OpView& op, size_t i, const LocalValue& entry, const LocalValue& carry) {
    const Placement* placement = placements_.find(carry.part.placement);
    if (placement != nullptr && !placement->unreduced.empty() && placements_.find(entry.part.placement) != nullptr) {
      Placement whole = *placement;
      whole.unreduced.clear();
      whole.reducer = Reducer::kNone;
      if (is_same(*placements_.find(entry.part.placement), whole)) {
        return emitters_->of({&carry.part.placement, 1})
            .as_parts(entry.value, placement->unreduced, placement->reducer, false);
      }
    }
    expect_placed(op, entry, carry, str("operand ", i, kLikeResult));
    return entry.value;
  }

  RegionId add_region(const OpView& op, const Region& region, const std::vector<LocalValue>& carries,
                      bool is_condition) {
    const Builder outside = builder_;
    builder_ = Builder(target_, target_.add_region());
    for (size_t i = 0; i < region.arguments.size(); ++i) add_argument(region.arguments[i], carries[i]);
    for (const OpId id : region.ops) add_op(OpView(source_, id));
    for (size_t i = 0; i < region.results.size(); ++i) {
      const LocalValue& result = values_[region.results[i].index];
      if (!is_condition) expect_placed(op, result, carries[i], str("result ", i, " of a region", kLikeResult));
      target_.region(builder_.region()).results.push_back(result.value);
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
