// SPDX-License-Identifier: Apache-2.0
//
// Reads attributes from MLIR text (ir/attribute_printer.h prints them):
//
//   array<i64: 1, 2>                                   IntArray{1, 2}
//   #stablehlo<precision DEFAULT>                      EnumAttr{"stablehlo", "precision", "DEFAULT"}
//   #stablehlo.dot<lhs_contracting_dimensions = [1]>   StructAttr{"stablehlo.dot", {…}}
//
// A dialect attribute of another form, such as #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, becomes a StructAttr
// with one nameless string field that holds the text between the angle brackets.
#pragma once

#include <string>
#include <vector>

#include "shardwise/ir/attribute.h"
#include "shardwise/text/text_reader.h"

namespace shardwise {

Attribute parse_attribute(TextReader& reader);
std::vector<NamedAttribute> parse_dictionary(TextReader& reader);      // {a = 1 : i64, b}
StructAttr parse_struct_fields(TextReader& reader, std::string name);  // <field = value, ...>
IntArray parse_integers(TextReader& reader);                           // [1, 2]
AxesPerDimAttr parse_axes_per_dim(TextReader& reader);
AttrArray parse_all_to_all_params(TextReader& reader);  // [{"x"}: 0->1]

}  // namespace shardwise
