// SPDX-License-Identifier: Apache-2.0
//
// Owns what modules share by id: interned types, attribute dictionaries, shardings, placements, locations, and cached
// sharding rules. All stages of one program use one Context, so ids stay valid from the traced to the local program.
// Any number of threads may use one Context, for example to compile, print and run programs at the same time.
//
//   Context context;
//   TypeId t = context.tensor(DType::kF32, Dims{4, 8});
//   context.tensor(DType::kF32, Dims{4, 8}) == t;          // true: interned
//   context.type(t).text();                                // "tensor<4x8xf32>"
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/ids.h"
#include "shardwise/ir/interner.h"
#include "shardwise/ir/location.h"
#include "shardwise/ir/rule/rule_cache.h"
#include "shardwise/ir/type.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  TypeId tensor(DType dtype, DimSpan shape);
  TypeId intern(const TensorType& type) { return types_.intern(type); }
  const TensorType& type(TypeId id) const { return types_[id]; }

  AttrsId intern(const Attrs& attrs) { return attrs.empty() ? AttrsId{} : attrs_.intern(attrs); }
  const Attrs& attrs(AttrsId id) const { return attrs_[id]; }

  ShardingId intern(const TensorSharding& sharding) { return shardings_.intern(sharding); }
  const TensorSharding& sharding(ShardingId id) const { return shardings_[id]; }
  template <class Predicate>
  bool any_sharding(Predicate holds) const {
    return shardings_.any_of(holds);
  }

  PlacementId intern(const Placement& placement) { return placements_.intern(placement); }
  const Placement& placement(PlacementId id) const { return placements_[id]; }

  LocId intern(const Location& location) { return locations_.intern(location); }
  const Location& location(LocId id) const { return locations_[id]; }
  LocId file_location(std::string file, int32_t line, int32_t column);
  LocId named_location(std::string name, LocId child);
  LocId without_names(LocId id) const;  // the location inside of its names
  // `key` identifies the code object; `make` is called once per key.
  template <class Make>
  LocId source_location(const void* key, int32_t offset, Make make) {
    SourceId source;
    {
      const std::scoped_lock lock(mutex_);
      auto [it, inserted] = source_ids_.try_emplace(key, SourceId{});
      if (inserted) it->second = SourceId{sources_.append(make()) + 1};
      source = it->second;
    }
    return intern(Location{.kind = Location::Kind::kSource, .line = offset, .source = source});
  }
  // The user's line of a location, without names and with resolved sources. The file is empty if unknown.
  ResolvedSource resolve(LocId id) const;
  std::string name_of(LocId id) const;        // the name given by loc("h"(…)), or ""
  std::string location_text(LocId id) const;  // "train.py:31", or ""

  RuleCache& rules() { return rules_; }  // op_def.h: sharding_rule(op)

 private:
  Interner<TensorType, TypeId> types_;
  Interner<Attrs, AttrsId> attrs_;
  Interner<TensorSharding, ShardingId> shardings_;
  Interner<Placement, PlacementId> placements_;
  Interner<Location, LocId> locations_;
  RuleCache rules_;
  std::mutex mutex_;  // guards the members below
  StableArray<std::unique_ptr<SourceFrame>> sources_;
  std::unordered_map<const void*, SourceId> source_ids_;
};

}  // namespace shardwise
