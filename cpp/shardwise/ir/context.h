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
#include "shardwise/ir/sharding_rule.h"
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

  // The op's own rule. It depends only on the op's definition, types, attributes and regions, so equal ops share one.
  const ShardingRule& sharding_rule(const class OpView& op);

 private:
  struct RuleKey {
    const void* def;
    AttrsId attrs;
    std::vector<TypeId> types;
    std::vector<const void*> defs;  // of the ops in its regions
    friend bool operator==(const RuleKey&, const RuleKey&) = default;
  };
  struct RuleKeyHash {
    size_t operator()(const RuleKey& key) const;
  };
  static void append_region_signature(const OpView& op, RuleKey& key);
  static RuleKey rule_key(const OpView& op);

  Interner<TensorType, TypeId> types_;
  Interner<Attrs, AttrsId> attrs_;
  Interner<TensorSharding, ShardingId> shardings_;
  Interner<Placement, PlacementId> placements_;
  Interner<Location, LocId> locations_;
  std::mutex mutex_;  // guards the members below
  StableArray<std::unique_ptr<SourceFrame>> sources_;
  std::unordered_map<const void*, SourceId> source_ids_;
  std::unordered_map<RuleKey, std::unique_ptr<ShardingRule>, RuleKeyHash> rules_;
};

}  // namespace shardwise
