// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/window_einsums.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "shardwise/analysis/step_estimate.h"
#include "shardwise/choice/windows/windowed_times.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/rewrite/rewrite.h"

namespace shardwise {
namespace {

// How long the compute stream waits for each transfer, in one execution.
std::unordered_map<OpId, int64_t> exposed_times(const StepEstimate& estimate) {
  std::unordered_map<OpId, int64_t> exposed;
  for (const EstimateRow& row : estimate.rows) {
    const int64_t runs = row.executions.times(1);
    if (row.is_transfer && runs > 0) exposed[row.op] = static_cast<int64_t>(row.exposed_ps / static_cast<double>(runs));
  }
  return exposed;
}

std::vector<ChosenWindow> faster_windows(Module& module, const Hardware& hardware, const StepEstimate& estimate) {
  WindowedTimes times(module, hardware);
  const std::unordered_map<OpId, int64_t> exposed = exposed_times(estimate);
  std::vector<ChosenWindow> windows;
  for (WindowedDot& dot : windowed_dots(module, false)) {
    const auto waited = exposed.find(dot.collective);
    if (waited == exposed.end() || waited->second == 0) continue;
    const WindowedTime& time = times.of(dot);
    const int64_t saved = waited->second + time.products_ps - time.loop_ps;
    if (saved > 0) windows.push_back({std::move(dot), time.ring, saved});
  }
  return windows;
}

// No more time than without windows.
void write_faster_windows(Module& module, const Hardware& hardware) {
  const StepEstimate before = estimate_step(module, hardware);
  std::vector<ChosenWindow> windows = faster_windows(module, hardware, before);
  std::ranges::stable_sort(windows, std::greater<>(), &ChosenWindow::saved_ps);
  for (; !windows.empty(); windows.resize(windows.size() / 2)) {
    Module changed = module;
    write_windows(changed, windows);
    if (estimate_step(changed, hardware).estimate_ps >= before.estimate_ps) continue;
    module = std::move(changed);
    return;
  }
}

void write_all_windows(Module& module, const Hardware& hardware) {
  std::vector<ChosenWindow> windows;
  WindowedTimes times(module, hardware);
  for (WindowedDot& dot : windowed_dots(module, true)) {
    const Ring ring = times.of(dot).ring;
    windows.push_back({std::move(dot), ring});
  }
  write_windows(module, windows);
}

void write_window(Module& local, Rewrite& rewrite, const ChosenWindow& window) {
  const WindowedDot& dot = window.dot;
  const OpId first = dot.products.front().op;
  const LocId loc = local.op(first).loc;
  const OpId origin = local.op(first).origin;
  const Cursor at = rewrite.before(dot.gathers ? first : dot.collective);
  const std::vector<ValueId> made = rewrite.insert(at, loc, [&](Builder& builder) {
    builder.set_loc(loc, origin);
    return build_windowed_dot(builder, local, dot, window_operands(local, dot), window.ring);
  });
  if (dot.gathers) {
    for (size_t k = 0; k < made.size(); ++k) {
      rewrite.hand_over(local.result(dot.products[k].op), made[k]);
      rewrite.erase(dot.products[k].op);
    }
    return;
  }
  rewrite.hand_over(local.result(dot.collective), made[0]);
  rewrite.erase(dot.collective);
  for (const OpId op : dot.between) rewrite.erase(op);
  rewrite.erase(first);
}

void erase_unread(Module& local, Rewrite& rewrite, const WindowedDot& dot) {
  std::vector<OpId> ops = dot.between;
  ops.push_back(dot.collective);
  for (const OpId op : ops) {
    if (!rewrite.is_erased(op) && local.uses(local.result(op)).empty()) rewrite.erase(op);
  }
}

}  // namespace

void write_windows(Module& local, std::span<const ChosenWindow> windows) {
  Rewrite rewrite(local);
  const auto is_gone = [&](OpId op) { return rewrite.is_erased(op); };
  for (const ChosenWindow& window : windows) {
    const WindowedDot& dot = window.dot;
    if (is_gone(dot.collective) || std::ranges::any_of(dot.products, is_gone, &WindowedDot::Product::op)) continue;
    write_window(local, rewrite, window);
  }
  // A gather may have been in several windows.
  for (const ChosenWindow& window : windows) {
    if (window.dot.gathers) erase_unread(local, rewrite, window.dot);
  }
}

Module window_einsums(Module module, PassContext& context) {
  const WindowedEinsum wanted = context.options.windowed_einsum;
  if (wanted != WindowedEinsum::kTime && wanted != WindowedEinsum::kAlways) return module;
  const HardwarePtr hardware = hardware_called(context.options.hardware);
  wanted == WindowedEinsum::kTime ? write_faster_windows(module, *hardware) : write_all_windows(module, *hardware);
  return module;
}

}  // namespace shardwise
