// SPDX-License-Identifier: Apache-2.0
//
// Owns what modules share by id: interned types, attribute dictionaries, shardings, locations, and cached sharding rules.
// All stages of one program use one Context, so ids stay valid from trace to local program. Not thread-safe: one program
// is compiled by one thread at a time.
//
//   Context context;
//   TypeId t = context.tensor(DType::kF32, Dims{4, 8});
//   context.tensor(DType::kF32, Dims{4, 8}) == t;          // true: interned
//   context.type(t).text();                                // "tensor<4x8xf32>"
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/attribute.h"
#include "shardwise/ir/ids.h"
#include "shardwise/ir/location.h"
#include "shardwise/ir/sharding_rule.h"
#include "shardwise/ir/type.h"

namespace shardwise {

// Hash-consing of values of type T to ids; references stay valid for the lifetime of the interner.
template <class T, class IdT, class Hash>
class Interner {
 public:
  Interner() { values_.emplace_back(); }
  IdT intern(const T& value) {
    auto [begin, end] = index_.equal_range(Hash()(value));
    for (auto it = begin; it != end; ++it) {
      if (values_[it->second] == value) return IdT{it->second};
    }
    const auto id = static_cast<uint32_t>(values_.size());
    values_.push_back(value);
    index_.emplace(Hash()(value), id);
    return IdT{id};
  }
  const T& operator[](IdT id) const { return values_[id.index]; }
  size_t size() const { return values_.size() - 1; }

 private:
  std::deque<T> values_;  // element 0 stands for "none"
  std::unordered_multimap<size_t, uint32_t> index_;
};

struct TypeHash {
  size_t operator()(const TensorType& type) const;
};
struct AttrsHash {
  size_t operator()(const Attrs& attrs) const { return attrs.hash(); }
};
struct ShardingHash {
  size_t operator()(const TensorSharding& sharding) const;
};
struct LocationHash {
  size_t operator()(const Location& location) const;
};

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

  LocId intern(const Location& location) { return locations_.intern(location); }
  const Location& location(LocId id) const { return locations_[id]; }
  LocId file_location(std::string file, int32_t line, int32_t column);
  LocId named_location(std::string name, LocId child);
  // `key` identifies the code object; `make` is called once per key.
  template <class Make>
  LocId source_location(const void* key, int32_t offset, Make make) {
    auto [it, inserted] = source_ids_.try_emplace(key, SourceId{});
    if (inserted) {
      sources_.push_back(make());
      it->second = SourceId{static_cast<uint32_t>(sources_.size())};
    }
    return intern(Location{.kind = Location::Kind::kSource, .line = offset, .source = it->second});
  }
  // The user's line behind a location: names are peeled, sources resolved. Empty file when unknown.
  ResolvedSource resolve(LocId id) const;
  std::string name_of(LocId id) const;          // the name given by loc("h"(…)), or ""
  std::string location_text(LocId id) const;    // "train.py:31", or ""

  // The sharding rule of an op depends only on its definition, types and attributes, so equal ops share one.
  const ShardingRule& sharding_rule(const class OpView& op);

 private:
  struct RuleKey {
    const void* def;
    AttrsId attrs;
    std::vector<TypeId> types;
    std::vector<const void*> region_ops;
    friend bool operator==(const RuleKey&, const RuleKey&) = default;
  };
  struct RuleKeyHash {
    size_t operator()(const RuleKey& key) const;
  };
  static void append_region_signature(const OpView& op, RuleKey& key);

  Interner<TensorType, TypeId, TypeHash> types_;
  Interner<Attrs, AttrsId, AttrsHash> attrs_;
  Interner<TensorSharding, ShardingId, ShardingHash> shardings_;
  Interner<Location, LocId, LocationHash> locations_;
  std::vector<std::unique_ptr<SourceFrame>> sources_;
  std::unordered_map<const void*, SourceId> source_ids_;
  std::unordered_map<RuleKey, std::unique_ptr<ShardingRule>, RuleKeyHash> rules_;
};

}  // namespace shardwise
