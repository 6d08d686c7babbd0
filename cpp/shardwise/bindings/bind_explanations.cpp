// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "shardwise/bindings/explanations.h"
#include "shardwise/explanation/axis_edges.h"
#include "shardwise/explanation/counterfactual.h"
#include "shardwise/explanation/explain.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"

namespace py = pybind11;

namespace shardwise {
namespace {

// The annotated value's; where an op says how others are sharded, its results'.
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
  explicit Rows(const CompileUnit& unit) : module_(*unit.propagated), provenance_(unit.context.provenance) {}

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
py::list calls_around(const CompileUnit& unit, ValueId id) {
  const Module& module = *unit.propagated;
  std::vector<std::string> places;
  const Value& value = module.value(id);
  OpId op = module.region(value.op ? module.op(value.op).parent : value.region).op;
  for (; op; op = module.region(module.op(op).parent).op) {
    if (!is_called_region(module, unit.context.provenance, op)) continue;
    if (std::string place = module.context().location_text(module.op(op).loc); !place.empty()) {
      places.push_back(std::move(place));
    }
  }
  std::ranges::reverse(places);
  return py::cast(places);
}

py::list counterfactuals_of(const CompileUnit& unit, const Explanation& explanation) {
  py::list rows;
  for (const Counterfactual& one :
       counterfactuals(*unit.global, *unit.propagated, *unit.propagated_by, unit.context.options, explanation)) {
    py::dict row = annotation_dict(*unit.propagated, unit.context.provenance, one.without);
    row["sharding"] = one.sharding;
    row["others"] = one.others;
    row["why_not"] = one.why_not;
    rows.append(row);
  }
  return rows;
}

// What Shardy writes as sdy.propagation_edges; `from` and `to` are the numbers of values, 0 for a result of main.
py::list edges_of(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  AxisHistory history(module, unit.context.provenance);
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

py::dict explain_value(const CompileUnit& unit, ExplanationContext& context, ValueId value, bool counterfactual) {
  const Module& module = *unit.propagated;
  const Provenance& provenance = unit.context.provenance;
  const Explanation explanation = explain(context, value);
  const ResolvedSource source = module.context().resolve(loc_of(module, value));
  const OpId op = module.value(value).op;
  Rows rows(unit);
  py::dict row(py::arg("name") = explanation.name, py::arg("file") = source.file, py::arg("line") = source.line,
               py::arg("type") = module.type(value).text(), py::arg("sharding") = explanation.sharding,
               py::arg("op") = op ? shown_op(module, provenance, op) : std::string(),
               py::arg("index") = module.value(value).index, py::arg("called_at") = calls_around(unit, value),
               py::arg("axes") = rows.axes(explanation.axes), py::arg("lost") = rows.lost(explanation),
               py::arg("strategy") = provenance.basic ? "basic" : "aggressive",
               py::arg("conservative") = provenance.conservative);
  row["suggestion"] = explanation.suggestion ? short_text(*explanation.suggestion) : std::string();
  if (explanation.to_change) row["to_change"] = annotation_dict(module, provenance, *explanation.to_change);
  if (counterfactual) row["counterfactuals"] = counterfactuals_of(unit, explanation);
  return row;
}

py::dict explain_number(const CompileUnit& unit, uint32_t number, bool counterfactual) {
  if (number == 0 || number >= unit.propagated->value_count()) throw py::index_error("a program has no such value");
  ExplanationContext context(*unit.propagated, unit.context.provenance);
  return explain_value(unit, context, ValueId{number}, counterfactual);
}

py::list explain_query(const CompileUnit& unit, const std::string& query, bool counterfactual) {
  const Module& module = *unit.propagated;
  const Provenance& provenance = unit.context.provenance;
  py::list found;
  ExplanationContext context(module, provenance);
  for (const NamedValue& named : find_values(module, provenance, query)) {
    py::dict row = explain_value(unit, context, named.value, counterfactual);
    const bool is_made = is_made_constraint(module, provenance, named.value);
    if (!is_made && row["name"].cast<std::string>().empty()) row["name"] = named.name;
    found.append(row);
  }
  return found;
}

py::list explain_all(const CompileUnit& unit) {
  py::list rows;
  ExplanationContext context(*unit.propagated, unit.context.provenance);
  for (const ValueId value : values_of_main(*unit.propagated)) {
    py::dict row = explain_value(unit, context, value, false);
    row["number"] = value.index;
    rows.append(row);
  }
  return rows;
}

py::list names_to_ask(const CompileUnit& unit) {
  std::vector<std::string> names = value_names(*unit.propagated);
  for (std::string& op : op_names(*unit.propagated, unit.context.provenance)) names.push_back(std::move(op));
  return py::cast(names);
}

// Whether propagation was given such a value: of those it takes away what nothing uses.
bool was_given(const CompileUnit& unit, const std::string& query) {
  return !find_values(*unit.global, {}, query).empty();
}

}  // namespace

void bind_explanations(py::module_& module, py::class_<CompileUnit, std::shared_ptr<CompileUnit>>& units) {
  py::class_<PathRow>(module, "PathRow")
      .def("__len__", [](const PathRow& self) { return self.path->size(); })
      .def("__iter__", [](const PathRow& self) -> py::typing::Iterator<py::dict> { return py::iter(self.steps()); })
      .def_property_readonly("before", &PathRow::before)
      .def_property_readonly("last", [](const PathRow& self) { return step_dict(*self.path->last); })
      // The same number for the same path, among rows that are in use.
      .def_property_readonly("key", [](const PathRow& self) { return reinterpret_cast<uintptr_t>(self.path.get()); });
  units
      .def("explain", &explain_query, py::arg("query"), py::arg("counterfactual") = false)
      // By its number in the program; IndexError for one that it does not have.
      .def("explain_value", &explain_number, py::arg("value"), py::arg("counterfactual") = false)
      .def("explain_all", &explain_all)
      .def("edges", &edges_of)
      .def("names", &names_to_ask)
      .def("was_given", &was_given)
      .def("meanings",
           [](const CompileUnit& self, const std::string& query) { return meanings(*self.propagated, query); });
}

}  // namespace shardwise
