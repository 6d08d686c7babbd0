// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/text.h"

#include <algorithm>
#include <charconv>

namespace shardwise {
namespace {

// Fits every int64, uint64 and shortest double ("-2.2250738585072014e-308").
constexpr size_t kLongestNumber = 32;

template <class T>
void append_number(std::string& out, T value) {
  char buffer[kLongestNumber];
  const auto end = std::to_chars(buffer, buffer + kLongestNumber, value).ptr;
  out.append(buffer, end);
}

template <class T>
std::string shortest(T value) {
  if (value != value) return "nan";  // to_chars would distinguish -nan from nan, which does not help a reader
  std::string out;
  append_number(out, value);
  return out;
}

}  // namespace

bool is_word(std::string_view text) {
  return !text.empty() && begins_word(text[0]) && std::ranges::all_of(text, is_in_word);
}

std::string float_text(float value) { return shortest(value); }

std::string float_text(double value) { return shortest(value); }

std::string dims_text(DimSpan dims) { return str("[", join(dims, ", "), "]"); }

void append_integer(std::string& out, int64_t value) { append_number(out, value); }

void append_integer(std::string& out, uint64_t value) { append_number(out, value); }

}  // namespace shardwise
