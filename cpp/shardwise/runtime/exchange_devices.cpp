// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/exchange_devices.h"

#include <algorithm>

#include "shardwise/mesh/digit_map.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/runtime/device_order.h"

namespace shardwise {
namespace {

class DevicesOfOneMesh final : public ExchangeDevices {
 public:
  DevicesOfOneMesh(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                   const DeviceSet& devices)
      : operands_(operands), map_(map), devices_(devices), receiver_(used_axes(fill)) {
    const auto digits = Digits::covering(used_axes(fill));
    if (!digits) {
      // Cuts that no single split has: the result gets one ref per axis, which keeps all tiles apart.
      axes_ = devices_.free(receiver_.grid());
      return;
    }
    std::vector<DigitSet> varying;
    for (const Shards& operand : operands_) varying.push_back(digits->touched(operand.axes()));
    if (fill != nullptr) varying.push_back(digits->touched(fill->axes()));
    axes_ = devices_.free(digits->axes(varying_after_exchange(map_, *digits, varying)));
  }

  void receive(int64_t process, int64_t shard) override {
    receiver_.set(devices_.pinned, process);
    receiver_.set(axes_, shard);
  }
  int64_t tile(size_t dim) const override { return receiver_.at(map_.to[dim].axes); }
  Sender sender(size_t operand, DimSpan shards) const override {
    Coordinates sender = replica();
    for (size_t d = 0; d < shards.size(); ++d) sender.set(map_.from[operand][d].axes, shards[d]);
    return {sender.at(devices_.pinned), sender.at(operands_[operand].axes())};
  }

 private:
  AxisList used_axes(const Shards* fill) const {
    AxisList used = map_.axes();
    for (const Shards& operand : operands_) append(used, operand.axes());
    if (fill != nullptr) append(used, fill->axes());
    append(used, devices_.pinned);
    return used;
  }

  // Any shards, of the replicas that send to the receiver.
  Coordinates replica() const {
    Coordinates sender = receiver_;
    for (const DigitMove& move : digit_map_) {
      if (move.kind == DigitMove::Kind::kReplicated) sender.set(move.sender, receiver_.at(move.receiver));
    }
    return sender;
  }

  std::span<const Shards> operands_;
  const ExchangeMap& map_;
  // Empty: a sender is in the receiver's place along digits that do not shard the operand.
  const DigitMap digit_map_ = digit_map_of(map_).value_or(DigitMap());
  const DeviceSet devices_;
  Coordinates receiver_;
};

class DevicesOfTwoMeshes final : public ExchangeDevices {
 public:
  DevicesOfTwoMeshes(std::span<const Shards> operands, const ExchangeMap& map, const Mesh& main,
                     const DeviceSet& devices)
      : operands_(operands), map_(map), main_(main), devices_(devices) {
    axes_ = devices_.free(axes_of_several_devices(main));
    places_.resize(static_cast<size_t>(main.device_count()));
    for (int64_t process = 0; process < product(devices.pinned); ++process) {
      for (int64_t i = 0; i < product(axes_); ++i) {
        // The inverse of index_of for all processes, since every process computes the whole exchange.
        places_[static_cast<size_t>(index_of(process, i))] = {process, i};
      }
    }
    find_holders();
  }

  void receive(int64_t process, int64_t shard) override {
    receiver_ = index_of(process, shard);
    receiver_in_other_ = device_in(main_, *map_.to_mesh, receiver_);
  }
  int64_t tile(size_t dim) const override { return shard_index(*map_.to_mesh, map_.to[dim].axes, receiver_in_other_); }
  Sender sender(size_t operand, DimSpan shards) const override {
    int64_t number = 0;
    for (size_t d = 0; d < shards.size(); ++d) {
      // The number along the axes of all dims in order, as find_holders has joined them.
      number = number * product(map_.from[operand][d].axes) + shards[d];
    }
    const auto [process, place] = sender_among(holders_[operand][static_cast<size_t>(number)]);
    return {process, position_along(operands_[operand].axes(), axes_, place)};
  }

 private:
  // A device of the main mesh: its process, and its place among the devices of that process.
  struct Place {
    int64_t process = 0, index = 0;
  };

  int64_t index_of(int64_t process, int64_t i) const {
    return logical_index_of(main_, {.pinned = devices_.pinned, .position = process}, axes_, i);
  }

  // The devices that hold each shard of each operand.
  void find_holders() {
    for (const std::vector<ExchangeSource>& from : map_.from) {
      const AxisList axes = axes_of_dims(from);
      std::vector<std::vector<int64_t>>& holders = holders_.emplace_back(static_cast<size_t>(product(axes)));
      for (int64_t device = 0; device < main_.device_count(); ++device) {
        const int64_t index = device_in(main_, *map_.from_mesh, device);
        // Replicas: all of these have the shard, and sender_among chooses one for each receiver.
        holders[static_cast<size_t>(shard_index(*map_.from_mesh, axes, index))].push_back(device);
      }
    }
  }

  Place sender_among(const std::vector<int64_t>& holders) const {
    const auto place = [&](int64_t holder) { return places_[static_cast<size_t>(holder)]; };
    if (std::ranges::find(holders, receiver_) != holders.end()) return place(receiver_);
    const int64_t process = place(receiver_).process;
    const auto near = std::ranges::find_if(holders, [&](int64_t holder) { return place(holder).process == process; });
    // Receivers take turns, so that one holder does not send to all of them.
    return place(near != holders.end() ? *near : holders[static_cast<size_t>(receiver_) % holders.size()]);
  }

  std::span<const Shards> operands_;
  const ExchangeMap& map_;
  const Mesh& main_;
  const DeviceSet devices_;
  std::vector<Place> places_;                               // by logical index in the main mesh
  std::vector<std::vector<std::vector<int64_t>>> holders_;  // by operand and shard
  int64_t receiver_ = 0;                                    // logical index in the main mesh
  int64_t receiver_in_other_ = 0;                           // … in that of the result
};

}  // namespace

// An operand that is not sharded along an axis sends what devices hold in the receiver's place along it, or along the
// digit that the digit map names.
DigitSet varying_after_exchange(const ExchangeMap& map, const Digits& digits, std::span<const DigitSet> operands) {
  DigitSet after = 0;
  // Tiles at different positions may differ, even if the operand is the same on all devices.
  for (const ExchangeTarget& dim : map.to) after |= digits.touched(dim.axes);
  for (size_t k = 0; k < operands.size(); ++k) {
    const AxisList sharded = k < map.from.size() ? axes_of_dims(map.from[k]) : AxisList();
    after |= operands[k] & ~digits.covered(sharded);
  }
  if (const auto moves = digit_map_of(map)) {
    for (const DigitMove& move : *moves) {
      const bool varies = (operands[0] & digits.touched(move.sender)) != 0;
      if (varies && move.kind == DigitMove::Kind::kReplicated) after |= digits.touched(move.receiver);
    }
  }
  return after;
}

std::unique_ptr<ExchangeDevices> devices_of_exchange(std::span<const Shards> operands, const Shards* fill,
                                                     const ExchangeMap& map, const Mesh* main,
                                                     const DeviceSet& devices) {
  if (main == nullptr) return std::make_unique<DevicesOfOneMesh>(operands, fill, map, devices);
  return std::make_unique<DevicesOfTwoMeshes>(operands, map, *main, devices);
}

}  // namespace shardwise
