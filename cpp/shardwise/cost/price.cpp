// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/price.h"

#include <array>
#include <charconv>
#include <span>

#include "shardwise/base/text.h"

namespace shardwise {
namespace {

struct Unit {
  double size;
  std::string_view name;
};
constexpr std::array kTimeUnits{Unit{1, "ps"}, Unit{1e3, "ns"}, Unit{1e6, "us"}, Unit{1e9, "ms"}, Unit{1e12, "s"}};
constexpr std::array kByteUnits{Unit{1, "B"},
                                Unit{1024, "KiB"},
                                Unit{1024.0 * 1024, "MiB"},
                                Unit{1024.0 * 1024 * 1024, "GiB"},
                                Unit{1024.0 * 1024 * 1024 * 1024, "TiB"},
                                Unit{1024.0 * 1024 * 1024 * 1024 * 1024, "PiB"}};

// Three digits, or all digits of a larger whole number; without zeros at the end: 1.24, 16.3, 587, 2.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 64> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  std::string text(buffer.data(), end);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// In the largest unit in which it is not below 1; 999.6 us are 1 ms.
std::string with_unit(int64_t quantity, std::span<const Unit> units) {
  const auto value = static_cast<double>(quantity);
  size_t unit = 0;
  while (unit + 1 < units.size() && value >= units[unit + 1].size * 0.9995) ++unit;
  const std::string text = str(three_digits(value / units[unit].size), " ", units[unit].name);
  return quantity >= kSaturated ? ">= " + text : text;
}

std::string count_text(int64_t count) { return str(count >= kSaturated ? ">= " : "", count); }

}  // namespace

std::string duration_text(int64_t ps) { return with_unit(ps, kTimeUnits); }
std::string byte_count_text(int64_t bytes) { return with_unit(bytes, kByteUnits); }

std::string to_text(const Price& price) {
  std::string text = duration_text(price.ps);
  if (price.bytes > 0) text += ", " + byte_count_text(price.bytes);
  if (price.rounds > 0) text += str(", ", count_text(price.rounds), price.rounds == 1 ? " round" : " rounds");
  if (price.work >= kSaturated) text += str(", ", count_text(price.work), " flops");
  return text;
}

}  // namespace shardwise
