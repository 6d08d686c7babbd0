// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "shardwise/analysis/collective_ledger.h"
#include "shardwise/analysis/device_bytes.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/choice_rows.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/signal_check.h"
#include "shardwise/choice/choice_reasons.h"
#include "shardwise/compiler/annotated_instead.h"
#include "shardwise/compiler/compile.h"
#include "shardwise/compiler/explanation_json.h"
#include "shardwise/compiler/passes.h"
#include "shardwise/compiler/priced_ways.h"
#include "shardwise/compiler/value_queries.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/partition/rematerialize.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/shardy/populate_rules.h"
#include "shardwise/reshard/across_meshes.h"
#include "shardwise/reshard/plan.h"
#include "shardwise/shard_update/sharded_state.h"

namespace py = pybind11;

namespace shardwise {

namespace {

using Names = std::vector<std::string>;
// The types that stubs show.
using Seconds = py::typing::Dict<py::str, py::float_>;

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
      known->set(options, value.cast<std::string>());
    }
  }
  return options;
}

// Python sees modules as mutable objects, but nothing in its interface changes one.
std::shared_ptr<Module> python_module(const SharedModule& module) { return std::const_pointer_cast<Module>(module); }

py::typing::Dict<py::str, py::int_> counters_dict(const Counters& counters) {
  py::typing::Dict<py::str, py::int_> counts;
  for (const auto& [name, count] : counters.entries()) counts[py::str(name)] = count;
  return counts;
}

UnitPtr compile_module(const std::shared_ptr<Module>& module, const std::shared_ptr<Mesh>& mesh,
                       const std::optional<ChoiceRows>& choices, const py::kwargs& given) {
  const CompileOptions options = options_from(given);
  SignalCheck check;
  // The GIL is back before warn(), which may raise.
  auto unit = without_gil([&] {
    return std::make_shared<CompileUnit>(
        compile(module, options, mesh, choices_from_python(choices), [&] { check(); }));
  });
  warn(unit->context.warnings);
  return unit;
}

// Passes on a text: what `shardwise opt` and golden texts show.
std::shared_ptr<Module> run_on_text(const std::shared_ptr<Module>& module, const Names& names,
                                    const py::kwargs& given) {
  CompileUnit unit(module, options_from(given));
  without_gil([&] { run_passes(unit, passes_called(names), {.verify = true}); });
  warn(unit.context.warnings);
  return python_module(unit.module);
}

// The last of the passes is the one to explain.
UnitPtr propagate_program(const std::shared_ptr<Module>& module, const Names& names, const py::kwargs& given) {
  auto unit = std::make_shared<CompileUnit>(module, options_from(given));
  without_gil([&] { run_to_explain(names, *unit); });
  warn(unit->context.warnings);
  return unit;
}

WayRows ways_of_ops(const std::shared_ptr<Module>& module, const std::shared_ptr<Mesh>& mesh,
                    const std::optional<ChoiceRows>& choices, const Names& asked, size_t most,
                    const py::kwargs& given) {
  const CompileOptions options = options_from(given);
  const auto pinned = choices_from_python(choices);
  return rows_of(without_gil([&] { return priced_ways(module, options, mesh, pinned.get(), asked, most); }));
}

// (graph, picks of the choice, picks that a compilation would find from there)
std::tuple<CostGraph, std::vector<uint32_t>, std::vector<uint32_t>> problem_of_module(
    const std::shared_ptr<Module>& module, const std::shared_ptr<Mesh>& mesh, const py::kwargs& given) {
  const CompileOptions options = options_from(given);
  ChoiceProblem problem = without_gil([&] { return problem_of_choice(module, options, mesh); });
  return {std::move(problem.graph), std::move(problem.known), std::move(problem.found)};
}

Names pass_names() {
  Names names;
  for (const Pass& pass : pipeline()) names.emplace_back(pass.name);
  return names;
}

Names propagating_passes() {
  Names names;
  for (const Pass& pass : named_passes()) {
    if (pass.propagates()) names.emplace_back(pass.name);
  }
  return names;
}

std::vector<std::pair<std::string_view, std::string_view>> describe_passes() {
  std::vector<std::pair<std::string_view, std::string_view>> rows;
  for (const Pass& pass : named_passes()) rows.emplace_back(pass.name, pass.doc);
  return rows;
}

// By the name of a pass: the options of propagation that it reads, and the strategy that it has of its own.
std::map<std::string_view, std::pair<std::vector<std::string_view>, std::optional<std::string_view>>>
describe_options() {
  std::map<std::string_view, std::pair<std::vector<std::string_view>, std::optional<std::string_view>>> rows;
  for (const Pass& pass : named_passes()) {
    auto& [reads, strategy] = rows[pass.name];
    for (size_t i = 0; i < std::size(kCompileOptions); ++i) {
      // Pass::reads has a bit for each row of kCompileOptions.
      if ((pass.reads >> i & 1) != 0) reads.push_back(kCompileOptions[i].name);
    }
    if (pass.strategy) strategy = name(*pass.strategy);
  }
  return rows;
}

py::dict dict_of(const LedgerOperand& part, const Context& context, const ChoiceReasons& reasons) {
  const ResolvedSource source = context.resolve(part.loc);
  return py::dict(py::arg("bytes") = part.bytes, py::arg("shape") = shape_tuple(part.operand.shape),
                  py::arg("dtype") = numpy_name(part.operand.dtype), py::arg("file") = source.file,
                  py::arg("line") = source.line, py::arg("cause") = part.cause,
                  py::arg("name") = variable_of(context, part.loc),
                  py::arg("reason") = reasons.of(part.loc, part.cause));
}

std::vector<py::dict> ledger(const CompileUnit& unit) {
  const Module& local = *unit.module;
  // The ids of a choice are those of the program that it was made for, which tests may have replaced.
  const bool is_chosen = unit.propagated != nullptr && &unit.propagated->context() == &local.context();
  const ChoiceReasons reasons(is_chosen ? unit.context.choice.get() : nullptr, local.context());
  std::vector<py::dict> rows;
  for (const LedgerRow& row : collective_ledger(local)) {
    const ResolvedSource source = local.context().resolve(row.loc);
    const OpView op(local, row.op);
    const DeviceBytes devices = device_bytes(op, row.bytes);
    py::list axes;  // (axis, size)
    for (const AxisRef& axis : devices.axes) {
      axes.append(py::make_tuple(devices.mesh->axis_name(axis.axis), axis.size));
    }
    rows.push_back(
        py::dict(py::arg("kind") = row.name, py::arg("axes") = row.axes, py::arg("group_size") = row.group_size,
                 py::arg("bytes") = row.bytes, py::arg("shape") = shape_tuple(row.operand.shape),
                 py::arg("dtype") = numpy_name(row.operand.dtype), py::arg("count") = row.count,
                 py::arg("bound") = row.bound, py::arg("file") = source.file, py::arg("line") = source.line,
                 py::arg("cause") = row.cause, py::arg("name") = variable_of(local.context(), row.loc),
                 py::arg("op") = row.op.index, py::arg("sum_bytes") = devices.sum,
                 py::arg("device_axes") = py::tuple(axes), py::arg("device_bytes") = py::tuple(py::cast(devices.bytes)),
                 py::arg("reason") = reasons.of(row.loc, row.cause)));
    std::vector<py::dict> combined;
    for (const LedgerOperand& part : row.combined) combined.push_back(dict_of(part, local.context(), reasons));
    rows.back()["combined"] = py::tuple(py::cast(combined));
  }
  return rows;
}

// The memory limit, the peak without and with recomputation, and a row for each value that is computed again: (value, op,
// global shape, dtype, is it a transfer, how, bytes less, picoseconds more, file, line); then what is kept: (op, shape, dtype).
py::tuple rows_of_plan(const Context& context, const MemoryPlan& plan) {
  py::list rows;
  for (const RepeatedRow& row : plan.rows) {
    const ResolvedSource source = context.resolve(row.loc);
    const TensorType& type = context.type(row.type);
    rows.append(py::make_tuple(variable_of(context, row.loc), row.op, shape_tuple(type.shape), numpy_name(type.dtype),
                               row.is_transfer, name(row.how), row.bytes, row.ps, source.file, source.line));
  }
  py::list kept;
  for (const KeptValue& value : plan.kept) {
    const TensorType& type = context.type(value.type);
    kept.append(py::make_tuple(value.op, shape_tuple(type.shape), numpy_name(type.dtype)));
  }
  return py::make_tuple(plan.limit_bytes, plan.before_bytes, plan.after_bytes, rows, kept);
}

// None without a limit.
py::object repeated_rows(const CompileUnit& unit) {
  if (unit.context.memory == nullptr) return py::none();
  return rows_of_plan(unit.module->context(), *unit.context.memory);
}

// Returns what a memory limit would make the program compute again. The program may have been compiled without a limit.
py::tuple rows_within(const CompileUnit& unit, int64_t limit) {
  PassContext context;
  context.options = unit.context.options;
  context.options.memory_limit = limit;
  SignalCheck check;
  context.poll = [&] { check(); };
  Module module = *unit.module;
  const MemoryPlan plan = without_gil([&] { return fit_in_memory(module, context); });
  return rows_of_plan(module.context(), plan);
}

// The collectives between two shardings of one shape.
py::dict plan_of_reshard(const Dims& shape, int64_t item, const TensorSharding& from, const TensorSharding& to) {
  // The two shardings may be on meshes that are other views of the same devices.
  const ReshardProblem problem = with_common_mesh(
      {.shape = shape, .item_size = item, .from = placement_of(from, shape), .to = placement_of(to, shape)});
  const ReshardPlan plan = plan_reshard(problem);
  py::list moves, tiles;
  for (const ReshardStep& step : plan.steps) {
    moves.append(move_name(step.move));
    tiles.append(problem.tile_bytes(step.after));
  }
  return py::dict(py::arg("moves") = moves, py::arg("bytes") = plan.bytes, py::arg("tiles") = tiles);
}

std::vector<py::dict> shard_update_rows(const CompileUnit& unit) {
  std::vector<py::dict> rows;
  if (unit.context.shard_update == nullptr) return rows;
  for (const ShardedState& state : unit.context.shard_update->states) {
    rows.push_back(py::dict(py::arg("name") = state.name, py::arg("type") = state.type,
                            py::arg("layout") = state.layout, py::arg("group") = state.group,
                            py::arg("shard_bytes") = state.shard_bytes, py::arg("padding") = state.padding,
                            py::arg("is_weight") = state.is_weight, py::arg("gathered") = state.gathered,
                            py::arg("reason") = state.reason, py::arg("location") = state.location));
  }
  return rows;
}

// The same program with an edited local stage: tests plant faults in it.
UnitPtr with_local_stage(const CompileUnit& unit, const std::shared_ptr<Module>& local) {
  auto edited = std::make_shared<CompileUnit>(unit);
  edited->module = local;
  return edited;
}

py::typing::Dict<py::str, Module> stages_of_unit(const CompileUnit& unit) {
  py::typing::Dict<py::str, Module> stages;
  stages["global"] = python_module(unit.global);
  stages["propagated"] = python_module(unit.propagated);
  stages["resharded"] = python_module(unit.resharded);
  stages["local"] = python_module(unit.module);
  return stages;
}

Seconds seconds_of(const std::vector<PassRecord>& records) {
  Seconds seconds;
  for (const PassRecord& record : records) {
    seconds[py::str(record.name)] = static_cast<double>(record.nanoseconds) * 1e-9;
  }
  return seconds;
}

// By pass that has steps.
py::typing::Dict<py::str, Seconds> step_seconds(const CompileUnit& unit) {
  py::typing::Dict<py::str, Seconds> seconds;
  for (const PassRecord& record : unit.log) {
    if (!record.steps.empty()) seconds[py::str(record.name)] = seconds_of(record.steps);
  }
  return seconds;
}

// ---- explanations --------------------------------------------------------------------------------------------------

ValueQueries names_of(const CompileUnit& unit) { return ValueQueries(*unit.propagated, unit.context.provenance); }

std::string explain_query(const CompileUnit& unit, const std::string& query, bool counterfactual) {
  return explanations_json(unit, names_of(unit).find(query), counterfactual);
}

std::string explain_number(const CompileUnit& unit, uint32_t number, bool counterfactual) {
  // Number 0 is "no value" in every module.
  if (number == 0 || number >= unit.propagated->value_count()) throw py::index_error("a program has no such value");
  const NamedValue value{ValueId{number}, {}};
  return explanations_json(unit, std::span(&value, 1), counterfactual);
}

std::string explain_all(const CompileUnit& unit) {
  std::vector<NamedValue> values;
  for (const ValueId value : values_of_main(*unit.propagated)) values.push_back({value, {}});
  return explanations_json(unit, values, false);
}

// Whether the passes were given such a value: they drop those that nothing uses, and merge equal ones.
bool was_given(const CompileUnit& unit, const std::string& query) {
  return !ValueQueries(unit.given ? *unit.given : *unit.global).find(query).empty();
}

// The questions that `why` asks a unit with the snapshots `global` and `propagated`.
void bind_explanations(py::class_<CompileUnit, UnitPtr>& units) {
  units
      .def("explain", &explain_query, py::arg("query"), py::arg("counterfactual") = false)
      // By its number in the program; IndexError for one that it does not have.
      .def("explain_value", &explain_number, py::arg("value"), py::arg("counterfactual") = false)
      .def("explain_all", &explain_all)
      .def("edges", &edges_json)
      .def("names", [](const CompileUnit& self) { return names_of(self).all(); })
      .def("was_given", &was_given)
      // Whether passes before propagation changed the program.
      .def_property_readonly("is_simplified", [](const CompileUnit& self) { return self.given != nullptr; })
      .def("meanings",
           // The program that the passes were given has names of inlined calls, too.
           [](const CompileUnit& self, const std::string& query) {
             return self.given ? ValueQueries(*self.given).meanings(query) : names_of(self).meanings(query);
           });
}

}  // namespace

void bind_passes(py::module_& module) {
  py::class_<CompileUnit, UnitPtr> units(module, "CompileUnit");
  units.def_property_readonly("module", [](const CompileUnit& self) { return python_module(self.module); })
      .def_property_readonly("stages", &stages_of_unit)
      .def_property_readonly("seconds", [](const CompileUnit& self) { return seconds_of(self.log); })
      .def_property_readonly("step_seconds", &step_seconds)
      .def_property_readonly("counters", [](const CompileUnit& self) { return counters_dict(self.context.counters); })
      .def_property_readonly("argument_shardings", &argument_shardings)
      .def_property_readonly("result_shardings", &result_shardings)
      .def("collectives", &ledger)
      .def("repeated", &repeated_rows)
      .def("repeated_within", &rows_within, py::arg("limit"))
      .def_property_readonly("shard_update", &shard_update_rows)
      .def("with_local_stage", &with_local_stage);
  bind_choices(units);
  bind_explanations(units);
  module.def("pass_names", &pass_names);
  module.def("propagating_passes", &propagating_passes);
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
  module.def("propagate_program", &propagate_program, py::arg("module"),
             py::arg("names") = Names{std::string(kPropagate.name)});
  module.def("plan_reshard", &plan_of_reshard, py::arg("shape"), py::arg("item_size"), py::arg("from_sharding"),
             py::arg("to_sharding"));
  module.def("compile", &compile_module, py::arg("module"), py::arg("mesh"),
             py::arg("choices") = std::optional<ChoiceRows>());
  module.def("choice_problem", &problem_of_module, py::arg("module"), py::arg("mesh"));
  // By op with one of these keys: at most `most` ways to compute it.
  module.def("priced_ways", &ways_of_ops, py::arg("module"), py::arg("mesh"), py::arg("choices"), py::arg("asked"),
             py::arg("most"));
  module.def(
      "annotated_instead",
      [](const std::shared_ptr<Module>& self, const std::string& name, const TensorSharding& sharding) {
        return std::make_shared<Module>(annotated_instead(*self, name, sharding));
      },
      py::arg("module"), py::arg("name"), py::arg("sharding"));
}

}  // namespace shardwise
