// SPDX-License-Identifier: Apache-2.0
//
// The pieces of StableHLO's and Shardy's syntax that the format language (assembly_format.h) cannot express. Each is a
// printer and a parser side by side, found by name. `custom<slice_ranges>`, for example:
//
//   attributes  {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 5, 5>, strides = array<i64: 2, 1>}
//   text        [0:5:2, 0:5]
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
  // The attributes that it prints. A directive without any takes one as its argument: custom<axes>($reduction_axes).
  std::span<const std::string_view> attributes;
  bool (*fits)(const OpView& op, std::string_view argument);  // whether it can print all of this op's
  void (*print)(OpPrinter& printer, const OpView& op, std::string_view argument);
  void (*parse)(OpParser& parser, OpSyntax& op, std::string_view argument);
  // Prints its attribute in generic form; null if that is the attribute's own text.
  void (*print_attribute)(std::string& out, const Attribute& attribute) = nullptr;
  bool whole = false;  // it shows all of the op: operands, regions, types
  // Attributes that are columns: shardings of the arguments of the first region, and of the results.
  std::string_view argument_shardings = {}, result_shardings = {};
  // Converts parsed attributes, in either form, to the form that is printed; null if they need no conversion.
  void (*normalize)(OpSyntax& op, const Context& context, std::string_view argument) = nullptr;
};

const CustomDirective* find_custom_directive(std::string_view name);  // null when there is none

// Directives in files of their own: reduce_directive.cpp, region_directives.cpp, custom_convolution.cpp.
extern const CustomDirective kReduceDirective;
extern const CustomDirective kWhileDirective, kManualDirective, kNamedDirective;
extern const CustomDirective kConvolutionDims, kConvolutionWindow;

}  // namespace shardwise
