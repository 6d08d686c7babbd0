// SPDX-License-Identifier: Apache-2.0
//
// Builds text from parts, for errors and printers:
//
//   str("dim ", 1, " of ", Dims{7, 2}, " is ", 0.1f, " for ", DType::kF32)  ->  "dim 1 of [7, 2] is 0.1 for f32"
//   join(std::vector{1, 2, 3}, "x")                                         ->  "1x2x3"
//   join(axes, ", ", [](const Axis& axis) { return axis.name; })            ->  "data, model"
//
// Floats print with the fewest digits that parse to the same value. A type of shardwise takes part by defining
// `to_text(const T&)` in its own namespace.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "shardwise/base/dims.h"
#include "shardwise/base/dtype.h"

namespace shardwise {

// The functions of <cctype> depend on the locale, and are undefined for negative chars.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A word of MLIR's texts, [A-Za-z_][A-Za-z0-9_$.]*. Other names are printed in quotes.
constexpr bool begins_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_in_word(char c) { return begins_word(c) || is_digit(c) || c == '$' || c == '.'; }
bool is_word(std::string_view text);

std::string float_text(float value);  // "0.1", "1e+30", "-0", "inf", "nan"
std::string float_text(double value);
std::string dims_text(DimSpan dims);  // "[1, 2]"

void append_integer(std::string& out, int64_t value);
void append_integer(std::string& out, uint64_t value);

template <class T>
void append_text(std::string& out, const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out.append(std::string_view(value));
  } else if constexpr (std::same_as<T, bool>) {
    out.append(value ? "true" : "false");
  } else if constexpr (std::same_as<T, char>) {
    out.push_back(value);
  } else if constexpr (std::signed_integral<T>) {
    append_integer(out, static_cast<int64_t>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    append_integer(out, static_cast<uint64_t>(value));
  } else if constexpr (std::floating_point<T>) {
    out.append(float_text(value));
  } else if constexpr (std::same_as<T, DType>) {
    out.append(mlir_name(value));
  } else if constexpr (std::is_convertible_v<const T&, DimSpan>) {
    out.append(dims_text(value));
  } else {
    out.append(to_text(value));
  }
}

template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

template <class Range, class F>
std::string join(const Range& range, std::string_view separator, F&& part_of) {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out.append(separator);
    first = false;
    append_text(out, part_of(item));
  }
  return out;
}

template <class Range>
std::string join(const Range& range, std::string_view separator) {
  return join(range, separator, [](const auto& item) -> const auto& { return item; });
}

// The number that the whole text is; none if it is no number, or one that T does not hold.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace shardwise
