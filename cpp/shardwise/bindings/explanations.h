// SPDX-License-Identifier: Apache-2.0
//
// Explanations as Python's dicts, for programs that were compiled and for those that were only propagated.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "shardwise/ir/pass.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {

// A propagated program with what it was made of.
struct Explained {
  const Module& before;  // what the pass was given
  const Module& propagated;
  const Provenance& provenance;
  CompileOptions options;
  const Pass& pass = kPropagate;  // which propagated it
};

pybind11::list explain_query(const Explained& program, const std::string& query, bool counterfactual);
pybind11::dict explain_value(const Explained& program, ValueId value, bool counterfactual);
pybind11::list explain_all(const Explained& program);
pybind11::list names_to_ask(const Module& module, const Provenance& provenance);

void bind_explanations(pybind11::module_& module);

}  // namespace shardwise
