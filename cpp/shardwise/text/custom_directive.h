// SPDX-License-Identifier: Apache-2.0
//
// The contract of one custom<name>($argument) directive of an assembly format; custom_directives.h lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"
#include "shardwise/text/op_parser.h"
#include "shardwise/text/op_printer.h"

namespace shardwise {

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

// The directive of one attribute of type T, its argument: how its text is printed and parsed, and which values it fits.
template <class T, void (*print)(std::string& out, const T& value), T (*parse)(OpParser& parser),
          bool (*fits)(const T& value) = nullptr>
constexpr CustomDirective attribute_directive(std::string_view name,
                                              void (*print_generic)(std::string& out,
                                                                    const Attribute& value) = nullptr) {
  return {.name = name,
          .attributes = {},
          .fits =
              [](const OpView& op, std::string_view argument) {
                const T* value = op.attrs().find<T>(argument);
                return value != nullptr && (fits == nullptr || fits(*value));
              },
          .print = [](OpPrinter& printer, const OpView& op,
                      std::string_view argument) { print(printer.out, op.attrs().get<T>(argument)); },
          .parse = [](OpParser& parser, OpSyntax& op,
                      std::string_view argument) { parser.add_attribute(op, argument, parse(parser)); },
          .print_attribute = print_generic};
}

const CustomDirective* find_custom_directive(std::string_view name);  // null when there is none

// Those with files of their own: reduce_directive.cpp, region_directives.cpp, custom_convolution.cpp.

}  // namespace shardwise
