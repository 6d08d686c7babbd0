// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/analysis/live_bytes.h"
#include "shardwise/analysis/model_products.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/analysis/step_estimate.h"
#include "shardwise/bindings/bind_program.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/compiler/assigned_names.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ops/control/control.h"

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

double expected(const Executions& executions) {
  const auto [numerator, denominator] = executions.factor;
  return static_cast<double>(executions.count) * static_cast<double>(numerator) / static_cast<double>(denominator);
}

void add_transfer(py::dict& row, const CollectiveTime& transfer, const Hardware& hardware) {
  py::list tiers;  // (name, picoseconds)
  for (const TierTime& tier : transfer.tiers) tiers.append(py::make_tuple(hardware.tiers[tier.tier].name, tier.ps));
  row["tiers"] = tiers;
  row["latency_ps"] = transfer.latency_ps;
}

void add_kernel(py::dict& row, const OpTime& kernel) {
  row["bound"] = kernel.launch_ps > kernel.ps_without_launch() ? "launch" : name(kernel.bound());
  row["unit_ps"] = py::tuple(py::cast(kernel.unit_ps));
  row["memory_ps"] = kernel.memory_ps;
  row["launch_ps"] = kernel.launch_ps;
  row["products_ps"] = kernel.products_ps;
  row["flops"] = kernel.flops;
}

py::dict estimate_row(const Module& local, const EstimateRow& estimate, const Hardware& hardware) {
  const OpView op(local, estimate.op);
  const ResolvedSource source = local.context().resolve(op.loc());
  py::list ops;
  for (const OpId id : estimate.ops) ops.append(OpView(local, id).name());
  py::dict row(py::arg("op") = estimate.op.index, py::arg("name") = op.name(), py::arg("ops") = ops,
               py::arg("file") = source.file, py::arg("line") = source.line,
               py::arg("variable") = assigned_whole(source.variable), py::arg("start_ps") = estimate.start_ps,
               py::arg("ps") = estimate.ps, py::arg("exposed_ps") = estimate.exposed_ps,
               py::arg("bytes") = estimate.bytes, py::arg("executions") = expected(estimate.executions),
               py::arg("is_transfer") = estimate.is_transfer, py::arg("is_attention") = estimate.is_attention);
  py::list numbers, stages;
  for (const OpId id : estimate.ops) numbers.append(id.index);
  for (const RowStage& stage : estimate.stages) {
    const std::string_view stream = stage.stream == 0 ? "compute" : hardware.tiers[stage.stream - 1].name;
    stages.append(py::make_tuple(stream, stage.start_ps, stage.ps));
  }
  row["op_numbers"] = numbers;
  row["stages"] = stages;
  add_executions(row, estimate.executions);
  estimate.is_transfer ? add_transfer(row, estimate.transfer, hardware) : add_kernel(row, estimate.kernel);
  return row;
}

std::string_view span_name(StepSpan::Kind kind) {
  switch (kind) {
    case StepSpan::Kind::kLoop: return "loop";
    case StepSpan::Kind::kBranches: return "branches";
    case StepSpan::Kind::kBranch: return "branch";
    case StepSpan::Kind::kCall: return "call";
    case StepSpan::Kind::kMoreTrips: return "more trips";
    case StepSpan::Kind::kMoreConditions: return "more conditions";
    case StepSpan::Kind::kCalledAgain: return "called again";
  }
  return {};
}

py::dict step_span(const Module& local, const StepSpan& span) {
  const OpView op(local, span.op);
  const ResolvedSource source = local.context().resolve(op.loc());
  const std::string name = is_call(local, span.op) ? called_function(local, span.op).name : std::string(op.name());
  return py::dict(py::arg("kind") = span_name(span.kind), py::arg("op") = span.op.index, py::arg("name") = name,
                  py::arg("file") = source.file, py::arg("line") = source.line, py::arg("start_ps") = span.start_ps,
                  py::arg("ps") = span.ps, py::arg("number") = span.number);
}

// Lower bound, estimate and upper bound in picoseconds; a row per kernel and transfer; and the loops, branches and calls.
py::tuple estimate_of(const Module& local, const Hardware& hardware) {
  const StepEstimate estimate = estimate_step(local, hardware);
  py::list rows, spans;
  for (const EstimateRow& row : estimate.rows) rows.append(estimate_row(local, row, hardware));
  for (const StepSpan& span : estimate.spans) spans.append(step_span(local, span));
  return py::make_tuple(py::make_tuple(estimate.lower_ps, estimate.estimate_ps, estimate.upper_ps), rows, spans);
}

// Bytes of one device at the peak, of arguments, of results; the steps that were walked.
py::tuple live_bytes_of(const Module& local, const std::vector<size_t>& donated) {
  const MemoryUse use = without_gil([&] { return live_bytes(local, donated); });
  return py::make_tuple(use.peak_bytes, use.argument_bytes, use.result_bytes, use.steps);
}

}  // namespace

void bind_analysis(py::module_& module) {
  module.def("op_times", &op_times, py::arg("module"), py::arg("hardware"));
  // Picoseconds at the peak: of all products of a program, and of those that are computed again.
  module.def(
      "model_products",
      [](const Module& global, const Hardware& hardware) {
        const ModelProducts products = model_products(global, hardware);
        return py::make_tuple(products.ps, products.again);
      },
      py::arg("module"), py::arg("hardware"));
  module.def("estimate", &estimate_of, py::arg("local"), py::arg("hardware"));
  module.def("live_bytes", &live_bytes_of, py::arg("local"), py::arg("donated") = std::vector<size_t>());
  module.def("group_times", &group_times, py::arg("module"), py::arg("hardware"));
}

}  // namespace shardwise
