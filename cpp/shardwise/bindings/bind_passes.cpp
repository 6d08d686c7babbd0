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
#include "shardwise/bindings/explanations.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/strategy_names.h"
#include "shardwise/bindings/warnings.h"
#include "shardwise/compiler/named_passes.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/graph_copy.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/partition/collective_ledger.h"
#include "shardwise/propagation/populate_rules.h"
#include "shardwise/propagation/program_shardings.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/inline_calls.h"

namespace py = pybind11;

namespace shardwise {

Strategy strategy_from_name(const std::string& name) {
  if (name == "basic") return Strategy::kBasic;
  if (name == "aggressive") return Strategy::kAggressive;
  fail<ShardingError>("propagate", "strategy must be 'basic' or 'aggressive'", name);
}

namespace {

using CompiledPtr = std::shared_ptr<CompiledProgram>;

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
  record_annotations(copy, provenance);
  propagate_shardings(copy, strategy_from_name(strategy), priorities_from_name(priorities), provenance, counters);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return py::dict(py::arg("seconds") = seconds.count(), py::arg("counters") = counters_dict(counters));
}

CompiledPtr compile_module(const Module& module, const std::shared_ptr<Mesh>& mesh, const std::string& strategy,
                           bool conservative, bool strict_divisible) {
  const CompileOptions options{
      .strategy = strategy_from_name(strategy), .conservative = conservative, .strict_divisible = strict_divisible};
  Module traced = module;
  choose_mesh(traced, mesh);
  const auto compiled_module = [&] {
    const WithoutGil released;
    return compile(std::move(traced), options);
  };
  Compiled compiled = compiled_module();
  warn(compiled.warnings);
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
  result->options = options;
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
    const WithoutGil released;
    run_passes(names, program);
  }
  warn(program.warnings);
  return std::make_shared<Module>(std::move(program.module));
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
    if (pass.reads.strategy) reads.append("strategy");
    if (pass.reads.conservative) reads.append("conservative");
    if (pass.reads.strict_divisible) reads.append("strict_divisible");
    const py::object own = pass.strategy
                               ? py::object(py::str(*pass.strategy == Strategy::kBasic ? "basic" : "aggressive"))
                               : py::object(py::none());
    rows[py::str(std::string(pass.name))] = py::make_tuple(reads, own);
  }
  return rows;
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

// The same program with an edited local stage, which has as many values: tests plant faults in it.
CompiledPtr with_local_stage(const CompiledProgram& compiled, const std::shared_ptr<Module>& local) {
  const std::vector<ValueId> before = values_of_main(*compiled.local), after = values_of_main(*local);
  if (before.size() != after.size()) {
    fail<ShapeError>("with_local_stage", str("the module must have ", before.size(), " values"), str(after.size()));
  }
  auto edited = std::make_shared<CompiledProgram>(compiled);
  edited->local = local;
  edited->layouts.assign(local->value_count(), {});
  for (size_t i = 0; i < before.size(); ++i) edited->layouts[after[i].index] = compiled.layouts[before[i].index];
  return edited;
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
      .def("with_local_stage", &with_local_stage)
      .def(
          "explain",
          [](const CompiledProgram& self, const std::string& query, bool counterfactual) {
            return explain_query({*self.global, *self.propagated, self.provenance, self.options}, query,
                                 counterfactual);
          },
          py::arg("query"), py::arg("counterfactual") = false)
      .def("names", [](const CompiledProgram& self) { return names_to_ask(*self.propagated, self.provenance); })
      .def("was_given", [](const CompiledProgram& self,
                           const std::string& query) { return !find_values(*self.global, {}, query).empty(); })
      .def("meanings",
           [](const CompiledProgram& self, const std::string& query) { return meanings(*self.propagated, query); });
  bind_explanations(module);
  module.def("pass_names", &pass_names);
  module.def("propagate", &propagate_module, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("priorities") = "user", py::arg("conservative") = false);
  module.def("named_passes", &describe_passes);
  module.def("options_of_passes", &describe_options);
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
             py::arg("conservative") = false, py::arg("strict_divisible") = false);
}

}  // namespace shardwise
