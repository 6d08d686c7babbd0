// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/program_form.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/partition/compute_sharding.h"
#include "shardwise/partition/placed_values.h"

namespace shardwise {
namespace {

// What shows that a program is in a form, or not yet.
struct Evidence {
  LocId loc;
  std::string text;
};

std::string shown(const TensorSharding* sharding) { return sharding == nullptr ? "[]" : short_text(*sharding); }

class Forms {
 public:
  explicit Forms(const Program& program)
      : program_(program), module_(program.module), body_(module_.region(module_.main().body)) {}

  std::optional<Evidence> lacks(Form form) const {
    switch (form) {
      case Form::kGlobal: return std::nullopt;
      case Form::kAssigned: return not_assigned();
      case Form::kPlanned: return find([](const OpView& op) { return op.def().traits.reshard; });
      case Form::kLocal: return not_local();
    }
    return std::nullopt;
  }

  // Of the forms that leave a trace.
  std::optional<Evidence> shows(Form form) const {
    if (form == Form::kPlanned) {
      return find([](const OpView& op) {
        return op.def().traits.collective != CollectiveKind::kNone && !is_local_collective(op);
      });
    }
    if (form == Form::kLocal) {
      std::optional<Evidence> found = find(is_local_collective);
      if (!found && !program_.layouts.empty()) found = Evidence{{}, "the program of one device"};
      return found;
    }
    return std::nullopt;
  }

 private:
  template <class Predicate>
  std::optional<Evidence> find(Predicate is_evidence) const {
    for (const OpId id : body_.ops) {
      const OpView op(module_, id);
      if (is_evidence(op)) return Evidence{op.loc(), std::string(op.name())};
    }
    return std::nullopt;
  }

  // ---- assigned ----

  std::optional<Evidence> not_assigned() const {
    ProgramShardings shardings(module_);
    FactorProjection projection;
    for (const OpId id : body_.ops) {
      const OpView op(module_, id);
      if (is_assigned(op, shardings, projection)) continue;
      std::vector<std::string> operands, results;
      for (const ValueId operand : op.operands()) operands.push_back(shown(shardings.find(at(operand, shardings))));
      for (size_t i = 0; i < op.result_count(); ++i)
        results.push_back(shown(shardings.find(at(op.result(i), shardings))));
      return Evidence{op.loc(), str(op.name(), " from ", join(operands, ", "), " to ", join(results, ", "))};
    }
    return unassigned_result(shardings);
  }

  bool is_assigned(const OpView& op, ProgramShardings& shardings, FactorProjection& projection) const {
    const Traits& traits = op.def().traits;
    if (traits.constraint) return false;
    if (traits.reshard || traits.collective != CollectiveKind::kNone) return true;  // the verifier knows these
    const ShardingRule& rule = module_.context().sharding_rule(op);
    if (traits.constant_like && op.operand_count() == 0 && op.result_count() == 1) {
      const TensorSharding* wanted = shardings.find(at(op.result(), shardings));
      return can_be_made(rule, wanted) && (wanted == nullptr || wanted->unreduced.empty());
    }
    std::vector<ShardingId> ids;
    for (const ValueId operand : op.operands()) ids.push_back(at(operand, shardings));
    for (size_t i = 0; i < op.result_count(); ++i) ids.push_back(at(op.result(i), shardings));
    std::vector<const TensorSharding*> tensors;
    for (const ShardingId id : ids) tensors.push_back(shardings.find(id));
    if (rule.empty()) {
      return std::ranges::all_of(tensors, [](const TensorSharding* one) {
        return one == nullptr || (one->unreduced.empty() && one->is_fully_replicated());
      });
    }
    projection.project(rule, tensors, FactorProjection::Missing::kClosed);
    ComputeShardings candidates(rule);
    candidates.add(projection, {}, Reducer::kNone);
    const Pending pending = pending_of(op, rule, std::span(tensors).first(op.operand_count()));
    if (!pending.axes.empty()) candidates.add(projection, pending.axes, pending.reducer);
    return std::ranges::any_of(candidates.candidates(), [&](const ComputeSharding& compute) {
      for (size_t i = 0; i < op.operand_count(); ++i) {
        if (ids[i] != operand_sharding(shardings, rule, compute, pending, i)) return false;
      }
      for (size_t i = 0; i < op.result_count(); ++i) {
        if (ids[op.operand_count() + i] != result_sharding(shardings, rule, compute, i)) return false;
      }
      return true;
    });
  }

  ShardingId at(ValueId value, ProgramShardings& shardings) const {
    return shardings.with_unreduced(module_.value(value).sharding, module_.type(value).ndim());
  }

  // A result of main has to lie where the signature says.
  std::optional<Evidence> unassigned_result(ProgramShardings& shardings) const {
    const std::vector<ShardingId>& declared = module_.main().result_shardings;
    for (size_t i = 0; i < body_.results.size(); ++i) {
      const ValueId value = body_.results[i];
      const ShardingId is = at(value, shardings);
      const ShardingId wanted = i < declared.size() && declared[i]
                                    ? shardings.reduced(declared[i], module_.type(value).ndim())
                                    : shardings.declared(value);
      if (is == wanted) continue;
      const OpId op = module_.value(value).op;
      return Evidence{
          op ? module_.op(op).loc : module_.value(value).loc,
          str("result ", i, " in ", shown(shardings.find(is)), ", declared ", shown(shardings.find(wanted)))};
    }
    return std::nullopt;
  }

  // ---- local ----

  // A program without any sharding is the same for one device.
  std::optional<Evidence> not_local() const {
    if (shows(Form::kLocal)) return std::nullopt;
    for (const ValueId argument : body_.arguments) {
      if (is_sharded(argument)) return Evidence{module_.value(argument).loc, "a sharded argument"};
    }
    return find([&](const OpView& op) {
      const Traits& traits = op.def().traits;
      if (traits.constraint || traits.reshard || traits.collective != CollectiveKind::kNone) return true;
      for (size_t i = 0; i < op.result_count(); ++i) {
        if (is_sharded(op.result(i))) return true;
      }
      return false;
    });
  }

  bool is_sharded(ValueId value) const {
    const ShardingId id = module_.value(value).sharding;
    return id &&
           !(module_.context().sharding(id).is_fully_replicated() && module_.context().sharding(id).unreduced.empty());
  }

  const Program& program_;
  const Module& module_;
  const Region& body_;
};

// The passes of the pipeline that make these forms, as a sentence names them.
std::string makers(Form first, Form last) {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) {
    if (pass.makes != Form::kGlobal && pass.makes >= first && pass.makes <= last) names.emplace_back(pass.name);
  }
  return join(names, " and ");
}

[[noreturn]] void refuse(const Module& module, const Evidence& evidence, std::string_view what, std::string must_hold,
                         std::string way_out) {
  ShardingError error(error_message(what, must_hold, evidence.text, way_out));
  error.at(module.context().location_text(evidence.loc));
  throw error;
}

}  // namespace

void check_form(std::string_view what, const FormRange& takes, const Program& program) {
  const Forms forms(program);
  for (const Form form : {Form::kAssigned, Form::kPlanned, Form::kLocal}) {
    if (form <= takes.first && takes.first != Form::kGlobal) {
      const bool behind_all = takes.first == Form::kLocal;  // these forms have left no trace
      if (behind_all && form != Form::kLocal) continue;
      if (const auto evidence = forms.lacks(form)) {
        refuse(program.module, *evidence, what, str("the program must have been through ", makers(form, takes.first)),
               str("run ", makers(form, takes.first), " first"));
      }
    }
    if (form > takes.last) {
      if (const auto evidence = forms.shows(form)) {
        refuse(program.module, *evidence, what, str("the program must not have been through ", makers(form, form)),
               "give it the program before that");
      }
    }
  }
}

}  // namespace shardwise
