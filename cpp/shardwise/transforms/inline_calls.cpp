// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/inline_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/tokens.h"
#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/transforms/batch/manual_regions.h"
#include "shardwise/transforms/decompose.h"
#include "shardwise/transforms/flatten_combiners.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

// Its decomposition may refer to functions of the module, which may be dropped with the calls: that of a composite is
// one, and an op that has a kernel or a decomposition, depending on its target, may name some (ApproxTopK's
// comparator). An op that has either of them by its dtype (the Cholesky factor of narrow floats) is among the latter.
bool needs_functions(const OpDef& def) {
  return is_composite(def) || (def.decompose != nullptr && def.runs == Runs::kKernel);
}

// Its region becomes code of the program, whose ops count and whose calls may stay: a scan of rows. An op with a rule
// is one op to the partitioner, with a combiner.
bool holds_code(const OpDef& def) {
  return is_composed(def) && def.regions == Regions::kCombiner && def.rule == no_rule;
}

bool goes_first(const OpDef& def) { return needs_functions(def) || holds_code(def); }

// Combiners do not count: an op with one is one op to the partitioner.
int64_t count_ops(const Module& module, RegionId region) {
  int64_t count = 0;
  for (const OpId id : module.region(region).ops) {
    ++count;
    if (module.op(id).def->regions == Regions::kCombiner) continue;
    for (const RegionId inner : module.regions(id)) count += count_ops(module, inner);
  }
  return count;
}

// An effect of an op that other ops make up is one on a hidden state: these ops depend on the place in the program.
bool has_hidden_state(const Module& module, RegionId region) {
  bool found = false;
  walk(module, region, [&](OpId id) {
    const OpView op(module, id);
    found = found || (is_composed(op.def()) && op.def().has_side_effect(op));
  });
  return found;
}

// By function: whether its calls are replaced.
std::vector<bool> find_inlined(const Module& module, const CallGraph& calls) {
  const size_t count = module.functions.size();
  std::vector<int64_t> sites(count), ops(count);
  for (size_t f = 0; f < count; ++f) {
    for (const OpId call : calls.calls(f)) ++sites[calls.callee(call)];
  }
  std::vector<bool> inlined(count), is_placed(count);
  // Callees first, so that the ops of a call that goes are known. They replace one op, the call.
  for (const size_t f : calls.callees_first()) {
    ops[f] = count_ops(module, module.functions[f].body);
    is_placed[f] = has_hidden_state(module, module.functions[f].body);
    for (const OpId call : calls.calls(f)) {
      if (inlined[calls.callee(call)]) ops[f] += ops[calls.callee(call)] - 1;
      is_placed[f] = is_placed[f] || is_placed[calls.callee(call)];
    }
    inlined[f] = sites[f] == 1 || ops[f] <= kMaxInlinedOps || is_placed[f];
  }
  return inlined;
}

class CallInliner {
 public:
  // `inlined` holds the functions to expand.
  CallInliner(Module& module, std::set<std::string> inlined)
      : module_(module), rewrite_(module), inlined_(std::move(inlined)) {}

  void run() {
    const std::string main = module_.main().name;
    for (const Function& function : module_.functions) {
      // Its ops are expanded where it is called.
      if (!function.is_public() && function.name != main && inlined_.contains(function.name)) continue;
      expand(function.body, false);
      rewrite_.commit();  // another one may call it
    }
  }

 private:
  void expand(RegionId region, bool in_combiner) { expand(std::vector<OpId>(module_.region(region).ops), in_combiner); }

  void expand(const std::vector<OpId>& ops, bool in_combiner) {
    for (const OpId id : ops) {
      // `replace` may have erased a data-flow edge that is still in this list.
      if (rewrite_.is_erased(id)) continue;
      if (is_call(module_, id)) {
        // Kernels of reductions compile their combiner to tile instructions, which have no calls.
        if (in_combiner || inlined_.contains(callee_of(module_, id))) inline_call(id, in_combiner);
      } else if (is_inlined_region(module_, id)) {
        inline_region(id, in_combiner);
      } else {
        const std::vector<RegionId> inner(module_.regions(id).begin(), module_.regions(id).end());
        const bool combines = in_combiner || module_.op(id).def->regions == Regions::kCombiner;
        for (const RegionId body : inner) expand(body, combines);
      }
    }
  }

  // The ops of the function take the place of the call.
  void inline_call(OpId id, bool in_combiner) {
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
    rewrite_.erase(id);
    expand(ops, in_combiner);
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

  void inline_region(OpId id, bool in_combiner) {
    const RegionId body = module_.regions(id)[0];
    const std::vector<ValueId> arguments = module_.region(body).arguments;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      replace(arguments[i], constrained(module_.operands(id)[i], module_.value(arguments[i]).sharding, id));
    }
    const std::vector<OpId> ops = module_.region(body).ops;
    // Moved, not copied as for a function: a region has no other user.
    rewrite_.move_ops(body, rewrite_.before(id));
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      const ValueId result = module_.result(id, i);
      replace(result, constrained(module_.region(body).results[i], module_.value(result).sharding, id));
    }
    rewrite_.erase(id);
    expand(ops, in_combiner);
  }

  Module& module_;
  Rewrite rewrite_;
  const std::set<std::string> inlined_;
};

bool has_inlined_regions(const Module& module) {
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    if (is_inlined_region(module, OpId{i})) return true;
  }
  return false;
}

// Tokens become empty arrays, so that carries of loops, arguments of functions and barriers hold them like any value:
//
//   %t = stablehlo.create_token : !stablehlo.token          %t = stablehlo.constant dense<> : tensor<0xi1>
//   %r:2 = while(%i = %n, %u = %t) …                        the same loop, with a carry tensor<0xi1>
//
// An op that needs a token for its effect (outfeed) is refused. So is a token that main receives or returns: JAX passes
// one for ordered callbacks.
void empty_tokens(Module& module) {
  const auto is_token = [&](ValueId value) { return module.type(value).dtype == DType::kToken; };
  const Region& body = module.region(module.main().body);
  // The check of programs to run names these values.
  if (std::ranges::any_of(body.arguments, is_token) || std::ranges::any_of(body.results, is_token)) return;
  const TypeId empty = module.context().tensor(DType::kBool, Dims{0});
  bool found = false;
  for (uint32_t i = 1; i < module.value_count(); ++i) {
    if (!is_token(ValueId{i})) continue;
    module.value(ValueId{i}).type = empty;
    found = true;
  }
  if (found) decompose_ops(module, makes_token);
}

void expand_calls(Module& module) {
  std::set<std::string> inlined, called;
  const CallGraph calls(module);
  const std::vector<bool> is_small = find_inlined(module, calls);
  for (size_t f = 0; f < module.functions.size(); ++f) {
    for (const OpId call : calls.calls(f)) {
      const size_t callee = calls.callee(call);
      called.insert(module.functions[callee].name);
      if (is_small[callee]) inlined.insert(module.functions[callee].name);
    }
  }
  if (called.empty() && !has_inlined_regions(module)) return;
  CallInliner(module, std::move(inlined)).run();
  drop_uncalled(module, called);
}

}  // namespace

void inline_small_calls(Module& module) {
  empty_tokens(module);
  decompose_ops(module, goes_first);
  expand_manual_regions(module);
  expand_calls(module);
  flatten_combiners(module);
}

Module inline_calls(Module module, PassContext&) {
  inline_small_calls(module);
  return module;
}

}  // namespace shardwise
