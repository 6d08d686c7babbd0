// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/inline_calls.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/transforms/decompose.h"

namespace shardwise {
namespace {

enum class Mode : uint8_t { kInline, kRegions };

std::vector<ValueId> results_of(const Module& module, OpId id) {
  std::vector<ValueId> results;
  for (uint32_t i = 0; i < module.op(id).result_count; ++i) results.push_back(module.result(id, i));
  return results;
}

const Function& called_function(const Module& module, OpId call) {
  const auto it = std::ranges::find(module.functions, callee_of(module, call), &Function::name);
  check_internal(it != module.functions.end(), "a call was verified");
  return *it;
}

ShardingId sharding_of_result(const Module& module, ValueId result, size_t i, const Function* called) {
  const ShardingId sharding = module.value(result).sharding;
  const bool has_none = !sharding && called != nullptr && i < called->result_shardings.size();
  return has_none ? called->result_shardings[i] : sharding;
}

ValueId append_constraint(Builder& builder, ValueId value, ShardingId sharding) {
  if (!sharding) return value;
  return create_sharding_constraint(builder, value, TensorSharding(builder.context().sharding(sharding)));
}

// Computes the number of ops that every call expands to, without creating them.
class ExpansionBounds {
 public:
  explicit ExpansionBounds(const Module& module) : module_(module) {
    for (const Function& function : module.functions) bodies_.emplace(function.name, function.body);
  }

  void check() {
    for (const Function& function : module_.functions) size_of(function.body, 0);
  }

 private:
  [[noreturn]] void refuse(OpId call, std::string_view must_hold, const std::string& got,
                           std::string_view way_out) const {
    ShardingError error(error_message("func.call", must_hold, got, way_out));
    error.at(module_.context().location_text(module_.op(call).loc));
    throw error;
  }

  struct Size {
    int64_t ops = 0;
    int depth = 0;  // of regions and calls inside
  };

  Size size_of(RegionId region, int depth) {
    Size all;
    const auto add = [&](const Size& inner) {
      all.ops += inner.ops;
      all.depth = std::max(all.depth, inner.depth + 1);
    };
    for (const OpId id : module_.region(region).ops) {
      ++all.ops;
      for (const RegionId inner : module_.regions(id)) add(size_of(inner, depth + 1));
      if (is_call(module_, id)) add(size_of_call(id, depth));
      if (all.ops > kMaxExpandedOps) {
        refuse(id, str("calls must come to at most ", kMaxExpandedOps, " ops in all"), "more",
               "repeat with stablehlo.while");
      }
    }
    return all;
  }

  Size size_of_call(OpId call, int depth) {
    const std::string& callee = callee_of(module_, call);
    auto known = sizes_.find(callee);
    if (known == sizes_.end()) {
      if (!open_.insert(callee).second) {
        refuse(call, "a function must not call itself", "@" + callee, "use stablehlo.while to repeat something");
      }
      check_depth(call, depth + 1);
      const Size size = size_of(bodies_.at(callee), depth + 1);
      open_.erase(callee);
      known = sizes_.emplace(callee, size).first;
    }
    check_depth(call, depth + 1 + known->second.depth);
    return known->second;
  }

  void check_depth(OpId call, int depth) const {
    if (depth > kMaxCallDepth) {
      refuse(call, str("calls and regions must nest at most ", kMaxCallDepth, " deep"), "more", "call fewer in a row");
    }
  }

  const Module& module_;
  std::unordered_map<std::string, RegionId> bodies_;
  std::unordered_map<std::string, Size> sizes_;  // by function
  std::set<std::string> open_;                   // functions that are being counted
};

class CallExpander {
 public:
  CallExpander(Module& module, Mode mode) : module_(module), rewrite_(module), mode_(mode) {}

  std::set<std::string> run() {
    // Called functions are removed: they are expanded at their calls, so they are not expanded here.
    std::set<std::string> called;
    walk(module_, [&](OpId id) {
      if (is_call(module_, id)) called.insert(callee_of(module_, id));
    });
    if (called.empty() && (mode_ == Mode::kRegions || !has_named_computations())) return called;
    ExpansionBounds(module_).check();
    std::vector<Function> kept;
    const std::string main = module_.main().name;
    for (const Function& function : module_.functions) {
      if (function.is_public() || function.name == main || !called.contains(function.name)) kept.push_back(function);
    }
    for (const Function& function : kept) {
      expand(function.body);
      rewrite_.commit();  // another one may call it
    }
    module_.functions = std::move(kept);
    return called;
  }

 private:
  bool has_named_computations() const {
    for (uint32_t i = 1; i < module_.op_count(); ++i) {
      if (is_named_computation(module_, OpId{i})) return true;
    }
    return false;
  }

  void expand(RegionId region) { expand(std::vector<OpId>(module_.region(region).ops)); }

  void expand(const std::vector<OpId>& ops) {
    for (const OpId id : ops) {
      if (rewrite_.is_erased(id)) continue;
      if (is_call(module_, id)) {
        expand_call(id);
      } else if (mode_ == Mode::kInline && is_named_computation(module_, id)) {
        inline_region(id);
      } else {
        const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
        for (const RegionId body : inner) expand(body);
      }
    }
  }

  void expand_call(OpId id) {
    const std::vector<OpId> ops =
        mode_ == Mode::kInline ? inline_call(id) : make_region(id, called_function(module_, id));
    rewrite_.erase(id);
    expand(ops);
  }

  // The ops of the function in front of the call; returns them.
  std::vector<OpId> inline_call(OpId id) {
    std::vector<OpId> ops;
    const std::vector<ValueId> results =
        rewrite_.insert(rewrite_.before(id), module_.op(id).loc, [&](Builder& builder) {
          const auto known = std::ssize(module_.region(builder.region()).ops);
          std::vector<ValueId> made = append_inlined(builder, OpView(module_, id));
          const std::vector<OpId>& all = module_.region(builder.region()).ops;
          ops.assign(all.begin() + known, all.end());
          for (const OpId op : ops) locate(op, module_.op(id).loc);
          return made;
        });
    for (uint32_t i = 0; i < results.size(); ++i) replace(module_.result(id, i), results[i]);
    return ops;
  }

  // Ops without a line of their own get that of the call: JAX prints none in the functions of its library.
  void locate(OpId op, LocId call) {
    if (module_.context().resolve(module_.op(op).loc).file.empty()) module_.op(op).loc = call;
    for (const RegionId region : module_.regions(op)) {
      for (const OpId inner : module_.region(region).ops) locate(inner, call);
    }
  }

  // The value, with a constraint in front of `user` if there is a sharding.
  ValueId constrained(ValueId value, ShardingId sharding, OpId user) {
    if (!sharding) return value;
    return rewrite_.insert(rewrite_.before(user), module_.op(user).loc,
                           [&](Builder& builder) { return append_constraint(builder, value, sharding); });
  }

  // Removes a data-flow edge whose value no remaining op forwards.
  void replace(ValueId value, ValueId by) {
    std::vector<OpId> edges;
    for (const Use use : module_.uses(value)) {
      if (use.op && module_.op(use.op).def->traits.data_flow_edge) edges.push_back(use.op);
    }
    rewrite_.replace(value, by);
    for (const OpId edge : edges) {
      const ValueId result = module_.result(edge);
      replace(result, constrained(by, module_.value(result).sharding, edge));
      rewrite_.erase(edge);
    }
  }

  // A named computation in front of the call; returns the ops in it.
  std::vector<OpId> make_region(OpId id, const Function& called) {
    const RegionId body = GraphCopy(module_, module_).region(called.body);
    open_others(module_.region(body).arguments);
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const OpId made = rewrite_.insert(rewrite_.before(id), module_.op(id).loc, [&](Builder& builder) {
      return create_named_computation(builder, called.name, operands, body);
    });
    const std::vector<ValueId> results = results_of(module_, made);
    for (uint32_t i = 0; i < results.size(); ++i) {
      const ValueId result = module_.result(id, i);
      module_.value(results[i]).sharding = sharding_of_result(module_, result, i, &called);
      module_.value(results[i]).origin = module_.value(result).origin;
      rewrite_.replace(result, results[i]);
    }
    open_others(results);
    return module_.region(body).ops;
  }

  // If one of the values has a sharding, the others get an open one, so that later constraints are not applied to them.
  void open_others(const std::vector<ValueId>& values) {
    const auto known = std::ranges::find_if(values, [&](ValueId v) { return bool{module_.value(v).sharding}; });
    if (known == values.end()) return;
    const MeshPtr mesh = module_.context().sharding(module_.value(*known).sharding).mesh;
    for (const ValueId value : values) {
      ShardingId& sharding = module_.value(value).sharding;
      const TensorType& type = module_.type(value);
      if (sharding || type.dtype == DType::kToken) continue;
      sharding = module_.context().intern(TensorSharding::open(mesh, static_cast<int64_t>(type.shape.size())));
    }
  }

  void inline_region(OpId id) {
    const RegionId body = module_.regions(id)[0];
    const std::vector<ValueId> arguments = module_.region(body).arguments;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      replace(arguments[i], constrained(module_.operands(id)[i], module_.value(arguments[i]).sharding, id));
    }
    const std::vector<OpId> ops = module_.region(body).ops;
    rewrite_.move_ops(body, rewrite_.before(id));
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const ValueId result = module_.result(id, i);
      replace(result, constrained(module_.region(body).results[i], module_.value(result).sharding, id));
    }
    rewrite_.erase(id);
    expand(ops);
  }

  Module& module_;
  Rewrite rewrite_;
  Mode mode_;
};

class Outliner {
 public:
  Outliner(Module& module, const std::set<std::string>& names)
      : module_(module), rewrite_(module), same_regions_(module), names_(names) {
    for (const Function& function : module_.functions) taken_.insert(function.name);
  }

  void run() {
    const std::vector<Function> functions = module_.functions;
    for (const Function& function : functions) outline(function.body);
  }

 private:
  void outline(RegionId region) {
    for (size_t i = 0; i < module_.region(region).ops.size(); ++i) {
      const OpId id = module_.region(region).ops[i];
      for (size_t r = 0; r < module_.regions(id).size(); ++r) outline(module_.regions(id)[r]);
      if (is_named_computation(module_, id) && names_.contains(name_of(id))) call(id);
    }
    rewrite_.commit(region);  // bodies are compared
  }

  std::string name_of(OpId id) const { return module_.attrs(id).get<std::string>("name"); }

  void call(OpId id) {
    Function function{.name = name_of(id),
                      .visibility = Visibility::kPrivate,
                      .body = module_.regions(id)[0],
                      .result_shardings = {}};
    const std::vector<ValueId> old = results_of(module_, id);
    for (const ValueId result : old) function.result_shardings.push_back(module_.value(result).sharding);
    module_.release_regions(id);
    const std::string name = function_of(std::move(function));
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const OpId made = rewrite_.insert(rewrite_.before(id), module_.op(id).loc,
                                      [&](Builder& builder) { return create_call(builder, name, operands, old); });
    const std::vector<ValueId> results = results_of(module_, made);
    for (size_t i = 0; i < old.size(); ++i) {
      module_.value(results[i]).sharding = module_.value(old[i]).sharding;
      module_.value(results[i]).origin = module_.value(old[i]).origin;
    }
    rewrite_.replace(id, results);
  }

  // The name of a function with this body and these shardings: an existing one, or a new one.
  std::string function_of(Function function) {
    std::vector<std::string>& made = made_[function.name];
    for (const std::string& name : made) {
      const auto it = std::ranges::find(module_.functions, name, &Function::name);
      if (it->result_shardings == function.result_shardings && same_regions_(it->body, function.body)) return name;
    }
    const std::string base = function.name;
    // Shardy's names: f, f_0, f_1, …
    for (int64_t i = 0; taken_.contains(function.name); ++i) function.name = str(base, "_", i);
    taken_.insert(function.name);
    made.push_back(function.name);
    module_.functions.push_back(std::move(function));
    return made.back();
  }

  Module& module_;
  Rewrite rewrite_;
  SameRegions same_regions_;
  const std::set<std::string>& names_;
  std::set<std::string> taken_;
  std::map<std::string, std::vector<std::string>> made_;  // by the name of the function called
};

}  // namespace

bool is_inlined(const Module& module, OpId op) {
  return is_call(module, op) || module.op(op).def->regions == Regions::kInline;
}

std::vector<ValueId> append_inlined(Builder& builder, const OpView& op) {
  Module& module = builder.module();
  const Function* called = is_call(module, op.id()) ? &called_function(module, op.id()) : nullptr;
  const RegionId body = called != nullptr ? called->body : op.regions()[0];
  GraphCopy copy(module, module);
  const std::vector<ValueId> arguments = module.region(body).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    copy.map(arguments[i], append_constraint(builder, op.operand(i), module.value(arguments[i]).sharding));
  }
  copy.ops(body, builder.region());
  std::vector<ValueId> results = module.region(body).results;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = append_constraint(builder, copy(results[i]), sharding_of_result(module, op.result(i), i, called));
  }
  return results;
}

Module inline_calls(Module module, PassContext&) {
  decompose_ops(module, is_composite);
  CallExpander(module, Mode::kInline).run();
  return module;
}

std::set<std::string> calls_to_regions(Module& module) { return CallExpander(module, Mode::kRegions).run(); }

void regions_to_calls(Module& module, const std::set<std::string>& names) {
  if (!names.empty()) Outliner(module, names).run();
}

bool is_called_region(const Module& module, const std::set<std::string>& called, OpId op) {
  return op && is_named_computation(module, op) && called.contains(module.attrs(op).get<std::string>("name"));
}

std::string name_with_calls(const Module& module, const std::set<std::string>& called, OpId op) {
  return std::string(is_called_region(module, called, op) ? kCallName : module.op(op).def->name);
}

}  // namespace shardwise
