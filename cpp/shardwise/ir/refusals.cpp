// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/refusals.h"

#include <algorithm>

#include "shardwise/base/text.h"

namespace shardwise {
namespace {

std::span<const Refusal> installed_refusals;

}  // namespace

const Refusal* refusal_of(std::string_view name) {
  const auto found = std::ranges::find_if(
      installed_refusals, [&](const Refusal& each) { return each.name == name && each.condition.empty(); });
  return found == installed_refusals.end() ? nullptr : &*found;
}

std::span<const Refusal> all_refusals() { return installed_refusals; }

std::string advice(const Refusal& refusal) { return str(refusal.way_out, ", because ", refusal.reason); }

void install_refusals(std::span<const Refusal> refusals) { installed_refusals = refusals; }

}  // namespace shardwise
