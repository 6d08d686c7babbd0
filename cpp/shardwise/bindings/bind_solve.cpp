// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/gil.h"
#include "shardwise/bindings/signal_check.h"
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
  Solution solution = solve(graph, {bound_cells, search_cells, rounds}, start, [&] { check(); });
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

}  // namespace

void bind_solve(py::module_& module) {
  module.attr("FORBIDDEN") = kForbidden;
  py::class_<CostGraph>(module, "CostGraph")
      .def(py::init<>())
      .def("add_node", &CostGraph::add_node, py::arg("costs"), "The number of the new node")
      .def("add_edge", &CostGraph::add_edge, py::arg("a"), py::arg("b"), py::arg("costs"))
      .def("add_use", &CostGraph::add_use, py::arg("node"), py::arg("begin"), py::arg("end"), py::arg("bytes"))
      .def("set_limit", &CostGraph::set_limit, py::arg("bytes"))
      .def("cost_of", &cost_of, py::arg("picks"))
      .def("peak_of", &peak_of, py::arg("picks"));
  const SolveEffort usual;
  module.def("solve", &solve_graph, py::arg("graph"), py::kw_only(), py::arg("bound_cells") = usual.bound_cells,
             py::arg("search_cells") = usual.search_cells, py::arg("rounds_without_gain") = usual.rounds_without_gain,
             py::arg("start") = std::vector<uint32_t>());
}

}  // namespace shardwise
