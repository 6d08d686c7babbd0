// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/sdy_cursor.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {
namespace {

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void SdyCursor::skip_space() {
  while (pos < text.size()) {
    const char c = text[pos];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++pos;
    } else if (text.substr(pos, 2) == "//") {
      pos = std::min(text.find('\n', pos), text.size());
    } else {
      return;
    }
  }
}

size_t SdyCursor::token_start() {
  skip_space();
  return pos;
}

bool SdyCursor::at_end() { return token_start() >= text.size(); }

bool SdyCursor::peek(std::string_view token) { return text.substr(token_start(), token.size()) == token; }

bool SdyCursor::take(std::string_view token) {
  if (!peek(token)) return false;
  pos += token.size();
  return true;
}

void SdyCursor::expect(std::string_view token, std::string_view where) {
  if (!take(token)) fail_here(str("expected '", token, "' ", where));
}

void SdyCursor::expect_end() {
  if (!at_end()) fail_here("expected the end of the text");
}

std::string_view SdyCursor::take_word() {
  skip_space();
  size_t end = pos;
  if (end < text.size() && begins_word(text[end])) {
    while (end < text.size() && is_in_word(text[end])) ++end;
  }
  // An empty word is no error here: the caller knows what it expected instead.
  std::string_view word = text.substr(pos, end - pos);
  pos = end;
  return word;
}

std::string_view SdyCursor::peek_word() {
  const std::string_view word = take_word();
  pos -= word.size();
  return word;
}

bool SdyCursor::take_keyword(std::string_view keyword) {
  if (peek_word() != keyword) return false;
  pos += keyword.size();
  return true;
}

std::string SdyCursor::take_string() {
  expect("\"", "before a string");
  const size_t start = pos - 1;
  std::string value;
  // A string ends on its line, so that a missing quote is reported there, not at the end of the text.
  for (; pos < text.size() && text[pos] != '\n'; ++pos) {
    const char c = text[pos];
    if (c == '"') {
      ++pos;
      return value;
    }
    if (c != '\\') {
      value += c;
      continue;
    }
    // A newline is no valid escape, so that a backslash at the end of the text is refused below.
    const char next = pos + 1 < text.size() ? text[pos + 1] : '\n';
    const int high = hex_value(next);
    const int low = pos + 2 < text.size() ? hex_value(text[pos + 2]) : -1;
    if (next == '"' || next == '\\') {
      value += next;
      pos += 1;
    } else if (next == 'n' || next == 't') {
      value += next == 'n' ? '\n' : '\t';
      pos += 1;
    } else if (high >= 0 && low >= 0) {
      value += static_cast<char>(high * 16 + low);
      pos += 2;
    } else {
      fail_at(pos, "a backslash in a string must be followed by \", \\, n, t or two hex digits");
    }
  }
  fail_at(start, "a string must end with '\"' on its line");
}

std::string SdyCursor::take_symbol() {
  expect("@", "before a symbol name");
  // A symbol is one token: no space may follow the @.
  if (pos < text.size() && text[pos] == '"') return take_string();
  if (pos >= text.size() || !begins_word(text[pos])) fail_at(pos, "expected a name after '@'", found());
  return std::string(take_word());
}

int64_t SdyCursor::take_integer(std::string_view what) {
  skip_space();
  size_t digits = pos;
  if (digits < text.size() && text[digits] == '-') ++digits;
  size_t end = digits;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == digits) fail_here(str("expected a number as ", what));
  // The digits are known to be there, so the only error left is a number that is too large.
  const auto value = number_of<int64_t>(text.substr(pos, end - pos));
  if (!value) fail_at(pos, str(what, " must fit in 64 bits"), text.substr(pos, end - pos));
  pos = end;
  return *value;
}

std::string SdyCursor::found() const {
  if (pos >= text.size()) return "the end of the text";
  // In single quotes, because an escaped quote inside double quotes is hard to read.
  if (text[pos] == '"') return "'\"'";
  const size_t end =
      std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(pos), text.end(), is_in_word) - text.begin();
  // A whole word, or the one character that begins no word.
  return quote(text.substr(pos, std::max<size_t>(end - pos, 1)));
}

int SdyCursor::line(size_t position) const {
  const auto before = text.substr(0, position);
  return static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
}

int SdyCursor::column(size_t position) const {
  const auto newline = text.substr(0, position).rfind('\n');
  return static_cast<int>(newline == std::string_view::npos ? position + 1 : position - newline);
}

void SdyCursor::fail_at(size_t position, std::string_view must_hold, std::string_view got,
                        std::string_view way_out) const {
  throw ParseError(error_message(subject, must_hold, got, way_out), line(position), column(position));
}

void SdyCursor::fail_here(std::string_view must_hold, std::string_view way_out) {
  skip_space();
  fail_at(pos, must_hold, found(), way_out);
}

}  // namespace shardwise
