// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "shardwise/bindings/explanations.h"
#include "shardwise/compiler/explanation_json.h"
#include "shardwise/compiler/value_queries.h"
#include "shardwise/ir/rewrite/walk.h"

namespace py = pybind11;

namespace shardwise {
namespace {

ValueNames names_of(const CompileUnit& unit) { return ValueNames(*unit.propagated, unit.context.provenance); }

std::string explain_query(const CompileUnit& unit, const std::string& query, bool counterfactual) {
  return explanations_json(unit, names_of(unit).find(query), counterfactual);
}

std::string explain_number(const CompileUnit& unit, uint32_t number, bool counterfactual) {
  // Number 0 is "no value" in every module.
  if (number == 0 || number >= unit.propagated->value_count()) throw py::index_error("a program has no such value");
  const NamedValue value{ValueId{number}, {}};
  return explanations_json(unit, std::span(&value, 1), counterfactual);
}

std::string explain_all(const CompileUnit& unit) {
  std::vector<NamedValue> values;
  for (const ValueId value : values_of_main(*unit.propagated)) values.push_back({value, {}});
  return explanations_json(unit, values, false);
}

// Whether the passes were given such a value: they drop those that nothing uses, and merge equal ones.
bool was_given(const CompileUnit& unit, const std::string& query) {
  return !ValueNames(unit.given ? *unit.given : *unit.global).find(query).empty();
}

}  // namespace

void bind_explanations(py::class_<CompileUnit, std::shared_ptr<CompileUnit>>& units) {
  units
      .def("explain", &explain_query, py::arg("query"), py::arg("counterfactual") = false)
      // By its number in the program; IndexError for one that it does not have.
      .def("explain_value", &explain_number, py::arg("value"), py::arg("counterfactual") = false)
      .def("explain_all", &explain_all)
      .def("edges", &edges_json)
      .def("names", [](const CompileUnit& self) { return names_of(self).all(); })
      .def("was_given", &was_given)
      // Whether passes before propagation changed the program.
      .def_property_readonly("is_simplified", [](const CompileUnit& self) { return self.given != nullptr; })
      .def("meanings",
           // The program that the passes were given has names of inlined calls, too.
           [](const CompileUnit& self, const std::string& query) {
             return self.given ? ValueNames(*self.given).meanings(query) : names_of(self).meanings(query);
           });
}

}  // namespace shardwise
