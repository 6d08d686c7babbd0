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

namespace shardwise {

class SdyCursor {
 public:
  explicit SdyCursor(std::string_view source, size_t position = 0) : text(source), pos(position) {}

  void skip_space();
  bool at_end();                      // only space is left
  bool peek(std::string_view token);  // the text continues with `token`
  bool take(std::string_view token);  // ... and moves past it
  void expect(std::string_view token, std::string_view where);
  void expect_end();

  std::string_view take_word();                 // [A-Za-z_][A-Za-z0-9_$.]*, or "" and stays
  std::string take_string();                    // "..." with MLIR's escapes
  std::string take_symbol();                    // @word or @"..."
  int64_t take_integer(std::string_view what);  // optional '-', digits

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
