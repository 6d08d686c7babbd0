// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/assigned_names.h"

#include <algorithm>

namespace shardwise {
namespace {

std::vector<std::string> parted(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace

std::vector<std::vector<std::string>> assigned_targets(std::string_view assigned) {
  std::vector<std::vector<std::string>> targets;
  if (assigned.empty()) return targets;
  for (const std::string& target : parted(assigned, " = ")) targets.push_back(parted(target, ", "));
  return targets;
}

std::string assigned_whole(std::string_view assigned) {
  const auto targets = assigned_targets(assigned);
  const auto whole = std::ranges::find_if(targets, [](const auto& leaves) { return leaves.size() == 1; });
  return whole == targets.end() ? std::string() : whole->front();
}

}  // namespace shardwise
