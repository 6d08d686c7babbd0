// SPDX-License-Identifier: Apache-2.0
//
// The contract of one custom<name>($argument) directive of an assembly format; custom_directives.h lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

class OpPrinter;
class OpParser;
struct OpSyntax;

struct CustomDirective {
  std::string_view name;
  // The attributes that it shows; a directive without any takes one as its argument: custom<axes>($reduction_axes).
  std::span<const std::string_view> attributes;
  bool (*fits)(const OpView& op, std::string_view argument);  // whether it can show all of this op's
  void (*print)(OpPrinter& printer, const OpView& op, std::string_view argument);
  void (*parse)(OpParser& parser, OpSyntax& op, std::string_view argument);
  // How its attribute stands in generic form; null where that is the attribute's own text.
  void (*print_attribute)(std::string& out, const Attribute& attribute) = nullptr;
  bool whole = false;  // it shows all of the op: operands, regions, types
  // Attributes that are columns: shardings of the arguments of the first region, and of the results.
  std::string_view argument_shardings = {}, result_shardings = {};
  // Puts what was read, in either form, into the form that is printed; null where any will do.
  void (*normalize)(OpSyntax& op, const Context& context, std::string_view argument) = nullptr;
};

const CustomDirective* find_custom_directive(std::string_view name);  // null when there is none

}  // namespace shardwise
