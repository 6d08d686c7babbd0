// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/checks.h"

#include <set>
#include <string>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/passes.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/shared/refusals.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/legalize.h"
#include "shardwise/transforms/inline_calls.h"

namespace shardwise {
namespace {

// ---- stages --------------------------------------------------------------------------------------------------------

// The passes of the pipeline that make these stages, as a sentence names them.
std::string passes_that_leave(Stage first, Stage last) {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) {
    if (pass.makes && *pass.makes >= first && *pass.makes <= last) names.emplace_back(pass.name);
  }
  return join(names, " and ");
}

Stage next(Stage stage) { return static_cast<Stage>(static_cast<int>(stage) + 1); }

// The first op of the program, for the user to see which program it is.
LocId place_of(const Module& module) {
  const Region& body = module.region(module.main().body);
  if (!body.ops.empty()) return module.op(body.ops[0]).loc;
  return body.arguments.empty() ? LocId{} : module.value(body.arguments[0]).loc;
}

[[noreturn]] void refuse_late(std::string_view what, const Module& module, Stage stage, LocId loc,
                              const std::string& got) {
  fail_at<ShardingError>(
      module, loc,
      error_message(what, str("the program must not have been through ", passes_that_leave(stage, stage)), got,
                    "give it the program before that"));
}

// A program that is not resharded may hold collectives that its user wrote. Only propagation knows what to do with
// them.
void check_collectives(std::string_view what, const Module& module) {
  // A function that nothing calls does not run, so its collectives do no harm.
  std::set<std::string> called{module.main().name};
  walk(module, [&](OpId id) {
    if (is_call(module, id)) called.insert(callee_of(module, id));
  });
  for (const Function& function : module.functions) {
    if (!called.contains(function.name)) continue;
    walk(module, function.body, [&](OpId id) {
      const OpView op(module, id);
      if (op.def().traits.collective == CollectiveKind::kNone) return;
      refuse_late(what, module, Stage::kResharded, op.loc(), std::string(op.name()));
    });
  }
}

// ---- programs to run -----------------------------------------------------------------------------------------------

void check_type(const Module& module, ValueId value, LocId loc) {
  if (module.type(value).dtype != DType::kToken) return;
  fail_at<DTypeError>(module, loc,
                      error_message("compile", "a value must be a tensor", module.type(value).text(),
                                    "leave out the ops that have effects"));
}

// The requirements of the passes to come.
enum class Needs : uint8_t { kKernel, kKernelOrDecomposition };

// Its ops are put where it is before anything runs.
bool goes_inline(const OpDef& def) { return def.regions == Regions::kInline || def.regions == Regions::kManual; }

std::string_view pass_that_replaces(const OpView& op) {
  if (goes_inline(op.def()) || is_composite(op.def())) return kInlineCalls.name;
  return is_composed(op.def()) ? kLegalize.name : std::string_view();
}

void check_op(const OpView& op, Needs needs) {
  const Module& module = op.module();
  if (op.def().verify_runnable != nullptr) located(module, op.id(), [&] { op.def().verify_runnable(op); });
  // `legalize` leaves the ops that have methods: one of these, or the decomposition,
  // takes their place in the local program.
  const bool is_replaced = is_composed(op.def()) && (op.def().methods.empty() || module.stage >= Stage::kLocal);
  if (op.def().runnable() && !goes_inline(op.def()) && !(needs == Needs::kKernel && is_replaced)) return;
  const std::string_view pass = pass_that_replaces(op);
  const Refusal* refusal = refusal_of(op.name());
  // From the most to the least specific advice.
  const bool is_refused = pass.empty() && refusal != nullptr;
  const std::string way_out = !pass.empty() ? str("run ", pass, " first")
                              : is_refused  ? std::string(refusal->way_out)
                                            : "replace it by other ops";
  const std::string must_hold =
      is_refused ? refused_because(*refusal) : "can be read, propagated and printed, but not run";
  fail_at<UnsupportedError>(module, op.loc(), error_message(op.name(), must_hold, {}, way_out));
}

// Types come last, because an argument that is a token is of an op that is refused: a callback in JAX's order of
// effects.
void check_runnable_region(const Module& module, RegionId region, Needs needs) {
  walk(module, region, [&](OpId id) { check_op(OpView(module, id), needs); });
  std::vector<ValueId> values;
  append_values(module, region, values);
  for (const ValueId value : values) check_type(module, value, loc_of(module, value));
}

}  // namespace

void check_stage(std::string_view what, StageRange takes, const Module& module) {
  if (module.stage < takes.first) {
    // A text does not show the stages before `assigned`, so the error does not name the passes that make them.
    const Stage first = takes.first == Stage::kLocal ? Stage::kLocal : std::max(next(module.stage), Stage::kAssigned);
    const std::string missing = passes_that_leave(first, takes.first);
    fail_at<ShardingError>(
        module, place_of(module),
        error_message(what, str("the program must have been through ", missing),
                      str("a program at stage ", stage_name(module.stage)), str("run ", missing, " first")));
  }
  if (module.stage > takes.last) {
    refuse_late(what, module, module.stage, place_of(module), str("a program at stage ", stage_name(module.stage)));
  }
  // The stage of a text without one is the first, whatever its ops are.
  if (takes.last < Stage::kResharded) check_collectives(what, module);
}

void check_runnable(const Module& module) {
  for (const Function& function : module.functions) check_runnable_region(module, function.body, Needs::kKernel);
}

void check_input(const Module& module) {
  const Context& context = module.context();
  const Function& main = module.main();
  const CallGraph calls(module);
  // Only functions that main reaches run; a text may hold others.
  for (const size_t f : calls.reached()) {
    check_runnable_region(module, module.functions[f].body, Needs::kKernelOrDecomposition);
  }
  for (const ShardingId id : main.result_shardings) {
    if (!id || context.sharding(id).unreduced.empty()) continue;
    fail<ShardingError>("compile", "a result cannot be left unreduced", short_text(context.sharding(id)),
                        "drop unreduced= or shard a dim of the result over these axes");
  }
  check_stage("compile", kAssign.takes, module);
}

}  // namespace shardwise
