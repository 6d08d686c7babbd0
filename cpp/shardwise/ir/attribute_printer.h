// SPDX-License-Identifier: Apache-2.0
//
// Attributes as MLIR text (text/attribute_parser.h reads them); the kinds are those of attribute.h.
//
//   IntArray{1, 2}                          array<i64: 1, 2>
//   EnumAttr{"stablehlo", "precision", "DEFAULT"}      #stablehlo<precision DEFAULT>
//   StructAttr{"stablehlo.dot", {{"lhs_contracting_dimensions", IntArray{1}}}}
//                                           #stablehlo.dot<lhs_contracting_dimensions = [1]>
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/attribute.h"

namespace shardwise {

// Calls `print(item)`, which appends to `out`, for each item, with commas between them; between brackets if given.
template <class Range, class Print>
void print_list(std::string& out, const Range& range, Print&& print) {
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ", ";
    first = false;
    print(item);
  }
}

template <class Range, class Print>
void print_list(std::string& out, std::string_view open, const Range& range, std::string_view close, Print&& print) {
  out += open;
  print_list(out, range, print);
  out += close;
}

void print_attribute(std::string& out, const Attribute& attribute);
std::string attribute_text(const Attribute& attribute);
void print_dictionary(std::string& out, const std::vector<NamedAttribute>& fields);  // a = 1 : i64, b (no braces)
void print_integers(std::string& out, DimSpan values);                               // [1, 2]
void print_axes(std::string& out, const AxesAttr& axes);                             // {"x", "y":(1)2}
void print_axes_per_dim(std::string& out, const AxesPerDimAttr& axes);               // [{"x"}, {}]

}  // namespace shardwise
