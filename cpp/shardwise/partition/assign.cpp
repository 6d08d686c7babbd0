// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/assign.h"

#include <algorithm>

#include "shardwise/choice/choose.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/partition/op_writer.h"
#include "shardwise/partition/region_writer.h"
#include "shardwise/partition/split_sums.h"

namespace shardwise {
namespace {

class Assignment {
 public:
  Assignment(const Module& module, const Choice& choice)
      : source_(module),
        choice_(choice),
        calls_(module),
        target_(empty_copy(source_, calls_)),
        builder_(target_, target_.main().body),
        placements_(module),
        values_(source_, choice_, builder_, placements_),
        ops_(source_, builder_, values_, placements_),
        regions_(source_, builder_, values_, placements_) {}

  Module run() {
    for (const size_t f : calls_.reached()) add_function(source_.functions[f]);
    target_.stage = Stage::kAssigned;
    return std::move(target_);
  }

 private:
  const OpChoice& choice_of(const OpView& op) const { return choice_.ops[op.id().index]; }

  void add_function(const Function& function) {
    Function& made = *std::ranges::find(target_.functions, function.name, &Function::name);
    regions_.enter_function(function, made);
    add_ops(function.body);
    regions_.leave_function(function, made);
  }

  void add_ops(RegionId region) {
    for (const OpId id : source_.region(region).ops) add_op(OpView(source_, id));
  }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    builder_.set_loc(op.loc(), source_.op(op.id()).origin);
    if (is_call(source_, op.id())) return add_call(op);
    if (op.def().regions == Regions::kLoop) return add_loop(op);
    if (op.def().regions == Regions::kBranches) return add_branches(op);
    if (traits.annotates()) {
      const std::string* by = op.attrs().find<std::string>(kCauseAttr);
      const Cause cause{.kind = traits.constraint ? Cause::kAnnotation : Cause::kReshard,
                        .detail = by == nullptr ? "" : *by};
      return values_.add_alias(op.result(), op.operand(0), choice_of(op).results[0], cause);
    }
    if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) return values_.add_constant(op);
    ops_.add(op, choice_of(op));
  }

  void add_call(const OpView& op) {
    const Function& called = source_.functions[calls_.callee(op.id())];
    const OpChoice& choice = choice_of(op);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Cause cause{.kind = Cause::kArgument, .of = called.name, .index = i};
      operands.push_back(values_.get(op.operand(i), choice.operands[i], cause));
    }
    const OpId made = ops_.create(op, operands, {});
    for (size_t i = 0; i < op.result_count(); ++i) add_result(op, made, i);
  }

  void add_branches(const OpView& op) {
    const OpChoice& choice = choice_of(op);
    const ValueId operand = values_.get(op.operand(0), choice.operands[0], operand_cause(op, 0));
    std::vector<RegionId> regions;
    for (const RegionId branch : op.regions()) {
      regions_.enter(branch, {});
      add_ops(branch);
      regions.push_back(regions_.leave(op, branch, choice.results));
    }
    const OpId made = ops_.create(op, std::span(&operand, 1), regions);
    for (size_t i = 0; i < op.result_count(); ++i) add_result(op, made, i);
  }

  void add_loop(const OpView& op) {
    const OpChoice& choice = choice_of(op);
    const std::vector<CarryChoice>& carries = choice_.loops.at(op.id());
    std::vector<ValueId> operands(op.operand_count());
    const auto add_operands = [&](bool accumulate) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (carries[i].accumulates == accumulate)
          operands[i] = values_.get(op.operand(i), choice.operands[i], operand_cause(op, i));
      }
    };
    add_operands(false);
    const RegionId regions[] = {add_condition(op), add_body(op)};
    add_operands(true);
    const OpId made = ops_.create(op, operands, regions);
    for (size_t i = 0; i < op.result_count(); ++i) {
      const ValueId addend = carries[i].addend;
      addend ? add_unreduced(op, made, i, addend) : add_result(op, made, i);
    }
  }

  // The reduction of its addends, after the loop.
  void add_unreduced(const OpView& loop, OpId made, size_t i, ValueId addend) {
    Cause cause = values_.pending_cause(addend);
    cause.is_after_loop = true;
    values_.add(loop.result(i), target_.result(made, static_cast<uint32_t>(i)), choice_of(loop).results[i], cause,
                values_.pending_loc(addend));
  }

  void add_result(const OpView& op, OpId made, size_t i) {
    values_.add(op.result(i), target_.result(made, static_cast<uint32_t>(i)), choice_of(op).results[i]);
  }

  RegionId add_condition(const OpView& op) {
    const RegionId condition = loop_parts(op).condition;
    regions_.enter(condition, choice_of(op).results);
    add_ops(condition);
    return regions_.leave_condition(op, condition);
  }

  RegionId add_body(const OpView& op) {
    const RegionId body = loop_parts(op).body;
    regions_.enter(body, choice_of(op).results);
    add_ops(body);
    return regions_.leave(op, body, choice_of(op).results);
  }

  const Module& source_;
  const Choice& choice_;
  const CallGraph calls_;
  Module target_;
  Builder builder_;
  ProgramPlacements placements_;
  VersionWriter values_;
  OpWriter ops_;
  RegionWriter regions_;
};

}  // namespace

Module assign(Module module, PassContext& context) {
  if (context.choice == nullptr || context.choice->is_written) module = choose(std::move(module), context);
  context.choice->is_written = true;
  Module assigned = Assignment(module, *context.choice).run();
  split_sums(assigned);
  return assigned;
}

}  // namespace shardwise
