// SPDX-License-Identifier: Apache-2.0
//
// custom<conv_dims> and custom<conv_window>.
#include <algorithm>
#include <array>
#include <ranges>

#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/text/attribute_parser.h"
#include "shardwise/text/custom_directives.h"

namespace shardwise {
namespace {

// ---- dims ----------------------------------------------------------------------------------------------------------

// The dims are kept as text, [b, 0, f]x[0, i, o]->[b, 0, f], which is the same in both forms; only the op reads them.
bool fits_dims(const StructAttr& dims) {
  return dims.name == "stablehlo.conv" && dims.fields.size() == 1 &&
         std::holds_alternative<std::string>(dims.fields[0].second.base());
}

void print_dims(std::string& out, const StructAttr& dims) {
  out += std::get<std::string>(dims.fields[0].second.base());
}

// The text is written anew with a space after each comma: attributes are compared as text.
void parse_dim_list(TextReader& reader, std::string& text) {
  reader.expect("[", "before the dims of a convolution");
  text += '[';
  do {
    if (text.back() != '[') text += ", ";
    if (reader.at_digit()) {
      text += reader.take_digits();
    } else {
      text += reader.expect_word("a dim of a convolution");
    }
  } while (reader.take(","));
  reader.expect("]", "after the dims of a convolution");
  text += ']';
}

StructAttr parse_dims(TextReader& reader) {
  std::string text;
  parse_dim_list(reader, text);
  reader.expect("x", "between the dims of the operands");
  text += 'x';
  parse_dim_list(reader, text);
  reader.expect("->", "before the dims of the result");
  text += "->";
  parse_dim_list(reader, text);
  return {"stablehlo.conv", {{"", std::move(text)}}};
}

// ---- window --------------------------------------------------------------------------------------------------------

constexpr std::string_view kWindowAttributes[] = {"window_strides", "padding", "lhs_dilation", "rhs_dilation",
                                                  "window_reversal"};
constexpr std::string_view kWindowWords[] = {"stride", "pad", "lhs_dilate", "rhs_dilate", "reverse"};
constexpr size_t kPad = 1, kReverse = 4;

bool fits_window(const OpView& op, std::string_view) {
  for (size_t i = 0; i < std::size(kWindowAttributes); ++i) {
    const Attribute* value = op.attrs().find(kWindowAttributes[i]);
    // Each part is optional in StableHLO, so a missing attribute stays missing.
    if (value == nullptr) continue;
    if (i == kPad) {
      const auto* padding = std::get_if<DenseAttr>(&value->base());
      // One low and one high count per spatial dim, [[1, 1], [0, 2]]: the only padding that the pretty form can print.
      if (padding == nullptr || padding->is_index || padding->data.dtype() != DType::kI64 ||
          padding->data.ndim() != 2 || padding->data.shape()[1] != 2) {
        return false;
      }
    } else if (i == kReverse) {
      const auto* reversal = std::get_if<NarrowIntArray>(&value->base());
      // array<i1: …>, printed as words. Another width would be read back as i1.
      if (reversal == nullptr || reversal->bits != 1) return false;
    } else if (!std::holds_alternative<IntArray>(value->base())) {
      return false;
    }
  }
  return true;
}

void print_pads(std::string& out, const NdArray& padding) {
  print_list(out, "[", std::views::iota(int64_t{0}, padding.shape()[0]), "]", [&](int64_t row) {
    out += str("[", padding.scalar_at(2 * row).integer, ", ", padding.scalar_at(2 * row + 1).integer, "]");
  });
}

void print_window(OpPrinter& printer, const OpView& op, std::string_view) {
  printer.out += '{';
  for (size_t i = 0; i < std::size(kWindowAttributes); ++i) {
    const Attribute* value = op.attrs().find(kWindowAttributes[i]);
    if (value == nullptr) continue;
    if (printer.out.back() != '{') printer.out += ", ";
    printer.out.append(kWindowWords[i]).append(" = ");
    if (const auto* padding = std::get_if<DenseAttr>(&value->base())) {
      print_pads(printer.out, padding->data);
    } else if (const auto* reversal = std::get_if<NarrowIntArray>(&value->base())) {
      printer.out += str("[", join(reversal->values, ", ", [](int64_t reversed) { return reversed != 0; }), "]");
    } else {
      print_integers(printer.out, std::get<IntArray>(value->base()));
    }
  }
  printer.out += '}';
}

// As in MLIR: one element if all are equal.
DenseAttr parse_pads(OpParser& parser) {
  std::vector<int64_t> entries;
  parser.parse_list({"[", "before the padding of each dim", "]", "after the padding of each dim"}, [&] {
    const size_t start = parser.token_start();
    const IntArray pair = parse_integers(parser);
    if (pair.size() != 2) parser.fail_at(start, "the padding of a dim must be a low and a high count");
    entries.insert(entries.end(), pair.begin(), pair.end());
  });
  const Dims shape{std::ssize(entries) / 2, 2};
  // A splat prints as dense<0> in generic form, as MLIR prints it; the elements one by
  // one would print as dense<[[0, 0]]>.
  const bool equal = std::adjacent_find(entries.begin(), entries.end(), std::not_equal_to<>()) == entries.end();
  if (!entries.empty() && equal) return {NdArray::full(DType::kI64, shape, Scalar::of_int(DType::kI64, entries[0]))};
  NdArray data = NdArray::empty(DType::kI64, shape);
  std::copy(entries.begin(), entries.end(), reinterpret_cast<int64_t*>(data.data()));
  return {std::move(data)};
}

NarrowIntArray parse_reversal(OpParser& parser) {
  NarrowIntArray reversal{1, {}};
  parser.parse_list({"[", "before the reversal of each dim", "]", "after the reversal of each dim"}, [&] {
    bool reversed = parser.take_keyword("true");
    // MLIR prints numbers here, too.
    if (!reversed && !parser.take_keyword("false")) reversed = parser.take_integer("true or false") != 0;
    reversal.values.push_back(reversed ? 1 : 0);
  });
  return reversal;
}

void parse_window(OpParser& parser, OpSyntax& op, std::string_view) {
  parser.parse_list({"{", "before the window of a convolution", "}", "after the window of a convolution"}, [&] {
    const size_t start = parser.token_start();
    const std::string_view word = parser.expect_word("a part of a window");
    const auto* known = std::find(std::begin(kWindowWords), std::end(kWindowWords), word);
    if (known == std::end(kWindowWords)) {
      parser.fail_at(start, "a window has stride, pad, lhs_dilate, rhs_dilate and reverse", word);
    }
    const auto i = static_cast<size_t>(known - std::begin(kWindowWords));
    parser.expect("=", "after a part of a window");
    if (i == kPad) {
      parser.add_attribute(op, kWindowAttributes[i], parse_pads(parser));
    } else if (i == kReverse) {
      parser.add_attribute(op, kWindowAttributes[i], parse_reversal(parser));
    } else {
      parser.add_attribute(op, kWindowAttributes[i], parse_integers(parser));
    }
  });
}

}  // namespace

const CustomDirective kConvolutionDims =
    attribute_directive<StructAttr, print_dims, parse_dims, fits_dims>("conv_dims");
const CustomDirective kConvolutionWindow{"conv_window", kWindowAttributes, fits_window, print_window, parse_window};

}  // namespace shardwise
