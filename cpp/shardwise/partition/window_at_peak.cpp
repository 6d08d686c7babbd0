// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/window_at_peak.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/choice/windows/windowed_times.h"
#include "shardwise/partition/window_einsums.h"

namespace shardwise {
namespace {

// Whether something that a window has no array of is alive.
bool holds_alive(const Module& local, const WindowedDot& dot, const std::unordered_set<ValueId>& alive) {
  std::vector<OpId> gone = dot.between;
  gone.push_back(dot.gathers ? dot.collective : dot.products.front().op);
  return std::ranges::any_of(gone, [&](OpId op) { return alive.contains(local.result(op)); });
}

}  // namespace

std::optional<RepeatedRow> window_at_peak(Module& local, const LiveWalk& walk, const Hardware& hardware) {
  std::unordered_set<ValueId> alive;
  for (const LiveBuffers& buffers : walk.use.at_peak) alive.insert(buffers.value);
  WindowedTimes times(local, hardware);
  std::optional<ChosenWindow> chosen;
  WindowedTime time;
  int64_t freed = 0;
  for (WindowedDot& dot : windowed_dots(local, true)) {
    if (!holds_alive(local, dot, alive)) continue;
    const WindowedTime& found = times.of(dot);
    if (found.gathered_bytes - found.loop_bytes <= freed) continue;
    freed = found.gathered_bytes - found.loop_bytes;
    time = found;
    chosen = {std::move(dot), found.ring};
  }
  if (!chosen) return std::nullopt;
  const OpId op = chosen->dot.products.front().op;
  const ValueId result = local.result(op);
  const TypeId global = local.part(result).type;
  const RepeatedRow row{.loc = local.op(op).loc,
                        .op = OpView(local, op).name(),
                        .type = global ? global : local.value(result).type,
                        .how = Repeated::kWindowed,
                        .bytes = freed,
                        .ps = std::max<int64_t>(time.loop_ps - time.gathered_ps, 0)};
  // Of a gather that stays, since another product reads it, nothing is freed before that one is in a window, too.
  write_windows(local, {&*chosen, 1});
  return row;
}

}  // namespace shardwise
