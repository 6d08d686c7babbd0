// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/window_einsums.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/step_estimate.h"
#include "shardwise/base/quantity.h"
#include "shardwise/choice/windows/windowed_times.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/rewrite/rewrite.h"

namespace shardwise {
namespace {

// Each one is estimated with the whole program.
constexpr size_t kMostClasses = 32;

// How long the compute stream waits for each transfer, in one execution.
std::unordered_map<OpId, int64_t> exposed_times(const StepEstimate& estimate) {
  std::unordered_map<OpId, int64_t> exposed;
  for (const EstimateRow& row : estimate.rows) {
    const int64_t runs = row.executions.times(1);
    if (row.is_transfer && runs > 0) exposed[row.op] = static_cast<int64_t>(row.exposed_ps / static_cast<double>(runs));
  }
  return exposed;
}

// Equal windows, such as those of equal layers, which are taken together.
struct WindowClass {
  std::vector<ChosenWindow> windows = {};
  int64_t saved_ps = 0;
};

// Those that would take less time if nothing else ran beside them, the best first.
std::vector<WindowClass> faster_windows(Module& module, const Hardware& hardware, const StepEstimate& estimate) {
  WindowedTimes times(module, hardware);
  const std::unordered_map<OpId, int64_t> exposed = exposed_times(estimate);
  const ModuleExecutions executions(module);
  std::vector<WindowClass> classes;
  std::unordered_map<const WindowedTime*, size_t> class_of;
  for (WindowedDot& dot : windowed_dots(module, false)) {
    const auto waited = exposed.find(dot.collective);
    if (waited == exposed.end() || waited->second == 0) continue;
    const WindowedTime& time = times.of(dot);
    const int64_t saved = waited->second + time.products_ps - time.loop_ps;
    if (saved <= 0) continue;
    const auto [place, is_new] = class_of.try_emplace(&time, classes.size());
    if (is_new) classes.emplace_back();
    WindowClass& equal = classes[place->second];
    equal.saved_ps = saturated_sum(equal.saved_ps, executions.of(dot.collective).times(saved));
    equal.windows.push_back({std::move(dot), time.ring});
  }
  std::ranges::stable_sort(classes, std::greater<>(), &WindowClass::saved_ps);
  if (classes.size() > kMostClasses) classes.resize(kMostClasses);
  return classes;
}

// Each class stays if the program then takes less time.
void write_faster_windows(Module& module, const Hardware& hardware) {
  const StepEstimate before = estimate_step(module, hardware);
  int64_t least = before.estimate_ps;
  std::vector<ChosenWindow> taken;
  Module best = module;
  for (WindowClass& equal : faster_windows(module, hardware, before)) {
    const size_t known = taken.size();
    std::ranges::move(equal.windows, std::back_inserter(taken));
    Module changed = module;
    write_windows(changed, taken);
    const int64_t ps = estimate_step(changed, hardware).estimate_ps;
    if (ps < least) {
      least = ps;
      best = std::move(changed);
    } else {
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(known), taken.end());
    }
  }
  module = std::move(best);
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
