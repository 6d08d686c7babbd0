// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/read_peak.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "shardwise/base/quantity.h"
#include "shardwise/choice/memory/aligned_scans.h"
#include "shardwise/choice/memory/saved_nodes.h"
#include "shardwise/choice/memory/saved_rows.h"
#include "shardwise/choice/memory/segments.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

// The step of a block that an op belongs to, itself or by its chain.
std::optional<size_t> step_of(const LiveBlock& block, OpId op) {
  for (size_t i = 0; i < block.steps.size(); ++i) {
    const LiveStep& step = block.steps[i];
    const bool is_in_chain = step.chain != nullptr && std::ranges::find(step.chain->ops, op) != step.chain->ops.end();
    if (step.op == op || is_in_chain) return i;
  }
  return std::nullopt;
}

// A call of the function whose body the region is.
OpId call_of(const Module& module, RegionId body) {
  OpId found;
  walk(module, [&](OpId op) {
    if (!found && is_call(module, op) && called_function(module, op).body == body) found = op;
  });
  return found;
}

std::vector<PeakLevel> levels_around(const Module& module, const LiveRanges& ranges, OpId op) {
  std::vector<PeakLevel> levels;
  while (op) {
    const RegionId region = module.op(op).parent;
    const std::optional<size_t> at = step_of(ranges.of(region), op);
    if (!at) return {};
    levels.push_back({.region = region, .at = *at});
    const bool is_function = !module.region(region).op;
    if (is_function && region == module.main().body) break;
    op = is_function ? call_of(module, region) : module.region(region).op;
  }
  std::ranges::reverse(levels);
  return levels;
}

// One region around the peak.
class LevelReader {
 public:
  LevelReader(SavedNodes& nodes, uint32_t level, int64_t segments)
      : nodes_(nodes),
        level_(level),
        at_(nodes.found.levels[level].at),
        region_(nodes.found.levels[level].region),
        block_(nodes.ranges().of(region_)),
        courses_(aligned_courses(nodes.module(), block_, at_)),
        reads_(whole_reads(nodes.module(), nodes.ranges(), block_, at_)),
        across_(find_across(segments)) {}

  void read(std::span<const size_t> donated) {
    add_arguments(donated);
    for (size_t i = 0; i < at_; ++i) add_step(block_.steps[i]);
    SavedRows rows(nodes_, level_);
    for (size_t i = 0; i <= at_; ++i) {
      if (is_maker(block_.steps[i].op)) rows.add_scan(block_.steps[i]);
    }
    rows.need(block_, at_, reads_);
  }

 private:
  std::unordered_set<ValueId> find_across(int64_t segments) const {
    const SegmentedSteps before{.steps = std::span(block_.steps).first(at_),
                                .bytes = [&](ValueId value) { return nodes_.module().type(value).byte_quantity(); },
                                .memory_of = [&](ValueId value) { return nodes_.memory_of(value); },
                                .is_saved = [&](ValueId value) { return reads_.late.contains(value); }};
    return values_across_borders(before, segments);
  }

  // A scan whose rows another one reads behind the peak.
  bool is_maker(OpId op) const {
    const std::optional<RowCourse> course = row_course(nodes_.module(), op);
    return course && std::ranges::find(courses_, *course) != courses_.end();
  }

  // The caller holds what it does not donate.
  void add_arguments(std::span<const size_t> donated) {
    const std::vector<ValueId>& arguments = nodes_.module().region(region_).arguments;
    const bool is_main = region_ == nodes_.module().main().body;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ValueId home = nodes_.ranges().home(arguments[i]);
      const bool is_held = is_main && std::ranges::find(donated, i) == donated.end();
      if (is_held || reads_.at.contains(home)) continue;
      const bool is_late = reads_.late.contains(home);
      nodes_.of_home(home) =
          nodes_.add({.kind = SavedKind::kArgument, .level = level_, .value = home, .is_saved = is_late},
                     {.bytes = nodes_.module().type(home).byte_quantity(), .is_needed = is_late, .can_repeat = false});
    }
  }

  void add_step(const LiveStep& step) {
    if (nodes_.is_constant(step)) return;
    std::vector<uint32_t> operands;
    for (const ValueId input : step.inputs) SavedNodes::need(operands, nodes_.of_home(input));
    SavedValue how = nodes_.of_step(step, level_, std::move(operands));
    // Its rows are nodes of their own: it is not run once more as a whole.
    how.can_repeat = how.can_repeat && !is_maker(step.op);
    for (const ValueId output : step.outputs) {
      const bool is_stack = is_maker(step.op) && makes_stack(nodes_.module(), step.op, output);
      if (!reads_.at.contains(output) && !is_stack) add_value(output, how);
    }
  }

  void add_value(ValueId value, SavedValue how) {
    const bool is_view = nodes_.is_view(value), is_late = reads_.late.contains(value);
    how.is_needed = is_late;
    how.can_repeat = how.can_repeat && !across_.contains(value);
    if (is_view) {
      // It has no memory of its own, and what it is of is alive where it is.
      how.ps = 0;
      how.can_be_kept = false;
      const uint32_t whole = nodes_.of_home(nodes_.memory_of(value));
      if (is_late && whole != SavedNodes::kNone) nodes_.found.nodes[whole].is_saved = true;
    } else {
      how.bytes = nodes_.module().type(value).byte_quantity();
    }
    nodes_.of_home(value) = nodes_.add(
        {.level = level_, .value = value, .is_saved = is_late && !is_view, .is_view = is_view}, std::move(how));
  }

  SavedNodes& nodes_;
  const uint32_t level_;
  const size_t at_;
  const RegionId region_;
  const LiveBlock& block_;
  const std::vector<RowCourse> courses_;  // of scans that meet behind the peak
  const WholeReads reads_;
  const std::unordered_set<ValueId> across_;  // the borders of segments
};

}  // namespace

PeakValues peak_values(const Module& local, const LiveSteps& steps, const LiveWalk& walk, const Hardware& hardware,
                       std::span<const size_t> donated, int64_t segments) {
  const OpId peak = local.value(walk.use.peak_value).op;
  if (!peak) return {};
  SavedNodes nodes(local, steps.ranges, walk, hardware);
  nodes.found.levels = levels_around(local, steps.ranges, peak);
  for (uint32_t i = 0; i < nodes.found.levels.size(); ++i) LevelReader(nodes, i, segments).read(donated);
  PeakValues found = std::move(nodes.found);
  for (uint32_t v = 0; v < found.nodes.size(); ++v) {
    if (found.nodes[v].is_saved) found.saved_bytes = saturated_sum(found.saved_bytes, found.values[v].bytes);
  }
  return found;
}

}  // namespace shardwise
