// SPDX-License-Identifier: Apache-2.0
//
// 32-bit ids of things in contiguous arrays. Index 0 means "none" everywhere, so a default id is empty:
//
//   ValueId v;            // none
//   if (v) …              // false
//   module.value(v).type  // a TypeId; module.context().type(id) is the TensorType
#pragma once

#include <cstdint>
#include <functional>

namespace shardwise {

template <class Tag>
struct Id {
  uint32_t index = 0;
  explicit operator bool() const { return index != 0; }
  friend bool operator==(Id, Id) = default;
  friend auto operator<=>(Id, Id) = default;
};

using TypeId = Id<struct TypeTag>;            // interned TensorType
using AttrsId = Id<struct AttrsTag>;          // interned attribute dictionary; none = {}
using LocId = Id<struct LocTag>;              // interned Location; none = unknown
using ShardingId = Id<struct ShardingTag>;    // interned TensorSharding; none = no sharding attribute
using PlacementId = Id<struct PlacementTag>;  // interned Placement; none = a program without a mesh
using SourceId = Id<struct SourceTag>;        // a SourceFrame
using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;

}  // namespace shardwise

template <class Tag>
struct std::hash<shardwise::Id<Tag>> {
  size_t operator()(shardwise::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.index); }
};
