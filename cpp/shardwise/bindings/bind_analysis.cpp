// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/bindings/bind_program.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/op_def.h"

namespace py = pybind11;

namespace shardwise {
namespace {

HardwarePtr hardware_of(const std::string& json) { return hardware_from_json(json, "hardware"); }

std::string_view kind_name(CountKind kind) {
  switch (kind) {
    case CountKind::kExact: return "exact";
    case CountKind::kBranch: return "branch";
    case CountKind::kAssumed: return "assumed";
  }
  return {};
}

void add_time(py::dict& row, const OpTime& time) {
  row["ps"] = time.ps();
  row["bound"] = name(time.bound());
  row["memory_ps"] = time.memory_ps;
  row["unit_ps"] = py::tuple(py::cast(time.unit_ps));  // matrix, vector, transcendental
  row["bytes"] = time.bytes;
  row["flops"] = time.flops;
}

void add_executions(py::dict& row, const Executions& executions) {
  row["count"] = executions.count;
  row["factor"] = py::make_tuple(executions.factor.numerator, executions.factor.denominator);
  row["kind"] = kind_name(executions.kind);
}

// A row per op, alone: the ops of combiners are part of the op that has them.
std::vector<py::dict> op_times(const Module& module, const std::string& hardware_json) {
  const HardwarePtr hardware = hardware_of(hardware_json);
  const ModuleExecutions executions(module);
  std::vector<py::dict> rows;
  for (const OpId id : ops_in_text_order(module)) {
    const OpId owner = module.region(module.op(id).parent).op;
    if (owner && module.op(owner).def->regions == Regions::kCombiner) continue;
    const OpView op(module, id);
    const OpCost cost = own_cost(op);
    py::dict row(py::arg("op") = id.index, py::arg("name") = op.name(), py::arg("matrix") = cost.matrix,
                 py::arg("vector") = cost.vector, py::arg("transcendental") = cost.transcendental,
                 py::arg("touched") = py::tuple(py::cast(cost.touched)));
    add_time(row, op_time(op, *hardware));
    add_executions(row, executions.of(id));
    rows.push_back(std::move(row));
  }
  return rows;
}

// A row per group of ops that run as one kernel.
std::vector<py::dict> group_times(const Module& module, const std::string& hardware_json) {
  const HardwarePtr hardware = hardware_of(hardware_json);
  const ModuleExecutions executions(module);
  std::vector<py::dict> rows;
  for (const FusionGroup& group : fuse(module, {.fused_attention = hardware->fused_attention}).groups) {
    py::list ops, again;
    for (const OpId op : group.ops) ops.append(OpView(module, op).name());
    for (const OpId op : group.computed_again) again.append(OpView(module, op).name());
    py::dict row(py::arg("ops") = ops, py::arg("computed_again") = again, py::arg("is_attention") = group.is_attention);
    add_time(row, group_time(module, group, *hardware));
    add_executions(row, executions.of(group.ops.front()));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void bind_analysis(py::module_& module) {
  module.def("op_times", &op_times, py::arg("module"), py::arg("hardware"));
  module.def("group_times", &group_times, py::arg("module"), py::arg("hardware"));
}

}  // namespace shardwise
