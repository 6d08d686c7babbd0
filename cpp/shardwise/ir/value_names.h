// SPDX-License-Identifier: Apache-2.0
//
// The names of values, for reports and errors. A text names its values itself; the parser keeps these names as the
// outermost location of an op or argument (ParseOptions::name_values):
//
//   func.func @main(%x: …) { %a, %r:2 = … }      location "@main %a, %r:2"; shown_name of the third result: "%r#1"
//   func.func private @f(%y: …)                  outside of main in full: "@f %y"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

LocId loc_of(const Module& module, ValueId value);

// "%h" or "%r#1", in full outside of main: "@f %h"; where no text names it, the name given by sw.name, or "".
std::string shown_name(const Module& module, ValueId value);
std::string shown_name(const Module& module, OpId op);  // of its results: "%a, %r:2"

// The name of a tensor of a rule, whose tensors are the operands of an op and then its results: "operand 0",
// "result 1 dim 2".
std::string tensor_text(size_t operands, size_t tensor);
std::string tensor_text(size_t operands, size_t tensor, size_t dim);

std::string argument_text(const Module& module, ValueId argument);  // "argument x", or "argument 0" without a name

// A location's name as the parser writes it: "@f %a, %r:2" are the names of the results of an op in @f.
struct TextNames {
  std::string_view function;
  std::string_view names;
};
std::optional<TextNames> text_names(std::string_view location_name);
// The text name of result `index`: "%b#1" of "%a, %b:2" for the third one.
std::string name_in_text(std::string_view names, uint32_t index);
std::string main_symbol(const Module& module);                          // "@main"
std::string in_full(std::string_view function, std::string_view name);  // "@f %y"

}  // namespace shardwise
