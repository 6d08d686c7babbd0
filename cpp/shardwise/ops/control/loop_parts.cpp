// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/loop_parts.h"

#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/scan.h"

namespace shardwise {

LoopParts loop_parts(const OpView& loop) {
  if (scan_order(loop)) return scan_parts(loop);
  const Module& module = loop.module();
  LoopParts parts{.condition = loop.regions()[0], .body = loop.regions()[1]};
  const Region& condition = module.region(parts.condition);
  const Region& body = module.region(parts.body);
  parts.predicate = condition.results[0];
  parts.carries.reserve(loop.operand_count());
  for (size_t i = 0; i < loop.operand_count(); ++i) {
    parts.carries.push_back(
        {loop.operand(i), body.arguments[i], body.results[i], loop.result(i), condition.arguments[i]});
  }
  return parts;
}

std::optional<int64_t> trip_count(const OpView& loop) {
  if (const auto order = scan_order(loop)) return order->trips;
  const auto counted = counted_loop(loop);
  return counted ? std::optional(counted->trips) : std::nullopt;
}

}  // namespace shardwise
