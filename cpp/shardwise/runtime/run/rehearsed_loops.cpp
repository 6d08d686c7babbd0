// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/rehearsed_loops.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <span>

namespace shardwise {
namespace {

constexpr int64_t kSmall = 1 << 16;  // bytes of a buffer whose data is kept

// Calls visit(array) for each array of a value.
template <class F>
void for_each_array(const Shards& shards, F&& visit) {
  if (shards.is_stacked()) return visit(shards.stacked());
  for (int64_t i = 0; i < shards.count(); ++i) visit(shards[i]);
}

const std::byte* start_of(const NdArray& array) { return static_cast<const std::byte*>(array.owner().get()); }

// The slots that the step of a loop reads or writes, each once.
std::vector<uint32_t> touched_slots(const Step& step) {
  std::vector<uint32_t> touched = step.inputs;
  touched.insert(touched.end(), step.outputs.begin(), step.outputs.end());
  std::ranges::sort(touched);
  const auto [end, last] = std::ranges::unique(touched);
  touched.erase(end, last);
  return touched;
}

struct Entry {
  std::vector<int64_t> state;
  std::vector<const void*> buffers;  // in the order of the slots
};

Entry entry_of(const std::vector<uint32_t>& touched, const Slots& slots) {
  Entry entry;
  std::vector<int64_t> references;  // by buffer, from these slots
  std::vector<int64_t> owners;
  for (const uint32_t slot : touched) {
    entry.state.push_back(slots[slot].is_stacked() ? -1 : slots[slot].count());
    for_each_array(slots[slot], [&](const NdArray& array) {
      const void* const buffer = array.owner().get();
      const auto found = std::ranges::find(entry.buffers, buffer) - entry.buffers.begin();
      if (found == std::ssize(entry.buffers)) {
        entry.buffers.push_back(buffer);
        references.push_back(0);
        owners.push_back(array.owner().use_count());
      }
      ++references[static_cast<size_t>(found)];
      entry.state.push_back(found);
      entry.state.push_back(buffer == nullptr ? 0 : array.data() - start_of(array));
      entry.state.insert(entry.state.end(), array.strides().begin(), array.strides().end());
    });
  }
  // Who else holds a buffer does not matter, but that somebody does: it is not overwritten then.
  for (size_t i = 0; i < owners.size(); ++i) entry.state.push_back(owners[i] > references[i] ? 1 : 0);
  return entry;
}

// The sums by label when the events since `begin` add up to the most bytes; nothing if they never exceed zero.
std::vector<AllocationLog::Event> highest_moment(std::span<const AllocationLog::Event> events) {
  int64_t sum = 0, most = 0;
  size_t end = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    sum += events[i].bytes;
    if (sum <= most) continue;
    most = sum;
    end = i + 1;
  }
  std::map<uint32_t, int64_t> by_label;
  for (const AllocationLog::Event& event : events.first(end)) by_label[event.label] += event.bytes;
  std::vector<AllocationLog::Event> moment;
  for (const auto& [label, bytes] : by_label) {
    if (bytes != 0) moment.push_back({label, bytes});
  }
  // What is freed comes first, so that no sum on the way is above the highest one.
  std::ranges::stable_partition(moment, [](const AllocationLog::Event& event) { return event.bytes < 0; });
  return moment;
}

NdArray without_owner(const NdArray& array) {
  return {array.dtype(), array.shape(), array.strides(), nullptr, nullptr};
}

}  // namespace

void RehearsedLoops::run(const Step& step, Slots& slots, const std::function<void()>& rehearse) {
  const std::vector<uint32_t> touched = touched_slots(step);
  Entry entry = entry_of(touched, slots);
  const std::pair key(&step, std::move(entry.state));
  if (const auto found = known_.find(key); found != known_.end()) return repeat(found->second, slots, touched);
  const size_t begin = AllocationLog::current()->events().size();
  rehearse();
  if (auto outcome = outcome_of(touched, slots, begin, entry.buffers)) known_.emplace(key, *std::move(outcome));
}

std::optional<RehearsedLoops::Outcome> RehearsedLoops::outcome_of(const std::vector<uint32_t>& touched,
                                                                  const Slots& slots, size_t begin,
                                                                  const std::vector<const void*>& entry) {
  const AllocationLog& log = *AllocationLog::current();
  Outcome outcome{.highest = highest_moment(std::span(log.events()).subspan(begin)), .made = {}, .slots = {}};
  std::map<const void*, size_t> made;
  bool is_known = true;
  const auto described = [&](const NdArray& array) -> Array {
    const void* const buffer = array.owner().get();
    if (array.data() == nullptr && buffer == nullptr) return {};
    const AllocationLog::Buffer* const logged = log.find(buffer);
    if (logged == nullptr) return {Array::Owner::kOther, 0, 0, array};  // a constant of the program
    const ptrdiff_t offset = array.data() - start_of(array);
    // An address of the state may be that of a buffer which was allocated since.
    if (logged->event < begin) {
      const auto at = std::ranges::find(entry, buffer) - entry.begin();
      is_known = is_known && at < std::ssize(entry);
      return {Array::Owner::kEntry, static_cast<size_t>(at), offset, without_owner(array)};
    }
    const auto [place, is_new] = made.emplace(buffer, outcome.made.size());
    if (is_new) {
      Buffer copy{logged->label, logged->bytes, {}};
      if (logged->bytes <= kSmall) copy.data.assign(start_of(array), start_of(array) + logged->bytes);
      outcome.made.push_back(std::move(copy));
    }
    return {Array::Owner::kNew, place->second, offset, without_owner(array)};
  };
  for (const uint32_t slot : touched) {
    Slot& kept = outcome.slots.emplace_back(Slot{slot, slots[slot].axes(), slots[slot].is_stacked(), {}});
    for_each_array(slots[slot], [&](const NdArray& array) { kept.arrays.push_back(described(array)); });
  }
  if (!is_known) return std::nullopt;  // a buffer from elsewhere: this state does not tell which
  return outcome;
}

void RehearsedLoops::repeat(const Outcome& outcome, Slots& slots, const std::vector<uint32_t>& touched) {
  AllocationLog& log = *AllocationLog::current();
  for (const AllocationLog::Event& event : outcome.highest) log.repeat(event);
  for (const AllocationLog::Event& event : outcome.highest | std::views::reverse) {
    log.repeat({event.label, -event.bytes});
  }
  // The buffers of the state that the results share: those that they do not share are freed.
  std::vector<std::shared_ptr<void>> entry;
  std::vector<const void*> seen;
  for (const uint32_t slot : touched) {
    for_each_array(slots[slot], [&](const NdArray& array) {
      if (std::ranges::find(seen, array.owner().get()) != seen.end()) return;
      seen.push_back(array.owner().get());
      entry.push_back(array.owner());
    });
  }
  std::vector<bool> is_shared(entry.size());
  for (const Slot& slot : outcome.slots) {
    for (const Array& array : slot.arrays) {
      if (array.owner == Array::Owner::kEntry) is_shared[array.number] = true;
    }
  }
  for (size_t i = 0; i < entry.size(); ++i) {
    if (!is_shared[i]) entry[i].reset();
  }
  for (const uint32_t slot : touched) slots[slot] = Shards();
  std::vector<std::shared_ptr<void>> made;
  for (const Buffer& buffer : outcome.made) {
    log.set_label(buffer.label);
    made.push_back(log.allocate(buffer.bytes));
    if (!buffer.data.empty()) std::memcpy(made.back().get(), buffer.data.data(), buffer.data.size());
  }
  const auto array_of = [&](const Array& array) -> NdArray {
    if (array.owner == Array::Owner::kNone || array.owner == Array::Owner::kOther) return array.like;
    const auto& owner = (array.owner == Array::Owner::kEntry ? entry : made)[array.number];
    return {array.like.dtype(), array.like.shape(), array.like.strides(),
            static_cast<std::byte*>(owner.get()) + array.offset, owner};
  };
  for (const Slot& slot : outcome.slots) {
    if (slot.is_stacked) {
      slots[slot.slot] = Shards(slot.axes, array_of(slot.arrays[0]));
      continue;
    }
    std::vector<NdArray> list;
    for (const Array& array : slot.arrays) list.push_back(array_of(array));
    slots[slot.slot] = Shards(slot.axes, std::move(list));
  }
}

}  // namespace shardwise
