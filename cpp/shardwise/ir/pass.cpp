// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/pass.h"

#include <algorithm>

namespace shardwise {

void Counters::add(std::string_view name, int64_t amount) {
  const auto found = std::ranges::find(entries_, name, &std::pair<std::string, int64_t>::first);
  if (found == entries_.end()) {
    entries_.emplace_back(name, amount);
  } else {
    found->second += amount;
  }
}

int64_t Counters::get(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &std::pair<std::string, int64_t>::first);
  return found == entries_.end() ? 0 : found->second;
}

}  // namespace shardwise
