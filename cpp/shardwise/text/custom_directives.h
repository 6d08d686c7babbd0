// SPDX-License-Identifier: Apache-2.0
//
// The pieces of StableHLO's and Shardy's syntax that the format language (assembly_format.h) cannot express. Each is a
// printer and a parser side by side, found by name. `custom<slice_ranges>`, for example:
//
//   attributes  {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 5, 5>, strides = array<i64: 2, 1>}
//   text        [0:5:2, 0:5]
#pragma once

#include "shardwise/text/custom_directive.h"
#include "shardwise/text/op_parser.h"
#include "shardwise/text/op_printer.h"

namespace shardwise {

// The directive of one attribute of type T, its argument: how its text is printed and parsed, and which values it fits.
template <class T, void (*print)(std::string& out, const T& value), T (*parse)(TextReader& reader),
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

// Those with files of their own: reduce_directive.cpp, region_directives.cpp, custom_convolution.cpp.
extern const CustomDirective kReduceDirective;
extern const CustomDirective kWhileDirective, kScanDirective, kManualDirective, kNamedDirective;
extern const CustomDirective kConvolutionDims, kConvolutionWindow;

}  // namespace shardwise
