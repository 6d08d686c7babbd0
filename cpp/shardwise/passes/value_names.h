// SPDX-License-Identifier: Apache-2.0
//
// How a user asks for values of a program: by name, by the op that made them, or by the line of source.
//
//   h = np.tanh(x @ w)          # train.py:31
//
//   find_values(module, "h")                      the value stored to h; also names given by sw.name, and "%5" of a
//   text find_values(module, "dot_general")            the results of all these ops; "dot_general[0]" those of the
//   first one find_values(module, "train.py:31")            all that the line made
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

struct NamedValue {
  ValueId value;
  std::string name;  // the first of its names, or ""
};

// Those of main, in the order of the program; none where the query fits nothing. A name goes before an op or a line.
std::vector<NamedValue> find_values(const Module& module, const std::string& query);

std::vector<std::string> value_names(const Module& module);  // sorted
std::vector<std::string> op_names(const Module& module);     // of main, sorted

LocId loc_of(const Module& module, ValueId value);
// Arguments and results of main; those of regions behind those of their op.
std::vector<ValueId> values_of_main(const Module& module);

}  // namespace shardwise
