// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/compile.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/choice.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/choice/choose.h"
#include "shardwise/compiler/checks.h"
#include "shardwise/compiler/passes.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {
namespace {

void keep_snapshot(CompileUnit& unit, const Pass& pass, const Pass* step) {
  // Snapshots are of whole passes. Each one makes the next pass copy the module.
  if (step != nullptr) return;
  if (pass.checks_input) {
    check_input(*unit.module);
    unit.is_runnable = true;
  }
  switch (pass.keeps) {
    case Snapshot::kNone: break;
    case Snapshot::kGlobal: unit.global = unit.module; break;
    case Snapshot::kPropagated: unit.propagated = unit.module; break;
    case Snapshot::kResharded: unit.resharded = unit.module; break;
  }
}

// `mesh`, renamed if the module already uses its name for another mesh.
MeshPtr named_apart(const Module& module, const MeshPtr& mesh) {
  std::string name = mesh->name();
  for (int64_t number = 0;; ++number) {
    const MeshPtr known = module.find_mesh(name);
    if (known == nullptr || *known == *mesh) break;
    name = str(mesh->name(), "_", number);
  }
  return name == mesh->name() ? mesh : std::make_shared<const Mesh>(name, mesh->axes(), mesh->device_ids());
}

// The program on this mesh, its first one. A program without shardings runs on any mesh, whatever its text declares.
SharedModule on_mesh(SharedModule module, const MeshPtr& mesh) {
  if (const MeshPtr own = main_mesh(*module); own != nullptr && !are_over_same_devices(*own, *mesh)) {
    fail<MeshError>("compile", str("the mesh must be that of the program's shardings, ", own->text()), mesh->text());
  }
  // Shared, not copied: most programs are on their mesh already.
  if (!module->meshes.empty() && equal(module->meshes.front(), mesh)) return module;
  auto changed = std::make_shared<Module>(*module);
  const MeshPtr declared = changed->declare_mesh(named_apart(*module, mesh));
  // The first mesh is the one that the program runs on.
  std::ranges::stable_partition(changed->meshes, [&](const MeshPtr& m) { return m == declared; });
  return changed;
}

std::span<const Pass> steps_before_calls() { return propagation_steps().first(propagation_steps().size() - 1); }

// `propagate`, but the called regions stay.
constexpr Pass kPropagateRegions = [] {
  Pass pass = kPropagate;
  pass.steps = steps_before_calls;
  return pass;
}();

// `shardings`: one for each value, or none where it is left out.
std::vector<TensorSharding> border_shardings(const Module& module, std::span<const ValueId> values,
                                             std::span<const ShardingId> shardings) {
  // A program with one mesh runs on it.
  const MeshPtr main = module.meshes.size() > 1 ? main_mesh(module) : nullptr;
  std::vector<TensorSharding> list;
  for (size_t i = 0; i < values.size(); ++i) {
    // A value on the empty mesh is whole on every device, like one without a sharding.
    if (i >= shardings.size() || !shardings[i] || module.context().sharding(shardings[i]).mesh->is_empty()) {
      list.push_back(TensorSharding::fully_replicated(module.meshes.front(), module.type(values[i]).ndim()));
      continue;
    }
    const TensorSharding& sharding = module.context().sharding(shardings[i]);
    const bool is_on_main = main == nullptr || sharding.mesh->same_devices(*main);
    list.push_back(is_on_main ? sharding : on_mesh(sharding, main).value_or(sharding));
  }
  return list;
}

// Those of the pipeline, the choice included.
std::span<const Pass> passes_to_choice() {
  const auto chooses = std::ranges::find_if(pipeline(), [](const Pass& pass) { return pass.run == kChoose.run; });
  return {pipeline().begin(), chooses + 1};
}

// The program up to its choice.
CompileUnit compiled_to_choice(const SharedModule& program, const CompileOptions& options,
                               std::shared_ptr<const Choices> pinned, const std::function<void()>& poll,
                               const std::filesystem::path& dump_folder) {
  CompileUnit unit(program, options);
  unit.traced = program;
  unit.context.pinned = std::move(pinned);
  unit.context.poll = poll;
  unit.dump_folder = dump_folder;
  run_passes(unit, passes_to_choice(), {.after = keep_snapshot});
  return unit;
}

// The same, with the order of propagation whose choice is cheaper.
CompileUnit compiled_to_best_choice(const SharedModule& program, const CompileOptions& options,
                                    const std::shared_ptr<const Choices>& pinned, const std::function<void()>& poll,
                                    const std::filesystem::path& folder) {
  CompileOptions with_state_last = options;
  with_state_last.state_last = true;
  const bool is_state_last = pinned != nullptr && pinned->propagation == kStateLast;
  CompileUnit unit = compiled_to_choice(program, is_state_last ? with_state_last : options, pinned, poll, folder);
  if (pinned == nullptr && may_gain_with_state_last(unit.context)) {
    CompileUnit other = compiled_to_choice(program, with_state_last, nullptr, poll, {});
    // Once more for the dumps, which are of what is compiled.
    if (takes_less(other.context, unit.context))
      unit = folder.empty() ? std::move(other) : compiled_to_choice(program, with_state_last, nullptr, poll, folder);
  }
  return unit;
}

}  // namespace

CompileUnit compile(SharedModule traced, const CompileOptions& options, const MeshPtr& mesh,
                    std::shared_ptr<const Choices> pinned, std::function<void()> poll) {
  const SharedModule program = mesh == nullptr ? std::move(traced) : on_mesh(std::move(traced), mesh);
  const std::filesystem::path folder = new_dump_folder(*program);
  // Passes are numbered from 1, so that the traced program sorts first.
  dump(*program, folder, numbered(0, "trace"));
  CompileUnit unit = compiled_to_best_choice(program, options, pinned, poll, folder);
  run_passes(unit, pipeline().subspan(passes_to_choice().size()), {.after = keep_snapshot});
  // For counterfactuals, which run the same pass again.
  unit.propagated_by = &kPropagate;
  unit.context.poll = {};  // it may refer to what the caller has on its stack
  return unit;
}

CompileUnit compile_to_choose(SharedModule traced, const CompileOptions& options, const MeshPtr& mesh) {
  CompileUnit unit(mesh == nullptr ? std::move(traced) : on_mesh(std::move(traced), mesh), options);
  run_passes(unit, passes_to_choice().first(passes_to_choice().size() - 1), {.after = keep_snapshot});
  return unit;
}

ChoiceProblem problem_of_choice(SharedModule traced, const CompileOptions& options, const MeshPtr& mesh) {
  const SharedModule program = mesh == nullptr ? std::move(traced) : on_mesh(std::move(traced), mesh);
  const CompileUnit unit = compiled_to_best_choice(program, options, nullptr, {}, {});
  Module chosen = *unit.module;
  return choice_problem(chosen, *unit.context.choice, unit.context.options);
}

void run_to_explain(std::span<const std::string> names, CompileUnit& unit) {
  std::vector<Pass> passes = passes_called(names);
  // The passes before it only prepare the program that is explained.
  const size_t last = passes.empty() ? 0 : passes.size() - 1;
  if (last != 0) unit.given = unit.module;
  run_passes(unit, std::span(passes).first(last), {.after = {}, .verify = true});
  unit.global = unit.module;
  // why() explains values inside of called functions, which the last step turns back into calls.
  if (!passes.empty() && passes[last].run == kPropagate.run) passes[last] = kPropagateRegions;
  const auto keep_regions = [](CompileUnit& changed, const Pass&, const Pass* step) {
    if (step != nullptr && step->name == kCallsToRegions) changed.global = changed.module;
  };
  run_passes(unit, std::span(passes).subspan(last), {.after = keep_regions, .verify = true});
  unit.propagated = unit.module;
  unit.propagated_by = names.empty() ? &kPropagate : find_named_pass(names.back());
}

std::vector<TensorSharding> argument_shardings(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  const std::vector<ValueId>& arguments = module.region(module.main().body).arguments;
  std::vector<ShardingId> shardings;
  for (const ValueId value : arguments) shardings.push_back(module.value(value).sharding);
  if (unit.context.choice != nullptr) {
    for (const size_t i : unit.context.choice->whole_arguments) shardings.at(i) = {};
  }
  return border_shardings(module, arguments, shardings);
}

std::vector<TensorSharding> result_shardings(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  std::vector<ShardingId> shardings = module.main().result_shardings;
  if (unit.context.choice != nullptr) {
    for (const auto& [place, sharding] : unit.context.choice->placed_results) shardings.at(place) = sharding;
  }
  return border_shardings(module, module.region(module.main().body).results, shardings);
}

}  // namespace shardwise
