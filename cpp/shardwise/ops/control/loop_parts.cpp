// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

LoopParts parts_of_scan(const OpView& scan) {
  const Region& body = scan.module().region(scan.regions()[0]);
  const Dims& operands = scan.attrs().get<NarrowIntArray>(kScanOperands).values;
  const auto inputs = static_cast<size_t>(operands[0]);
  const auto outputs = static_cast<size_t>(scan.attrs().get<NarrowIntArray>(kScanResults).values[0]);
  const size_t borders = operands.size() == 3 ? static_cast<size_t>(operands[1]) : 0;
  const ScanOrder order = read_scan_order(scan);
  LoopParts parts{.body = scan.regions()[0]};
  size_t next = inputs;
  for (size_t i = 0; i < inputs; ++i) {
    LoopParts::Input input{scan.operand(i), body.arguments[i]};
    if (const auto* offsets = scan.attrs().find<IntArray>(kScanOffsets)) input.offset = (*offsets)[i];
    const int64_t rows = scan.operand_type(i).shape[static_cast<size_t>(order.dimension)];
    const LackingRow lacks = lacking_row(input.offset, order.trips, rows);
    // Borders are in the order of the inputs that lack a row.
    if (lacks.first || lacks.last) input.border = scan.operand(next++);
    parts.inputs.push_back(input);
  }
  for (size_t i = 0; i < outputs; ++i) parts.outputs.push_back({body.results[i], scan.result(i)});
  for (size_t i = 0; inputs + borders + i < scan.operand_count(); ++i) {
    parts.carries.push_back({scan.operand(inputs + borders + i), body.arguments[inputs + i], body.results[outputs + i],
                             scan.result(outputs + i)});
  }
  return parts;
}

LoopParts parts_of_while(const OpView& loop) {
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

// A loop without a condition takes its rows, one after the other.
bool is_scan(const OpView& loop) { return loop.regions().size() == 1; }

}  // namespace

LoopParts loop_parts(const OpView& loop) { return is_scan(loop) ? parts_of_scan(loop) : parts_of_while(loop); }

std::optional<ScanOrder> scan_order(const OpView& loop) {
  return is_scan(loop) ? std::optional(read_scan_order(loop)) : std::nullopt;
}

}  // namespace shardwise
