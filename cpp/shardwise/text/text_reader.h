// SPDX-License-Identifier: Apache-2.0
//
// TextReader: a position in an MLIR text, and the tools that all parts of the parser need: words, types, aliases, a
// limit on nesting, and the module whose meshes and context resolve names.
//
//   TextReader reader("tensor<4x8xf32> loc(#loc1)\n#loc1 = loc(\"f.py\":3:5)", module);
//   reader.parse_type()               // the TypeId of tensor<4x8xf32>
//   reader.parse_optional_location()  // the LocId of "f.py":3:5: an alias may be defined after its use
//
// Every failure is a ParseError with line and column. Texts nest at most kMaxNesting deep, and no allocation is larger
// than a constant times the text.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/module.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {

class TextReader : public SdyCursor {
 public:
  static constexpr int kMaxNesting = 256;
  static constexpr int64_t kMaxElements = int64_t{1} << 56;

  TextReader(std::string_view source, Module& module);

  Module& module() const { return *module_; }
  Context& context() const { return module_->context(); }

  // ---- tokens
  std::string_view expect_word(std::string_view what);
  bool at_digit();                    // the next character is a digit, or '-' and a digit
  std::string_view take_digits();     // at the cursor, without skipping space
  std::string_view take_number();     // the same, of a float, too: 12, 1.5e-3, 0x7F, and 12abc, for the message
  std::string_view take_suffix_id();  // what follows %, ^ or #: 12, arg0, loc3, "cst_0"
  std::string take_attribute_name();  // a word, or a string
  // Skips a bracketed piece of text, including strings, and returns it with its brackets. '->' closes nothing.
  std::string_view take_balanced();
  // A list in brackets, with commas between the items; `before` and `after` end the messages of its errors.
  struct Brackets {
    std::string_view open, before, close, after;
  };
  static constexpr Brackets kDictionary{"{", "before a dictionary of attributes", "}",
                                        "at the end of a dictionary of attributes"};
  template <class Item>
  void parse_list(const Brackets& brackets, Item&& item) {
    expect(brackets.open, brackets.before);
    if (take(brackets.close)) return;
    do {
      item();
    } while (take(","));
    expect(brackets.close, brackets.after);
  }

  // ---- types
  TypeId parse_type();                                // tensor<4xf32>; unsupported types are rejected by name
  DType parse_dtype();                                // f32, complex<f64>
  [[noreturn]] void fail_too_large(size_t position);  // of a type with kMaxElements elements
  void parse_type_list(std::vector<TypeId>& types);   // T, U
  void parse_type_tuple(std::vector<TypeId>& types);  // (T, U) or T or ()

  // ---- locations, aliases, shardings
  LocId parse_optional_location();  // loc(...), or none
  ShardingId parse_sharding_id();   // <@mesh, [...]>, with or without #sdy.sharding, or an alias of that
  std::vector<ShardingId> parse_shardings_per_value();  // #sdy.sharding_per_value<[…]>, or an alias
  Mesh parse_mesh_value(const std::string& name);       // <["x"=4]>, with or without #sdy.mesh, or an alias
  MeshLookup mesh_lookup();                             // a mesh may be declared after its uses
  // Runs `body` at the definition of alias #name, which is used at `start`, and returns to the position before.
  template <class Body>
  auto at_alias(size_t start, std::string_view name, Body&& body) {
    const size_t end = pos;
    pos = enter_alias(start, name);
    const size_t definition = pos;
    auto meaning = body();
    leave_alias(start, pos - definition);
    pos = end;
    return meaning;
  }

  // Runs `body`, and adds this text's line and column to errors of other layers.
  template <class Body>
  auto located(size_t position, Body&& body) {
    try {
      return body();
    } catch (const ParseError&) {
      throw;
    } catch (const Error& error) {
      fail_with(position, error.message());
    }
  }
  [[noreturn]] void fail_with(size_t position, const std::string& message) const;

  // Counts one level of nesting during its lifetime.
  class Nesting {
   public:
    explicit Nesting(TextReader& reader) : reader_(reader) {
      if (++reader.depth_ > kMaxNesting) reader.fail_here(str("nests at most ", kMaxNesting, " deep"));
    }
    ~Nesting() { --reader_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TextReader& reader_;
  };

 private:
  void find_aliases();
  // At an alias, which may name another one, runs `body` at its definition; otherwise here. Each step counts as
  // nesting, so that a circle of aliases is an error.
  template <class Body>
  auto through_alias(const Body& body) {
    const Nesting nesting(*this);
    if (!at_alias_name()) return body();
    const size_t start = pos++;
    return at_alias(start, take_suffix_id(), [&] { return through_alias(body); });
  }
  bool at_alias_name();  // '#' and a name that no '<' follows
  size_t enter_alias(size_t start, std::string_view name) const;
  void leave_alias(size_t start, size_t length);
  TypeId parse_type_at_cursor();
  LocId parse_location();
  LocId parse_location_list(std::string_view close);
  LocId parse_location_alias();
  MeshPtr find_mesh(std::string_view name);
  void find_later_meshes();

  Module* module_;
  int depth_ = 0;
  size_t expanded_ = 0;  // characters parsed as definitions of aliases
  std::unordered_map<std::string_view, size_t> aliases_;
  std::unordered_map<std::string_view, LocId> location_aliases_;
  std::optional<std::vector<MeshPtr>> later_meshes_;    // all meshes that the text declares; none: not searched yet
  std::unordered_map<std::string_view, TypeId> types_;  // by their text, because most types occur many times
};

}  // namespace shardwise
