// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/explanations.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/strategy_names.h"
#include "shardwise/bindings/warnings.h"
#include "shardwise/compiler/named_passes.h"
#include "shardwise/explanation/axis_edges.h"
#include "shardwise/explanation/counterfactual.h"
#include "shardwise/explanation/explain.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/annotations.h"
#include "shardwise/propagation/program_shardings.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/inline_calls.h"

namespace py = pybind11;

namespace shardwise {
namespace {

// A program with its shardings, and where each of them comes from.
struct Propagated {
  std::shared_ptr<Module> before;
  std::shared_ptr<Module> module;
  Provenance provenance;
  CompileOptions options;
  const Pass* pass = &kPropagate;  // the last one
  Explained explained() const { return {*before, *module, provenance, options, *pass}; }
};

const std::vector<std::string>& usual_passes() {
  static const std::vector<std::string> names{std::string(kPropagate.name)};
  return names;
}

// The last of the passes is the one to explain. The pass `propagate` makes functions of called regions again; what a
// call gave and took is explained where it stands, so the regions stay.
std::shared_ptr<Propagated> propagate_program(const Module& module, const std::string& strategy,
                                              const std::vector<std::string>& names, bool conservative,
                                              bool strict_divisible) {
  const CompileOptions options{
      .strategy = strategy_from_name(strategy), .conservative = conservative, .strict_divisible = strict_divisible};
  Program program{.module = module, .options = options};
  auto result = std::make_shared<Propagated>();
  result->options = options;
  std::set<std::string> called;
  {
    const WithoutGil released;
    const size_t first = names.empty() ? 0 : names.size() - 1;
    run_passes(std::span(names).first(first), program);
    const Pass* last = names.empty() ? nullptr : find_named_pass(names.back());
    if (last != nullptr) result->pass = last;
    if (last != nullptr && last->run == kPropagate.run) called = calls_to_regions(program.module);
    result->before = std::make_shared<Module>(program.module);
    run_passes(std::span(names).subspan(first), program);
  }
  result->module = std::make_shared<Module>(std::move(program.module));
  result->provenance = std::move(program.provenance);
  result->provenance.called = std::move(called);
  warn(program.warnings);
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

// The name of the annotated value; for an annotation by an op, of the op's results.
std::string name_of(const Module& module, const Provenance& provenance, const Annotation& annotation) {
  if (annotation.op) return shown_name(module, annotation.op);
  const ValueId value = annotation.tensor.value;
  if (!value) return {};
  const OpId owner = module.value(value).op ? OpId{} : module.region(module.value(value).region).op;
  const bool owner_annotates = owner && !is_called_region(module, provenance, owner);
  return owner_annotates ? shown_name(module, owner) : shown_name(module, value);
}

py::dict annotation_dict(const Module& module, const Provenance& provenance, const Annotation& annotation) {
  return py::dict(py::arg("origin") = annotation.text, py::arg("location") = annotation.location,
                  py::arg("name") = name_of(module, provenance, annotation));
}

py::dict step_dict(const PathEntry& entry) {
  return py::dict(py::arg("name") = entry.name, py::arg("value") = entry.value, py::arg("location") = entry.location,
                  py::arg("from") = entry.from, py::arg("to") = entry.to, py::arg("factor") = entry.factor,
                  py::arg("round") = entry.round, py::arg("priority") = entry.priority);
}

// A path as a sequence of dicts. Python reads `before` and `last` where paths share their beginnings.
struct PathRow {
  std::shared_ptr<const AxisPath> path;

  std::optional<PathRow> before() const {
    if (path->before == nullptr) return std::nullopt;
    return PathRow{std::shared_ptr<const AxisPath>(path, path->before)};
  }
  py::list steps() const {
    py::list rows(path->size());
    size_t i = path->size();
    for (const AxisPath* at = path.get(); i > 0; at = at->before) rows[--i] = step_dict(*at->last);
    return rows;
  }
};

// The entries of explanations as Python's dicts.
class Rows {
 public:
  explicit Rows(const Explained& program) : module_(program.propagated), provenance_(program.provenance) {}

  py::list axes(const std::vector<AxisOrigin>& origins) {
    py::list axes;
    for (const AxisOrigin& origin : origins) {
      py::dict row = annotation_dict(module_, provenance_, origin.origin);
      row["axis"] = origin.axis_text;
      row["dim"] = origin.dim;
      row["path"] = PathRow{origin.path};
      axes.append(row);
    }
    return axes;
  }

  py::list lost(const Explanation& explanation) {
    py::list rows;
    for (const LostAxis& entry : explanation.lost) {
      py::dict row(py::arg("axis") = entry.axis_text, py::arg("dim") = entry.dim, py::arg("op") = entry.op,
                   py::arg("value") = entry.value, py::arg("location") = entry.location,
                   py::arg("reason") = entry.reason, py::arg("rule") = entry.rule,
                   py::arg("winner") = axes(entry.winner));
      if (entry.closed_by) row["closed_by"] = annotation_dict(module_, provenance_, *entry.closed_by);
      rows.append(row);
    }
    return rows;
  }

 private:
  const Module& module_;
  const Provenance& provenance_;
};

// Where the calls are that the value is in, the outermost first.
py::list calls_around(const Explained& program, ValueId id) {
  const Module& module = program.propagated;
  std::vector<std::string> places;
  const Value& value = module.value(id);
  OpId op = module.region(value.op ? module.op(value.op).parent : value.region).op;
  for (; op; op = module.region(module.op(op).parent).op) {
    if (!is_called_region(module, program.provenance, op)) continue;
    if (std::string place = module.context().location_text(module.op(op).loc); !place.empty()) {
      places.push_back(std::move(place));
    }
  }
  std::ranges::reverse(places);
  return py::cast(places);
}

py::list counterfactuals_of(const Explained& program, const Explanation& explanation) {
  py::list rows;
  for (const Counterfactual& one :
       counterfactuals(program.before, program.propagated, program.pass, program.options, explanation)) {
    py::dict row = annotation_dict(program.propagated, program.provenance, one.without);
    row["sharding"] = one.sharding;
    row["others"] = one.others;
    row["why_not"] = one.why_not;
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
    const std::vector<TensorRef> tensors = history.tensors(edge.op, edge.result);
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

py::dict explain_value(const Explained& program, ExplanationContext& context, ValueId value, bool counterfactual) {
  const Module& module = program.propagated;
  const Explanation explanation = explain(context, value);
  const ResolvedSource source = module.context().resolve(loc_of(module, value));
  const OpId op = module.value(value).op;
  Rows rows(program);
  py::dict row(py::arg("name") = explanation.name, py::arg("file") = source.file, py::arg("line") = source.line,
               py::arg("type") = module.type(value).text(), py::arg("sharding") = explanation.sharding,
               py::arg("op") = op ? shown_op(module, program.provenance, op) : std::string(),
               py::arg("index") = module.value(value).index, py::arg("called_at") = calls_around(program, value),
               py::arg("axes") = rows.axes(explanation.axes), py::arg("lost") = rows.lost(explanation),
               py::arg("strategy") = program.provenance.basic ? "basic" : "aggressive",
               py::arg("conservative") = program.provenance.conservative);
  row["suggestion"] = explanation.suggestion ? short_text(*explanation.suggestion) : std::string();
  if (explanation.to_change) row["to_change"] = annotation_dict(module, program.provenance, *explanation.to_change);
  if (counterfactual) row["counterfactuals"] = counterfactuals_of(program, explanation);
  return row;
}

}  // namespace

py::dict explain_value(const Explained& program, ValueId value, bool counterfactual) {
  ExplanationContext context(program.propagated, program.provenance);
  return explain_value(program, context, value, counterfactual);
}

py::list explain_query(const Explained& program, const std::string& query, bool counterfactual) {
  py::list found;
  ExplanationContext context(program.propagated, program.provenance);
  for (const NamedValue& named : find_values(program.propagated, program.provenance, query)) {
    py::dict row = explain_value(program, context, named.value, counterfactual);
    const bool is_made = is_made_constraint(program.propagated, program.provenance, named.value);
    if (!is_made && row["name"].cast<std::string>().empty()) row["name"] = named.name;
    found.append(row);
  }
  return found;
}

py::list explain_all(const Explained& program) {
  py::list rows;
  ExplanationContext context(program.propagated, program.provenance);
  for (const ValueId value : values_of_main(program.propagated)) {
    py::dict row = explain_value(program, context, value, false);
    row["number"] = value.index;
    rows.append(row);
  }
  return rows;
}

py::list names_to_ask(const Module& module, const Provenance& provenance) {
  std::vector<std::string> names = value_names(module);
  for (std::string& op : op_names(module, provenance)) names.push_back(std::move(op));
  return py::cast(names);
}

void bind_explanations(py::module_& module) {
  py::class_<PathRow>(module, "PathRow")
      .def("__len__", [](const PathRow& self) { return self.path->size(); })
      .def("__iter__", [](const PathRow& self) -> py::typing::Iterator<py::dict> { return py::iter(self.steps()); })
      .def_property_readonly("before", &PathRow::before)
      .def_property_readonly("last", [](const PathRow& self) { return step_dict(*self.path->last); })
      // The same number for the same path, among rows that are in use.
      .def_property_readonly("key", [](const PathRow& self) { return reinterpret_cast<uintptr_t>(self.path.get()); });
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
      .def("names", [](const Propagated& self) { return names_to_ask(*self.module, self.provenance); })
      // Whether propagation was given such a value: of those it takes away what nothing uses.
      .def("was_given", [](const Propagated& self,
                           const std::string& query) { return !find_values(*self.before, {}, query).empty(); })
      .def("meanings", [](const Propagated& self, const std::string& query) { return meanings(*self.module, query); });
  module.def("propagate_program", &propagate_program, py::arg("module"), py::arg("strategy") = kDefaultStrategy,
             py::arg("names") = usual_passes(), py::arg("conservative") = false, py::arg("strict_divisible") = false);
  module.def("propagate_annotated", &propagate_annotated, py::arg("module"), py::arg("value"), py::arg("sharding"),
             py::arg("strategy") = kDefaultStrategy, py::arg("conservative") = false);
}

}  // namespace shardwise
