// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/assign.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/partition/op_choice.h"
#include "shardwise/partition/partition_context.h"

namespace shardwise {
namespace {

// The trips of a loop that does not count: enough for a reshard before it to be worth more than one in it.
constexpr int64_t kAssumedTrips = 16;

std::string short_name(std::string_view name) { return std::string(name.substr(name.find('.') + 1)); }

std::string operand_cause(const OpView& op, size_t i) {
  return "operand " + std::to_string(i) + " of " + short_name(op.name());
}

// Why the range of a sharded dim needs the dim whole, if that is the reason; else nothing.
std::string range_cause(const OpView& op, const ShardingRule& rule, size_t i, const Placement& home,
                        const Placement& need) {
  for (size_t d = 0; d < home.dims.size(); ++d) {
    const Range* range = rule.range(i, d);
    if (range == nullptr || home.dims[d].axes.empty() || !need.dims[d].axes.empty()) continue;
    if (!range->is_static()) return str(": the start along dim ", d, " is known only at run time");
    const FactorId factor = rule.dim(i, d)[0];
    for (size_t e = 0; e < rule.ndim(rule.result_tensor(0)); ++e) {
      if (rule.dim(rule.result_tensor(0), e)[0] != factor) continue;
      const Interval read = range->reads({0, op.result_type().shape[e]}, op.operand_type(i).shape[d]);
      return str(": the range [", read.begin, ", ", read.end, ") crosses shards along dim ", d);
    }
  }
  return {};
}

class Assignment {
 public:
  explicit Assignment(Module& module)
      : source_(module),
        target_(empty_copy(source_)),
        builder_(target_, target_.main().body),
        copy_(source_, target_),
        planner_(module.context(), ReshardPlanner::Effort::kEstimate),
        placements_(module),
        values_(source_, builder_, planner_, placements_),
        chooser_(module, values_, placements_, planner_) {}

  Module run(Counters& counters) {
    const RegionId body = source_.main().body;
    for (const ValueId argument : source_.region(body).arguments) values_.add_argument(argument);
    for (const OpId id : source_.region(body).ops) add_op(OpView(source_, id));
    add_results();
    counters.add("assign.states", planner_.states());
    target_.stage = Stage::kAssigned;
    return std::move(target_);
  }

 private:
  TypeId type_of(ValueId value) const { return source_.value(value).type; }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    if (op.def().is_control_flow()) {
      add_control_flow(op);
    } else if (traits.constraint || traits.reshard) {
      values_.add_alias(op.result(), op.operand(0), traits.constraint ? "annotation" : "reshard");
    } else if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) {
      values_.add_constant(op);
    } else {
      const ShardingRule& rule = source_.context().sharding_rule(op);
      if (rule.empty()) {
        add_replicated(op);
      } else {
        add_by_rule(op, rule);
      }
    }
  }

  void add_replicated(const OpView& op) {
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      operands.push_back(
          values_.get(op.operand(i), placements_.replicated(type_of(op.operand(i))), operand_cause(op, i)));
    }
    const OpId made = copy_.op(op.id(), builder_.region(), operands);
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)),
                  placements_.replicated(type_of(op.result(i))), {});
    }
  }

  void add_by_rule(const OpView& op, const ShardingRule& rule) {
    const auto [compute, pending] = chooser_.choose(op, rule);
    std::vector<ValueId> operands;
    std::string cause;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const PlacementId need = operand_placement(placements_, op, rule, compute, pending, i);
      operands.push_back(values_.get(op.operand(i), need, cause_of_operand(op, rule, i, need)));
      if (!compute.passed.empty() && pending.operands[i]) cause = values_.pending_cause(op.operand(i));
    }
    if (!compute.reduced.empty()) cause = reduction_cause(op, rule, compute);
    const OpId made = copy_.op(op.id(), builder_.region(), operands);
    if (compute.has_own_partition()) {
      Attrs attrs = op.attrs();
      attrs.set(kMethodAttr, std::string(compute.method->name));
      target_.op(made).attrs = target_.context().intern(attrs);
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)),
                  result_placement(placements_, op, rule, compute, i), cause);
    }
  }

  std::string cause_of_operand(const OpView& op, const ShardingRule& rule, size_t i, PlacementId need) {
    const Placement* home = rule.has_ranges() ? placements_.find(values_.home(op.operand(i), need)) : nullptr;
    if (home == nullptr) return operand_cause(op, i);
    return operand_cause(op, i) + range_cause(op, rule, i, *home, *placements_.find(need));
  }

  static std::string reduction_cause(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute) {
    if (compute.method != nullptr) {
      for (const FactorId id : compute.method->factors(op, rule)) {
        const AxisList& axes = compute.factors[id];
        if (!axes.empty() && overlaps(axes, compute.reduced)) return method_cause(*compute.method, op);
      }
    }
    return "reduction in " + short_name(op.name());
  }

  // ---- regions ----

  // A carry, or the result of all branches, has the placement that propagation gave to the result of the op. Predicates
  // are whole on each device: all devices take the same way.
  void add_control_flow(const OpView& op) {
    const bool is_loop = op.def().regions == Regions::kLoop;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const PlacementId need =
          is_loop ? placements_.declared(op.result(i)) : placements_.replicated(type_of(op.operand(i)));
      operands.push_back(values_.get(op.operand(i), need, operand_cause(op, i)));
    }
    std::vector<RegionId> regions;
    for (size_t r = 0; r < op.regions().size(); ++r) regions.push_back(add_region(op, r));
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    std::vector<TypeId> types;
    for (size_t i = 0; i < op.result_count(); ++i) types.push_back(type_of(op.result(i)));
    const OpId made = builder_.create_op(op.def(), operands, source_.op(op.id()).attrs, types, regions);
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)), placements_.declared(op.result(i)), {});
    }
  }

  RegionId add_region(const OpView& op, size_t index) {
    const Region& region = source_.region(op.regions()[index]);
    const bool is_loop = op.def().regions == Regions::kLoop;
    const bool is_condition = is_loop && index == 0;
    const Builder outside = builder_;
    builder_ = Builder(target_, target_.add_region());
    const auto counted = counted_loop(op);
    const auto trips = static_cast<double>(counted ? counted->trips : kAssumedTrips);
    values_.enter(is_loop ? std::max(trips, 2.0) : 1);
    for (size_t i = 0; i < region.arguments.size(); ++i) {
      const ValueId argument = region.arguments[i];
      const ValueId made = target_.add_argument(builder_.region(), type_of(argument), source_.value(argument).loc);
      target_.value(made).origin = source_.value(argument).origin;
      values_.add(argument, made, placements_.declared(op.result(i)), {});
    }
    for (const OpId id : region.ops) add_op(OpView(source_, id));
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    for (size_t i = 0; i < region.results.size(); ++i) {
      const PlacementId need =
          is_condition ? placements_.replicated(type_of(region.results[i])) : placements_.declared(op.result(i));
      const std::string cause = is_condition ? "condition of " : str("result ", i, " of a region of ");
      const ValueId result = values_.get(region.results[i], need, cause + short_name(op.name()));
      target_.region(builder_.region()).results.push_back(result);
    }
    values_.leave();
    const RegionId made = builder_.region();
    builder_ = outside;
    return made;
  }

  void add_results() {
    Function& main = target_.main();
    const std::vector<ValueId>& results = source_.region(source_.main().body).results;
    const std::vector<ShardingId>& declared = source_.main().result_shardings;
    std::vector<ShardingId> shardings;
    for (size_t i = 0; i < results.size(); ++i) {
      const PlacementId wanted = i < declared.size() && declared[i]
                                     ? placements_.reduced(declared[i], type_of(results[i]))
                                     : placements_.declared(results[i]);
      const OpId op = source_.value(results[i]).op;
      builder_.set_loc(op ? source_.op(op).loc : source_.value(results[i]).loc, source_.op(op).origin);
      const ValueId result = values_.get(results[i], wanted, "result " + std::to_string(i));
      target_.region(main.body).results.push_back(result);
      shardings.push_back(placements_.sharding(wanted));
    }
    main.result_shardings = std::move(shardings);
  }

  Module& source_;
  Module target_;
  Builder builder_;
  GraphCopy copy_;
  ReshardPlanner planner_;
  ProgramPlacements placements_;
  PlacedValues values_;
  OpChooser chooser_;
};

}  // namespace

Module assign(Module module, PassContext& context) { return Assignment(module).run(context.counters); }

}  // namespace shardwise
