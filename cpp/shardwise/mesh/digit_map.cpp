// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/digit_map.h"

#include <algorithm>
#include <map>

#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

// Whether row t of the result is row t of the operand, in blocks that cover the dim alike.
bool is_in_place(const ExchangeTarget& to, const ExchangeSource& from) {
  return from.scale == 1 && from.offset == 0 && from.holes == 1 && from.begin == 0 && from.end >= to.size &&
         from.size == to.size && to.step == to.rows && to.rows * product(to.axes) == from.block * product(from.axes);
}

// Axes of size 1 change nothing.
DigitList encoded(const Digits& digits, AxisSpan axes) {
  DigitList list = digits.encode(axes);
  erase_if(list, [&](Digit digit) { return digits[digit].size == 1; });
  return list;
}

// The tiles of some digits are the shards of others: a digit of each side, or several.
struct Slot {
  DigitList sender, receiver;
};

struct Slots {
  std::vector<Slot> shared;
  DigitList gathered;
  bool is_cut = false;  // a digit was, so that all dims are to be read again
};

class SlotReader {
 public:
  explicit SlotReader(Digits& digits) : digits_(digits) {}

  // Adds the slots of a dim, majors first. Cuts a digit that a smaller one faces. Returns false if tiles do not nest.
  bool read(const ExchangeTarget& to, const ExchangeSource& from, Slots& slots) {
    const DigitList targets = encoded(digits_, to.axes), sources = encoded(digits_, from.axes);
    size_t t = 0, s = 0;
    while (t < targets.size() && s < sources.size()) {
      Slot slot{.sender = {sources[s++]}, .receiver = {targets[t++]}};
      if (cut(digits_[slot.sender[0]], digits_[slot.receiver[0]])) {
        slots.is_cut = true;
        return true;
      }
      while (digits_.count(slot.sender) != digits_.count(slot.receiver)) {
        const bool is_sender = digits_.count(slot.sender) < digits_.count(slot.receiver);
        if (is_sender ? s == sources.size() : t == targets.size()) return false;
        (is_sender ? slot.sender : slot.receiver).push_back(is_sender ? sources[s++] : targets[t++]);
      }
      slots.shared.push_back(std::move(slot));
    }
    slots.gathered.insert(slots.gathered.end(), sources.begin() + static_cast<std::ptrdiff_t>(s), sources.end());
    return true;
  }

 private:
  bool cut(AxisRef larger, AxisRef smaller) {
    if (larger.size < smaller.size) std::swap(larger, smaller);
    if (larger.size == smaller.size || larger.size % smaller.size != 0 || digits_.size() == Digits::kMost) return false;
    digits_.cut_inside(larger.axis, larger.pre * smaller.size);
    return true;
  }

  Digits& digits_;
};

std::optional<Slots> slots_of(const ExchangeMap& map, Digits& digits) {
  while (true) {
    Slots slots;
    for (size_t d = 0; d < map.to.size() && !slots.is_cut; ++d) {
      if (!SlotReader(digits).read(map.to[d], map.from[0][d], slots)) return std::nullopt;
    }
    if (!slots.is_cut) return slots;
  }
}

DigitSet set_of(const DigitList& list) {
  DigitSet set = 0;
  for (const Digit digit : list) set |= DigitSet{1} << digit;
  return set;
}

// Follows the links from the digits at the front of a chain to those at its end. Returns none if a link leads to digits
// that another one has in part.
std::optional<DigitMap> chained(const Digits& digits, const Slots& slots) {
  DigitMap moves;
  std::map<DigitList, const DigitList*> next;
  std::vector<DigitList> fronts;
  DigitSet senders = set_of(slots.gathered), receivers = 0;
  for (const Slot& slot : slots.shared) {
    moves.push_back({DigitMove::Kind::kTakenOver, digits.decode(slot.sender), digits.decode(slot.receiver)});
    next.emplace(slot.sender, &slot.receiver);
    senders |= set_of(slot.sender);
    receivers |= set_of(slot.receiver);
    fronts.push_back(slot.sender);
  }
  for (const Digit digit : slots.gathered) fronts.push_back({digit});
  DigitSet ends = 0;
  for (const DigitList& front : fronts) {
    if ((set_of(front) & receivers) == set_of(front)) continue;  // inside of a chain, or of a cycle
    if ((set_of(front) & receivers) != 0) return std::nullopt;
    DigitList end = front;
    for (auto link = next.find(end); link != next.end(); link = next.find(end)) end = *link->second;
    const bool is_gathered = end.size() == 1 && (set_of(slots.gathered) & set_of(end)) != 0;
    if (!is_gathered && (set_of(end) & senders) != 0) return std::nullopt;
    const auto kind = is_gathered ? DigitMove::Kind::kGathered : DigitMove::Kind::kReplicated;
    moves.push_back({kind, digits.decode(end), digits.decode(front)});
    ends |= set_of(end);
  }
  // Every digit that no slot determines is at the end of a chain.
  return ((receivers & ~senders) | set_of(slots.gathered)) == ends ? std::optional(std::move(moves)) : std::nullopt;
}

}  // namespace

std::optional<DigitMap> digit_map_of(const ExchangeMap& map) {
  if (map.from.size() != 1 || map.is_across_meshes()) return std::nullopt;
  for (size_t d = 0; d < map.to.size(); ++d) {
    if (!is_in_place(map.to[d], map.from[0][d])) return std::nullopt;
  }
  std::optional<Digits> digits = Digits::covering(map.axes());
  if (!digits) return std::nullopt;
  const std::optional<Slots> slots = slots_of(map, *digits);
  return slots ? chained(*digits, *slots) : std::nullopt;
}

std::vector<std::vector<int64_t>> sender_steps(const DigitMap& map, const Mesh& mesh) {
  const AxisList all = all_axes(mesh);
  AxisList gathered;
  for (const DigitMove& move : map) {
    if (move.kind == DigitMove::Kind::kGathered) gathered.push_back(move.sender[0]);
  }
  Coordinates step(all), receiver(all), sender(all);
  std::vector<std::vector<int64_t>> steps;
  for (int64_t k = 0; k < product(gathered); ++k) {
    step.set(gathered, k);
    std::vector<int64_t>& senders = steps.emplace_back();
    for (int64_t device = 0; device < mesh.device_count(); ++device) {
      receiver.set_grid(device);
      sender.set_grid(device);
      for (const DigitMove& move : map) {
        const int64_t shift = move.kind == DigitMove::Kind::kGathered ? step.at(move.sender) : 0;
        sender.set(move.sender, (receiver.at(move.receiver) + shift) % product(move.sender));
      }
      senders.push_back(sender.at(all));
    }
  }
  return steps;
}

}  // namespace shardwise
