// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/peak_values.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "shardwise/analysis/executions.h"
#include "shardwise/base/quantity.h"
#include "shardwise/choice/memory/segments.h"
#include "shardwise/choice/memory/step_price.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/control.h"

namespace shardwise {
namespace {

constexpr uint32_t kNoNode = ~uint32_t{0};

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

class PeakReader {
 public:
  PeakReader(const Module& module, const LiveSteps& steps, const LiveWalk& walk, const Hardware& hardware,
             int64_t segments)
      : segments_(segments),
        module_(module),
        ranges_(steps.ranges),
        walk_(walk),
        hardware_(hardware),
        executions_(module),
        effects_(module, UnusedConstraints::kRemove),
        node_of_(module.value_count(), kNoNode) {}

  PeakValues read(std::span<const size_t> donated) {
    const OpId peak = module_.value(walk_.use.peak_value).op;
    if (!peak) return {};
    found_.levels = levels_around(module_, ranges_, peak);
    for (uint32_t i = 0; i < found_.levels.size(); ++i) read_level(i, donated);
    for (uint32_t v = 0; v < found_.nodes.size(); ++v) {
      if (found_.nodes[v].is_saved) {
        found_.saved_bytes = saturated_sum(found_.saved_bytes, found_.values[v].bytes);
      }
    }
    return std::move(found_);
  }

 private:
  using NodeOf = std::unordered_map<ValueId, uint32_t>;
  NodeOf& rows() { return found_.levels[level_].rows; }
  const NodeOf& rows() const { return found_.levels[level_].rows; }
  NodeOf& stacks() { return found_.levels[level_].stacks; }
  const NodeOf& stacks() const { return found_.levels[level_].stacks; }

  struct Uses {
    std::unordered_set<ValueId> at, late;  // homes that the step at the peak reads, and those that later ones do
  };

  void read_level(uint32_t level, std::span<const size_t> donated) {
    level_ = level;
    const PeakLevel& here = found_.levels[level];
    const LiveBlock& block = ranges_.of(here.region);
    find_readers(block, here.at);
    const Uses uses = find_uses(block, here.at);
    across_ = values_across_borders({.steps = std::span(block.steps).first(here.at),
                                     .bytes = [&](ValueId value) { return module_.type(value).byte_quantity(); },
                                     .memory_of = [&](ValueId value) { return memory_of(value); },
                                     .is_saved = [&](ValueId value) { return uses.late.contains(value); }},
                                    segments_);
    add_arguments(here.region, uses, donated);
    for (size_t i = 0; i < here.at; ++i) add_step(block.steps[i], uses);
    for (size_t i = 0; i <= here.at; ++i) {
      if (is_maker(block.steps[i].op)) add_rows(block.steps[i]);
    }
    need_rows(block, here.at);
  }

  // The kinds of the scans that read, at the peak or after it, rows of one in front of them.
  void find_readers(const LiveBlock& block, size_t at) {
    kinds_.clear();
    for (size_t i = at; i < block.steps.size(); ++i) {
      const std::optional<ScanRows> rows = scan_rows(module_, block.steps[i].op);
      if (!rows || std::ranges::find(kinds_, *rows) != kinds_.end()) continue;
      const LoopParts parts = loop_parts(OpView(module_, block.steps[i].op));
      const bool reads = std::ranges::any_of(parts.inputs, [&](const LoopParts::Input& input) {
        const OpId maker = module_.value(input.stack).op;
        return is_aligned(input) && maker && scan_rows(module_, maker) == rows && is_output(maker, input.stack);
      });
      if (reads) kinds_.push_back(*rows);
    }
  }

  bool is_maker(OpId op) const {
    const std::optional<ScanRows> rows = scan_rows(module_, op);
    return rows && std::ranges::find(kinds_, *rows) != kinds_.end();
  }

  // What a step reads other than as aligned rows.
  void visit_whole_reads(const LiveStep& step, const std::function<void(ValueId)>& visit) const {
    size_t next = 0;
    if (scan_rows(module_, step.op)) {
      const LoopParts parts = loop_parts(OpView(module_, step.op));
      for (const LoopParts::Carry& carry : parts.carries) visit(ranges_.home(carry.entry));
      for (const LoopParts::Input& input : parts.inputs) {
        if (!is_aligned(input)) visit(ranges_.home(input.stack));
        if (input.border) visit(ranges_.home(input.border));
        // An aligned stack of another op is read like any operand.
        const OpId maker = module_.value(input.stack).op;
        const bool is_of_scan = maker && is_output(maker, input.stack) && is_same_kind(maker, step.op);
        if (is_aligned(input) && !is_of_scan) visit(ranges_.home(input.stack));
        next += input.border ? 2 : 1;
      }
      next += parts.carries.size();
    }
    for (; next < step.inputs.size(); ++next) visit(step.inputs[next]);
  }

  bool is_same_kind(OpId a, OpId b) const { return scan_rows(module_, a) == scan_rows(module_, b); }

  bool is_output(OpId scan, ValueId value) const {
    if (!scan_rows(module_, scan)) return false;
    const LoopParts parts = loop_parts(OpView(module_, scan));
    return std::ranges::find(parts.outputs, value, &LoopParts::Output::stack) != parts.outputs.end();
  }

  Uses find_uses(const LiveBlock& block, size_t at) const {
    Uses uses;
    visit_whole_reads(block.steps[at], [&](ValueId home) { uses.at.insert(home); });
    for (size_t i = at + 1; i < block.steps.size(); ++i) {
      visit_whole_reads(block.steps[i], [&](ValueId home) { uses.late.insert(home); });
    }
    uses.late.insert(block.results.begin(), block.results.end());
    return uses;
  }

  uint32_t add(const SavedNode& node, SavedValue value) {
    found_.nodes.push_back(node);
    found_.values.push_back(std::move(value));
    return static_cast<uint32_t>(found_.nodes.size() - 1);
  }

  void need_also(std::vector<uint32_t>& operands, ValueId home) const {
    const uint32_t node = node_of_[home.index];
    if (node != kNoNode && std::ranges::find(operands, node) == operands.end()) operands.push_back(node);
  }

  // The caller holds what it does not donate.
  void add_arguments(RegionId region, const Uses& uses, std::span<const size_t> donated) {
    const std::vector<ValueId>& arguments = module_.region(region).arguments;
    const bool is_main = region == module_.main().body;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ValueId home = ranges_.home(arguments[i]);
      const bool is_held = is_main && std::ranges::find(donated, i) == donated.end();
      if (is_held || uses.at.contains(home)) continue;
      const bool is_late = uses.late.contains(home);
      node_of_[home.index] =
          add({.kind = SavedKind::kArgument, .level = level_, .value = home, .is_saved = is_late},
              {.bytes = module_.type(home).byte_quantity(), .is_needed = is_late, .can_repeat = false});
    }
  }

  bool can_repeat(OpId op) { return !effects_(op) && !module_.op(op).def->traits.side_effect && !is_maker(op); }

  int64_t price_of(const LiveStep& step) const {
    return executions_.of(step.op).times(step_ps(module_, ranges_, step, hardware_));
  }

  void add_step(const LiveStep& step, const Uses& uses) {
    const OpView op(module_, step.op);
    if (op.def().traits.constant_like && step.chain == nullptr) return;
    std::vector<uint32_t> operands;
    for (const ValueId input : step.inputs) need_also(operands, input);
    int64_t ps = price_of(step);
    if (step.outputs.size() > 1) {
      const uint32_t whole = add(
          {.kind = SavedKind::kStepItself, .level = level_, .value = step.outputs[0]},
          {.ps = ps, .can_be_kept = false, .can_repeat = can_repeat(step.op), .operands = std::exchange(operands, {})});
      operands = {whole};
      ps = 0;
    }
    for (const ValueId output : step.outputs) {
      // The rows of its stack are nodes of their own.
      if (uses.at.contains(output) || (is_maker(step.op) && is_output(step.op, output))) continue;
      const bool is_view = static_cast<bool>(walk_.lies_in[output.index]);
      const bool is_late = uses.late.contains(output);
      if (is_view && is_late) save_memory_of(output);
      node_of_[output.index] =
          add({.level = level_, .value = output, .is_saved = is_late && !is_view, .is_view = is_view},
              {.bytes = is_view ? 0 : module_.type(output).byte_quantity(),
               .ps = is_view ? 0 : ps,
               .is_needed = is_late,
               .can_be_kept = !is_view,
               .can_repeat = can_repeat(step.op) && !across_.contains(output),
               .operands = operands});
    }
  }

  // What a view is of is alive where the view is.
  void save_memory_of(ValueId view) {
    const uint32_t node = node_of_[memory_of(view).index];
    if (node != kNoNode) found_.nodes[node].is_saved = true;
  }

  // Of a view, and of a view of one, the value of its memory.
  ValueId memory_of(ValueId value) const {
    while (walk_.lies_in[value.index]) value = walk_.lies_in[value.index];
    return value;
  }

  // The values of a scan's body, each as a stack of rows.
  void add_rows(const LiveStep& scan) {
    const LoopParts parts = loop_parts(OpView(module_, scan.op));
    const int64_t trips = scan_order(OpView(module_, scan.op))->trips;
    for (const LoopParts::Input& input : parts.inputs) add_row_of_stack(scan.op, input, trips);
    for (const LoopParts::Carry& carry : parts.carries) {
      rows()[carry.argument] = add_row(scan.op, carry.argument, trips, {.can_repeat = false});
    }
    for (const LiveStep& step : ranges_.of(parts.body).steps) add_row_step(scan.op, parts, step, trips);
    for (const LoopParts::Output& output : parts.outputs) {
      const uint32_t node = row_node(parts, output.row);
      if (node != kNoNode) stacks()[output.stack] = node;
    }
  }

  uint32_t add_row(OpId scan, ValueId value, int64_t trips, SavedValue how) {
    how.bytes = saturated_product(module_.type(value).byte_quantity(), trips);
    return add({.kind = SavedKind::kRow, .level = level_, .value = value, .scan = scan}, std::move(how));
  }

  void add_row_of_stack(OpId scan, const LoopParts::Input& input, int64_t trips) {
    const OpId maker = module_.value(input.stack).op;
    const bool is_of_scan = maker && stacks().contains(input.stack);
    if (is_of_scan && is_aligned(input)) {
      rows()[input.row] = stacks().at(input.stack);
      return;
    }
    if (is_of_scan) {
      rows()[input.row] = add_row(scan, input.row, trips, {.can_repeat = false});
      return;
    }
    SavedValue how{.can_be_kept = false};
    need_also(how.operands, ranges_.home(input.stack));
    if (input.border) need_also(how.operands, ranges_.home(input.border));
    rows()[input.row] =
        add({.kind = SavedKind::kRowOfStack, .level = level_, .value = input.row, .scan = scan, .input = input},
            std::move(how));
  }

  // The node of a value that the body reads; none for one that is there anyway.
  uint32_t row_node(const LoopParts& parts, ValueId value) const {
    const auto row = rows().find(value);
    if (row != rows().end()) return row->second;
    for (const LoopParts::Carry& carry : parts.carries) {
      // The runtime knows a carry by its result (live_ranges.h).
      if (carry.result == value) return rows().at(carry.argument);
    }
    return node_of_[value.index];
  }

  void add_row_step(OpId scan, const LoopParts& parts, const LiveStep& step, int64_t trips) {
    const OpView op(module_, step.op);
    if (op.def().traits.constant_like && step.chain == nullptr) return;
    SavedValue how{.ps = price_of(step), .can_repeat = can_repeat(step.op)};
    for (const ValueId input : step.inputs) {
      const uint32_t node = row_node(parts, input);
      if (node != kNoNode && std::ranges::find(how.operands, node) == how.operands.end()) how.operands.push_back(node);
    }
    if (step.outputs.size() > 1) {
      how.can_be_kept = false;
      const uint32_t whole = add({.kind = SavedKind::kStepItself, .level = level_, .value = step.outputs[0]}, how);
      how = {.can_repeat = how.can_repeat, .operands = {whole}};
    }
    for (const ValueId output : step.outputs) {
      const bool is_view = static_cast<bool>(walk_.lies_in[output.index]);
      SavedValue own = how;
      if (is_view) own.ps = 0;
      rows()[output] = add_row(scan, output, trips, std::move(own));
      found_.nodes.back().is_view = is_view;
    }
  }

  // Rows that scans read at the peak or after it. A stack that is read as a whole, too, is there anyway.
  void need_rows(const LiveBlock& block, size_t at) {
    const Uses uses = find_uses(block, at);
    for (const auto& [stack, node] : stacks()) {
      if (!uses.at.contains(stack) && !uses.late.contains(stack)) continue;
      found_.values[node].bytes = 0;
      found_.values[node].is_needed = true;
    }
    for (size_t i = at; i < block.steps.size(); ++i) {
      if (!scan_rows(module_, block.steps[i].op)) continue;
      for (const LoopParts::Input& input : loop_parts(OpView(module_, block.steps[i].op)).inputs) {
        const auto known = stacks().find(input.stack);
        const bool is_node = is_aligned(input) && known != stacks().end();
        if (!is_node || !is_same_kind(module_.value(input.stack).op, block.steps[i].op)) continue;
        found_.values[known->second].is_needed = true;
        found_.nodes[known->second].is_saved = true;
      }
    }
  }

  const int64_t segments_;
  const Module& module_;
  const LiveRanges& ranges_;
  const LiveWalk& walk_;
  const Hardware& hardware_;
  const ModuleExecutions executions_;
  Effects effects_;
  PeakValues found_;
  uint32_t level_ = 0;
  std::unordered_set<ValueId> across_;  // the borders of segments
  std::vector<ScanRows> kinds_;         // of the level's scans from the peak on
  std::vector<uint32_t> node_of_;       // by home
};

}  // namespace

LiveSteps::LiveSteps(const Module& module)
    : chains(elementwise_chains(module, std::vector<DigitSet>(module.value_count(), 0))), ranges(module, chains) {}

std::optional<ScanRows> scan_rows(const Module& module, OpId op) {
  if (module.op(op).def->regions != Regions::kLoop) return std::nullopt;
  const std::optional<ScanOrder> order = scan_order(OpView(module, op));
  if (!order) return std::nullopt;
  return ScanRows{order->dimension, order->trips};
}

PeakValues peak_values(const Module& local, const LiveSteps& steps, const LiveWalk& walk, const Hardware& hardware,
                       std::span<const size_t> donated, int64_t segments) {
  return PeakReader(local, steps, walk, hardware, segments).read(donated);
}

}  // namespace shardwise
