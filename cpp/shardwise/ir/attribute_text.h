// SPDX-License-Identifier: Apache-2.0
//
// Attributes as MLIR text, both ways; the kinds are those of attribute.h.
//
//   IntArray{1, 2}                          array<i64: 1, 2>
//   EnumAttr{"stablehlo", "precision", "DEFAULT"}      #stablehlo<precision DEFAULT>
//   StructAttr{"stablehlo.dot", {{"lhs_contracting_dimensions", IntArray{1}}}}
//                                           #stablehlo.dot<lhs_contracting_dimensions = [1]>
//
// A dialect attribute of another form, such as #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, becomes a StructAttr
// with one nameless string field that holds the text between the angle brackets.
#pragma once

#include <string>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/text_reader.h"

namespace shardwise {

void print_attribute(std::string& out, const Attribute& attribute);
std::string attribute_text(const Attribute& attribute);
void print_dictionary(std::string& out, const std::vector<NamedAttribute>& fields);  // a = 1 : i64, b (no braces)
void print_integers(std::string& out, DimSpan values);                               // [1, 2]
void print_axes(std::string& out, const AxesAttr& axes);                             // {"x", "y":(1)2}
void print_axes_per_dim(std::string& out, const AxesPerDimAttr& axes);               // [{"x"}, {}]

Attribute parse_attribute(TextReader& reader);
std::vector<NamedAttribute> parse_dictionary(TextReader& reader);      // {a = 1 : i64, b}
StructAttr parse_struct_fields(TextReader& reader, std::string name);  // <field = value, ...>
IntArray parse_integers(TextReader& reader);                           // [1, 2]
AxesPerDimAttr parse_axes_per_dim(TextReader& reader);
AttrArray parse_all_to_all_params(TextReader& reader);  // [{"x"}: 0->1]

}  // namespace shardwise
