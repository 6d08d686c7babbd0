// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/attribute_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "shardwise/base/float_bits.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/text/dense_parser.h"
#include "shardwise/text/rule_parser.h"

namespace shardwise {
namespace {

IntAttr integer_with_type(TextReader& reader, size_t start, int64_t value) {
  // MLIR's default: a number without a type is an i64. `index` is kept as width 0.
  if (!reader.take(":")) return {value, 64};
  const std::string_view type = reader.expect_word("the type of the number");
  if (type == "index") return {value, 0};
  const bool is_unsigned = type.starts_with("ui");
  int bits = 0;
  const char* end = type.data() + type.size();
  const bool is_integer = is_unsigned || type.starts_with("i");
  if (!is_integer || std::from_chars(type.data() + (is_unsigned ? 2 : 1), end, bits).ptr != end || bits < 1 ||
      bits > 64) {
    reader.fail_at(start, "an integer attribute must be of a type i1 to i64, ui1 to ui64 or index", type);
  }
  // As in MLIR: any value that the width holds, signed or not.
  // So i8 takes -128 to 255, and ui8 takes 0 to 255. From 63 bits on, every positive int64_t fits.
  const bool too_large = bits < 63 && (value >> bits) > 0;
  const bool too_small = value < 0 && (is_unsigned || (bits < 64 && value < -(int64_t{1} << (bits - 1))));
  if (too_large || too_small) reader.fail_at(start, str("an integer attribute must fit ", type), str(value));
  return {value, bits, is_unsigned};
}

Attribute parse_number(TextReader& reader) {
  const size_t start = reader.pos;
  reader.take("-");
  const std::string_view digits = reader.take_number();
  const std::string_view number = reader.text.substr(start, reader.pos - start);
  // A float of MLIR's grammar has a '.': 1.0e5, not 1e5. Hex digits are the bits of a float, whose type follows.
  if (digits.find('.') == std::string_view::npos && !digits.starts_with("0x")) {
    reader.pos = start;
    return integer_with_type(reader, start, reader.take_integer("the value of an attribute"));
  }
  // MLIR's default type of a float attribute.
  DType dtype = DType::kF64;
  if (reader.take(":")) {
    dtype = reader.parse_dtype();
  }
  if (digits.starts_with("0x")) {
    uint64_t bits = 0;
    const bool ok = std::from_chars(digits.data() + 2, digits.data() + digits.size(), bits, 16).ec == std::errc{} &&
                    // No sign, and no more digits than the type has: 0x7FC00000 : f32.
                    digits.size() == number.size() && is_float(dtype) &&
                    digits.size() <= 2 + 2 * static_cast<size_t>(item_size(dtype)) &&
                    (bit_width(dtype) == 64 || bits >> bit_width(dtype) == 0);
    if (!ok) reader.fail_at(start, "hex digits must be the bits of a float attribute", number);
    return FloatAttr{float_of_bits(dtype, bits), dtype};
  }
  const auto value = is_float(dtype) ? number_of<double>(number) : std::nullopt;
  // Rounded to the type at once, so that the attribute prints as the value that it has.
  const std::optional<double> nearest = value ? nearest_float(dtype, *value) : std::nullopt;
  if (!nearest) reader.fail_at(start, str("a number must fit ", mlir_name(dtype)), number);
  return FloatAttr{*nearest, dtype};
}

Attribute parse_array(TextReader& reader) {
  const TextReader::Nesting nesting(reader);
  AttrArray values;
  reader.parse_list({"[", "before a list of attributes", "]", "at the end of a list of attributes"},
                    [&] { values.push_back(parse_attribute(reader)); });
  return values;
}

// array<i64: 1, 2>
Attribute parse_int_array(TextReader& reader) {
  reader.expect("<", "after 'array'");
  const size_t start = reader.pos;
  const std::string_view type = reader.expect_word("the type of the elements");
  int bits = 0;
  for (int width : {1, 8, 16, 32, 64}) {
    if (type == str("i", width)) bits = width;
  }
  if (bits == 0) reader.fail_at(start, "an array attribute must have an element type i1, i8, i16, i32 or i64", type);
  IntArray values;
  if (reader.take(":")) {
    do {
      if (bits == 1 && reader.take_keyword("true")) {
        values.push_back(1);
      } else if (bits == 1 && reader.take_keyword("false")) {
        values.push_back(0);
      } else {
        values.push_back(reader.take_integer("an element"));
        // Unlike a single number, an element of an array has its signed range only.
        // A bit must be a word, true or false.
        const int64_t limit = bits < 64 ? int64_t{1} << (bits - 1) : 0;
        if (bits == 1 || (bits < 64 && (values.back() < -limit || values.back() >= limit))) {
          reader.fail_here(str("an element must fit i", bits));
        }
      }
    } while (reader.take(","));
  }
  reader.expect(">", "at the end of an array");
  // Nearly all arrays are dims, i64. The other widths have a type of their own, so that IntArray is a plain vector.
  if (bits == 64) return values;
  return NarrowIntArray{bits, std::move(values)};
}

Attribute parse_field(TextReader& reader) {
  if (reader.peek("[")) {
    const size_t start = reader.pos;
    reader.pos += 1;
    // Fields print lists of dims bare, [0, 1]. Elsewhere a list is one of attributes, [0 : i64, 1 : i64].
    const bool is_integers = reader.at_digit() || reader.peek("]");
    reader.pos = start;
    if (is_integers) return parse_integers(reader);
    return parse_attribute(reader);
  }
  const std::string_view word = reader.peek_word();
  if (word.empty() || word == "true" || word == "false" || word == "dense" || word == "array" || word == "tensor") {
    return parse_attribute(reader);
  }
  reader.take_word();
  // A bare word: `lhs_precision_type = bf16` of #stablehlo.dot_algorithm<…>. No dialect or mnemonic is written there.
  return EnumAttr{{}, {}, std::string(word)};
}

// One text for all ways to space it: a space after each comma and between words, none elsewhere; strings as they are.
// Such attributes are compared as text, and printed as text.
std::string evenly_spaced(std::string_view text) {
  std::string out;
  bool in_string = false, space = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string && std::isspace(static_cast<unsigned char>(c)) != 0) {
      space = true;
      continue;
    }
    if (!in_string && !out.empty() && (out.back() == ',' || (space && is_in_word(out.back()) && is_in_word(c))))
      out += ' ';
    space = false;
    out += c;
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out += text[++i];
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return out;
}

// At `<...>` after `#name`: fields, or text that only the dialect understands.
StructAttr parse_struct(TextReader& reader, std::string name) {
  const size_t bracket = reader.pos;
  reader.expect("<", "after the name of an attribute");
  // Fields begin with a word and '=', or are one word. The text of
  // `#stablehlo.conv<[b, 0, f]x…>` begins with a bracket.
  const bool has_fields = reader.peek(">") || (!reader.take_word().empty() && (reader.peek("=") || reader.peek(">")));
  reader.pos = bracket;
  if (has_fields) return parse_struct_fields(reader, std::move(name));
  const std::string_view body = reader.take_balanced();
  return StructAttr{std::move(name), {{"", evenly_spaced(body.substr(1, body.size() - 2))}}};
}

// `#sdy<mnemonic ...>` and `#dialect<mnemonic VALUE>`, after the '<'.
std::optional<Attribute> parse_mnemonic(TextReader& reader, std::string_view dialect) {
  const std::string_view mnemonic = reader.take_word();
  std::optional<Attribute> value;
  if (dialect == "sdy" && (mnemonic == "axis_ref_list" || mnemonic == "manual_axes")) {
    value = AxesAttr{parse_axis_list(reader)};
  } else if (dialect == "sdy" && mnemonic == "list_of_axis_ref_lists") {
    value = parse_axes_per_dim(reader);
  } else if (dialect == "sdy" && mnemonic == "all_to_all_param_list") {
    value = parse_all_to_all_params(reader);
  } else if (const std::string_view name = reader.take_word(); !mnemonic.empty() && !name.empty() && reader.peek(">")) {
    value = EnumAttr{std::string(dialect), std::string(mnemonic), std::string(name)};
  }
  if (value) reader.expect(">", "at the end of an attribute");
  return value;
}

Attribute parse_dialect_attribute(TextReader& reader) {
  const TextReader::Nesting nesting(reader);
  const size_t start = reader.pos;
  if (reader.peek("#sdy.sharding<")) {
    return reader.located(start, [&] { return parse_sharding(reader, reader.mesh_lookup()); });
  }
  if (reader.peek("#sdy.sharding_per_value<")) {
    ShardingPerValue shardings;
    for (const ShardingId id : reader.parse_shardings_per_value()) shardings.push_back(reader.context().sharding(id));
    return shardings;
  }
  if (reader.peek("#sdy.op_sharding_rule<")) {
    reader.take("#sdy.op_sharding_rule");
    return parse_rule(reader);
  }
  reader.expect("#", "before an attribute");
  const std::string_view name = reader.take_suffix_id();
  if (name.empty()) reader.fail_here("expected the name of an attribute or of its dialect after #");
  if (!reader.peek("<")) {
    return reader.at_alias(start, name, [&] { return parse_attribute(reader); });
  }
  const size_t bracket = reader.pos;
  reader.take("<");
  // A name without a dot is a dialect: #stablehlo<precision DEFAULT>, but
  // #stablehlo.dot<lhs_contracting_dimensions = [1]>.
  if (name.find('.') == std::string_view::npos) {
    if (std::optional<Attribute> attribute = parse_mnemonic(reader, name)) return *std::move(attribute);
  }
  reader.pos = bracket;
  return parse_struct(reader, std::string(name));
}

}  // namespace

Attribute parse_attribute(TextReader& reader) {
  reader.skip_space();
  if (reader.at_digit()) return parse_number(reader);
  const char next = reader.pos < reader.text.size() ? reader.text[reader.pos] : '\0';
  if (next == '#') return parse_dialect_attribute(reader);
  if (next == '"') return reader.take_string();
  if (next == '@') return Symbol{reader.take_symbol()};
  if (next == '[') return parse_array(reader);
  if (next == '{') return AttrDict{parse_dictionary(reader)};
  const std::string_view word = reader.peek_word();
  if (word == "tensor") return TypeAttr{reader.context().type(reader.parse_type())};
  reader.take_word();
  if (word == "true") return true;
  if (word == "false") return false;
  if (word == "unit") return Unit{};
  if (word == "array") return parse_int_array(reader);
  if (word == "dense") return parse_dense(reader);
  // For the message of the error, which quotes the text at the cursor.
  reader.pos -= word.size();
  reader.fail_here("expected an attribute");
}

std::vector<NamedAttribute> parse_dictionary(TextReader& reader) {
  const TextReader::Nesting nesting(reader);
  std::vector<NamedAttribute> fields;
  reader.parse_list(TextReader::kDictionary, [&] {
    const size_t start = reader.token_start();
    std::string name = reader.take_attribute_name();
    const bool known =
        std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
    if (known) reader.fail_at(start, "an attribute must be given once", quote(name));
    Attribute value = reader.take("=") ? parse_attribute(reader) : Attribute(Unit{});
    fields.emplace_back(std::move(name), std::move(value));
  });
  return fields;
}

StructAttr parse_struct_fields(TextReader& reader, std::string name) {
  const TextReader::Nesting nesting(reader);
  StructAttr result{std::move(name), {}};
  reader.parse_list({"<", "before the fields of an attribute", ">", "at the end of an attribute"}, [&] {
    std::string field(reader.expect_word("the name of a field"));
    Attribute value = reader.take("=") ? parse_field(reader) : Attribute(Unit{});
    // An empty list equals a missing one, and MLIR prints neither.
    const auto* list = std::get_if<IntArray>(&value);
    if (list == nullptr || !list->empty()) result.fields.emplace_back(std::move(field), std::move(value));
  });
  return result;
}

IntArray parse_integers(TextReader& reader) {
  IntArray values;
  reader.parse_list({"[", "before a list of numbers", "]", "at the end of a list of numbers"},
                    [&] { values.push_back(reader.take_integer("an element of the list")); });
  return values;
}

AxesPerDimAttr parse_axes_per_dim(TextReader& reader) {
  AxesPerDimAttr axes;
  reader.parse_list({"[", "before the axes of each dim", "]", "at the end of the axes of each dim"},
                    [&] { axes.dims.push_back(parse_axis_list(reader)); });
  return axes;
}

AttrArray parse_all_to_all_params(TextReader& reader) {
  AttrArray params;
  reader.parse_list({"[", "before the moves of an all-to-all", "]", "at the end of the moves of an all-to-all"}, [&] {
    AxesAttr axes{parse_axis_list(reader)};
    reader.expect(":", "after the axes that move");
    const IntAttr from{reader.take_integer("a dim")};
    reader.expect("->", "between the dims");
    const IntAttr to{reader.take_integer("a dim")};
    params.push_back(AttrDict{{{"axes", std::move(axes)}, {"from_dim", from}, {"to_dim", to}}});
  });
  return params;
}

}  // namespace shardwise
