// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/rematerialize.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/memory/memory_plan.h"
#include "shardwise/choice/memory/peak_values.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/partition/repeated_values.h"

namespace shardwise {
namespace {

// A round that moves the peak elsewhere may lower it little. The number only bounds the time.
constexpr int kMostRounds = 64, kMostWithoutGain = 3;

// By bytes of a device, with a unit that suits.
std::string bytes_text(int64_t bytes) {
  if (bytes < 10 * 1024) return str(bytes, " bytes");
  if (bytes < int64_t{10} << 20) return str(bytes / 1024, " KiB");
  if (bytes < int64_t{10} << 30) return str(bytes >> 20, " MiB");
  return str(bytes >> 30, " GiB");
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
                    .origin = module.op(op).origin,
                    .is_gathered = module.op(op).def->traits.collective != CollectiveKind::kNone,
                    .bytes = freed,
                    .ps = is_dropped ? peak.values[v].ps : 0});
  }
}

class Rematerializer {
 public:
  explicit Rematerializer(const CompileOptions& options)
      : limit_(options.memory_limit), donated_(options.donated), hardware_(hardware_called(options.hardware)) {}

  // What is computed again behind one peak is alive at the next one, so that the limit is tightened in steps, until all is
  // dropped that can be. The plan that takes the least time is taken.
  MemoryPlan run(Module& module) {
    MemoryPlan plan{.limit_bytes = limit_};
    plan.before_bytes = plan.after_bytes = live_walk(module, donated_).use.peak_bytes;
    if (plan.before_bytes <= limit_) return plan;
    std::optional<Attempt> best;
    for (int64_t eighths = 8; eighths >= 0; --eighths) {
      Attempt attempt = lower(module, limit_ / 8 * eighths);
      plan.after_bytes = std::min(plan.after_bytes, attempt.peak);
      const bool is_one_round = attempt.rounds == 1;
      if (attempt.peak <= limit_ && (!best || attempt.ps() < best->ps())) best = std::move(attempt);
      // One peak alone is lowered in the least time.
      if (best && is_one_round) break;
    }
    if (!best) fail_with(plan);
    module = std::move(best->module);
    plan.after_bytes = best->peak;
    plan.rows = std::move(best->rows);
    return plan;
  }

 private:
  struct Attempt {
    Module module;
    int64_t peak = 0;  // the least one, if it is above the limit
    int rounds = 0;
    std::vector<RepeatedRow> rows = {};
    int64_t ps() const {
      int64_t sum = 0;
      for (const RepeatedRow& row : rows) sum = saturated_sum(sum, row.ps);
      return sum;
    }
  };

  // Lowers one peak after the other to `aim`, or as far as it goes.
  Attempt lower(const Module& module, int64_t aim) const {
    Attempt made{.module = module};
    LiveWalk walk = live_walk(made.module, donated_);
    made.peak = walk.use.peak_bytes;
    for (int without_gain = 0; walk.use.peak_bytes > limit_; ++made.rounds) {
      if (made.rounds == kMostRounds || without_gain == kMostWithoutGain) break;
      if (!lower_peak(made.module, walk, aim, made.rows)) break;
      walk = live_walk(made.module, donated_);
      without_gain = walk.use.peak_bytes < made.peak ? 0 : without_gain + 1;
      made.peak = std::min(made.peak, walk.use.peak_bytes);
    }
    return made;
  }

  // False if nothing at the peak can be computed again.
  bool lower_peak(Module& module, const LiveWalk& walk, int64_t aim, std::vector<RepeatedRow>& rows) const {
    const LiveSteps steps(module);
    const PeakValues peak = peak_values(module, steps, walk, *hardware_, donated_);
    if (peak.nodes.empty()) return false;
    const int64_t left = peak.saved_bytes - (walk.use.peak_bytes - aim);
    const SavedWithin found = save_within(peak.values, std::max<int64_t>(left, 0));
    if (found.saved.bytes >= peak.saved_bytes) return false;
    add_rows(module, peak, found.saved, rows);
    write_repeated_values(module, steps, peak, found.saved);
    return true;
  }

  [[noreturn]] void fail_with(const MemoryPlan& plan) const {
    fail<OutOfMemoryError>(
        "compile", str("the program must fit in memory_limit, ", bytes_text(limit_), ", on each device"),
        str("a peak of ", bytes_text(plan.after_bytes), " at least, ", bytes_text(plan.before_bytes),
            " without computing anything again"),
        "shard more tensors, donate arguments, or raise the limit; Program.memory() without a limit says what is alive");
  }

  const int64_t limit_;
  const std::vector<size_t> donated_;
  const HardwarePtr hardware_;
};

}  // namespace

Module rematerialize(Module module, PassContext& context) {
  if (context.options.memory_limit == 0) return module;
  const MemoryPlan plan = Rematerializer(context.options).run(module);
  context.counters.add("rematerialize.rows", std::ssize(plan.rows));
  context.memory = std::make_shared<const MemoryPlan>(plan);
  return module;
}

}  // namespace shardwise
