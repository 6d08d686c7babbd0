// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/slots.h"

#include <algorithm>

#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/poison.h"

namespace shardwise {

bool is_dead_after(const Step& step, uint32_t slot) {
  return std::find(step.dead.begin(), step.dead.end(), slot) != step.dead.end();
}

int64_t bytes_of(const Shards& shards) {
  return shards.count() * element_count(shards.local_shape()) * item_size(shards.dtype());
}

namespace {

constexpr size_t kMostSpare = 1 << 14;  // values; the list of a longer program costs little beside its steps

// The list of the last run of this thread. A program of a hundred values has a list of 12 KB, for which malloc would
// first tidy its small blocks.
std::vector<Shards>& spare_list() {
  thread_local std::vector<Shards> spare;
  return spare;
}

}  // namespace

std::vector<Shards> Slots::spare_values(size_t count) {
  std::vector<Shards> values = std::move(spare_list());
  values.resize(count);
  return values;
}

Slots::~Slots() {
  values_.clear();
  const size_t capacity = values_.capacity();
  if (capacity > spare_list().capacity() && capacity <= kMostSpare) spare_list() = std::move(values_);
}

void Slots::set(uint32_t slot, Shards shards) {
  values_[slot] = shards.axes() == axes(slot) ? std::move(shards) : shards.along(axes(slot));
  poison_padding(slot);
}

Shards Slots::read(const Step& step, size_t input, const AxisList& axes) {
  const uint32_t slot = step.inputs[input];
  // x * x: the first read must leave the value for the second one.
  const auto later = step.inputs.begin() + static_cast<std::ptrdiff_t>(input) + 1;
  const bool is_last = is_dead_after(step, slot) && std::find(later, step.inputs.end(), slot) == step.inputs.end();
  if (!is_last || values_[slot].axes() != axes) return values_[slot].along(axes);
  return std::move(values_[slot]);
}

void Slots::move(std::span<const Move> moves) {
  // All moves read before one writes: (a, b) -> (b, a) would otherwise lose a.
  moving_.clear();
  for (const Move& move : moves) {
    Shards& from = values_[move.from];
    if (move.is_last && from.axes() == axes(move.to)) {
      moving_.push_back(std::move(from));
    } else {
      moving_.push_back(from.along(axes(move.to)));
      if (move.is_last) from = Shards();
    }
  }
  for (size_t i = 0; i < moves.size(); ++i) {
    values_[moves[i].to] = std::move(moving_[i]);
    poison_padding(moves[i].to);
  }
}

void Slots::free(std::span<const uint32_t> dead) {
  for (uint32_t slot : dead) values_[slot] = Shards();
}

void Slots::poison_padding(uint32_t slot) {
  if (poison_) values_[slot] = poisoned(std::move(values_[slot]), slot, module_, plan_, devices_);
}

void Slots::label_allocations(uint32_t slot) const {
  if (AllocationLog* log = AllocationLog::current()) log->set_label(plan_.slots[slot].index);
}

}  // namespace shardwise
