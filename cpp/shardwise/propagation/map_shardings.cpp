// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/map_shardings.h"

#include <algorithm>
#include <unordered_map>
#include <variant>

namespace shardwise {
namespace {

class Mapper {
 public:
  Mapper(Module& module, const ShardingMap& map) : module_(module), context_(module.context()), map_(map) {}

  void run() {
    for (Function& function : module_.functions) {
      arguments(function.body);
      for (ShardingId& sharding : function.result_shardings) sharding = mapped(sharding);
      // In the order of the text: lift_inlined_meshes numbers new meshes in the order in which they are met.
      ops(function.body);
    }
  }

 private:
  void arguments(RegionId region) {
    for (ValueId argument : module_.region(region).arguments) value(argument);
  }

  void ops(RegionId region) {
    for (OpId op : module_.region(region).ops) {
      attributes(op);
      for (uint32_t i = 0; i < module_.op(op).result_count; ++i) value(module_.result(op, i));
      for (RegionId inner : module_.regions(op)) {
        arguments(inner);
        ops(inner);
      }
    }
  }

  void value(ValueId id) { module_.value(id).sharding = mapped(module_.value(id).sharding); }

  ShardingId mapped(ShardingId id) {
    if (!id) return id;
    // Most values in a row have one sharding.
    if (id == last_) return last_mapped_;
    const auto [known, is_new] = known_.try_emplace(id);
    if (is_new) known->second = context_.intern(map_(context_.sharding(id)));
    last_ = id;
    last_mapped_ = known->second;
    return last_mapped_;
  }

  // Interned first, so that the function is called once for a sharding, wherever it occurs.
  TensorSharding mapped(const TensorSharding& sharding) { return context_.sharding(mapped(context_.intern(sharding))); }

  void attributes(OpId op) {
    if (std::ranges::none_of(module_.attrs(op).entries(), has_sharding)) return;
    // A copy: interned attributes are shared by equal ops.
    Attrs attrs = module_.attrs(op);
    for (const auto& [name, value] : module_.attrs(op).entries()) {
      if (const auto* one = std::get_if<TensorSharding>(&value.base())) {
        attrs.set(name, mapped(*one));
      } else if (const auto* several = std::get_if<ShardingPerValue>(&value.base())) {
        ShardingPerValue replaced;
        for (const TensorSharding& sharding : *several) replaced.push_back(mapped(sharding));
        attrs.set(name, std::move(replaced));
      }
    }
    module_.op(op).attrs = context_.intern(attrs);
  }

  static bool has_sharding(const NamedAttribute& entry) {
    const auto& value = entry.second.base();
    return std::holds_alternative<TensorSharding>(value) || std::holds_alternative<ShardingPerValue>(value);
  }

  Module& module_;
  Context& context_;
  const ShardingMap& map_;
  std::unordered_map<ShardingId, ShardingId> known_;
  ShardingId last_, last_mapped_;
};

}  // namespace

void map_shardings(Module& module, const ShardingMap& map) { Mapper(module, map).run(); }

}  // namespace shardwise
