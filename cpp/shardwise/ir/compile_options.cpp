// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/compile_options.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// In the order of Strategy, of Objective and of WindowedEinsum.
constexpr std::string_view kStrategies[] = {"basic", "aggressive"}, kObjectives[] = {"time", "bytes"},
                           kWindowedEinsums[] = {"memory", "time", "always", "never"};

template <class Value>
Value value_called(std::string_view name, std::string_view subject, std::string_view rule,
                   std::span<const std::string_view> names) {
  const auto known = std::ranges::find(names, name);
  if (known == names.end()) fail<ShardingError>(subject, rule, name);
  return static_cast<Value>(known - names.begin());
}

int64_t natural_number(std::string_view text, std::string_view name) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  fail<ShardingError>("compile", str(name, " must be a number of 0 or more"), text);
}

std::vector<size_t> natural_numbers(std::string_view text, std::string_view name) {
  std::vector<size_t> numbers;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    numbers.push_back(static_cast<size_t>(natural_number(text.substr(0, end), name)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

}  // namespace

std::string_view name(Strategy strategy) { return kStrategies[static_cast<size_t>(strategy)]; }

void set_strategy(CompileOptions& options, std::string_view name) {
  options.strategy = value_called<Strategy>(name, "propagate", "strategy must be 'basic' or 'aggressive'", kStrategies);
}

void set_objective(CompileOptions& options, std::string_view name) {
  options.objective = value_called<Objective>(name, "compile", "objective must be 'time' or 'bytes'", kObjectives);
}

void set_memory_limit(CompileOptions& options, std::string_view bytes) {
  options.memory_limit = natural_number(bytes, "memory_limit");
}

void set_combine_bytes(CompileOptions& options, std::string_view bytes) {
  options.combine_bytes = natural_number(bytes, "combine_bytes");
}

void set_windowed_einsum(CompileOptions& options, std::string_view name) {
  options.windowed_einsum = value_called<WindowedEinsum>(
      name, "compile", "windowed_einsum must be 'memory', 'time', 'always' or 'never'", kWindowedEinsums);
}

void set_donated(CompileOptions& options, std::string_view numbers) {
  options.donated = natural_numbers(numbers, "donated");
}

void set_captured(CompileOptions& options, std::string_view numbers) {
  options.captured = natural_numbers(numbers, "captured");
}

void set_free_results(CompileOptions& options, std::string_view numbers) {
  options.free_results = natural_numbers(numbers, "free_results");
}

}  // namespace shardwise
