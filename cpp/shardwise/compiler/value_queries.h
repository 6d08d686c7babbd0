// SPDX-License-Identifier: Apache-2.0
//
// How users ask for values of a program, and how explanations name them: by name, by the op that defines them, or by
// source line.
//
//   h = np.tanh(x @ w)          # train.py:31
//
//   ValueQueries names(module, provenance);
//   names.find("h")                the value assigned to h; also names given by sw.name. Of a, b = f(x), each has its own
//   names.find("dot_general")      the results of all these ops; "dot_general[0]": of the first
//   names.find("train.py:31")      all values of the line
//
// A text has its own names, separate for each function (ParseOptions::name_values):
//
//   func.func @main(%x: …) { %0 = func.call @f(%x) … }        "%x", or in full "@main %x"
//   func.func private @f(%y: …) { %0 = stablehlo.tanh %y }    "%y", or in full "@f %y"; a value for every call of @f
//                                                             "%0" may be either: meanings() gives both in full
#pragma once

#include <string>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

struct NamedValue {
  ValueId value;
  std::string name;  // the first of its names, or ""
};

class ValueQueries {
 public:
  explicit ValueQueries(const Module& module, const Provenance& provenance = {});

  // In the order of the program, main first; none if nothing matches. A name takes precedence over a line or an op.
  std::vector<NamedValue> find(const std::string& query) const;
  // The full forms of a name that several functions of the text use; empty for other names.
  std::vector<std::string> meanings(const std::string& query) const;
  // The names of values, sorted; then the names of the ops of main, sorted.
  std::vector<std::string> all() const;

 private:
  struct Entry {
    ValueId value;
    std::string op = {};                  // that defines it
    std::string function = {};            // whose text names it, "@f", or ""
    std::vector<std::string> names = {};  // the one to show first
    bool is_repeated = false;             // users see it as another value of this name
  };
  void add_given_names(Entry& entry);
  void add_variables(Entry& entry, const std::vector<ValueId>& results);

  const Module& module_;
  std::vector<Entry> entries_;  // of all functions, main first
  size_t main_count_ = 0;
};

}  // namespace shardwise
