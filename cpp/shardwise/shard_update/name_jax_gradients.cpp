// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/name_jax_gradients.h"

#include <algorithm>
#include <string>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/shard_update/update_graph.h"
#include "shardwise/transforms/gradient/name_gradients.h"

namespace shardwise {
namespace {

bool is_transposed(const Module& module, OpId op) {
  return op && module.context().name_of(module.op(op).loc).find("transpose(") != std::string::npos;
}

// The updates of a program without such ops are not looked for.
bool has_any(const Module& module) {
  return std::ranges::any_of(module.region(module.main().body).ops, [&](OpId op) { return is_transposed(module, op); });
}

// Returns the name of the weight that an update writes, or "" if no argument is that weight.
std::string weight_name(const Module& module, const UpdateGroup& group, std::span<const std::string> arguments) {
  const auto weight = std::ranges::find_if(group.weights, [&](ValueId value) { return !module.value(value).op; });
  return weight == group.weights.end() ? std::string() : arguments[module.value(*weight).index];
}

}  // namespace

void name_jax_gradients(Module& module, std::span<const std::string> arguments) {
  if (arguments.empty() || !has_any(module)) return;
  const Region& main = module.region(module.main().body);
  check_internal(main.arguments.size() == arguments.size(), "a name for each argument");
  UpdateGraph graph(module, module.main().body, main.arguments, main.results);
  std::vector<ValueId> gradients;
  std::vector<std::string> names;
  for (const UpdateGroup& group : graph.groups()) {
    const std::string weight = weight_name(module, group, arguments);
    if (weight.empty()) continue;
    for (const ValueId gradient : group.gradients) {
      if (!is_transposed(module, module.value(gradient).op)) continue;
      gradients.push_back(gradient);
      names.push_back(gradient_name(weight));
    }
  }
  name_gradients(module, gradients, names, 0);
}

}  // namespace shardwise
