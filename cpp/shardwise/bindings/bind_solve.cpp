// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/signal_check.h"
#include "shardwise/choice/memory/saved_values.h"
#include "shardwise/choice/solve/solve.h"

namespace py = pybind11;

namespace shardwise {

namespace {

// (an option per node, or none; cost; bound)
using SolutionRow = std::tuple<std::vector<uint32_t>, GraphCost, GraphCost>;

SolutionRow solve_graph(const CostGraph& graph, uint64_t bound_cells, uint64_t search_cells, uint32_t rounds,
                        const std::vector<uint32_t>& start) {
  const WithoutGil released;
  SignalCheck check;
  const SolveEffort effort{.bound_cells = bound_cells, .search_cells = search_cells, .rounds_without_gain = rounds};
  Solution solution = solve(graph, effort, start, [&] { check(); });
  return {std::move(solution.picks), solution.cost, solution.bound};
}

GraphCost cost_of(const CostGraph& graph, const std::vector<uint32_t>& picks) {
  graph.check(picks);
  return graph.cost_of(picks);
}

int64_t peak_of(const CostGraph& graph, const std::vector<uint32_t>& picks) {
  graph.check(picks);
  return graph.peak_of(picks);
}

std::vector<std::vector<GraphCost>> rows_of_nodes(const CostGraph& graph) {
  std::vector<std::vector<GraphCost>> nodes;
  for (size_t i = 0; i < graph.size(); ++i) nodes.emplace_back(graph.costs(i).begin(), graph.costs(i).end());
  return nodes;
}

// (node, node, costs)
std::vector<std::tuple<size_t, size_t, std::vector<GraphCost>>> rows_of_edges(const CostGraph& graph) {
  std::vector<std::tuple<size_t, size_t, std::vector<GraphCost>>> edges;
  for (const auto& [a, b, costs] : graph.edges()) edges.emplace_back(a, b, costs);
  return edges;
}

// A value is (bytes, picoseconds, is it needed, can it be kept, can it be computed again, operands). Returns which are kept,
// which are computed again, their bytes and picoseconds, whether that is within the bytes, and the bound.
using SavedValueRow = std::tuple<int64_t, int64_t, bool, bool, bool, std::vector<uint32_t>>;
using SavedRow = std::tuple<std::vector<bool>, std::vector<bool>, int64_t, int64_t, bool, int64_t>;

SavedRow save_within_bytes(const std::vector<SavedValueRow>& rows, int64_t bytes, int64_t branches) {
  const WithoutGil released;
  SavedValues values;
  for (const auto& [size, ps, is_needed, can_be_kept, can_repeat, operands] : rows) {
    for (const uint32_t operand : operands) {
      if (operand >= rows.size())
        fail<ShardingError>("save_within", "operands must be numbers of values", str(operand));
    }
    values.push_back({size, ps, is_needed, can_be_kept, can_repeat, operands});
  }
  const SavedWithin found = save_within(values, bytes, {.branches = branches});
  const Saved& saved = found.saved;
  return {saved.is_kept, saved.is_repeated, saved.bytes, saved.ps, found.fits, found.bound_ps};
}

}  // namespace

void bind_solve(py::module_& module) {
  module.attr("FORBIDDEN") = kForbidden;
  py::class_<CostGraph>(module, "CostGraph")
      .def(py::init<>())
      .def("add_node", &CostGraph::add_node, py::arg("costs"), "The number of the new node")
      .def("add_edge", &CostGraph::add_edge, py::arg("a"), py::arg("b"), py::arg("costs"))
      .def("add_use", &CostGraph::add_use, py::arg("node"), py::arg("begin"), py::arg("end"), py::arg("bytes"))
      .def("set_limit", &CostGraph::set_limit, py::arg("bytes"))
      .def_property_readonly("nodes", &rows_of_nodes)
      .def_property_readonly("edges", &rows_of_edges)
      .def("cost_of", &cost_of, py::arg("picks"))
      .def("peak_of", &peak_of, py::arg("picks"));
  const SolveEffort usual;
  module.def("solve", &solve_graph, py::arg("graph"), py::kw_only(), py::arg("bound_cells") = usual.bound_cells,
             py::arg("search_cells") = usual.search_cells, py::arg("rounds_without_gain") = usual.rounds_without_gain,
             py::arg("start") = std::vector<uint32_t>());
  module.def("save_within", &save_within_bytes, py::arg("values"), py::arg("bytes"), py::kw_only(),
             py::arg("branches") = SaveEffort().branches);
}

}  // namespace shardwise
