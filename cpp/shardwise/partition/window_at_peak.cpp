// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/window_at_peak.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/choice/windows/windowed_times.h"
#include "shardwise/partition/window_einsums.h"

namespace shardwise {
namespace {

// Of what a window has no array of.
int64_t freed_bytes(const Module& local, const WindowedDot& dot, const std::unordered_map<ValueId, int64_t>& alive) {
  std::vector<OpId> gone = dot.between;
  gone.push_back(dot.gathers ? dot.collective : dot.products.front().op);
  int64_t bytes = 0;
  for (const OpId op : gone) {
    const auto found = alive.find(local.result(op));
    if (found != alive.end()) bytes += found->second;
  }
  // Two blocks are alive instead.
  const TensorType& block =
      dot.gathers ? local.type(OpView(local, dot.collective).operand(0)) : local.type(local.result(dot.collective));
  return bytes - 2 * block.byte_quantity();
}

}  // namespace

std::optional<RepeatedRow> window_at_peak(Module& local, const LiveWalk& walk, const Hardware& hardware) {
  std::unordered_map<ValueId, int64_t> alive;
  for (const LiveBuffers& buffers : walk.use.at_peak) alive[buffers.value] += buffers.bytes;
  std::vector<WindowedDot> dots = windowed_dots(local, true);
  std::vector<int64_t> freed;
  for (const WindowedDot& dot : dots) freed.push_back(freed_bytes(local, dot, alive));
  const auto most = std::ranges::max_element(freed);
  if (most == freed.end() || *most <= 0) return std::nullopt;
  WindowedDot& dot = dots[static_cast<size_t>(most - freed.begin())];
  const WindowedTime time = WindowedTimes(local, hardware).of(dot);
  const OpId op = dot.products.front().op;
  const RepeatedRow row{.loc = local.op(op).loc,
                        .op = OpView(local, op).name(),
                        .is_windowed = true,
                        .bytes = *most,
                        .ps = std::max<int64_t>(time.loop_ps - time.gathered_ps, 0)};
  // Of a gather that stays, since another product reads it, nothing is freed before that one is in a window, too.
  const ChosenWindow chosen{std::move(dot), time.ring};
  write_windows(local, {&chosen, 1});
  return row;
}

}  // namespace shardwise
