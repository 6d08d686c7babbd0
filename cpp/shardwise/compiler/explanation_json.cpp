// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/explanation_json.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "shardwise/compiler/manual_values.h"
#include "shardwise/explanation/axis_edges.h"
#include "shardwise/explanation/counterfactual.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/propagation/sharding_groups.h"
#include "shardwise/transforms/call_regions.h"

namespace shardwise {
namespace {

using Json = nlohmann::json;

// A name may be any bytes.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <class Rows, class Row>
Json list_of(const Rows& rows, Row row) {
  Json list = Json::array();
  for (const auto& one : rows) list.push_back(row(one));
  return list;
}

Json annotation_row(const Annotation& annotation) {
  const Label& label = annotation.label;
  return {{"origin", label.text}, {"location", label.location}, {"name", label.name}};
}

Json axis_row(const AxisOrigin& axis) {
  Json row = annotation_row(axis.origin);
  row.update({{"axis", axis.axis_text}, {"dim", axis.dim}, {"path", axis.path}});
  return row;
}

Json lost_row(const LostAxis& lost) {
  Json row{{"axis", lost.axis_text},
           {"dim", lost.dim},
           {"op", lost.carrier.text},
           {"value", lost.carrier.name},
           {"location", lost.carrier.location},
           {"reason", lost.reason},
           {"rule", lost.rule},
           {"winner", list_of(lost.winner, axis_row)}};
  if (lost.closed_by) row["closed_by"] = annotation_row(*lost.closed_by);
  return row;
}

Json step_row(const PathStep& step) {
  return {{"before", step.before},           {"name", step.label.text}, {"value", step.label.name},
          {"location", step.label.location}, {"from", step.from},       {"to", step.to},
          {"factor", step.factor},           {"round", step.round},     {"priority", step.priority}};
}

Json counterfactual_row(const Counterfactual& one) {
  Json row = annotation_row(one.without);
  row.update({{"sharding", one.sharding}, {"others", one.others}, {"why_not", one.why_not}});
  return row;
}

// The locations of the calls around the value, the outermost first.
Json calls_around(const CompileUnit& unit, ValueId id) {
  const Module& module = *unit.propagated;
  const Value& value = module.value(id);
  Json calls = Json::array();
  // From the innermost region outwards; each call goes to the front of the list.
  OpId op = module.region(value.op ? module.op(value.op).parent : value.region).op;
  for (; op; op = module.region(module.op(op).parent).op) {
    const std::string location = module.context().location_text(module.op(op).loc);
    const bool is_call = is_called_region(module, unit.context.provenance.called, op);
    if (is_call && !location.empty()) calls.insert(calls.begin(), location);
  }
  return calls;
}

Json value_row(const CompileUnit& unit, const ManualValues& manual_values, const Explanation& explanation) {
  const Module& module = *unit.propagated;
  const ValueId value = explanation.value;
  const OpId op = module.value(value).op;
  const Provenance& provenance = unit.context.provenance;
  const ResolvedSource source = module.context().resolve(loc_of(module, value));
  Json row{{"number", value.index},
           {"name", explanation.name},
           {"file", source.file},
           {"line", source.line},
           {"type", module.type(value).text()},
           {"sharding", explanation.sharding},
           {"op", op ? name_with_calls(module, provenance.called, op) : ""},
           {"index", module.value(value).index},
           {"called_at", calls_around(unit, value)},
           {"axes", list_of(explanation.axes, axis_row)},
           {"lost", list_of(explanation.lost, lost_row)},
           {"strategy", name(provenance.options.strategy)},
           {"conservative", provenance.options.conservative},
           {"suggestion", explanation.suggestion}};
  if (explanation.to_change) row["to_change"] = annotation_row(*explanation.to_change);
  if (const std::optional<ManualValue> manual = manual_values.find(module, value)) {
    row.update({{"manual_axes", manual->axes},
                {"device_type", manual->type},
                {"region_at", manual->location},
                {"differs", manual->differs}});
  }
  return row;
}

}  // namespace

std::string explanations_json(const CompileUnit& unit, std::span<const NamedValue> values, bool with_counterfactuals) {
  const Provenance& provenance = unit.context.provenance;
  const PropagatedProgram program{
      .before = *unit.global, .after = *unit.propagated, .pass = *unit.propagated_by, .context = unit.context};
  Explainer explainer(program.after, provenance);
  const ManualValues manual_values(unit.traced.get());
  const Json rows = list_of(values, [&](const NamedValue& named) {
    Explanation explanation = explainer.explain(named.value);
    const bool is_made = is_made_constraint(program.after, provenance, named.value);
    // The name that the user asked by may be that of a variable, which the value itself does not have.
    if (explanation.name.empty() && !is_made) explanation.name = named.name;
    Json row = value_row(unit, manual_values, explanation);
    if (with_counterfactuals) {
      row["counterfactuals"] = list_of(counterfactuals(program, explanation), counterfactual_row);
    }
    return row;
  });
  return text_of({{"paths", list_of(explainer.paths(), step_row)}, {"values", rows}});
}

std::string edges_json(const CompileUnit& unit) {
  const Module& module = *unit.propagated;
  AxisHistory history(module, unit.context.provenance);
  return text_of(list_of(axis_edges(history, module), [&](const AxisEdge& edge) -> Json {
    const std::vector<TensorRef> tensors = history.tensors(edge.at);
    const bool is_op = edge.at.op && history.edge_of(edge.at.op) == nullptr;
    // A data-flow edge, or a result of main, has one result: its owner, which is the last tensor.
    const size_t operands = is_op ? module.operands(edge.at.op).size() : tensors.size() - 1;
    const auto place = [&](size_t tensor) {
      return tensor < operands ? "operand-" + std::to_string(tensor) : "result-" + std::to_string(tensor - operands);
    };
    const Mesh& mesh = *module.context().sharding(history.at(tensors[edge.target], history.now())).mesh;
    return {{"visit", edge.visit},
            {"members", list_of(edge.members, [](ValueId member) { return member.index; })},
            {"result", edge.at.result},
            {"op", edge.at.op ? module.context().name_of(module.op(edge.at.op).loc) : ""},
            {"axis", axis_text(mesh, edge.axis)},
            {"source", place(edge.source)},
            {"target", place(edge.target)},
            {"from", tensors[edge.source].value.index},
            {"to", tensors[edge.target].value.index}};
  }));
}

}  // namespace shardwise
