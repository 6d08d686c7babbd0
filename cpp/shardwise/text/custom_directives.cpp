// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/custom_directives.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <tuple>

#include "shardwise/ir/attribute_printer.h"
#include "shardwise/text/attribute_parser.h"

namespace shardwise {
namespace {

// ---- axes, axes_per_dim, symbol ------------------------------------------------------------------------------------

AxesAttr parse_axes(TextReader& reader) { return {parse_axis_list(reader)}; }

void print_symbol(std::string& out, const std::string& name) { out += symbol_text(name); }
std::string parse_symbol(TextReader& reader) { return reader.take_symbol(); }

// ---- all_to_all_params ---------------------------------------------------------------------------------------------

bool is_dim(const Attribute& attribute) {
  const auto* dim = std::get_if<IntAttr>(&attribute.base());
  return dim != nullptr && dim->bits == 64;
}

// A list in generic form may hold anything. Only this shape, in this order, prints as
// `[{"x"}: 0->1]` and reads back equal.
bool is_move(const Attribute& attribute) {
  const auto* move = std::get_if<AttrDict>(&attribute.base());
  if (move == nullptr || move->fields.size() != 3) return false;
  const auto& [axes, from, to] = std::tie(move->fields[0], move->fields[1], move->fields[2]);
  return axes.first == "axes" && from.first == "from_dim" && to.first == "to_dim" &&
         std::holds_alternative<AxesAttr>(axes.second.base()) && is_dim(from.second) && is_dim(to.second);
}
bool are_moves(const AttrArray& list) { return std::ranges::all_of(list, is_move); }

void print_moves(std::string& out, const AttrArray& moves) {
  print_list(out, "[", moves, "]", [&](const Attribute& item) {
    const std::vector<NamedAttribute>& move = std::get<AttrDict>(item.base()).fields;
    print_axes(out, std::get<AxesAttr>(move[0].second.base()));
    out +=
        str(": ", std::get<IntAttr>(move[1].second.base()).value, "->", std::get<IntAttr>(move[2].second.base()).value);
  });
}

void print_moves_attribute(std::string& out, const Attribute& attribute) {
  const auto* moves = std::get_if<AttrArray>(&attribute.base());
  if (moves == nullptr || !are_moves(*moves)) return print_attribute(out, attribute);
  // Generic form has Shardy's own attribute there, which other parsers know, not our list of dictionaries.
  out += "#sdy<all_to_all_param_list";
  print_moves(out, *moves);
  out += '>';
}

// ---- slice_ranges --------------------------------------------------------------------------------------------------

constexpr std::string_view kSliceAttributes[] = {"start_indices", "limit_indices", "strides"};

bool fits_slice(const OpView& op, std::string_view) {
  const auto* start = op.attrs().find<IntArray>("start_indices");
  const auto* limit = op.attrs().find<IntArray>("limit_indices");
  const auto* strides = op.attrs().find<IntArray>("strides");
  return start != nullptr && limit != nullptr && strides != nullptr && start->size() == limit->size() &&
         start->size() == strides->size();
}

void print_slice(OpPrinter& printer, const OpView& op, std::string_view) {
  const auto& start = op.attrs().get<IntArray>("start_indices");
  const auto& limit = op.attrs().get<IntArray>("limit_indices");
  const auto& strides = op.attrs().get<IntArray>("strides");
  print_list(printer.out, "[", std::views::iota(size_t{0}, start.size()), "]", [&](size_t i) {
    printer.out += str(start[i], ":", limit[i]);
    // As in StableHLO: 0:5 has stride 1.
    if (strides[i] != 1) printer.out += str(":", strides[i]);
  });
}

void parse_slice(OpParser& parser, OpSyntax& op, std::string_view) {
  IntArray start, limit, strides;
  parser.parse_list({"[", "before the ranges of a slice", "]", "after the ranges of a slice"}, [&] {
    start.push_back(parser.take_integer("the start of a range"));
    parser.expect(":", "between the start and the limit of a range");
    limit.push_back(parser.take_integer("the limit of a range"));
    strides.push_back(parser.take(":") ? parser.take_integer("the stride of a range") : 1);
  });
  parser.add_attribute(op, "start_indices", std::move(start));
  parser.add_attribute(op, "limit_indices", std::move(limit));
  parser.add_attribute(op, "strides", std::move(strides));
}

// ---- dot_dimensions ------------------------------------------------------------------------------------------------

constexpr std::string_view kDotAttributes[] = {"dot_dimension_numbers", "precision_config", "algorithm"};
constexpr std::array<std::string_view, 4> kDotFields{"lhs_batching_dimensions", "rhs_batching_dimensions",
                                                     "lhs_contracting_dimensions", "rhs_contracting_dimensions"};

bool is_precision(const Attribute& attribute) {
  const auto* value = std::get_if<EnumAttr>(&attribute.base());
  return value != nullptr && value->dialect == "stablehlo" && value->mnemonic == "precision";
}
bool are_precisions(const AttrArray& list) { return std::ranges::all_of(list, is_precision); }

// The four lists of dims in order; missing ones are empty. Returns none for a struct with other fields.
std::optional<std::array<IntArray, 4>> dot_dims(const Attribute* attribute) {
  const auto* numbers = attribute == nullptr ? nullptr : std::get_if<StructAttr>(&attribute->base());
  if (numbers == nullptr || numbers->name != "stablehlo.dot") return std::nullopt;
  std::array<IntArray, 4> dims;
  for (const auto& [name, value] : numbers->fields) {
    const auto field = std::find(kDotFields.begin(), kDotFields.end(), name);
    const auto* list = std::get_if<IntArray>(&value.base());
    if (field == kDotFields.end() || list == nullptr) return std::nullopt;
    dims[static_cast<size_t>(field - kDotFields.begin())] = *list;
  }
  return dims;
}

bool fits_dot(const OpView& op, std::string_view) {
  const Attribute* precision = op.attrs().find("precision_config");
  const auto* list = precision == nullptr ? nullptr : std::get_if<AttrArray>(&precision->base());
  const Attribute* algorithm = op.attrs().find("algorithm");
  // The whole directive must fit, because attr-dict omits all attributes that it shows.
  const bool precision_fits = precision == nullptr || (list != nullptr && are_precisions(*list));
  return dot_dims(op.attrs().find("dot_dimension_numbers")) && precision_fits &&
         (algorithm == nullptr || std::holds_alternative<StructAttr>(algorithm->base()));
}

void print_precisions(std::string& out, const AttrArray& precisions) {
  print_list(out, "[", precisions, "]", [&](const Attribute& item) { out += std::get<EnumAttr>(item.base()).value; });
}

void print_dot(OpPrinter& printer, const OpView& op, std::string_view) {
  const std::array<IntArray, 4> dims = *dot_dims(op.attrs().find("dot_dimension_numbers"));
  // StableHLO omits batching_dims when there are none, but prints contracting_dims = [] x [] always.
  if (!dims[0].empty() || !dims[1].empty()) printer.out += str("batching_dims = ", dims[0], " x ", dims[1], ", ");
  printer.out += str("contracting_dims = ", dims[2], " x ", dims[3]);
  if (const auto* precision = op.attrs().find<AttrArray>("precision_config")) {
    printer.out += ", precision = ";
    print_precisions(printer.out, *precision);
  }
  if (const auto* algorithm = op.attrs().find<StructAttr>("algorithm")) {
    const std::string text = attribute_text(*algorithm);
    // The pretty form drops the name: #stablehlo.dot_algorithm<…> prints as <…>.
    printer.out.append(", algorithm = ").append(text.substr(text.find('<')));
  }
}

void parse_dot_pair(OpParser& parser, StructAttr& numbers, size_t field) {
  parser.expect("=", "before the dims of a dot");
  IntArray lhs = parse_integers(parser);
  parser.expect("x", "between the dims of the operands");
  IntArray rhs = parse_integers(parser);
  // An empty list is no field, as parse_struct_fields reads the generic form: both must give equal attributes.
  if (!lhs.empty()) numbers.fields.emplace_back(kDotFields[field], std::move(lhs));
  if (!rhs.empty()) numbers.fields.emplace_back(kDotFields[field + 1], std::move(rhs));
}

AttrArray parse_precisions(TextReader& reader) {
  AttrArray values;
  reader.parse_list({"[", "before the precisions", "]", "after the precisions"}, [&] {
    values.push_back(EnumAttr{"stablehlo", "precision", std::string(reader.expect_word("a precision"))});
  });
  return values;
}

void parse_dot(OpParser& parser, OpSyntax& op, std::string_view) {
  StructAttr numbers{"stablehlo.dot", {}};
  if (parser.take_keyword("batching_dims")) {
    parse_dot_pair(parser, numbers, 0);
    parser.expect(",", "after batching_dims");
  }
  parser.expect("contracting_dims", "in the text of a dot");
  parse_dot_pair(parser, numbers, 2);
  parser.add_attribute(op, "dot_dimension_numbers", std::move(numbers));
  // precision and algorithm are optional; attr-dict begins with '{', so a comma always begins one of them.
  while (parser.take(",")) {
    if (parser.take_keyword("precision")) {
      parser.expect("=", "after 'precision'");
      parser.add_attribute(op, "precision_config", parse_precisions(parser));
    } else if (parser.take_keyword("algorithm")) {
      parser.expect("=", "after 'algorithm'");
      parser.add_attribute(op, "algorithm", parse_struct_fields(parser, "stablehlo.dot_algorithm"));
    } else {
      parser.fail_here("expected 'precision' or 'algorithm'");
    }
  }
}

// ---- exponent_mantissa ---------------------------------------------------------------------------------------------

constexpr std::string_view kPrecisionAttributes[] = {"exponent_bits", "mantissa_bits"};

bool fits_precision(const OpView& op, std::string_view) {
  return std::all_of(std::begin(kPrecisionAttributes), std::end(kPrecisionAttributes), [&](std::string_view name) {
    const auto* bits = op.attrs().find<IntAttr>(name);
    return bits != nullptr && bits->bits == 32 && bits->value >= 0;
  });
}

void print_precision(OpPrinter& printer, const OpView& op, std::string_view) {
  printer.out += str("e", op.attrs().get_int("exponent_bits"), "m", op.attrs().get_int("mantissa_bits"));
}

void parse_precision(OpParser& parser, OpSyntax& op, std::string_view) {
  for (const auto& [letter, name] :
       {std::pair<std::string_view, std::string_view>{"e", "exponent_bits"}, {"m", "mantissa_bits"}}) {
    parser.expect(letter, "in a format such as e5m10");
    const std::string_view digits = parser.take_digits();
    // Four digits cannot overflow stoll; the op checks the range.
    if (digits.empty() || digits.size() > 4) parser.fail_here("expected a number of bits");
    parser.add_attribute(op, name, IntAttr{std::stoll(std::string(digits)), 32});
  }
}

// ---- direction -----------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 4> kDirections{"NONE", "FORWARD", "BACKWARD", "BOTH"};

// sdy.propagation_barrier stores its direction as an i32 and prints its name.
bool is_direction(const IntAttr& direction) {
  return direction.bits == 32 && direction.value >= 0 && direction.value < std::ssize(kDirections);
}

void print_direction(std::string& out, const IntAttr& direction) {
  out += kDirections[static_cast<size_t>(direction.value)];
}

IntAttr parse_direction(TextReader& reader) {
  const size_t position = reader.token_start();
  const std::string_view word = reader.expect_word("a direction");
  const auto* it = std::ranges::find(kDirections, word);
  if (it == kDirections.end()) {
    reader.fail_at(position, "a direction must be NONE, FORWARD, BACKWARD or BOTH", std::string(word));
  }
  return {it - kDirections.begin(), 32};
}

const CustomDirective kCustomDirectives[] = {
    attribute_directive<AxesAttr, print_axes, parse_axes>("axes"),
    attribute_directive<AxesPerDimAttr, print_axes_per_dim, parse_axes_per_dim>("axes_per_dim"),
    attribute_directive<AttrArray, print_moves, parse_all_to_all_params, are_moves>("all_to_all_params",
                                                                                    print_moves_attribute),
    attribute_directive<IntAttr, print_direction, parse_direction, is_direction>("direction"),
    attribute_directive<AttrArray, print_precisions, parse_precisions, are_precisions>("precisions"),
    attribute_directive<std::string, print_symbol, parse_symbol>("symbol"),
    {"slice_ranges", kSliceAttributes, fits_slice, print_slice, parse_slice},
    {"dot_dimensions", kDotAttributes, fits_dot, print_dot, parse_dot},
    {"exponent_mantissa", kPrecisionAttributes, fits_precision, print_precision, parse_precision},
};

}  // namespace

const CustomDirective* find_custom_directive(std::string_view name) {
  for (const CustomDirective* own : {&kReduceDirective, &kWhileDirective, &kScanDirective, &kManualDirective,
                                     &kNamedDirective, &kConvolutionDims, &kConvolutionWindow}) {
    if (name == own->name) return own;
  }
  const auto* it = std::ranges::find(kCustomDirectives, name, &CustomDirective::name);
  return it == std::end(kCustomDirectives) ? nullptr : it;
}

}  // namespace shardwise
