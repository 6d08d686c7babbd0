// SPDX-License-Identifier: Apache-2.0
//
// How users ask for values of a program, and how explanations name them: by name, by the op that defines them, or by
// source line.
//
//   h = np.tanh(x @ w)          # train.py:31
//
//   find_values(module, provenance, "h")                the value assigned to h; also names given by sw.name
//   find_values(module, provenance, "dot_general")      the results of all these ops; "dot_general[0]": of the first
//   find_values(module, provenance, "train.py:31")      all values of the line
//
// A text has its own names, separate for each function (ParseOptions::name_values):
//
//   func.func @main(%x: …) { %0 = func.call @f(%x) … }        "%x", or in full "@main %x"
//   func.func private @f(%y: …) { %0 = stablehlo.tanh %y }    "%y", or in full "@f %y"; a value for every call of @f
//                                                             "%0" may be either: meanings() gives both in full
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

struct NamedValue {
  ValueId value;
  std::string name;  // the first of its names, or ""
};

// In the order of the program, main first; none if nothing matches. A name takes precedence over an op or a line.
std::vector<NamedValue> find_values(const Module& module, const Provenance& provenance, const std::string& query);
// The full forms of a name that several functions of the text use; empty for other names.
std::vector<std::string> meanings(const Module& module, const std::string& query);

std::vector<std::string> value_names(const Module& module);                             // sorted
std::vector<std::string> op_names(const Module& module, const Provenance& provenance);  // of main, sorted

// "stablehlo.tanh"; "func.call" for a call that is represented as a region.
std::string shown_op(const Module& module, const Provenance& provenance, OpId op);
bool is_called_region(const Module& module, const Provenance& provenance, OpId op);

// Whether propagation created it for a member of a group whose members disagree. The name in its location is the
// member's.
bool is_made_constraint(const Module& module, const Provenance& provenance, ValueId value);

// Arguments and results of main; those of regions follow those of their op.
std::vector<ValueId> values_of_main(const Module& module);

}  // namespace shardwise
