// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/verify_choice.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/candidates/op_candidates.h"
#include "shardwise/choice/computed_again.h"
#include "shardwise/choice/versions.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// The placements in which values are there, as they become so in the order of the program.
class MadeVersions {
 public:
  MadeVersions(const Module& module, const Choice& choice, ProgramPlacements& placements)
      : module_(module),
        choice_(choice),
        placements_(placements),
        made_(module.value_count()),
        constants_(module.value_count()) {}

  void enter(RegionId region) { scopes_.push_back({region, {}}); }
  void leave() {
    const size_t left = scopes_.size();
    for (const ValueId value : scopes_.back().versioned) {
      std::erase_if(made_[value.index], [&](const Made& made) { return made.depth == left; });
    }
    scopes_.pop_back();
  }

  void add(ValueId value, PlacementId home) { made_[value.index] = {{home, scopes_.size()}}; }
  void add_constant(const OpView& op) { constants_[op.result().index] = op.id(); }
  void add_alias(ValueId value, ValueId original) {
    made_[value.index] = made_[original.index];
    constants_[value.index] = constants_[original.index];
  }

  // Whether the value is there in the placement, or a version of the choice brings it there.
  bool bring(ValueId value, PlacementId need) {
    if (is_there(value, need)) return true;
    for (size_t depth = scopes_.size(); depth > 0; --depth) {
      const auto found = choice_.versions.find({value, need, scopes_[depth - 1].region});
      if (found == choice_.versions.end()) continue;
      // Versions that are made from each other are made from nothing.
      if (std::ranges::find(open_, found->first) != open_.end()) return false;
      open_.push_back(found->first);
      const bool is_made = make(value, need, found->second);
      open_.pop_back();
      if (!is_made) return false;
      made_[value.index].push_back({need, depth});
      scopes_[depth - 1].versioned.push_back(value);
      return true;
    }
    return false;
  }

 private:
  struct Made {
    PlacementId placement;
    size_t depth;  // of its region in scopes_, from 1
  };
  struct Scope {
    RegionId region;
    std::vector<ValueId> versioned;
  };

  bool is_there(ValueId value, PlacementId placement) const {
    return std::ranges::find(made_[value.index], placement, &Made::placement) != made_[value.index].end();
  }

  bool make(ValueId value, PlacementId need, const VersionChoice& version) {
    const OpId maker = module_.value(value).op;
    switch (version.kind) {
      case VersionChoice::kReshard: return can_reshard(version.from, need) && bring(value, version.from);
      case VersionChoice::kAgain: {
        if (!maker) return false;
        const ComputedAgain again = computed_again(OpView(module_, maker), need, placements_);
        return again && std::ranges::all_of(again.operands, [&](const ComputedAgain::Operand& operand) {
                 return bring(operand.value, operand.placement);
               });
      }
      case VersionChoice::kMade: {
        const OpId constant = constants_[value.index];
        return constant && can_be_made(sharding_rule(OpView(module_, constant)), placements_.find(need));
      }
    }
    return false;
  }

  // A reshard completes reductions, and starts none.
  bool can_reshard(PlacementId from, PlacementId to) const {
    const Placement* after = placements_.find(to);
    if (after == nullptr || after->unreduced.empty()) return true;
    const Placement* before = placements_.find(from);
    return before != nullptr && before->reducer == after->reducer && before->mesh == after->mesh &&
           difference(after->unreduced, before->unreduced).empty();
  }

  const Module& module_;
  const Choice& choice_;
  ProgramPlacements& placements_;
  std::vector<std::vector<Made>> made_;  // by value
  std::vector<OpId> constants_;          // by value: its op, if it is made where it is used
  std::vector<Scope> scopes_;
  std::vector<VersionKey> open_;  // versions that are being made
};

// The entries of ops one by one, and what is wrong with them.
class EntryChecks {
 public:
  EntryChecks(const Module& module, const Choice& choice, const ProgramPlacements& placements)
      : module_(module), choice_(choice), placements_(placements) {}

  // The entry of an op, which has a placement of the right form for each of its tensors.
  const OpChoice& entry(const OpView& op) const {
    static const OpChoice none;
    const OpChoice& choice = op.id().index < choice_.ops.size() ? choice_.ops[op.id().index] : none;
    const bool is_complete = choice.operands.size() == op.operand_count() && choice.results.size() == op.result_count();
    if (!is_complete) {
      fail(op, "must have a placement for each operand and result",
           str(choice.operands.size(), " and ", choice.results.size()));
    }
    for (size_t i = 0; i < op.operand_count(); ++i) check(op, choice.operands[i], op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) check(op, choice.results[i], op.result_type(i));
    return choice;
  }

  std::string text(PlacementId placement) const {
    const std::string written = placement_text(module_.context(), placement, choice_.mesh);
    return written.empty() ? "no placement" : written;
  }

  void expect(const OpView& op, bool holds, std::string_view must_hold) const {
    if (holds) return;
    const OpChoice& choice = choice_.ops[op.id().index];
    const auto texts = [&](const std::vector<PlacementId>& placements) {
      return join(placements, ", ", [&](PlacementId placement) { return text(placement); });
    };
    const std::string method = choice.method == nullptr ? "" : str("by ", choice.method->name, ": ");
    fail(op, must_hold, str(method, texts(choice.operands), " -> ", texts(choice.results)));
  }

  [[noreturn]] void fail(const OpView& op, std::string_view must_hold, std::string_view got) const {
    fail_at<ShardingError>(module_, op.loc(),
                           error_message(op.name(), str("choices: ", must_hold), got, "compile without choices"));
  }

 private:
  void check(const OpView& op, PlacementId id, const TensorType& type) const {
    const Placement* placement = placements_.find(id);
    if (placement == nullptr) {
      if (placements_.mesh() != nullptr) fail(op, "each placement must be on a mesh of the program", "none");
      return;
    }
    const auto is_theirs = [&](const MeshPtr& mesh) { return mesh == placement->mesh; };
    if (!is_theirs(placements_.mesh()) && std::ranges::none_of(placements_.other_meshes(), is_theirs)) {
      fail(op, "each placement must be on a mesh of the program",
           placement->mesh == nullptr ? std::string("none") : placement->mesh->text());
    }
    located(module_, op.id(), [&] { verify(*placement, type.shape); });
  }

  const Module& module_;
  const Choice& choice_;
  const ProgramPlacements& placements_;
};

class ChoiceVerifier {
 public:
  ChoiceVerifier(const Module& module, const Choice& choice)
      : module_(module),
        choice_(choice),
        calls_(module),
        placements_(module),
        linearity_(module),
        entries_(module, choice, placements_),
        versions_(module, choice, placements_) {}

  void run() {
    for (const size_t f : calls_.reached()) add_function(module_.functions[f]);
  }

 private:
  void add_function(const Function& function) {
    versions_.enter(function.body);
    for (const ValueId argument : module_.region(function.body).arguments) {
      const Value& known = module_.value(argument);
      const bool is_of_main = &function == &module_.main();
      versions_.add(argument, is_of_main ? placements_.of(known.sharding, known.type) : placements_.declared(argument));
    }
    add_ops(function.body);
    const std::vector<ValueId>& results = module_.region(function.body).results;
    for (size_t i = 0; i < results.size(); ++i) {
      const PlacementId need = placements_.result(function, i);
      if (!versions_.bring(results[i], need)) fail_result(module_.value(results[i]).loc, i, need);
    }
    versions_.leave();
  }

  void add_ops(RegionId region) {
    for (const OpId id : module_.region(region).ops) add_op(OpView(module_, id));
  }

  void add_op(const OpView& op) {
    const Traits& traits = op.def().traits;
    const bool is_constant = traits.constant_like && op.operand_count() == 0 && op.result_count() == 1;
    if (is_constant) return versions_.add_constant(op);
    const OpChoice& choice = entries_.entry(op);
    if (is_call(module_, op.id())) return add_call(op, choice);
    if (op.def().regions == Regions::kLoop) return add_loop(op, choice);
    if (op.def().regions == Regions::kBranches) return add_branches(op, choice);
    if (traits.annotates()) return add_annotation(op, choice);
    if (sharding_rule(op).empty()) {
      entries_.expect(op, choice == replicated_choice(placements_, op),
                      "an op without a sharding rule must be replicated");
    } else {
      entries_.expect(op, is_possible(placements_, linearity_, op, choice),
                      "its operands and results must have placements that its sharding rule or a method allows");
    }
    bring_operands(op, choice);
    const bool is_wide = has_wide_addends(placements_, op, choice);
    for (size_t i = 0; i < op.result_count(); ++i) {
      versions_.add(op.result(i), is_wide ? placements_.declared(op.result(i)) : choice.results[i]);
    }
  }

  void bring_operands(const OpView& op, const OpChoice& choice) {
    for (size_t i = 0; i < op.operand_count(); ++i) bring_operand(op, choice, i);
  }
  void bring_operand(const OpView& op, const OpChoice& choice, size_t i) {
    if (versions_.bring(op.operand(i), choice.operands[i])) return;
    entries_.fail(op, str("operand ", i, " must be there, or a version must bring it there"),
                  entries_.text(choice.operands[i]));
  }

  void add_call(const OpView& op, const OpChoice& choice) {
    const Function& called = module_.functions[calls_.callee(op.id())];
    const std::vector<ValueId>& arguments = module_.region(called.body).arguments;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      entries_.expect(op, choice.operands[i] == placements_.declared(arguments[i]),
                      "operands must be placed as the arguments");
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      entries_.expect(op, choice.results[i] == placements_.result(called, i),
                      "results must be placed as those of the function");
    }
    bring_operands(op, choice);
    add_results(op, choice);
  }

  void add_results(const OpView& op, const OpChoice& choice) {
    for (size_t i = 0; i < op.result_count(); ++i) versions_.add(op.result(i), choice.results[i]);
  }

  // The dims are those of the annotation. What is unreduced may stay so.
  void add_annotation(const OpView& op, const OpChoice& choice) {
    const Placement* placed = placements_.find(choice.results[0]);
    const Placement* asked = placements_.find(placements_.declared(op.result()));
    const bool has_dims = placed == nullptr || placed->dims == asked->dims;
    entries_.expect(op, choice.operands == choice.results && has_dims, "must be placed as annotated");
    bring_operands(op, choice);
    versions_.add_alias(op.result(), op.operand(0));
  }

  void add_branches(const OpView& op, const OpChoice& choice) {
    entries_.expect(op, choice.operands[0] == placements_.replicated(module_.value(op.operand(0)).type),
                    "the predicate must be replicated");
    bring_operands(op, choice);
    for (const RegionId branch : op.regions()) add_region(op, branch, {}, choice.results);
    add_results(op, choice);
  }

  // Regions of an op return their results in the placements of its own.
  void add_region(const OpView& op, RegionId region, const std::vector<PlacementId>& arguments,
                  const std::vector<PlacementId>& results) {
    versions_.enter(region);
    for (size_t i = 0; i < arguments.size(); ++i) versions_.add(module_.region(region).arguments[i], arguments[i]);
    add_ops(region);
    for (size_t i = 0; i < results.size(); ++i) {
      if (versions_.bring(module_.region(region).results[i], results[i])) continue;
      entries_.fail(op, str("each of its regions must return result ", i, " placed alike"), entries_.text(results[i]));
    }
    versions_.leave();
  }

  void add_loop(const OpView& op, const OpChoice& choice) {
    const auto carries = choice_.loops.find(op.id());
    const bool has_carries = carries != choice_.loops.end() && carries->second.size() == op.operand_count();
    entries_.expect(op, has_carries, "each carry must have an entry");
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Placement* carry = placements_.find(choice.results[i]);
      const Placement* enters = placements_.find(choice.operands[i]);
      const bool is_unreduced = carry != nullptr && !carry->unreduced.empty();
      entries_.expect(op, !is_unreduced || carries->second[i].accumulates, "a carry that is read must be reduced");
      const bool is_alike = is_unreduced ? enters->dims == carry->dims : choice.operands[i] == choice.results[i];
      entries_.expect(op, is_alike, "a carry must enter the loop as it is placed in it");
      if (!carries->second[i].accumulates) bring_operand(op, choice, i);
    }
    const LoopParts parts = loop_parts(op);
    const ValueId predicate = module_.region(parts.condition).results[0];
    add_region(op, parts.condition, choice.results, {placements_.replicated(module_.value(predicate).type)});
    add_region(op, parts.body, choice.results, choice.results);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (carries->second[i].accumulates) bring_operand(op, choice, i);
    }
    add_results(op, choice);
  }

  [[noreturn]] void fail_result(LocId loc, size_t i, PlacementId need) const {
    fail_at<ShardingError>(module_, loc,
                           error_message(str("result ", i), "choices: must be there, or a version must bring it there",
                                         entries_.text(need), "compile without choices"));
  }

  const Module& module_;
  const Choice& choice_;
  const CallGraph calls_;
  ProgramPlacements placements_;
  const ProgramLinearity linearity_;
  const EntryChecks entries_;
  MadeVersions versions_;
};

}  // namespace

void verify_choice(const Module& module, const Choice& choice) { ChoiceVerifier(module, choice).run(); }

bool is_possible(const ProgramPlacements& placements, const ProgramLinearity& linearity, const OpView& op,
                 const OpChoice& choice) {
  const ShardingRule& rule = sharding_rule(op);
  std::vector<TensorPlacements> tensors;
  std::vector<const Placement*> operands, all;
  for (const std::vector<PlacementId>* ids : {&choice.operands, &choice.results}) {
    for (const PlacementId id : *ids) {
      tensors.push_back({id});
      all.push_back(placements.find(id));
    }
  }
  operands.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(op.operand_count()));
  const Pending pending = pending_of(op, linearity, operands);
  const auto is_chosen = [&](const Candidate& candidate) {
    return candidate.choice.method == choice.method && candidate.choice.operands == choice.operands &&
           candidate.choice.results == choice.results;
  };
  // Mostly the placements lead to it themselves; only otherwise all candidates are made.
  ComputeShardings shardings(op, rule);
  FactorProjection projection;
  for (const MeshPtr& mesh : meshes_of(placements, tensors)) {
    std::vector<const Placement*> here = all;
    for (const Placement*& placement : here) {
      if (mesh != nullptr && placement != nullptr && placement->mesh != mesh) placement = nullptr;
    }
    projection.project(rule, here);
    shardings.set_mesh(mesh);
    if (pending.axes.empty()) shardings.add(projection, here, {}, Reducer::kNone);
    if (!pending.axes.empty() && (mesh == nullptr || mesh == pending.mesh)) {
      shardings.add(projection, here, pending.axes, pending.reducer);
    }
  }
  const auto leads_to_it = [&](const ComputeSharding& compute) {
    return is_chosen(candidate_of(placements, op, rule, compute, pending));
  };
  if (std::ranges::any_of(shardings.candidates(), leads_to_it)) return true;
  return std::ranges::any_of(op_candidates(placements, op, rule, tensors, pending).candidates, is_chosen);
}

}  // namespace shardwise
