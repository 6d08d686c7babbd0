// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/explanations.h"
#include "shardwise/bindings/strategy_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/annotations.h"
#include "shardwise/passes/counterfactual.h"
#include "shardwise/passes/explain.h"
#include "shardwise/passes/inline_calls.h"
#include "shardwise/passes/named_passes.h"
#include "shardwise/passes/program_shardings.h"
#include "shardwise/passes/propagate.h"
#include "shardwise/passes/value_names.h"

namespace py = pybind11;

namespace shardwise {
namespace {

// A program with its shardings, and where each of them comes from.
struct Propagated {
  std::shared_ptr<Module> before;
  std::shared_ptr<Module> module;
  Provenance provenance;
  CompileOptions options;
  Explained explained() const { return {*before, *module, provenance, options}; }
};

const std::vector<std::string>& usual_passes() {
  static const std::vector<std::string> names{std::string(kInlineCalls.name), std::string(kPropagate.name)};
  return names;
}

std::shared_ptr<Propagated> propagate_program(const Module& module, const std::string& strategy,
                                              const std::vector<std::string>& names, bool conservative,
                                              bool strict_divisible) {
  const CompileOptions options{
      .strategy = strategy_from_name(strategy), .conservative = conservative, .strict_divisible = strict_divisible};
  Program program{.module = module, .options = options};
  auto result = std::make_shared<Propagated>();
  result->options = options;
  {
    py::gil_scoped_release release;
    const size_t first = names.empty() ? 0 : names.size() - 1;
    run_passes(std::span(names).first(first), program);
    result->before = std::make_shared<Module>(program.module);
    run_passes(std::span(names).subspan(first), program);
  }
  result->module = std::make_shared<Module>(std::move(program.module));
  result->provenance = std::move(program.provenance);
  return result;
}

// What an annotation of one value would change: the program propagated with it.
std::shared_ptr<Propagated> propagate_annotated(const Module& module, uint32_t index, const std::string& sharding,
                                                const std::string& strategy, bool conservative) {
  if (index == 0 || index >= module.value_count()) throw py::index_error("a program has no such value");
  Module annotated = module;
  MeshPtr mesh = program_mesh(module);
  if (mesh == nullptr) fail<MeshError>("annotate", "the program must have a mesh", {}, "declare one");
  annotate(annotated, ValueId{index}, parse_short_sharding(sharding, std::move(mesh)));
  return propagate_program(annotated, strategy, usual_passes(), conservative, false);
}

// Of what was annotated: an op, an argument, or, for what a region begins with, the op of the region.
LocId loc_of(const Module& module, const Annotation& annotation) {
  if (annotation.op) return module.op(annotation.op).loc;
  const ValueId value = annotation.holder.value;
  if (!value) return {};
  const OpId owner = module.value(value).op ? OpId{} : module.region(module.value(value).region).op;
  return owner ? module.op(owner).loc : loc_of(module, value);
}

py::dict annotation_dict(const Module& module, const Annotation& annotation) {
  return py::dict(py::arg("origin") = annotation.text, py::arg("location") = annotation.location,
                  py::arg("name") = module.context().name_of(loc_of(module, annotation)));
}

py::list axes_of(const Module& module, const std::vector<AxisOrigin>& origins) {
  py::list axes;
  for (const AxisOrigin& origin : origins) {
    py::list path;
    for (const PathEntry& entry : origin.path) {
      path.append(py::dict(py::arg("name") = entry.name, py::arg("location") = entry.location,
                           py::arg("from") = entry.from, py::arg("to") = entry.to, py::arg("factor") = entry.factor,
                           py::arg("round") = entry.round, py::arg("priority") = entry.priority));
    }
    py::dict row = annotation_dict(module, origin.origin);
    row["axis"] = origin.axis_text;
    row["dim"] = origin.dim;
    row["path"] = path;
    axes.append(row);
  }
  return axes;
}

py::list lost_of(const Module& module, const Explanation& explanation) {
  py::list rows;
  for (const LostAxis& entry : explanation.lost) {
    py::dict row(py::arg("axis") = entry.axis_text, py::arg("dim") = entry.dim, py::arg("op") = entry.op,
                 py::arg("location") = entry.location, py::arg("reason") = entry.reason, py::arg("rule") = entry.rule,
                 py::arg("winner") = axes_of(module, entry.winner));
    if (entry.closed_by) row["closed_by"] = annotation_dict(module, *entry.closed_by);
    rows.append(row);
  }
  return rows;
}

py::list counterfactuals_of(const Explained& program, const Explanation& explanation) {
  py::list rows;
  for (const Counterfactual& one : counterfactuals(program.before, program.propagated, program.options, explanation)) {
    py::dict row = annotation_dict(program.propagated, one.without);
    row["sharding"] = one.sharding;
    row["others"] = one.others;
    rows.append(row);
  }
  return rows;
}

// What Shardy writes as sdy.propagation_edges; `from` and `to` are the numbers of values, 0 for a result of main.
py::list edges_of(const Propagated& program) {
  const Module& module = *program.module;
  AxisHistory history(module, program.provenance);
  py::list rows;
  for (const AxisEdge& edge : axis_edges(history, module)) {
    const std::vector<Holder> tensors = history.tensors(edge.op, edge.result);
    const bool is_edge = edge.op && history.edge_of(edge.op) != nullptr;
    const size_t operands = is_edge || !edge.op ? tensors.size() - 1 : module.operands(edge.op).size();
    const auto place = [&](size_t tensor) {
      return tensor < operands ? "operand-" + std::to_string(tensor) : "result-" + std::to_string(tensor - operands);
    };
    const Mesh& mesh = *module.context().sharding(history.at(tensors[edge.target], history.now())).mesh;
    py::list members;
    for (const ValueId member : edge.members) members.append(member.index);
    rows.append(py::dict(py::arg("visit") = edge.visit, py::arg("members") = members, py::arg("result") = edge.result,
                         py::arg("op") = edge.op ? module.context().name_of(module.op(edge.op).loc) : std::string(),
                         py::arg("axis") = axis_text(mesh, edge.axis), py::arg("source") = place(edge.source),
                         py::arg("target") = place(edge.target), py::arg("from") = tensors[edge.source].value.index,
                         py::arg("to") = tensors[edge.target].value.index));
  }
  return rows;
}

}  // namespace

py::dict explain_value(const Explained& program, ValueId value, bool counterfactual) {
  const Module& module = program.propagated;
  const Explanation explanation = explain(module, program.provenance, value);
  const ResolvedSource source = module.context().resolve(loc_of(module, value));
  const OpId op = module.value(value).op;
  py::dict row(py::arg("name") = explanation.name, py::arg("file") = source.file, py::arg("line") = source.line,
               py::arg("type") = module.type(value).text(), py::arg("sharding") = explanation.sharding,
               py::arg("op") = op ? std::string(module.op(op).def->name) : std::string(),
               py::arg("index") = module.value(value).index, py::arg("axes") = axes_of(module, explanation.axes),
               py::arg("lost") = lost_of(module, explanation),
               py::arg("strategy") = program.provenance.basic ? "basic" : "aggressive",
               py::arg("conservative") = program.provenance.conservative);
  row["suggestion"] = explanation.suggestion ? short_text(*explanation.suggestion) : std::string();
  if (explanation.to_change) row["to_change"] = annotation_dict(module, *explanation.to_change);
  if (counterfactual) row["counterfactuals"] = counterfactuals_of(program, explanation);
  return row;
}

py::list explain_query(const Explained& program, const std::string& query, bool counterfactual) {
  py::list found;
  for (const NamedValue& named : find_values(program.propagated, query)) {
    py::dict row = explain_value(program, named.value, counterfactual);
    if (named.name.starts_with("%") || row["name"].cast<std::string>().empty()) row["name"] = named.name;
    found.append(row);
  }
  return found;
}

py::list explain_all(const Explained& program) {
  py::list rows;
  for (const ValueId value : values_of_main(program.propagated)) {
    py::dict row = explain_value(program, value, false);
    row["number"] = value.index;
    rows.append(row);
  }
  return rows;
}

py::list names_to_ask(const Module& module) {
  std::vector<std::string> names = value_names(module);
  for (std::string& op : op_names(module)) names.push_back(std::move(op));
  return py::cast(names);
}

void bind_explanations(py::module_& module) {
  py::class_<Propagated, std::shared_ptr<Propagated>>(module, "Propagated")
      .def_readonly("module", &Propagated::module)
      .def(
          "explain",
          [](const Propagated& self, const std::string& query, bool counterfactual) {
            return explain_query(self.explained(), query, counterfactual);
          },
          py::arg("query"), py::arg("counterfactual") = false)
      // By its number in the program; IndexError for one that it does not have.
      .def(
          "explain_value",
          [](const Propagated& self, uint32_t index, bool counterfactual) {
            if (index == 0 || index >= self.module->value_count()) {
              throw py::index_error("a program has no such value");
            }
            return explain_value(self.explained(), ValueId{index}, counterfactual);
          },
          py::arg("value"), py::arg("counterfactual") = false)
      .def("explain_all", [](const Propagated& self) { return explain_all(self.explained()); })
      .def("edges", &edges_of)
      .def("names", [](const Propagated& self) { return names_to_ask(*self.module); });
  module.def("propagate_program", &propagate_program, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("names") = usual_passes(), py::arg("conservative") = false, py::arg("strict_divisible") = false);
  module.def("propagate_annotated", &propagate_annotated, py::arg("module"), py::arg("value"), py::arg("sharding"),
             py::arg("strategy") = kDefaultStrategy, py::arg("conservative") = false);
}

}  // namespace shardwise
