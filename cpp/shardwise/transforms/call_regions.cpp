// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/call_regions.h"

#include <algorithm>
#include <map>
#include <vector>

#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

class RegionMaker {
 public:
  explicit RegionMaker(Module& module) : module_(module), rewrite_(module) {}

  void run(const std::set<std::string>& called) {
    // Called functions are removed: they are expanded at their calls, so they are not expanded here.
    std::vector<Function> kept;
    const std::string main = module_.main().name;
    for (const Function& function : module_.functions) {
      if (function.is_public() || function.name == main || !called.contains(function.name)) kept.push_back(function);
    }
    for (const Function& function : kept) {
      expand(std::vector<OpId>(module_.region(function.body).ops));
      rewrite_.commit();  // another one may call it
    }
    module_.functions = std::move(kept);
  }

 private:
  void expand(const std::vector<OpId>& ops) {
    // Calls in the ops of a call are expanded in the copy, so that each call gets regions of its own all the way down.
    for (const OpId id : ops) {
      if (is_call(module_, id)) {
        const std::vector<OpId> inner = make_region(id, called_function(module_, id));
        rewrite_.erase(id);
        expand(inner);
        continue;
      }
      const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
      for (const RegionId body : inner) expand(std::vector<OpId>(module_.region(body).ops));
    }
  }

  // A named computation in front of the call; returns the ops in it.
  std::vector<OpId> make_region(OpId id, const Function& called) {
    const RegionId body = GraphCopy(module_, module_).region(called.body);
    // JAX prints no lines in the functions of its library.
    walk(module_, body, [&](OpId op) {
      if (!module_.op(op).loc) module_.op(op).loc = module_.op(id).loc;
    });
    open_others(module_.region(body).arguments);
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const OpId made = rewrite_.insert(rewrite_.before(id), module_.op(id).loc, [&](Builder& builder) {
      return create_named_computation(builder, called.name, operands, body);
    });
    for (uint32_t i = 0; i < module_.op(made).result_count; ++i) {
      const ValueId before = module_.result(id, i), result = module_.result(made, i);
      rewrite_.hand_over(before, result);
      module_.value(result).sharding = sharding_of_call(module_, before, i, &called);
    }
    open_others(results_of(module_, made));
    return module_.region(body).ops;
  }

  // If one of the values has a sharding, the others get an open one, so that later constraints are not applied to them.
  template <class Values>
  void open_others(const Values& values) {
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

  Module& module_;
  Rewrite rewrite_;
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
      // Inner calls first: two layers are equal only when the functions that they call have the same names.
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
    std::vector<ValueId> old;
    for (const ValueId result : results_of(module_, id)) {
      old.push_back(result);
      function.result_shardings.push_back(module_.value(result).sharding);
    }
    // The region becomes the body of the function, so that erasing the op must not take it along.
    module_.release_regions(id);
    const std::string name = function_of(std::move(function));
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const OpId made = rewrite_.insert(rewrite_.before(id), module_.op(id).loc,
                                      [&](Builder& builder) { return create_call(builder, name, operands, old); });
    for (uint32_t i = 0; i < old.size(); ++i) rewrite_.hand_over(old[i], module_.result(made, i));
    rewrite_.erase(id);
  }

  // The name of a function with this body and these shardings: an existing one, or a new one.
  std::string function_of(Function function) {
    std::vector<std::string>& made = made_[function.name];
    for (const std::string& name : made) {
      const auto it = std::ranges::find(module_.functions, name, &Function::name);
      // Shardings of arguments are part of the body, those of results are not, so they are compared on their own.
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

std::set<std::string> calls_to_regions(Module& module) {
  std::set<std::string> called;
  walk(module, [&](OpId id) {
    if (is_call(module, id)) called.insert(callee_of(module, id));
  });
  if (called.empty()) return called;
  // Its constructor rejects recursion and texts that would expand to millions of ops, before anything is copied.
  const CallGraph within_limits(module);
  RegionMaker(module).run(called);
  return called;
}

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
