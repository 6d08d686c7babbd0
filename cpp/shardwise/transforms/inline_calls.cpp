// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/inline_calls.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/graph_copy.h"
#include "shardwise/ir/structural_equality.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/ops/sharding/manual_computation.h"

namespace shardwise {
namespace {

enum class Mode : uint8_t { kInline, kRegions };

std::vector<ValueId> results_of(const Module& module, OpId id) {
  std::vector<ValueId> results;
  for (uint32_t i = 0; i < module.op(id).result_count; ++i) results.push_back(module.result(id, i));
  return results;
}

// What every call comes to, in ops, without making one.
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
  CallExpander(Module& module, Mode mode) : module_(module), mode_(mode) {}

  std::set<std::string> run() {
    // Functions that are called vanish; they are expanded where they are called, so they are not expanded here.
    std::set<std::string> called;
    for (const Function& function : module_.functions) find_called(function.body, called);
    if (called.empty() && (mode_ == Mode::kRegions || !has_named_computations())) return called;
    ExpansionBounds(module_).check();
    std::vector<Function> kept;
    const std::string main = module_.main().name;
    for (const Function& function : module_.functions) {
      if (function.is_public() || function.name == main || !called.contains(function.name)) kept.push_back(function);
    }
    for (const Function& function : kept) expand(function.body);
    module_.functions = std::move(kept);
    return called;
  }

 private:
  void find_called(RegionId region, std::set<std::string>& called) const {
    for (const OpId id : module_.region(region).ops) {
      if (is_call(module_, id)) called.insert(callee_of(module_, id));
      for (const RegionId inner : module_.regions(id)) find_called(inner, called);
    }
  }

  bool has_named_computations() const {
    for (uint32_t i = 1; i < module_.op_count(); ++i) {
      if (is_named_computation(module_, OpId{i})) return true;
    }
    return false;
  }

  const Function& function(const std::string& name) const {
    const auto it = std::ranges::find(module_.functions, name, &Function::name);
    check_internal(it != module_.functions.end(), "a call was verified");
    return *it;
  }

  ValueId replaced(ValueId value) const {
    const auto it = replacement_.find(value);
    return it == replacement_.end() ? value : it->second;
  }

  void expand(RegionId region) {
    std::vector<OpId> ops;
    ops.swap(module_.region(region).ops);
    for (const OpId id : ops) {
      const bool is_edge = module_.op(id).def->traits.data_flow_edge;
      const bool is_done = is_edge && mode_ == Mode::kInline && replacement_.contains(module_.operands(id)[0]);
      for (ValueId& operand : module_.operands(id)) operand = replaced(operand);
      if (is_done) {  // what it stood for is no longer handed on
        Builder builder(module_, region, module_.op(id).loc);
        const ValueId edge = module_.result(id);
        replacement_[edge] = constrained(module_.operands(id)[0], module_.value(edge).sharding, builder);
      } else if (is_call(module_, id)) {
        expand_call(id, region);
      } else if (mode_ == Mode::kInline && is_named_computation(module_, id)) {
        inline_region(id, region);
      } else {
        module_.region(region).ops.push_back(id);
        const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
        for (const RegionId body : inner) expand(body);
      }
    }
    for (ValueId& result : module_.region(region).results) result = replaced(result);
  }

  ValueId constrained(ValueId value, ShardingId sharding, Builder& builder) {
    return sharding ? create_sharding_constraint(builder, value, TensorSharding(module_.context().sharding(sharding)))
                    : value;
  }

  void expand_call(OpId id, RegionId region) {
    const std::string callee = callee_of(module_, id);
    const Function called = function(callee);
    Builder builder(module_, region, module_.op(id).loc);
    std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const std::vector<ValueId> arguments = module_.region(called.body).arguments;
    for (size_t i = 0; mode_ == Mode::kInline && i < operands.size(); ++i) {
      operands[i] = constrained(operands[i], module_.value(arguments[i]).sharding, builder);
    }
    std::vector<ValueId> results =
        mode_ == Mode::kInline ? inlined(called, operands, region) : as_region(called, operands, builder);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId result = module_.result(id, static_cast<uint32_t>(i));
      ShardingId sharding = module_.value(result).sharding;
      if (!sharding && i < called.result_shardings.size()) sharding = called.result_shardings[i];
      if (mode_ == Mode::kRegions) {
        module_.value(results[i]).sharding = sharding;
        replacement_[result] = results[i];
      } else {
        replacement_[result] = constrained(results[i], sharding, builder);
      }
    }
    if (mode_ == Mode::kRegions) open_others(results);
  }

  // Where one of the values has a sharding, the others have an open one: to be left alone by constraints behind them.
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

  std::vector<ValueId> as_region(const Function& called, const std::vector<ValueId>& operands, Builder& builder) {
    const RegionId body = GraphCopy(module_, module_).region(called.body);
    open_others(module_.region(body).arguments);
    expand(body);
    return results_of(module_, create_named_computation(builder, called.name, operands, body));
  }

  // The copy's ops go through `expand` in a region of their own first: calls in it are expanded there.
  std::vector<ValueId> inlined(const Function& called, const std::vector<ValueId>& operands, RegionId region) {
    const RegionId body = module_.add_region();
    GraphCopy copy(module_, module_);
    const std::vector<ValueId> arguments = module_.region(called.body).arguments;
    for (size_t i = 0; i < arguments.size(); ++i) copy.map(arguments[i], operands[i]);
    copy.ops(called.body, body);
    const std::vector<ValueId> returned = module_.region(called.body).results;
    for (const ValueId result : returned) module_.region(body).results.push_back(copy(result));
    expand(body);
    return take_ops(body, region);
  }

  void inline_region(OpId id, RegionId region) {
    const RegionId body = module_.regions(id)[0];
    Builder builder(module_, region, module_.op(id).loc);
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const std::vector<ValueId> arguments = module_.region(body).arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      replacement_[arguments[i]] = constrained(operands[i], module_.value(arguments[i]).sharding, builder);
    }
    expand(body);
    const std::vector<ValueId> results = take_ops(body, region);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId result = module_.result(id, static_cast<uint32_t>(i));
      replacement_[result] = constrained(results[i], module_.value(result).sharding, builder);
    }
  }

  std::vector<ValueId> take_ops(RegionId from, RegionId into) {
    std::vector<OpId> ops;
    ops.swap(module_.region(from).ops);
    for (const OpId id : ops) module_.op(id).parent = into;
    std::vector<OpId>& target = module_.region(into).ops;
    target.insert(target.end(), ops.begin(), ops.end());
    return module_.region(from).results;
  }

  Module& module_;
  Mode mode_;
  std::unordered_map<ValueId, ValueId> replacement_;
};

class Outliner {
 public:
  Outliner(Module& module, const std::set<std::string>& names) : module_(module), names_(names) {
    for (const Function& function : module_.functions) taken_.insert(function.name);
  }

  void run() {
    const std::vector<Function> functions = module_.functions;
    for (const Function& function : functions) outline(function.body);
  }

 private:
  void outline(RegionId region) {
    std::vector<OpId> ops;
    ops.swap(module_.region(region).ops);
    for (const OpId id : ops) {
      for (ValueId& operand : module_.operands(id)) operand = replaced(operand);
      const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
      for (const RegionId body : inner) outline(body);
      if (is_named_computation(module_, id) && names_.contains(name_of(id))) {
        call(id, region);
      } else {
        module_.region(region).ops.push_back(id);
      }
    }
    for (ValueId& result : module_.region(region).results) result = replaced(result);
  }

  ValueId replaced(ValueId value) const {
    const auto it = replacement_.find(value);
    return it == replacement_.end() ? value : it->second;
  }
  std::string name_of(OpId id) const { return module_.attrs(id).get<std::string>("name"); }

  void call(OpId id, RegionId region) {
    Function function{.name = name_of(id),
                      .visibility = Visibility::kPrivate,
                      .body = module_.regions(id)[0],
                      .result_shardings = {}};
    for (const ValueId result : results_of(module_, id)) {
      function.result_shardings.push_back(module_.value(result).sharding);
    }
    const std::string name = function_of(std::move(function));
    Builder builder(module_, region, module_.op(id).loc);
    const std::vector<ValueId> operands(module_.operands(id).begin(), module_.operands(id).end());
    const std::vector<ValueId> old = results_of(module_, id);
    const OpId made = create_call(builder, name, operands, old);
    for (size_t i = 0; i < old.size(); ++i) {
      const ValueId result = module_.result(made, static_cast<uint32_t>(i));
      module_.value(result).sharding = module_.value(old[i]).sharding;
      replacement_[old[i]] = result;
    }
  }

  // A function with this body: one that is there already, or a new one.
  std::string function_of(Function function) {
    std::vector<std::string>& made = made_[function.name];
    for (const std::string& name : made) {
      const auto it = std::ranges::find(module_.functions, name, &Function::name);
      if (it->result_shardings == function.result_shardings && same_bodies(module_, it->body, function.body))
        return name;
    }
    const std::string base = function.name;
    for (int64_t i = 0; taken_.contains(function.name); ++i) function.name = str(base, "_", i);
    taken_.insert(function.name);
    made.push_back(function.name);
    module_.region(function.body).op = {};
    module_.functions.push_back(std::move(function));
    return made.back();
  }

  Module& module_;
  const std::set<std::string>& names_;
  std::set<std::string> taken_;
  std::map<std::string, std::vector<std::string>> made_;  // by the name of the function called
  std::unordered_map<ValueId, ValueId> replacement_;
};

}  // namespace

void inline_calls(Program& program) { CallExpander(program.module, Mode::kInline).run(); }

std::set<std::string> calls_to_regions(Module& module) { return CallExpander(module, Mode::kRegions).run(); }

void regions_to_calls(Module& module, const std::set<std::string>& names) {
  if (!names.empty()) Outliner(module, names).run();
}

}  // namespace shardwise
