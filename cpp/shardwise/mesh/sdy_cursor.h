// SPDX-License-Identifier: Apache-2.0
//
// SdyCursor: a position in a text, and the few tokens of mesh and sharding texts. A parser of a larger text passes in
// its text and position, and takes the position back:
//
//   SdyCursor cursor(program, pos);
//   TensorSharding sharding = parse_sharding(cursor, find_mesh);
//   pos = cursor.pos;
//
// White space and `//` comments before a token are skipped. Every failure is a ParseError with the line and column of
// the unexpected token, counted from 1 in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shardwise/base/text.h"

namespace shardwise {

class SdyCursor {
 public:
  explicit SdyCursor(std::string_view source, size_t position = 0) : text(source), pos(position) {}

  void skip_space();
  size_t token_start();               // where the next token begins
  bool at_end();                      // only space is left
  bool peek(std::string_view token);  // the text continues with `token`
  bool take(std::string_view token);  // ... and moves past it
  void expect(std::string_view token, std::string_view where);
  void expect_end();

  std::string_view take_word();                 // is_word, or "" and stays
  std::string_view peek_word();                 // without moving
  bool take_keyword(std::string_view keyword);  // the whole next word
  std::string take_string();                    // "..." with MLIR's escapes
  std::string take_symbol();                    // @word or @"..."
  int64_t take_integer(std::string_view what);  // optional '-', digits
  // Calls `item` for each element of a list up to `close`; what opens the list is already taken.
  template <class Item>
  void take_items(std::string_view close, std::string_view where, Item&& item) {
    if (take(close)) return;
    while (true) {
      item();
      // Tested only after an item: MLIR's lists have no trailing comma, so {"x",} is an error.
      if (take(close)) return;
      if (!take(",")) fail_here(str("expected ',' or '", close, "' ", where));
    }
  }

  std::string found() const;  // describes the next character, for messages
  int line(size_t position) const;
  int column(size_t position) const;
  [[noreturn]] void fail_at(size_t position, std::string_view must_hold, std::string_view got = {},
                            std::string_view way_out = {}) const;
  [[noreturn]] void fail_here(std::string_view must_hold, std::string_view way_out = {});

  std::string_view text;
  size_t pos = 0;
  std::string_view subject = "sharding text";  // name of the text in messages
};

}  // namespace shardwise
