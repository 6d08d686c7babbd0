// SPDX-License-Identifier: Apache-2.0
//
// The live values of a run, one in each slot of its plan.
//
//   %2 = add %0, %1      reads %0, %1; %0 is dead afterwards
//     slots.read(step, 0, axes)     moved out of its slot, so that the step is its only owner and may overwrite it
//     slots.read(step, 1, axes)     a second owner of %1: nothing is copied, and nobody may write it
//     slots[2] = …
//     slots.free(step.dead)
//
// A slot holds its value along the axes that the plan has for it. In a run with poison, what enters a slot has its
// padding overwritten (poison.h).
#pragma once

#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/plan/step.h"

namespace shardwise {

class Slots {
 public:
  Slots(const Module& module, const Plan& plan, const DeviceSet& devices, bool poison)
      : module_(module), plan_(plan), devices_(devices), poison_(poison), values_(spare_values(plan.slots.size())) {}
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  Shards& operator[](uint32_t slot) { return values_[slot]; }
  const Shards& operator[](uint32_t slot) const { return values_[slot]; }
  const AxisList& axes(uint32_t slot) const { return plan_.slot_axes[slot]; }
  const TensorType& type(uint32_t slot) const { return module_.type(plan_.slots[slot]); }  // of one shard
  bool poison() const { return poison_; }

  // Stores a value along the axes of the slot.
  void set(uint32_t slot, Shards shards);
  // An input of a step along `axes`, moved out of its slot if the step is the last to read it.
  Shards read(const Step& step, size_t input, const AxisList& axes);
  void move(std::span<const Move> moves);
  void free(std::span<const uint32_t> dead);
  void poison_padding(uint32_t slot);  // does nothing in a run without poison
  // Names the value of a slot as the one that the next allocations are for, in a rehearsal.
  void label_allocations(uint32_t slot) const;

 private:
  static std::vector<Shards> spare_values(size_t count);

  const Module& module_;
  const Plan& plan_;
  const DeviceSet& devices_;
  const bool poison_;
  std::vector<Shards> values_;
  std::vector<Shards> moving_;  // kept between moves, because a loop moves its carries in each trip
};

bool is_dead_after(const Step& step, uint32_t slot);
int64_t bytes_of(const Shards& shards);  // of all shards, those that share memory included

}  // namespace shardwise
