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

enum class Alignment : uint8_t { kDone, kCut, kNone };

// Cuts the first digit that a smaller one of the other side faces.
Alignment align(const ExchangeTarget& to, const ExchangeSource& from, Digits& digits) {
  const DigitList targets = digits.encode(to.axes), sources = digits.encode(from.axes);
  for (size_t i = 0; i < std::min(targets.size(), sources.size()); ++i) {
    AxisRef larger = digits[targets[i]], smaller = digits[sources[i]];
    if (larger.size == smaller.size) continue;
    if (larger.size < smaller.size) std::swap(larger, smaller);
    if (larger.size % smaller.size != 0 || digits.size() == Digits::kMost) return Alignment::kNone;
    digits.cut_inside(larger.axis, larger.pre * smaller.size);
    return Alignment::kCut;
  }
  return Alignment::kDone;
}

std::optional<Digits> aligned_digits(const ExchangeMap& map) {
  std::optional<Digits> digits = Digits::covering(map.axes());
  for (size_t d = 0; digits && d < map.to.size();) {
    const Alignment found = align(map.to[d], map.from[0][d], *digits);
    if (found == Alignment::kNone) return std::nullopt;
    d = found == Alignment::kCut ? 0 : d + 1;  // a digit is cut in all dims
  }
  return digits;
}

DigitMap chained(const Digits& digits, const std::map<Digit, Digit>& taken_over, DigitSet sharding) {
  DigitSet taking = 0;
  DigitMap moves;
  for (const auto& [sender, receiver] : taken_over) {
    taking |= DigitSet{1} << receiver;
    if (sender != receiver) moves.push_back({DigitMove::Kind::kTakenOver, digits[sender], digits[receiver]});
  }
  for (Digit front = 0; front < digits.size(); ++front) {
    if ((taking >> front & 1) != 0) continue;
    Digit end = front;
    for (auto next = taken_over.find(end); next != taken_over.end(); next = taken_over.find(end)) end = next->second;
    const bool is_gathered = (sharding >> end & 1) != 0;
    if (!is_gathered && front == end) continue;
    const auto kind = is_gathered ? DigitMove::Kind::kGathered : DigitMove::Kind::kReplicated;
    moves.push_back({kind, digits[end], digits[front]});
  }
  return moves;
}

}  // namespace

std::optional<DigitMap> digit_map_of(const ExchangeMap& map) {
  if (map.from.size() != 1 || map.is_across_meshes()) return std::nullopt;
  for (size_t d = 0; d < map.to.size(); ++d) {
    if (!is_in_place(map.to[d], map.from[0][d])) return std::nullopt;
  }
  const std::optional<Digits> digits = aligned_digits(map);
  if (!digits) return std::nullopt;
  std::map<Digit, Digit> taken_over;
  DigitSet sharding = 0;
  for (size_t d = 0; d < map.to.size(); ++d) {
    const DigitList sources = digits->encode(map.from[0][d].axes), targets = digits->encode(map.to[d].axes);
    for (size_t i = 0; i < sources.size(); ++i) {
      sharding |= DigitSet{1} << sources[i];
      if (i < targets.size()) taken_over.emplace(sources[i], targets[i]);
    }
  }
  return chained(*digits, taken_over, sharding);
}

std::vector<std::vector<int64_t>> sender_steps(const DigitMap& map, const Mesh& mesh) {
  AxisList all;
  for (int axis = 0; axis < mesh.ndim(); ++axis) all.push_back(full_axis(mesh, axis));
  AxisList gathered;
  for (const DigitMove& move : map) {
    if (move.kind == DigitMove::Kind::kGathered) gathered.push_back(move.sender);
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
        const int64_t shift = move.kind == DigitMove::Kind::kGathered ? step.at({&move.sender, 1}) : 0;
        sender.set({&move.sender, 1}, (receiver.at({&move.receiver, 1}) + shift) % move.sender.size);
      }
      senders.push_back(sender.at(all));
    }
  }
  return steps;
}

}  // namespace shardwise
