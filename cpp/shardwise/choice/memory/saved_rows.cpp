// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/saved_rows.h"

#include <utility>

#include "shardwise/base/quantity.h"

namespace shardwise {

void SavedRows::add_scan(const LiveStep& scan) {
  const OpView op(nodes_.module(), scan.op);
  const LoopParts parts = loop_parts(op);
  const int64_t trips = scan_order(op)->trips;
  for (const LoopParts::Input& input : parts.inputs) add_input(scan.op, input, trips);
  for (const LoopParts::Carry& carry : parts.carries) {
    here().rows[carry.argument] = add_row(scan.op, carry.argument, trips, {.can_repeat = false});
  }
  for (const LiveStep& step : nodes_.ranges().of(parts.body).steps) add_step(scan.op, parts, step, trips);
  for (const LoopParts::Output& output : parts.outputs) {
    const uint32_t node = node_of(parts, output.row);
    if (node != SavedNodes::kNone) here().stacks[output.stack] = node;
  }
}

uint32_t SavedRows::add_row(OpId scan, ValueId value, int64_t trips, SavedValue how) {
  how.bytes = saturated_product(nodes_.module().type(value).byte_quantity(), trips);
  return nodes_.add({.kind = SavedKind::kRow, .level = level_, .value = value, .scan = scan}, std::move(how));
}

void SavedRows::add_input(OpId scan, const LoopParts::Input& input, int64_t trips) {
  const auto stack = here().stacks.find(input.stack);
  if (stack != here().stacks.end()) {
    // The row of another trip is not there in the trips of another scan.
    here().rows[input.row] = reads_aligned(nodes_.module(), scan, input)
                                 ? stack->second
                                 : add_row(scan, input.row, trips, {.can_repeat = false});
    return;
  }
  SavedValue how{.can_be_kept = false};
  const LiveRanges& ranges = nodes_.ranges();
  SavedNodes::need(how.operands, nodes_.of_home(ranges.home(input.stack)));
  if (input.border) SavedNodes::need(how.operands, nodes_.of_home(ranges.home(input.border)));
  here().rows[input.row] =
      nodes_.add({.kind = SavedKind::kRowOfStack, .level = level_, .value = input.row, .scan = scan, .input = input},
                 std::move(how));
}

void SavedRows::add_step(OpId scan, const LoopParts& parts, const LiveStep& step, int64_t trips) {
  if (nodes_.is_constant(step)) return;
  std::vector<uint32_t> operands;
  for (const ValueId input : step.inputs) SavedNodes::need(operands, node_of(parts, input));
  const SavedValue how = nodes_.of_step(step, level_, std::move(operands));
  for (const ValueId output : step.outputs) {
    SavedValue own = how;
    const bool is_view = nodes_.is_view(output);
    if (is_view) own.ps = 0;
    here().rows[output] = add_row(scan, output, trips, std::move(own));
    nodes_.found.nodes.back().is_view = is_view;
  }
}

// The node of a value that the body reads; kNone for one that is there anyway.
uint32_t SavedRows::node_of(const LoopParts& parts, ValueId value) const {
  const auto row = here().rows.find(value);
  if (row != here().rows.end()) return row->second;
  for (const LoopParts::Carry& carry : parts.carries) {
    // The runtime knows a carry by its result (live_ranges.h).
    if (carry.result == value) return here().rows.at(carry.argument);
  }
  return nodes_.of_home(value);
}

void SavedRows::need(const LiveBlock& block, size_t at, const WholeReads& reads) {
  for (const auto& [stack, node] : here().stacks) {
    if (!reads.at.contains(stack) && !reads.late.contains(stack)) continue;
    nodes_.found.values[node].bytes = 0;
    nodes_.found.values[node].is_needed = true;
  }
  for (size_t i = at; i < block.steps.size(); ++i) {
    const OpId op = block.steps[i].op;
    if (!row_course(nodes_.module(), op)) continue;
    for (const LoopParts::Input& input : loop_parts(OpView(nodes_.module(), op)).inputs) {
      const auto known = here().stacks.find(input.stack);
      if (known == here().stacks.end() || !reads_aligned(nodes_.module(), op, input)) continue;
      nodes_.found.values[known->second].is_needed = true;
      nodes_.found.nodes[known->second].is_saved = true;
    }
  }
}

}  // namespace shardwise
