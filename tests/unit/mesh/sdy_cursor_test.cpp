// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sdy_cursor.h"

#include <functional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {
namespace {

std::string error_of(std::string_view text, const std::function<void(SdyCursor&)>& run) {
  SdyCursor cursor(text);
  try {
    run(cursor);
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

TEST(SdyCursor, SkipsSpaceAndComments) {
  SdyCursor cursor(" \t\n// a comment\n  <  > // the last");
  EXPECT_TRUE(cursor.take("<"));
  EXPECT_FALSE(cursor.take("<"));
  EXPECT_TRUE(cursor.peek(">"));
  EXPECT_TRUE(cursor.take(">"));
  EXPECT_TRUE(cursor.at_end());
  cursor.expect_end();
}

TEST(SdyCursor, CountsLinesAndColumnsFromOne) {
  const SdyCursor cursor("ab\ncd");
  EXPECT_EQ(cursor.line(0), 1);
  EXPECT_EQ(cursor.column(0), 1);
  EXPECT_EQ(cursor.line(3), 2);
  EXPECT_EQ(cursor.column(4), 2);
}

TEST(SdyCursor, ReadsTokens) {
  SdyCursor cursor(R"(word.1$ "a\22\"\\\n\t\4A" @sym @"my sym" -12 9223372036854775807)");
  EXPECT_EQ(cursor.take_word(), "word.1$");
  EXPECT_EQ(cursor.take_word(), "");
  EXPECT_EQ(cursor.take_string(), "a\"\"\\\n\tJ");
  EXPECT_EQ(cursor.take_symbol(), "sym");
  EXPECT_EQ(cursor.take_symbol(), "my sym");
  EXPECT_EQ(cursor.take_integer("a number"), -12);
  EXPECT_EQ(cursor.take_integer("a number"), 9223372036854775807);
}

TEST(SdyCursor, ContinuesInALargerText) {
  SdyCursor cursor("func {x}", 5);
  cursor.expect("{", "before x");
  EXPECT_EQ(cursor.pos, 6u);
}

TEST(SdyCursorError, NamesTokenAndPosition) {
  EXPECT_EQ(error_of("\n  ab", [](SdyCursor& c) { c.expect("<", "before a mesh"); }),
            R"(2:3: sharding text: expected '<' before a mesh, got "ab")");
  EXPECT_EQ(error_of("ab",
                     [](SdyCursor& c) {
                       c.subject = "program text";
                       c.expect("<", "before a mesh");
                     }),
            R"(1:1: program text: expected '<' before a mesh, got "ab")");
  EXPECT_EQ(error_of("a ", [](SdyCursor& c) { c.take_word(), c.expect("<", "here"); }),
            "1:3: sharding text: expected '<' here, got the end of the text");
  EXPECT_EQ(error_of("a b", [](SdyCursor& c) { c.take_word(), c.expect_end(); }),
            R"(1:3: sharding text: expected the end of the text, got "b")");
  EXPECT_EQ(error_of("\"ab\n\"", [](SdyCursor& c) { c.take_string(); }),
            "1:1: sharding text: a string must end with '\"' on its line");
  EXPECT_EQ(error_of(R"("a\q")", [](SdyCursor& c) { c.take_string(); }),
            "1:3: sharding text: a backslash in a string must be followed by \", \\, n, t or two hex digits");
  EXPECT_EQ(error_of("\"\\", [](SdyCursor& c) { c.take_string(); }),
            "1:2: sharding text: a backslash in a string must be followed by \", \\, n, t or two hex digits");
  EXPECT_EQ(error_of("@ x", [](SdyCursor& c) { c.take_symbol(); }),
            R"(1:2: sharding text: expected a name after '@', got " ")");
  EXPECT_EQ(error_of("-x", [](SdyCursor& c) { c.take_integer("a size"); }),
            R"(1:1: sharding text: expected a number as a size, got "-")");
  EXPECT_EQ(error_of("9223372036854775808", [](SdyCursor& c) { c.take_integer("a size"); }),
            "1:1: sharding text: a size must fit in 64 bits, got 9223372036854775808");
}

// A char has a sign on x86, and none on ARM.
TEST(SdyCursor, BytesOfAnyValueAreReadBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name(1, static_cast<char>(byte));
    const std::string text = quote(name);
    SdyCursor cursor(text);
    EXPECT_EQ(cursor.take_string(), name) << text;
    EXPECT_TRUE(cursor.at_end()) << text;
    const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
    EXPECT_EQ(SdyCursor(name).take_word(), is_letter ? name : "") << byte;
    const bool is_plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
    EXPECT_EQ(text.size(), is_plain ? 3U : byte == '\\' ? 4U : 5U) << text;
  }
}

}  // namespace
}  // namespace shardwise
