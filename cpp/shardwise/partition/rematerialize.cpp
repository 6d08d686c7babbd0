// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/rematerialize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/memory/made_stacks.h"
#include "shardwise/choice/memory/memory_plan.h"
#include "shardwise/choice/memory/read_peak.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/partition/repeated_values.h"
#include "shardwise/partition/rows_in_trips.h"
#include "shardwise/partition/window_at_peak.h"

namespace shardwise {
namespace {

// A round that moves the peak elsewhere may lower it little. The number only bounds the time.
constexpr int kMostRounds = 16, kMostWithoutGain = 2;
constexpr int64_t kSegments[] = {1, 48, 16, 6};
constexpr int64_t kTightened[] = {8, 7, 6, 5, 4, 2, 0};  // eighths of the limit
constexpr int64_t kGradual[] = {4, 8, 16, 2};            // a part of the peak
// Small graphs are solved exactly, or nearly so. In a large one, a single value is a small step of the hull.
constexpr size_t kSmall = 300;
constexpr SaveEffort kEffortOfSmall{.branches = 60, .tolerance = 0.001},
    kEffortOfLarge{.branches = 0, .tolerance = 0.001};

// In a unit that suits: "42.57 KiB". Two sizes that differ little must not read alike.
std::string bytes_text(int64_t bytes) {
  if (bytes < 10 * 1024) return str(bytes, " bytes");
  const std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double count = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; count >= 1024 && unit + 1 < std::size(units); ++unit) count /= 1024;
  return str(std::round(count * 100) / 100, " ", units[unit]);
}

TypeId global_type(const Module& module, ValueId value) {
  const TypeId global = module.part(value).type;
  return global ? global : module.value(value).type;
}

void add_rows(const Module& module, const PeakValues& peak, const Saved& saved, std::vector<RepeatedRow>& rows) {
  for (uint32_t v = 0; v < peak.nodes.size(); ++v) {
    const SavedNode& node = peak.nodes[v];
    const bool is_dropped = saved.is_repeated[v],
               is_new = saved.is_kept[v] && !node.is_saved && peak.values[v].bytes > 0;
    const bool is_counted = is_dropped ? node.is_saved || peak.values[v].ps > 0 : is_new;
    const OpId op = module.value(node.value).op;
    if (!is_counted || !op) continue;
    const int64_t freed = is_new ? -peak.values[v].bytes : (node.is_saved ? peak.values[v].bytes : 0);
    rows.push_back({.loc = module.op(op).loc,
                    .op = OpView(module, op).name(),
                    .type = global_type(module, node.value),
                    .is_transfer = module.op(op).def->traits.collective != CollectiveKind::kNone,
                    .bytes = freed,
                    .ps = is_dropped ? peak.values[v].ps : 0});
  }
}

void add_kept(const Module& module, const PeakValues& peak, const Saved& saved, std::vector<KeptValue>& kept) {
  for (uint32_t v = 0; v < peak.nodes.size(); ++v) {
    const OpId op = module.value(peak.nodes[v].value).op;
    if (!saved.is_kept[v] || peak.values[v].bytes == 0 || !op) continue;
    const KeptValue found{OpView(module, op).name(), global_type(module, peak.nodes[v].value)};
    if (std::ranges::find(kept, found) == kept.end()) kept.push_back(found);
  }
}

class Rematerializer {
 public:
  explicit Rematerializer(const PassContext& context)
      : limit_(context.options.memory_limit),
        donated_(context.options.donated),
        hardware_(hardware_called(context.options.hardware)),
        may_window_(context.options.windowed_einsum != WindowedEinsum::kNever),
        poll_(context.poll) {}

  // What is computed again behind one peak is alive at the next one. So what runs before it is cut into segments, fewer and
  // fewer, and the limit is tightened where that does not help. The plan that takes the least time is taken.
  MemoryPlan run(Module& module) {
    MemoryPlan plan{.limit_bytes = limit_};
    plan.before_bytes = plan.after_bytes = live_walk(module, donated_).use.peak_bytes;
    if (plan.before_bytes <= limit_) return plan;
    std::optional<Attempt> best = within(module, plan.after_bytes);
    if (!best) return plan;
    module = std::move(best->module);
    plan.after_bytes = best->peak;
    plan.rows = std::move(best->rows);
    plan.kept = std::move(best->kept);
    return plan;
  }

 private:
  struct Attempt {
    Module module;
    int64_t peak = 0;      // the least one, if it is above the limit
    int64_t bound_ps = 0;  // of the first peak: no plan takes less time
    int rounds = 0;
    std::vector<RepeatedRow> rows = {};
    std::vector<KeptValue> kept = {};
    int64_t ps() const {
      int64_t sum = 0;
      for (const RepeatedRow& row : rows) sum = saturated_sum(sum, row.ps);
      return sum;
    }
  };

  // To what a round lowers a peak: to some bytes, or by a part of it.
  struct Aim {
    int64_t bytes = 0, part = 0;
    int64_t of(int64_t peak) const { return part == 0 ? bytes : peak - peak / part; }
  };

  // An attempt may write these besides copies.
  struct Means {
    bool rows_in_trips = false, windows = false;
  };

  // None if the limit cannot be kept; `smallest` is then one that can. Windows only where it cannot be kept without them.
  std::optional<Attempt> within(Module& module, int64_t& smallest) const {
    std::optional<Attempt> best = within(module, {}, smallest);
    if (has_made_stack(module)) {
      std::optional<Attempt> other = within(module, {.rows_in_trips = true}, smallest);
      if (other && (!best || other->ps() < best->ps())) best = std::move(other);
    }
    return best || !may_window_ ? std::move(best) : within(module, {.rows_in_trips = true, .windows = true}, smallest);
  }

  bool has_made_stack(Module& module) const {
    return !made_stacks_at_peak(module, live_walk(module, donated_), *hardware_).empty();
  }

  std::optional<Attempt> within(const Module& module, Means means, int64_t& smallest) const {
    std::optional<Attempt> best;
    const auto attempt_all = [&](Aim aim) {
      for (const int64_t segments : kSegments) {
        if (best && is_good(*best)) return;
        if (poll_) poll_();
        Attempt attempt = lower(module, aim, segments, means);
        if (aim.part != 0) smallest = std::min(smallest, attempt.peak);
        if (attempt.peak <= limit_ && (!best || attempt.ps() < best->ps())) best = std::move(attempt);
      }
    };
    for (const int64_t eighths : kTightened) attempt_all({.bytes = limit_ / 8 * eighths});
    // To compute all that again at once may only move the peak. Steps that do not depend on the limit find what they
    // find for another one.
    for (const int64_t part : kGradual) {
      if (!best) attempt_all({.part = part});
    }
    return best;
  }

  // No plan takes less than its bound.
  static bool is_good(const Attempt& attempt) { return attempt.ps() <= attempt.bound_ps + attempt.bound_ps / 64; }

  // Lowers one peak after the other towards the aim, or as far as it goes.
  Attempt lower(const Module& module, Aim aim, int64_t segments, Means means) const {
    Attempt made{.module = module};
    LiveWalk walk = live_walk(made.module, donated_);
    made.peak = walk.use.peak_bytes;
    for (int without_gain = 0; walk.use.peak_bytes > limit_;) {
      // There are only so many stacks and products, so that these are no rounds.
      const bool is_loop = (means.rows_in_trips && add_row(made, make_rows_in_trips(made.module, walk, *hardware_))) ||
                           (means.windows && add_row(made, window_at_peak(made.module, walk, *hardware_)));
      if (!is_loop) {
        if (made.rounds == kMostRounds || without_gain == kMostWithoutGain) break;
        if (!lower_peak(made, walk, aim.of(walk.use.peak_bytes), segments)) break;
        ++made.rounds;
      }
      walk = live_walk(made.module, donated_);
      if (!is_loop) without_gain = walk.use.peak_bytes < made.peak ? 0 : without_gain + 1;
      made.peak = std::min(made.peak, walk.use.peak_bytes);
    }
    return made;
  }

  static bool add_row(Attempt& made, const std::optional<RepeatedRow>& row) {
    if (row) made.rows.push_back(*row);
    return row.has_value();
  }

  // False if nothing at the peak can be computed again.
  bool lower_peak(Attempt& made, const LiveWalk& walk, int64_t aim, int64_t segments) const {
    const LiveSteps steps(made.module);
    const PeakValues peak = peak_values(made.module, steps, walk, *hardware_, donated_, segments);
    if (peak.nodes.empty()) return false;
    const int64_t left = std::max<int64_t>(peak.saved_bytes - (walk.use.peak_bytes - aim), 0);
    const SavedWithin found =
        save_within(peak.values, left, peak.nodes.size() <= kSmall ? kEffortOfSmall : kEffortOfLarge);
    if (found.saved.is_kept.empty() || found.saved.bytes >= peak.saved_bytes) return false;
    if (made.rounds == 0) made.bound_ps = found.bound_ps;
    add_rows(made.module, peak, found.saved, made.rows);
    add_kept(made.module, peak, found.saved, made.kept);
    write_repeated_values(made.module, steps, peak, found.saved);
    return true;
  }

  const int64_t limit_;
  const std::vector<size_t> donated_;
  const HardwarePtr hardware_;
  const bool may_window_;
  const std::function<void()> poll_;
};

[[noreturn]] void fail_with(const MemoryPlan& plan) {
  fail<OutOfMemoryError>(
      "compile", str("the program must fit in memory_limit, ", bytes_text(plan.limit_bytes), ", on each device"),
      str("a peak of ", bytes_text(plan.after_bytes), " at least, ", bytes_text(plan.before_bytes),
          " without computing anything again"),
      "shard more tensors, donate arguments, or raise the limit; Program.memory() without a limit says what is alive");
}

}  // namespace

MemoryPlan fit_in_memory(Module& module, const PassContext& context) { return Rematerializer(context).run(module); }

Module rematerialize(Module module, PassContext& context) {
  if (context.options.memory_limit == 0) return module;
  const MemoryPlan plan = fit_in_memory(module, context);
  if (plan.after_bytes > plan.limit_bytes) fail_with(plan);
  context.counters.add("rematerialize.rows", std::ssize(plan.rows));
  context.memory = std::make_shared<const MemoryPlan>(plan);
  return module;
}

}  // namespace shardwise
