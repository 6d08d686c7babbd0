// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <set>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/casters.h"
#include "shardwise/bindings/compiled.h"
#include "shardwise/ir/graph_copy.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/annotations.h"
#include "shardwise/passes/collective_ledger.h"
#include "shardwise/passes/inline_calls.h"
#include "shardwise/passes/named_passes.h"
#include "shardwise/passes/populate_rules.h"
#include "shardwise/passes/program_shardings.h"
#include "shardwise/passes/propagate.h"

namespace py = pybind11;

namespace shardwise {
namespace {

using CompiledPtr = std::shared_ptr<CompiledProgram>;

constexpr const char* kDefaultStrategy = "aggressive";
static_assert(CompileOptions().strategy == Strategy::kAggressive);

Strategy strategy_from_name(const std::string& name) {
  if (name == "basic") return Strategy::kBasic;
  if (name == "aggressive") return Strategy::kAggressive;
  fail<ShardingError>("compile", "strategy must be 'basic' or 'aggressive'", name);
}

// A program runs on the mesh of its shardings. One without shardings runs on any mesh, whatever its text declares.
void choose_mesh(Module& module, const MeshPtr& mesh) {
  if (const MeshPtr own = main_mesh(module); own != nullptr && !own->same_devices(*mesh)) {
    fail<MeshError>("compile", str("the mesh must be that of the program's shardings, ", own->text()), mesh->text());
  }
  const MeshPtr declared = module.declare_mesh(mesh);
  std::stable_partition(module.meshes.begin(), module.meshes.end(), [&](const MeshPtr& m) { return m == declared; });
}

Priorities priorities_from_name(const std::string& name) {
  if (name == "none") return Priorities::kNone;
  if (name == "ops") return Priorities::kOps;
  if (name == "user") return Priorities::kUser;
  fail<ShardingError>("propagate", "priorities must be 'none', 'ops' or 'user'", name);
}

py::dict counters_dict(const Counters& counters) {
  py::dict counts;
  for (const auto& [name, count] : counters.entries()) counts[py::str(name)] = count;
  return counts;
}

// Propagation alone, on a copy: dims stay open, and nothing is added to a value that no annotation reached.
std::shared_ptr<Module> propagate_module(const Module& module, const std::string& strategy,
                                         const std::string& priorities, bool conservative) {
  auto copy = std::make_shared<Module>(module.shared_context());
  copy->name = module.name;
  copy->meshes = module.meshes;
  GraphCopy graph(module, *copy);
  for (const Function& function : module.functions) graph.function(function);
  Provenance provenance;
  Counters counters;
  propagate_shardings(*copy, strategy_from_name(strategy), priorities_from_name(priorities), provenance, counters,
                      conservative);
  return copy;
}

// The same, measured: its seconds without the copy, and its counters.
py::dict measure_propagation(const Module& module, const std::string& strategy, const std::string& priorities) {
  Module copy(module.shared_context());
  copy.meshes = module.meshes;
  GraphCopy graph(module, copy);
  for (const Function& function : module.functions) graph.function(function);
  Provenance provenance;
  Counters counters;
  const auto start = std::chrono::steady_clock::now();
  propagate_shardings(copy, strategy_from_name(strategy), priorities_from_name(priorities), provenance, counters);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return py::dict(py::arg("seconds") = seconds.count(), py::arg("counters") = counters_dict(counters));
}

CompiledPtr compile_module(const Module& module, const std::shared_ptr<Mesh>& mesh, const std::string& strategy,
                           bool conservative) {
  const CompileOptions options{.strategy = strategy_from_name(strategy), .conservative = conservative};
  Module traced = module;
  choose_mesh(traced, mesh);
  py::gil_scoped_release release;
  Compiled compiled = compile(std::move(traced), options);
  auto result = std::make_shared<CompiledProgram>();
  result->global = std::make_shared<const Module>(std::move(compiled.global));
  result->propagated = std::make_shared<const Module>(std::move(compiled.propagated));
  result->resharded = std::make_shared<const Module>(std::move(compiled.resharded));
  result->local = std::make_shared<const Module>(std::move(compiled.local));
  result->layouts = std::move(compiled.layouts);
  result->provenance = std::move(compiled.provenance);
  result->passes = std::move(compiled.passes);
  result->counters = std::move(compiled.counters);
  result->mesh = mesh;
  return result;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) names.emplace_back(pass.name);
  return names;
}

// Passes on a copy: what `shardwise opt` and golden texts show.
std::shared_ptr<Module> run_named_passes(const Module& module, const std::vector<std::string>& names,
                                         const std::string& strategy, bool strict_divisible, bool conservative) {
  Program program{.module = module,
                  .options = {.strategy = strategy_from_name(strategy),
                              .conservative = conservative,
                              .strict_divisible = strict_divisible}};
  {
    py::gil_scoped_release release;
    run_passes(names, program);
  }
  return std::make_shared<Module>(std::move(program.module));
}

py::list describe_passes() {
  py::list rows;
  for (const Pass& pass : named_passes()) rows.append(py::make_tuple(std::string(pass.name), std::string(pass.doc)));
  return rows;
}

// A program with its shardings, and where each of them comes from.
struct Propagated {
  std::shared_ptr<Module> module;
  Provenance provenance;
};

std::shared_ptr<Propagated> propagate_program(const Module& module, const std::string& strategy,
                                              const std::vector<std::string>& names) {
  Program program{.module = module, .options = {.strategy = strategy_from_name(strategy)}};
  {
    py::gil_scoped_release release;
    run_passes(names, program);
  }
  return std::make_shared<Propagated>(std::make_shared<Module>(std::move(program.module)),
                                      std::move(program.provenance));
}

// What an annotation of one value would change: the program propagated with it.
std::shared_ptr<Propagated> propagate_annotated(const Module& module, uint32_t index, const std::string& sharding,
                                                const std::string& strategy) {
  if (index == 0 || index >= module.value_count()) throw py::index_error("a program has no such value");
  Module annotated = module;
  MeshPtr mesh = program_mesh(module);
  if (mesh == nullptr) fail<MeshError>("annotate", "the program must have a mesh", {}, "declare one");
  annotate(annotated, ValueId{index}, parse_short_sharding(sharding, std::move(mesh)));
  return propagate_program(annotated, strategy, {std::string(kInlineCalls.name), std::string(kPropagate.name)});
}

LocId loc_of(const Module& module, ValueId id) {
  const Value& value = module.value(id);
  return value.op ? module.op(value.op).loc : value.loc;
}

LocId call_of(const Module& module, LocId loc) {
  const bool named = loc && module.context().location(loc).kind == Location::Kind::kName;
  return named ? module.context().location(loc).child : loc;
}

// By value index: whether an op of the same call uses it. np.var records eleven ops, and only the last one's result is
// what `v = np.var(x)` stores.
std::vector<bool> inner_values(const Module& module) {
  std::vector<bool> inner(module.value_count());
  for (OpId op : module.region(module.main().body).ops) {
    const LocId call = call_of(module, module.op(op).loc);
    for (ValueId operand : module.operands(op)) {
      if (call && module.value(operand).op && call_of(module, loc_of(module, operand)) == call)
        inner[operand.index] = true;
    }
  }
  return inner;
}

// The name of result `index` in what a text has on the left of an op: "%b#1" of "%a, %b:2", for the third one.
std::string name_in_text(std::string_view names, uint32_t index) {
  while (true) {
    const std::string_view entry = names.substr(0, names.find(", "));
    const size_t colon = entry.find(':');
    const std::string name(entry.substr(0, colon));
    const uint32_t count =
        colon == std::string_view::npos ? 1 : static_cast<uint32_t>(std::stoul(std::string(entry.substr(colon + 1))));
    if (index < count || entry.size() == names.size()) return count == 1 ? name : str(name, "#", index);
    index -= count;
    names.remove_prefix(entry.size() + 2);
  }
}

// A value's names: that in the text; the one it was given; the variable that it was stored to.
std::vector<std::string> names_of(const Module& module, ValueId id, const std::vector<bool>& inner) {
  std::vector<std::string> names;
  const Context& context = module.context();
  LocId loc = loc_of(module, id);
  std::string given = context.name_of(loc);
  if (given.starts_with("%")) {
    names.push_back(name_in_text(given, module.value(id).op ? module.value(id).index : 0));
    loc = context.location(loc).child;
    given = context.name_of(loc);
  }
  if (!given.empty()) names.push_back(std::move(given));
  const OpId op = module.value(id).op;
  // The body of a reduction is recorded by the call whose result the variable holds.
  if (!op || inner[id.index] || module.op(op).parent != module.main().body) return names;
  if (std::string variable = module.context().resolve(loc).variable; !variable.empty())
    names.push_back(std::move(variable));
  return names;
}

void append_values(const Module& module, RegionId region, std::vector<ValueId>& values) {
  for (ValueId argument : module.region(region).arguments) values.push_back(argument);
  for (OpId op : module.region(region).ops) {
    for (uint32_t i = 0; i < module.op(op).result_count; ++i) values.push_back(module.result(op, i));
    for (RegionId inner : module.regions(op)) append_values(module, inner, values);
  }
}

// Those of regions behind those of their op.
std::vector<ValueId> values_of_main(const Module& module) {
  std::vector<ValueId> values;
  append_values(module, module.main().body, values);
  return values;
}

py::list axes_of(const Explanation& explanation) {
  py::list axes;
  for (const AxisOrigin& origin : explanation.axes) {
    py::list path;
    for (const PathEntry& entry : origin.path) {
      path.append(py::dict(py::arg("name") = entry.name, py::arg("location") = entry.location,
                           py::arg("from") = entry.from, py::arg("to") = entry.to, py::arg("round") = entry.round,
                           py::arg("priority") = entry.priority));
    }
    axes.append(py::dict(py::arg("axis") = origin.axis_text, py::arg("dim") = origin.dim,
                         py::arg("origin") = origin.origin, py::arg("location") = origin.location,
                         py::arg("path") = path));
  }
  return axes;
}

py::dict explanation_dict(const Module& module, const Provenance& provenance, ValueId value) {
  const Explanation explanation = explain(module, provenance, value);
  const ResolvedSource source = module.context().resolve(loc_of(module, value));
  py::list lost;
  for (const LostAxis& entry : explanation.lost) {
    lost.append(py::dict(py::arg("axis") = entry.axis_text, py::arg("dim") = entry.dim, py::arg("op") = entry.op,
                         py::arg("location") = entry.location, py::arg("reason") = entry.reason));
  }
  return py::dict(py::arg("name") = explanation.name, py::arg("file") = source.file, py::arg("line") = source.line,
                  py::arg("type") = module.type(value).text(), py::arg("sharding") = explanation.sharding,
                  py::arg("axes") = axes_of(explanation), py::arg("lost") = lost,
                  py::arg("suggestion") = explanation.suggestion ? short_text(*explanation.suggestion) : std::string());
}

py::list explain_name(const Module& module, const Provenance& provenance, const std::string& name) {
  py::list found;
  const std::vector<bool> inner = inner_values(module);
  for (ValueId value : values_of_main(module)) {
    const auto names = names_of(module, value, inner);
    const bool is_one_of_several = !names.empty() && names.front().starts_with(name + "#");
    if (!is_one_of_several && std::find(names.begin(), names.end(), name) == names.end()) continue;
    found.append(explanation_dict(module, provenance, value));
    if (names.front().starts_with("%")) found[found.size() - 1]["name"] = names.front();
  }
  return found;
}

py::list all_names(const Module& module) {
  std::set<std::string> names;
  const std::vector<bool> inner = inner_values(module);
  for (ValueId value : values_of_main(module)) {
    for (std::string& name : names_of(module, value, inner)) names.insert(std::move(name));
  }
  return py::cast(std::vector<std::string>(names.begin(), names.end()));
}

py::list ledger(const CompiledProgram& compiled) {
  const Module& local = *compiled.local;
  py::list rows;
  for (const LedgerRow& row : collective_ledger(local)) {
    const ResolvedSource source = local.context().resolve(row.loc);
    rows.append(py::dict(py::arg("kind") = row.name, py::arg("axes") = row.axes, py::arg("group_size") = row.group_size,
                         py::arg("bytes") = row.bytes, py::arg("shape") = shape_tuple(row.operand.shape),
                         py::arg("dtype") = std::string(numpy_name(row.operand.dtype)), py::arg("count") = row.count,
                         py::arg("file") = source.file, py::arg("line") = source.line, py::arg("cause") = row.cause,
                         py::arg("name") = source.variable));
  }
  return rows;
}

py::dict stages(const CompiledProgram& compiled) {
  // Python sees modules as mutable objects, but nothing in its interface changes one.
  auto hold = [](const std::shared_ptr<const Module>& module) { return std::const_pointer_cast<Module>(module); };
  return py::dict(py::arg("global") = hold(compiled.global), py::arg("propagated") = hold(compiled.propagated),
                  py::arg("resharded") = hold(compiled.resharded), py::arg("local") = hold(compiled.local));
}

TensorSharding sharding_of(const CompiledProgram& compiled, ShardingId id, ValueId value) {
  const Module& module = *compiled.propagated;
  return id ? module.context().sharding(id)
            : TensorSharding::fully_replicated(compiled.mesh, module.type(value).ndim());
}

py::list argument_shardings(const CompiledProgram& compiled) {
  const Module& module = *compiled.propagated;
  py::list list;
  for (ValueId value : module.region(module.main().body).arguments) {
    list.append(sharding_of(compiled, module.value(value).sharding, value));
  }
  return list;
}

py::list result_shardings(const CompiledProgram& compiled) {
  const Module& module = *compiled.propagated;
  const Function& main = module.main();
  const std::vector<ValueId>& results = module.region(main.body).results;
  py::list list;
  for (size_t i = 0; i < results.size(); ++i) {
    const ShardingId id = i < main.result_shardings.size() ? main.result_shardings[i] : ShardingId();
    list.append(sharding_of(compiled, id, results[i]));
  }
  return list;
}

}  // namespace

void bind_passes(py::module_& module) {
  py::class_<CompiledProgram, CompiledPtr>(module, "Compiled")
      .def_property_readonly("stages", &stages)
      .def_property_readonly("seconds",
                             [](const CompiledProgram& self) {
                               py::dict seconds;
                               for (const PassRecord& pass : self.passes) {
                                 seconds[py::str(pass.name)] = static_cast<double>(pass.nanoseconds) * 1e-9;
                               }
                               return seconds;
                             })
      .def_property_readonly("counters", [](const CompiledProgram& self) { return counters_dict(self.counters); })
      .def_property_readonly("argument_shardings", &argument_shardings)
      .def_property_readonly("result_shardings", &result_shardings)
      .def("collectives", &ledger)
      .def("explain", [](const CompiledProgram& self,
                         const std::string& name) { return explain_name(*self.propagated, self.provenance, name); })
      .def("names", [](const CompiledProgram& self) { return all_names(*self.propagated); });
  py::class_<Propagated, std::shared_ptr<Propagated>>(module, "Propagated")
      .def_readonly("module", &Propagated::module)
      .def("explain", [](const Propagated& self,
                         const std::string& name) { return explain_name(*self.module, self.provenance, name); })
      // By its number in the program; IndexError for one that it does not have.
      .def("explain_value",
           [](const Propagated& self, uint32_t index) {
             if (index == 0 || index >= self.module->value_count()) {
               throw py::index_error("a program has no such value");
             }
             return explanation_dict(*self.module, self.provenance, ValueId{index});
           })
      .def("names", [](const Propagated& self) { return all_names(*self.module); });
  module.def("pass_names", &pass_names);
  module.def("propagate", &propagate_module, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("priorities") = "user", py::arg("conservative") = false);
  module.def("propagate_program", &propagate_program, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("names") = std::vector<std::string>{std::string(kInlineCalls.name), std::string(kPropagate.name)});
  module.def("propagate_annotated", &propagate_annotated, py::arg("module"), py::arg("value"), py::arg("sharding"),
             py::arg("strategy") = kDefaultStrategy);
  module.def("named_passes", &describe_passes);
  module.def(
      "populate_rules",
      [](const Module& self, bool conservative) {
        return run_named_passes(self, {std::string(kPopulateRules.name)}, kDefaultStrategy, false, conservative);
      },
      py::arg("module"), py::arg("conservative") = false);
  module.def("run_passes", &run_named_passes, py::arg("module"), py::arg("names"),
             py::arg("strategy") = kDefaultStrategy, py::arg("strict_divisible") = false,
             py::arg("conservative") = false);
  module.def("measure_propagation", &measure_propagation, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("priorities") = "user");
  module.def("compile", &compile_module, py::arg("module"), py::arg("mesh"), py::arg("strategy") = kDefaultStrategy,
             py::arg("conservative") = false);
}

}  // namespace shardwise
