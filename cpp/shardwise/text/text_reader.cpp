// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/text_reader.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "shardwise/ir/refusals.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

// A bound on text from outside: rules and tilings take time and memory per dim, and no real tensor comes near it.
constexpr size_t kMaxDims = 256;

// MLIR's suffix-id, the characters after a sigil (%, ^, #, !): digits only, or a name
// that may also hold '$', '.' and '-'.
bool is_suffix_char(char c) { return is_in_word(c) || c == '-'; }

}  // namespace

TextReader::TextReader(std::string_view source, Module& module) : SdyCursor(source), module_(&module) {
  // Aliases are found before anything is parsed because MLIR's printer puts those of locations after the module.
  subject = text_words::kProgramText;
  find_aliases();
}

// An alias is defined at the start of a line, before or after its uses: #name = …, or !name = … for a type. Its key is
// the name with the mark.
void TextReader::find_aliases() {
  const size_t saved = pos;
  for (size_t mark = text.find_first_of("#!"); mark != std::string_view::npos;
       mark = text.find_first_of("#!", mark + 1)) {
    // Only blanks may be before the mark on its line; anything else makes it a use: `loc(#loc3)`.
    const size_t before = text.find_last_not_of(" \t", mark == 0 ? 0 : mark - 1);
    if (mark > 0 && before != std::string_view::npos && text[before] != '\n') continue;
    pos = mark + 1;
    const std::string_view name = take_suffix_id();
    // The entry is the position after the '=': an alias is parsed where it is used,
    // as the kind of thing expected there.
    if (!name.empty() && take("=")) aliases_.emplace(text.substr(mark, name.size() + 1), pos);
  }
  pos = saved;
}

size_t TextReader::enter_alias(size_t start, std::string_view name) const {
  const std::string_view marked = text.substr(start, name.size() + 1);
  const auto it = aliases_.find(marked);
  if (it == aliases_.end()) fail_at(start, "an alias must be defined in the text", marked);
  return it->second;
}

// `#mesh` is an alias, but `#sdy.mesh<["x"=4]>` is an attribute of a dialect: only the '<' tells them apart.
bool TextReader::at_alias_name() {
  if (!peek("#")) return false;
  const size_t start = pos++;
  const bool is_alias = !take_suffix_id().empty() && (pos >= text.size() || text[pos] != '<');
  pos = start;
  return is_alias;
}

// Aliases of aliases could expand to a text of exponential size.
void TextReader::leave_alias(size_t start, size_t length) {
  expanded_ += length;
  if (expanded_ > 64 * text.size() + 4096) fail_at(start, "aliases must not expand to more than 64 times the text");
}

// ---- tokens --------------------------------------------------------------------------------------------------------

std::string_view TextReader::expect_word(std::string_view what) {
  const std::string_view word = take_word();
  if (word.empty()) fail_here(str("expected ", what));
  return word;
}

bool TextReader::at_digit() {
  skip_space();
  // A sign counts only before a digit: `-1` is a number, but `->` is an arrow.
  const size_t digit = pos + (pos < text.size() && text[pos] == '-' ? 1 : 0);
  return digit < text.size() && is_digit(text[digit]);
}

std::string_view TextReader::take_digits() {
  const size_t start = pos;
  while (pos < text.size() && is_digit(text[pos])) ++pos;
  return text.substr(start, pos - start);
}

std::string_view TextReader::take_number() {
  const size_t start = pos;
  const auto is_part = [&](char c) {
    const bool after_exponent = pos > start && (text[pos - 1] == 'e' || text[pos - 1] == 'E');
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || ((c == '+' || c == '-') && after_exponent);
  };
  while (pos < text.size() && (pos == start ? is_digit(text[pos]) : is_part(text[pos]))) ++pos;
  return text.substr(start, pos - start);
}

std::string_view TextReader::take_suffix_id() {
  // A name that begins with a digit is a number: the 12 of %12 ends there, whatever follows.
  if (pos < text.size() && is_digit(text[pos])) return take_digits();
  const size_t start = pos;
  while (pos < text.size() && is_suffix_char(text[pos])) ++pos;
  return text.substr(start, pos - start);
}

std::string TextReader::take_attribute_name() {
  if (peek("\"")) return take_string();
  return std::string(expect_word("the name of an attribute"));
}

std::string_view TextReader::take_balanced() {
  const size_t start = token_start();
  // The closing brackets still expected, innermost last: at the second '[' of `{[<[` it holds "}]>".
  std::string open;
  do {
    if (pos >= text.size()) fail_at(start, "expected a bracket that is closed", "the end of the text");
    const char c = text[pos];
    // Brackets inside a string do not count: loc("f(x"(#loc1)).
    if (c == '"') {
      take_string();
      continue;
    }
    const size_t opening = std::string_view("([{<").find(c);
    if (opening != std::string_view::npos) {
      open += ")]}>"[opening];
    } else if (c == '-' && text.substr(pos, 2) == "->") {
      // The '>' of an arrow closes nothing: <(tensor<f32>) -> tensor<f32>>.
      ++pos;
    } else if (std::string_view(")]}>").find(c) != std::string_view::npos) {
      if (open.empty() || open.back() != c) fail_here("expected matching brackets");
      open.pop_back();
    }
    ++pos;
  } while (!open.empty());
  return text.substr(start, pos - start);
}

void TextReader::fail_with(size_t position, const std::string& message) const {
  throw ParseError(message, line(position), column(position));
}

// ---- types ---------------------------------------------------------------------------------------------------------

TypeId TextReader::parse_type() {
  skip_space();
  // A program has few distinct types and many uses of them: the text up to the first '>' is looked up before it is
  // parsed. An alias has no '>', and a search for one could read the rest of the program.
  const size_t end = peek("!") ? std::string_view::npos : text.find('>', pos);
  if (end == std::string_view::npos) return parse_type_at_cursor();
  const std::string_view key = text.substr(pos, end + 1 - pos);
  if (const auto it = types_.find(key); it != types_.end()) {
    pos = end + 1;
    return it->second;
  }
  const TypeId type = parse_type_at_cursor();
  // tensor<4xcomplex<f32>> ends after its second '>': its text up to the first one is no key.
  if (pos == end + 1) types_.emplace(key, type);
  return type;
}

void TextReader::fail_too_large(size_t position) {
  fail_at(position, "a tensor must have less than 2^56 elements in 256 dims");
}

TypeId TextReader::parse_type_at_cursor() {
  const size_t start = pos;
  if (take(mlir_name(DType::kToken))) return context().intern(TensorType{DType::kToken, {}});
  if (take("!")) {
    const std::string_view name = take_suffix_id();
    if (aliases_.contains(text.substr(start, 1 + name.size()))) {
      const Nesting nesting(*this);
      return at_alias(start, name, [&] { return parse_type(); });
    }
    pos = start;
  }
  const std::string_view word = take_word();
  if (word != "tensor") {
    pos = start;
    fail_at(start, "a type must be a tensor with static shape, such as tensor<4xf32>, or !stablehlo.token", found(),
            word == "tuple" ? "pass the parts of a tuple one by one" : "");
  }
  expect("<", "after 'tensor'");
  TensorType type;
  int64_t elements = 1;
  // '?' is a dynamic size and '*' an unranked tensor. The loop is entered there to give them an error with a way out.
  while (at_digit() || peek("?") || peek("*")) {
    if (!is_digit(text[pos])) {
      const Refusal* refusal = refusal_of("tensor<?>");
      fail_at(start, "a dim must have a static size", text.substr(start, pos + 1 - start),
              refusal == nullptr ? std::string() : advice(*refusal));
    }
    const std::string_view digits = take_digits();
    const auto size = number_of<int64_t>(digits);
    // The product is checked by division before it is formed. A dim of size 0 is left out, so that it cannot
    // hide an overflow of the other dims.
    const bool fits = size && (*size == 0 || elements <= (kMaxElements - 1) / *size);
    if (!fits || type.shape.size() == kMaxDims) fail_too_large(start);
    if (*size != 0) elements *= *size;
    type.shape.push_back(*size);
    // 4x8xf32 is one run of characters: each 'x' is taken here, so that the word that is left is f32.
    if (!take("x")) fail_here("expected 'x' between the dims and the element type");
  }
  type.dtype = parse_dtype();
  // MLIR allows tensor<4xf32, #encoding>, such as bounds of dynamic dims. No op reads
  // one, and dropping it would be silent.
  if (peek(",")) fail_here("a tensor type has no encoding");
  expect(">", "at the end of a tensor type");
  return context().intern(type);
}

DType TextReader::parse_dtype() {
  const size_t start = token_start();
  const Refusal* refusal = text.substr(pos).starts_with("!quant.") ? refusal_of("!quant.uniform") : nullptr;
  // '<' ends a word, so complex<f32> is read in two parts.
  std::string name(take_word());
  if (name == "complex" && take("<")) {
    name.append("<").append(take_word()).append(">");
    expect(">", "after the type of the parts of a complex number");
  }
  const std::optional<DType> dtype = dtype_from_mlir(name);
  if (!dtype || *dtype == DType::kToken) {
    fail_at(start,
            "the element type must be i1, i2 … i64, ui2 … ui64, f4E2M1FN … f8E8M0FNU, f16, bf16, f32, f64 or a complex "
            "one of the last two",
            name.empty() ? found() : name, refusal == nullptr ? std::string() : advice(*refusal));
  }
  return *dtype;
}

void TextReader::parse_type_list(std::vector<TypeId>& types) {
  do {
    types.push_back(parse_type());
  } while (take(","));
}

void TextReader::parse_type_tuple(std::vector<TypeId>& types) {
  if (!peek("(")) return types.push_back(parse_type());
  parse_list({"(", "", ")", "at the end of a list of types"}, [&] { types.push_back(parse_type()); });
}

// ---- locations -----------------------------------------------------------------------------------------------------

LocId TextReader::parse_optional_location() {
  if (peek_word() != "loc") return {};
  take_word();
  expect("(", "after 'loc'");
  const LocId location = parse_location();
  expect(")", "at the end of a location");
  return location;
}

// For a location that combines several ones, the first represents it: the innermost call.
LocId TextReader::parse_location_list(std::string_view close) {
  const LocId first = parse_location();
  while (take(",") || take_keyword("at")) parse_location();
  expect(close, "at the end of a combined location");
  return first;
}

LocId TextReader::parse_location() {
  const Nesting nesting(*this);
  if (take("#")) return parse_location_alias();
  if (take_keyword("unknown")) return {};
  if (take_keyword("callsite")) {
    expect("(", "after 'callsite'");
    return parse_location_list(")");
  }
  if (take_keyword("fused")) {
    // fused<metadata>[…]: the metadata is an attribute that no pass reads.
    if (peek("<")) take_balanced();
    expect("[", "after 'fused'");
    return parse_location_list("]");
  }
  if (!peek("\"")) fail_here("expected a location: \"file\":line:column, \"name\"(...), callsite, fused or unknown");
  std::string name = take_string();
  if (take(":")) {
    const size_t start = pos;
    const int64_t row = take_integer("a line");
    expect(":", "between line and column");
    const int64_t place = take_integer("a column");
    // Locations store 32-bit numbers, and a larger one would wrap to another line.
    if (row != static_cast<int32_t>(row) || place != static_cast<int32_t>(place)) {
      fail_at(start, "line and column must fit in 32 bits");
    }
    // MLIR's ranges, "f":1:2 to 3:4 and "f":1:2 to :4. Only the start is kept, because a report names one line.
    if (take_keyword("to")) {
      if (at_digit()) take_integer("a line");
      expect(":", "before the last column");
      take_integer("a column");
    }
    return context().file_location(std::move(name), static_cast<int32_t>(row), static_cast<int32_t>(place));
  }
  if (!take("(")) return context().named_location(std::move(name), {});
  const LocId child = parse_location();
  expect(")", "at the end of a named location");
  return context().named_location(std::move(name), child);
}

LocId TextReader::parse_location_alias() {
  const size_t start = pos - 1;
  const std::string_view name = take_suffix_id();
  if (const auto known = location_aliases_.find(name); known != location_aliases_.end()) return known->second;
  // Parsed once, then looked up: JAX's texts refer to the same frames over and over.
  const LocId location = at_alias(start, name, [&] {
    if (peek_word() != "loc") fail_here("expected loc(...) as the meaning of a location alias");
    return parse_optional_location();
  });
  location_aliases_.emplace(name, location);
  return location;
}

// ---- shardings -----------------------------------------------------------------------------------------------------

MeshLookup TextReader::mesh_lookup() {
  return [this](std::string_view name) { return find_mesh(name); };
}

// Symbols may be used before they are declared. The whole text is searched only when that happens, and once.
MeshPtr TextReader::find_mesh(std::string_view name) {
  if (MeshPtr mesh = module_->find_mesh(name)) return mesh;
  if (!later_meshes_) find_later_meshes();
  const auto found = std::find_if(later_meshes_->begin(), later_meshes_->end(),
                                  [&](const MeshPtr& mesh) { return mesh->name() == name; });
  return found == later_meshes_->end() ? nullptr : *found;
}

// A declaration starts its line. An invalid one is reported later, when the parser reaches it.
void TextReader::find_later_meshes() {
  later_meshes_.emplace();
  const size_t saved = pos;
  for (size_t start = text.find(text_words::kMesh); start != std::string_view::npos;
       start = text.find(text_words::kMesh, start + 1)) {
    // The word may also occur inside `#sdy.mesh`, a string or a comment; only blanks may precede a declaration.
    const size_t line_start = start == 0 ? 0 : text.rfind('\n', start - 1) + 1;
    if (text.substr(line_start, start - line_start).find_first_not_of(" \t") != std::string_view::npos) continue;
    pos = start + text_words::kMesh.size();
    try {
      std::string name = take_symbol();
      expect("=", "after the name of a mesh");
      later_meshes_->push_back(std::make_shared<const Mesh>(parse_mesh_value(name)));
    } catch (const Error&) {
      continue;
    }
  }
  pos = saved;
}

Mesh TextReader::parse_mesh_value(const std::string& name) {
  return through_alias([&] {
    take("#sdy.mesh");
    return located(pos, [&] { return parse_mesh(*this, name); });
  });
}

ShardingId TextReader::parse_sharding_id() {
  return through_alias(
      [&] { return located(pos, [&] { return context().intern(parse_sharding(*this, mesh_lookup())); }); });
}

std::vector<ShardingId> TextReader::parse_shardings_per_value() {
  return through_alias([&] {
    std::vector<ShardingId> shardings;
    if (!take("#sdy.sharding_per_value")) {
      fail_here("the shardings of an op must be one for each result", "write #sdy.sharding_per_value<[<@mesh, […]>]>");
    }
    expect("<", "before the shardings of several values");
    expect("[", "before the shardings of several values");
    take_items("]", "after the sharding of a value", [&] { shardings.push_back(parse_sharding_id()); });
    expect(">", "after the shardings of several values");
    return shardings;
  });
}

}  // namespace shardwise
