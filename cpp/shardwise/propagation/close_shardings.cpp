// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/close_shardings.h"

#include <unordered_map>
#include <vector>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {
namespace {

class Closer {
 public:
  explicit Closer(Module& module) : module_(module), context_(module.context()), mesh_(only_mesh(module)) {}

  template <class Predicate>
  void close_values(RegionId body, Predicate is_chosen) {
    std::vector<ValueId> values;
    append_values(module_, body, values);
    for (const ValueId value : values) {
      if (is_chosen(value)) close_value(value, body);
    }
  }

  void close_results(Function& function) {
    const std::vector<ValueId>& results = module_.region(function.body).results;
    function.result_shardings.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ShardingId& sharding = function.result_shardings[i];
      // A result may be annotated otherwise than the value returned; `assign` reshards it then.
      sharding = sharding ? closed(sharding) : module_.value(results[i]).sharding;
    }
  }

 private:
  // Scalars in the body of a reduction get no sharding, because they are not values of the program.
  void close_value(ValueId id, RegionId body) {
    Value& value = module_.value(id);
    const int64_t ndim = module_.type(id).ndim();
    if (value.sharding) {
      value.sharding = closed(value.sharding);
    } else if (mesh_ != nullptr && (ndim != 0 || region_of(module_, id) == body)) {
      value.sharding = replicated(ndim);
    }
  }

  ShardingId closed(ShardingId id) {
    auto [it, inserted] = closed_.try_emplace(id);
    if (inserted) {
      TensorSharding sharding = context_.sharding(id).closed().without_priorities();
      // The list kept propagation from using the axes. In a closed sharding, axes that are not named are replicated
      // anyway.
      sharding.replicated.clear();
      it->second = context_.intern(sharding);
    }
    return it->second;
  }

  ShardingId replicated(int64_t ndim) {
    const auto index = static_cast<size_t>(ndim);
    if (replicated_.size() <= index) replicated_.resize(index + 1);
    if (!replicated_[index]) replicated_[index] = context_.intern(TensorSharding::fully_replicated(mesh_, ndim));
    return replicated_[index];
  }

  Module& module_;
  Context& context_;
  MeshPtr mesh_;
  std::unordered_map<ShardingId, ShardingId> closed_;
  std::vector<ShardingId> replicated_;  // by ndim
};

}  // namespace

void close_shardings(Module& module) {
  Closer closer(module);
  for (Function& function : module.functions) {
    closer.close_values(function.body, [](ValueId) { return true; });
    closer.close_results(function);
  }
}

void close_shardings(Module& module, std::span<const ValueId> values) {
  std::vector<bool> is_chosen(module.value_count());
  for (const ValueId value : values) is_chosen[value.index] = true;
  Closer closer(module);
  for (const Function& function : module.functions) {
    closer.close_values(function.body, [&](ValueId value) { return is_chosen[value.index]; });
  }
}

}  // namespace shardwise
