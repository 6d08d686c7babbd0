// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/assign.h"

#include <algorithm>
#include <tuple>

#include "shardwise/base/error.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/partition/compute_sharding.h"
#include "shardwise/partition/placed_values.h"

namespace shardwise {
namespace {

// The criteria for candidates, most important first. A later reduction may be combined with others.
struct Price {
  double bytes = 0;
  bool reduces_early = false;
  double work = 0;
  int reshards = 0;
  friend bool operator<(const Price& a, const Price& b) {
    return std::tie(a.bytes, a.reduces_early, a.work, a.reshards) <
           std::tie(b.bytes, b.reduces_early, b.work, b.reshards);
  }
};

std::string short_name(std::string_view name) { return std::string(name.substr(name.find('.') + 1)); }

class Assignment {
 public:
  explicit Assignment(Module& module)
      : source_(module),
        target_(empty_copy(source_)),
        builder_(target_, target_.main().body),
        copy_(source_, target_),
        planner_(module.context(), ReshardPlanner::Effort::kEstimate),
        placements_(module),
        values_(source_, builder_, planner_, placements_) {}

  Module run(Counters& counters) {
    const Region& body = source().region(source().main().body);
    for (const ValueId argument : body.arguments) values_.add_argument(argument);
    for (const OpId id : body.ops) add_op(OpView(source(), id));
    add_results();
    counters.add("assign.states", planner_.states());
    target_.stage = Stage::kAssigned;
    return std::move(target_);
  }

 private:
  const Module& source() const { return source_; }
  TypeId type_of(ValueId value) const { return source().value(value).type; }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    builder_.set_loc(op.loc(), source().op(op.id()).origin);
    if (traits.constraint || traits.reshard) {
      values_.add_alias(op.result(), op.operand(0), traits.constraint ? "annotation" : "reshard");
    } else if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) {
      values_.add_constant(op);
    } else {
      const ShardingRule& rule = source().context().sharding_rule(op);
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
    ComputeShardings shardings(rule);
    project(op, rule, false);
    shardings.add(projection_, {}, Reducer::kNone);
    const bool elsewhere = project(op, rule, true);
    // Computing where the operands currently are may save a reshard.
    if (elsewhere) shardings.add(projection_, {}, Reducer::kNone);
    const Pending pending = pending_at_home(op, rule);
    if (!pending.axes.empty()) shardings.add(projection_, pending.axes, pending.reducer);

    const ComputeSharding* best = &shardings.candidates()[0];
    if (shardings.candidates().size() > 1) {
      Price best_price = price(op, rule, *best, pending);
      for (const ComputeSharding& candidate : std::span(shardings.candidates()).subspan(1)) {
        const Price candidate_price = price(op, rule, candidate, pending);
        if (!(candidate_price < best_price)) continue;
        best = &candidate;
        best_price = candidate_price;
      }
    }
    emit(op, rule, *best, pending);
  }

  // Projects the shardings from propagation, or the current shardings of operands. Returns whether they differ.
  bool project(const OpView& op, const ShardingRule& rule, bool where_they_are) {
    tensors_.clear();
    bool differs = false;
    for (const ValueId operand : op.operands()) {
      const PlacementId declared = placements_.declared(operand);
      const PlacementId home = values_.home(operand, declared);
      differs = differs || home != declared;
      tensors_.push_back(placements_.find(where_they_are ? home : declared));
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      tensors_.push_back(placements_.find(placements_.declared(op.result(i))));
    }
    if (!where_they_are || differs) projection_.project(rule, tensors_);
    return differs;
  }

  // ---- pending reductions ----

  Pending pending_at_home(const OpView& op, const ShardingRule& rule) {
    std::vector<const Placement*> homes;
    for (const ValueId operand : op.operands()) homes.push_back(placements_.find(values_.home(operand, {})));
    return pending_of(op, rule, homes);
  }

  // The number of ops that share the reduction of a value if it is completed before them; 0 if another user needs it
  // reduced anyway.
  double sharers(ValueId value, const OpView& user, Reducer reducer) const {
    const Region& body = source().region(source().main().body);
    if (std::find(body.results.begin(), body.results.end(), value) != body.results.end()) return 0;
    double count = 0;
    for (const Use use : source_.uses(value)) {
      if (!use.op) continue;
      const OpView op(source(), use.op);
      if (use.op != user.id() && !may_pass(op, source().context().sharding_rule(op), reducer)) return 0;
      ++count;
    }
    return count;
  }

  // ---- prices and ops ----

  Price price(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute, const Pending& pending) {
    const bool reduces_early = !pending.axes.empty() && compute.passed.empty();
    Price price{.bytes = 0, .reduces_early = reduces_early, .work = compute.local_work(rule), .reshards = 0};
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const PlacementId need = operand_placement(placements_, op, rule, compute, pending, i);
      double bytes = values_.bytes(op.operand(i), need);
      if (reduces_early && pending.operands[i]) {
        const double count = sharers(op.operand(i), op, pending.reducer);
        bytes = count == 0 ? 0 : bytes / count;
      }
      price.bytes += bytes;
      price.reshards += need == values_.home(op.operand(i), need) ? 0 : 1;
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      const PlacementId made = result_placement(placements_, op, rule, compute, i);
      const PlacementId declared = placements_.declared(op.result(i));
      price.bytes += planner_.bytes(type_of(op.result(i)), made, declared);
      price.reshards += made == declared ? 0 : 1;
    }
    return price;
  }

  void emit(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute, const Pending& pending) {
    std::vector<ValueId> operands;
    std::string cause;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const PlacementId need = operand_placement(placements_, op, rule, compute, pending, i);
      operands.push_back(values_.get(op.operand(i), need, operand_cause(op, i)));
      if (!compute.passed.empty() && pending.operands[i]) cause = values_.pending_cause(op.operand(i));
    }
    if (!compute.reduced.empty()) cause = "reduction in " + short_name(op.name());
    const OpId made = copy_.op(op.id(), builder_.region(), operands);
    for (size_t i = 0; i < op.result_count(); ++i) {
      values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)),
                  result_placement(placements_, op, rule, compute, i), cause);
    }
  }

  static std::string operand_cause(const OpView& op, size_t i) {
    return "operand " + std::to_string(i) + " of " + short_name(op.name());
  }

  void add_results() {
    Function& main = target_.main();
    const std::vector<ValueId>& results = source().region(source().main().body).results;
    const std::vector<ShardingId>& declared = source().main().result_shardings;
    std::vector<ShardingId> shardings;
    for (size_t i = 0; i < results.size(); ++i) {
      const PlacementId wanted = i < declared.size() && declared[i]
                                     ? placements_.reduced(declared[i], type_of(results[i]))
                                     : placements_.declared(results[i]);
      const OpId op = source().value(results[i]).op;
      builder_.set_loc(op ? source().op(op).loc : source().value(results[i]).loc, source().op(op).origin);
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
  FactorProjection projection_;
  std::vector<const Placement*> tensors_;
};

}  // namespace

Module assign(Module module, PassContext& context) { return Assignment(module).run(context.counters); }

}  // namespace shardwise
