// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/annotated_instead.h"

#include <algorithm>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/value_queries.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/sharding/constraints.h"

namespace shardwise {
namespace {

bool is_constraint(const Module& module, ValueId value) {
  const OpId op = module.value(value).op;
  return op && module.op(op).def->traits.constraint;
}

// A value that an annotation can be replaced of.
bool is_annotated(const Module& module, ValueId value) {
  const Value& known = module.value(value);
  const bool is_argument = !known.op && known.region == module.main().body;
  return is_argument ? static_cast<bool>(known.sharding) : is_constraint(module, value);
}

void annotate(Module& module, ValueId value, const TensorSharding& sharding) {
  const Value& known = module.value(value);
  if (is_constraint(module, value) || (!known.op && known.region == module.main().body)) {
    module.value(value).sharding = module.context().intern(sharding);
    return;
  }
  Rewrite rewrite(module);
  const ValueId made = rewrite.insert(rewrite.behind(value), rewrite.loc(value), [&](Builder& builder) {
    return create_sharding_constraint(builder, value, sharding);
  });
  rewrite.replace(value, made, module.value(made).op);
}

}  // namespace

Module annotated_instead(Module module, const std::string& name, const TensorSharding& sharding) {
  std::vector<ValueId> found;
  for (const NamedValue& named : ValueQueries(module).find(name)) found.push_back(named.value);
  const auto is_fixed = [&](ValueId value) { return is_annotated(module, value); };
  // An argument and its annotation may both be called "w1".
  if (std::ranges::any_of(found, is_fixed)) std::erase_if(found, [&](ValueId value) { return !is_fixed(value); });
  const auto is_of_another = [&](ValueId value) {
    const OpId op = module.value(value).op;
    return op && std::ranges::find(found, module.operands(op)[0]) != found.end();
  };
  // Of values that annotate each other, each is of the same one.
  if (std::ranges::count_if(found, [&](ValueId value) { return !is_of_another(value); }) != 1) {
    fail<ShardingError>("why", "instead= is about one value",
                        str(found.empty() ? "none" : str(found.size()), " called '", name, "'"),
                        "name it by sw.name(value, \"…\")");
  }
  for (const ValueId value : found) {
    const size_t ndim = module.type(value).shape.size();
    if (sharding.dims.size() != ndim) {
      fail<ShardingError>("why", str("instead= must have ", ndim, " dims, as the value has"), str(sharding.dims.size()),
                          "give one entry per dim");
    }
    annotate(module, value, sharding);
  }
  return module;
}

}  // namespace shardwise
