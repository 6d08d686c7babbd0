// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/open_loops.h"

#include <algorithm>

#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

bool OpenLoop::accumulates(size_t carry) const {
  return std::ranges::find(accumulators, carry, &Accumulator::carry) != accumulators.end();
}

const Accumulator* OpenLoop::accumulator_with(OpId id) const {
  for (const Accumulator& accumulator : accumulators) {
    if (std::ranges::find(accumulator.ops, id) != accumulator.ops.end()) return &accumulator;
  }
  return nullptr;
}

void OpenLoops::enter(const OpView& op, double trips, ProgramPlacements& placements) {
  OpenLoop loop{.op = op, .trips = trips, .accumulators = {}, .carries = {}, .addends = {}};
  // Nothing is ever unreduced in a program without a mesh.
  if (placements.mesh() != nullptr) loop.accumulators = find_accumulators(module_, linearity_, op);
  for (size_t i = 0; i < op.result_count(); ++i) {
    // The placement of the result, which has the same sharding as the arguments: they are targets of one data-flow
    // edge.
    loop.carries.push_back(placements.declared(op.result(i)));
  }
  loop.addends.resize(op.result_count());
  loops_.push_back(std::move(loop));
}

OpenLoop OpenLoops::leave() {
  OpenLoop left = std::move(loops_.back());
  loops_.pop_back();
  return left;
}

bool OpenLoops::find_relay(const OpenLoop& loop, ValueId value, size_t& carry) const {
  const LoopParts parts = loop_parts(loop.op);
  for (const Accumulator& accumulator : loop.accumulators) {
    // An accumulator without ops only passes its carry on.
    if (!accumulator.ops.empty() || parts.carries[accumulator.carry].argument != value) continue;
    carry = accumulator.carry;
    return true;
  }
  return false;
}

AccumulatorSite OpenLoops::site(size_t carry) {
  AccumulatorSite site;
  visit_relays(carry, [&](const OpenLoop& loop, size_t of_loop) {
    // From the inner loop out: after the last visit, entry and result are those of the outermost loop.
    site.trips *= loop.trips;
    site.entry = loop.op.operand(of_loop);
    site.result = loop.op.result(of_loop);
  });
  return site;
}

}  // namespace shardwise
