// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/explanations.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/warnings.h"
#include "shardwise/compiler/compile.h"
#include "shardwise/compiler/named_passes.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/partition/collective_ledger.h"
#include "shardwise/partition/device_bytes.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/shardy/populate_rules.h"
#include "shardwise/reshard/across_meshes.h"
#include "shardwise/reshard/plan.h"

namespace py = pybind11;

namespace shardwise {

namespace {

using UnitPtr = std::shared_ptr<CompileUnit>;

// The mesh under a name that the text gives to no other mesh.
MeshPtr named_apart(const Module& module, const MeshPtr& mesh) {
  const auto is_free = [&](const std::string& name) {
    const MeshPtr known = module.find_mesh(name);
    return known == nullptr || *known == *mesh;
  };
  if (is_free(mesh->name())) return mesh;
  int64_t number = 0;
  while (!is_free(str(mesh->name(), "_", number))) ++number;
  return std::make_shared<const Mesh>(str(mesh->name(), "_", number), mesh->axes(), mesh->device_ids());
}

// The program on this mesh, its first one. A program without shardings runs on any mesh, whatever its text declares.
SharedModule on_mesh(const std::shared_ptr<Module>& module, const MeshPtr& mesh) {
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

Strategy strategy_from_name(const std::string& name) {
  if (name == "basic") return Strategy::kBasic;
  if (name == "aggressive") return Strategy::kAggressive;
  fail<ShardingError>("propagate", "strategy must be 'basic' or 'aggressive'", name);
}

Objective objective_from_name(const std::string& name) {
  if (name == "time") return Objective::kTime;
  if (name == "bytes") return Objective::kBytes;
  fail<ShardingError>("compile", "objective must be 'time' or 'bytes'", name);
}

CompileOptions options_from(const py::kwargs& given) {
  CompileOptions options;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    // The table of options is the only list: a new option needs no change here.
    const auto* known = std::ranges::find(kCompileOptions, name, &CompileOption::name);
    if (known == std::end(kCompileOptions)) throw py::type_error("no such option: " + name);
    if (known->flag != nullptr) {
      options.*known->flag = value.cast<bool>();
    } else {
      options.strategy = strategy_from_name(value.cast<std::string>());
    }
  }
  return options;
}

// Python sees modules as mutable objects, but nothing in its interface changes one.
std::shared_ptr<Module> python_module(const SharedModule& module) { return std::const_pointer_cast<Module>(module); }

py::dict counters_dict(const Counters& counters) {
  py::dict counts;
  for (const auto& [name, count] : counters.entries()) counts[py::str(name)] = count;
  return counts;
}

// (op, method, operands, results) of each op, the moves of each reshard, then sources, carries and exchanges.
using Texts = std::vector<std::string>;
using ChosenOpRow = std::tuple<std::string, std::string, Texts, Texts>;
using ChoiceRows = std::tuple<std::vector<ChosenOpRow>, std::vector<Texts>, Texts, Texts, Texts>;

std::shared_ptr<const Choices> choices_from_python(const std::optional<ChoiceRows>& rows) {
  if (!rows) return nullptr;
  auto choices = std::make_shared<Choices>();
  std::vector<ChosenOpRow> ops;
  std::tie(ops, choices->plans, choices->sources, choices->carries, choices->exchanges) = *rows;
  for (const auto& [op, method, operands, results] : ops) choices->ops.push_back({op, method, operands, results});
  return choices;
}

ChoiceRows choices_of(const CompileUnit& unit) {
  const Choices& made = unit.context.choices;
  std::vector<ChosenOpRow> ops;
  for (const ChosenOp& op : made.ops) ops.emplace_back(op.op, op.method, op.operands, op.results);
  return {std::move(ops), made.plans, made.sources, made.carries, made.exchanges};
}

UnitPtr compile_module(const std::shared_ptr<Module>& module, const std::shared_ptr<Mesh>& mesh,
                       const std::optional<ChoiceRows>& choices, const std::string& objective,
                       const py::kwargs& given) {
  CompileOptions options = options_from(given);
  options.objective = objective_from_name(objective);
  const SharedModule traced = on_mesh(module, mesh);
  // The GIL is back before warn(), which may raise.
  auto unit = [&] {
    const WithoutGil released;
    return std::make_shared<CompileUnit>(compile(traced, options, choices_from_python(choices)));
  }();
  warn(unit->context.warnings);
  return unit;
}

// Passes on a text: what `shardwise opt` and golden texts show.
std::shared_ptr<Module> run_on_text(const std::shared_ptr<Module>& module, const std::vector<std::string>& names,
                                    const py::kwargs& given) {
  CompileUnit unit(module, options_from(given));
  {
    const WithoutGil released;
    run_named_passes(names, unit);
  }
  warn(unit.context.warnings);
  return python_module(unit.module);
}

const std::vector<std::string>& usual_passes() {
  static const std::vector<std::string> names{std::string(kPropagate.name)};
  return names;
}

// The last of the passes is the one to explain.
UnitPtr propagate_program(SharedModule module, const std::vector<std::string>& names, const py::kwargs& given) {
  auto unit = std::make_shared<CompileUnit>(std::move(module), options_from(given));
  {
    const WithoutGil released;
    run_to_explain(names, *unit);
  }
  warn(unit->context.warnings);
  return unit;
}

// Propagates a copy of the program with one more annotation, to show what the annotation changes.
UnitPtr propagate_annotated(const Module& module, uint32_t index, const std::string& sharding,
                            const py::kwargs& given) {
  if (index == 0 || index >= module.value_count()) throw py::index_error("a program has no such value");
  auto annotated = std::make_shared<Module>(module);
  MeshPtr mesh = program_mesh(module);
  if (mesh == nullptr) fail<MeshError>("annotate", "the program must have a mesh", {}, "declare one");
  // Numbers of values stay the same in a copy.
  annotate(*annotated, ValueId{index}, parse_short_sharding(sharding, std::move(mesh)));
  return propagate_program(std::move(annotated), usual_passes(), given);
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) names.emplace_back(pass.name);
  return names;
}

py::list describe_passes() {
  py::list rows;
  for (const Pass& pass : named_passes()) rows.append(py::make_tuple(std::string(pass.name), std::string(pass.doc)));
  return rows;
}

// By the name of a pass: the options of propagation that it reads, and the strategy that it has of its own.
py::dict describe_options() {
  py::dict rows;
  for (const Pass& pass : named_passes()) {
    py::list reads;
    for (size_t i = 0; i < std::size(kCompileOptions); ++i) {
      // Pass::reads has a bit for each row of kCompileOptions.
      if ((pass.reads >> i & 1) != 0) reads.append(std::string(kCompileOptions[i].name));
    }
    const py::object own = pass.strategy
                               ? py::object(py::str(*pass.strategy == Strategy::kBasic ? "basic" : "aggressive"))
                               : py::object(py::none());
    rows[py::str(std::string(pass.name))] = py::make_tuple(reads, own);
  }
  return rows;
}

py::list ledger(const CompileUnit& unit) {
  const Module& local = *unit.module;
  py::list rows;
  for (const LedgerRow& row : collective_ledger(local)) {
    const ResolvedSource source = local.context().resolve(row.loc);
    const OpView op(local, row.op);
    const DeviceBytes devices = device_bytes(op, row.bytes);
    py::list axes;  // (axis, size)
    for (const AxisRef& axis : devices.axes) {
      axes.append(py::make_tuple(devices.mesh->axis_name(axis.axis), axis.size));
    }
    rows.append(py::dict(py::arg("kind") = row.name, py::arg("axes") = row.axes, py::arg("group_size") = row.group_size,
                         py::arg("bytes") = row.bytes, py::arg("shape") = shape_tuple(row.operand.shape),
                         py::arg("dtype") = std::string(numpy_name(row.operand.dtype)), py::arg("count") = row.count,
                         py::arg("bound") = std::string(row.bound), py::arg("file") = source.file,
                         py::arg("line") = source.line, py::arg("cause") = row.cause, py::arg("name") = source.variable,
                         py::arg("op") = row.op.index, py::arg("sum_bytes") = devices.sum,
                         py::arg("device_axes") = py::tuple(axes),
                         py::arg("device_bytes") = py::tuple(py::cast(devices.bytes))));
  }
  return rows;
}

// The collectives between two shardings of one shape. `seconds` is the least time of planning among so many
// repetitions.
py::dict plan_of_reshard(const Dims& shape, int64_t item, const TensorSharding& from, const TensorSharding& to,
                         int64_t repetitions) {
  using Clock = std::chrono::steady_clock;
  // The two shardings may be on meshes that are other views of the same devices.
  const ReshardProblem problem = with_common_mesh(
      {.shape = shape, .item_size = item, .from = placement_of(from, shape), .to = placement_of(to, shape)});
  ReshardPlan plan;
  double seconds = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < std::max<int64_t>(repetitions, 1); ++i) {
    const Clock::time_point start = Clock::now();
    plan = plan_reshard(problem);
    // The minimum is the time without disturbances.
    seconds = std::min(seconds, std::chrono::duration<double>(Clock::now() - start).count());
  }
  py::list moves, tiles;
  for (const ReshardStep& step : plan.steps) {
    moves.append(std::string(move_name(step.move)));
    tiles.append(problem.tile_bytes(step.after));
  }
  return py::dict(py::arg("moves") = moves, py::arg("bytes") = plan.bytes, py::arg("tiles") = tiles,
                  py::arg("seconds") = seconds);
}

// The same part for a value of a module with another context.
GlobalPart part_in(const Module& from, ValueId value, const Module& to) {
  GlobalPart part = from.part(value);
  if (part.type) part.type = to.context().intern(from.context().type(part.type));
  if (part.placement) part.placement = to.context().intern(from.context().placement(part.placement));
  return part;
}

std::vector<ValueId> values_of_all(const Module& module) {
  std::vector<ValueId> values;
  for (const Function& function : module.functions) append_values(module, function.body, values);
  return values;
}

// The same program with an edited local stage, which has as many values: tests plant faults in it.
UnitPtr with_local_stage(const CompileUnit& unit, const std::shared_ptr<Module>& local) {
  const std::vector<ValueId> before = values_of_all(*unit.module), after = values_of_all(*local);
  if (before.size() != after.size()) {
    fail<ShapeError>("with_local_stage", str("the module must have ", before.size(), " values"), str(after.size()));
  }
  auto module = std::make_shared<Module>(*local);
  // A text does not show the parts of inner values, so those of the stage before the edit are put back, in order.
  for (size_t i = 0; i < before.size(); ++i) module->set_part(after[i], part_in(*unit.module, before[i], *module));
  auto edited = std::make_shared<CompileUnit>(unit);
  edited->module = std::move(module);
  return edited;
}

py::dict stages_of_unit(const CompileUnit& unit) {
  return py::dict(py::arg("global") = python_module(unit.global),
                  py::arg("propagated") = python_module(unit.propagated),
                  py::arg("resharded") = python_module(unit.resharded), py::arg("local") = python_module(unit.module));
}

py::dict seconds_of(const std::vector<PassRecord>& records) {
  py::dict seconds;
  for (const PassRecord& record : records) {
    seconds[py::str(record.name)] = static_cast<double>(record.nanoseconds) * 1e-9;
  }
  return seconds;
}

// By pass that has steps.
py::dict step_seconds(const CompileUnit& unit) {
  py::dict seconds;
  for (const PassRecord& record : unit.log) {
    if (!record.steps.empty()) seconds[py::str(record.name)] = seconds_of(record.steps);
  }
  return seconds;
}

// The mesh on which a program runs, if it declares several.
MeshPtr mesh_to_run_on(const Module& module) { return module.meshes.size() > 1 ? main_mesh(module) : nullptr; }

// As the partitioned program has it (partition/unify_meshes.h): with the axes of the mesh on which it runs, if they are
// digits there. A value on the empty mesh is whole on every device, like one without a sharding.
TensorSharding sharding_of(const Module& module, const MeshPtr& main, ShardingId id, ValueId value) {
  if (!id || module.context().sharding(id).mesh->is_empty()) {
    return TensorSharding::fully_replicated(module.meshes.front(), module.type(value).ndim());
  }
  const TensorSharding& sharding = module.context().sharding(id);
  if (main == nullptr || sharding.mesh->same_devices(*main)) return sharding;
  return on_mesh(sharding, main).value_or(sharding);
}

py::list argument_shardings_of_unit(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  const MeshPtr main = mesh_to_run_on(module);
  py::list list;
  for (ValueId value : module.region(module.main().body).arguments) {
    list.append(sharding_of(module, main, module.value(value).sharding, value));
  }
  return list;
}

py::list result_shardings(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  const MeshPtr main = mesh_to_run_on(module);
  const Function& function = module.main();
  const std::vector<ValueId>& results = module.region(function.body).results;
  py::list list;
  for (size_t i = 0; i < results.size(); ++i) {
    const ShardingId id = i < function.result_shardings.size() ? function.result_shardings[i] : ShardingId();
    list.append(sharding_of(module, main, id, results[i]));
  }
  return list;
}

}  // namespace

void bind_passes(py::module_& module) {
  py::class_<CompileUnit, UnitPtr> units(module, "CompileUnit");
  units.def_property_readonly("module", [](const CompileUnit& self) { return python_module(self.module); })
      .def_property_readonly("stages", &stages_of_unit)
      .def_property_readonly("seconds", [](const CompileUnit& self) { return seconds_of(self.log); })
      .def_property_readonly("step_seconds", &step_seconds)
      .def_property_readonly("counters", [](const CompileUnit& self) { return counters_dict(self.context.counters); })
      .def_property_readonly("argument_shardings", &argument_shardings_of_unit)
      .def_property_readonly("result_shardings", &result_shardings)
      .def("collectives", &ledger)
      .def("choices", &choices_of)
      .def("with_local_stage", &with_local_stage);
  bind_explanations(units);
  module.def("pass_names", &pass_names);
  module.def("named_passes", &describe_passes);
  module.def("options_of_passes", &describe_options);
  // The keyword arguments are the options of propagation (compile_options.h).
  module.def(
      "populate_rules",
      [](const std::shared_ptr<Module>& self, const py::kwargs& options) {
        return run_on_text(self, {std::string(kPopulateRules.name)}, options);
      },
      py::arg("module"));
  module.def("run_passes", &run_on_text, py::arg("module"), py::arg("names"));
  module.def("propagate_program", &propagate_program, py::arg("module"), py::arg("names") = usual_passes());
  module.def("propagate_annotated", &propagate_annotated, py::arg("module"), py::arg("value"), py::arg("sharding"));
  module.def("plan_reshard", &plan_of_reshard, py::arg("shape"), py::arg("item_size"), py::arg("from_sharding"),
             py::arg("to_sharding"), py::arg("repetitions") = 1);
  module.def("compile", &compile_module, py::arg("module"), py::arg("mesh"),
             py::arg("choices") = std::optional<ChoiceRows>(), py::arg("objective") = "time");
}

}  // namespace shardwise
