// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/verify_assigned.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/candidates/compute_sharding.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

constexpr std::string_view kRunAssign = "run assign on the program before";

// An op, and where its operands and results are.
struct PlacedOp {
  OpView op;
  const ShardingRule& rule;
  std::vector<PlacementId> operands, results;

  const Context& context() const { return op.module().context(); }
  LayoutView tensor(size_t t) const {
    return t < operands.size() ? layout(op.operand(t), operands[t])
                               : layout(op.result(t - operands.size()), results[t - operands.size()]);
  }
  LayoutView layout(ValueId value, PlacementId placement) const {
    return {context(), {op.module().value(value).type, placement}};
  }
  const Mesh& mesh() const {
    std::vector<PlacementId> all = results;
    all.insert(all.end(), operands.begin(), operands.end());
    return *working_mesh(context(), all);
  }
};

std::string dim_text(const PlacedOp& placed, size_t tensor, size_t dim) {
  return str(tensor_text(placed.operands.size(), tensor, dim), " over ",
             axis_list_text(placed.mesh(), placed.tensor(tensor).axes(dim)));
}

// ---- by the rule ---------------------------------------------------------------------------------------------------

// A reduction over a sharded factor must leave its result unreduced.
void check_left_unreduced(const PlacedOp& placed) {
  if (placed.results.empty()) return;
  const AxisList& unreduced = placed.tensor(placed.operands.size()).unreduced();
  for (size_t i = 0; i < placed.operands.size(); ++i) {
    for (size_t d = 0; d < placed.rule.ndim(i); ++d) {
      const auto factors = placed.rule.dim(i, d);
      if (factors.size() != 1 || placed.rule.factors()[factors[0]].kind != FactorKind::kReduction) continue;
      for (const AxisRef& axis : placed.tensor(i).axes(d)) {
        if (std::ranges::any_of(unreduced, [&](const AxisRef& left) { return contains(left, axis); })) continue;
        fail<ShardingError>(placed.op.name(), "a reduced dim must be unsharded, or the result must be unreduced",
                            str("dim ", d, " of operand ", i, " over ", axis_text(placed.mesh(), axis)));
      }
    }
  }
}

void check_local(const PlacedOp& placed, FactorId factor, size_t tensor, size_t dim) {
  const DimLayout layout = placed.tensor(tensor).dim(dim);
  if (layout.axes.empty() || placed.rule.factors()[factor].kind != FactorKind::kPermutation) return;
  // Each shard reads only its own block, so nothing has to move.
  if (has_range(placed.rule, factor) && stays_local(placed.op, placed.rule, factor, layout.shards)) return;
  fail<ShardingError>(placed.op.name(), "a shifted dim must be unsharded", dim_text(placed, tensor, dim), kRunAssign);
}

// Along each factor, all tensors of an op must be sharded alike, and a dim with a range must stay local.
void check_sharded_alike(const PlacedOp& placed) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<std::pair<size_t, size_t>> first(placed.rule.factors().size(), {kNone, 0});  // tensor and dim, by factor
  placed.rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
    // The axes of a compound dim may belong to any of its factors, so that it is not compared.
    if (factors.size() != 1) return;
    auto& [known_tensor, known_dim] = first[factors[0]];
    if (known_tensor == kNone) {
      known_tensor = tensor;
      known_dim = dim;
      return check_local(placed, factors[0], tensor, dim);
    }
    if (placed.tensor(known_tensor).axes(known_dim) == placed.tensor(tensor).axes(dim)) return;
    fail<ShardingError>(placed.op.name(), "its operands and results must be sharded alike along each factor",
                        str(dim_text(placed, known_tensor, known_dim), ", ", dim_text(placed, tensor, dim)),
                        kRunAssign);
  });
}

// ---- by a method ---------------------------------------------------------------------------------------------------

// The axes of each factor: those of the first dim that has no other factor, or its part of the first dim, whose first
// factors are fully sharded before the next: [{"x", "y"}] of factors 4·6 with x=4, y=2 has "x" and "y".
std::vector<AxisList> factor_axes(const PlacedOp& placed) {
  const ShardingRule& rule = placed.rule;
  std::vector<AxisList> found(rule.factors().size());
  std::vector<bool> is_known(found.size());
  // Dims of one factor first, since they have exactly its axes, even if these do not divide it.
  for (const bool is_compound : {false, true}) {
    rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
      if ((factors.size() > 1) != is_compound) return;
      AxisList axes = placed.tensor(tensor).axes(dim);
      for (const FactorId id : factors) {
        if (!is_known[id]) found[id] = is_compound ? dividing_prefix(axes, rule.factors()[id].size) : axes;
        is_known[id] = true;
        axes = difference(axes, found[id]);
      }
    });
  }
  return found;
}

// The tensors must be where the method can be for these axes.
bool is_placed_for(const PlacedOp& placed, const Method& method, std::span<const AxisList> axes) {
  std::vector<OpPlacement> possible;
  method.placements(placed.op, placed.rule, axes, possible);
  const LayoutView result = placed.tensor(placed.operands.size());
  return std::ranges::any_of(possible, [&](const OpPlacement& placement) {
    for (size_t tensor = 0; tensor < placement.tensors.size(); ++tensor) {
      const LayoutView layout = placed.tensor(tensor);
      for (size_t d = 0; d < layout.ndim(); ++d) {
        if (layout.axes(d) != placement.tensors[tensor][d]) return false;
      }
    }
    return placement.unreduced.empty() ||
           (result.reducer() == placement.reducer && difference(placement.unreduced, result.unreduced()).empty());
  });
}

// Whether the op names a method that can compute it. If it names none, no method's factor may be sharded.
bool has_method(const PlacedOp& placed) {
  const OpView op = placed.op;
  if (op.def().methods.empty()) return false;
  const auto* name = op.attrs().find<std::string>(kMethodAttr);
  bool is_needed = name != nullptr;
  std::vector<AxisList> axes;
  for (const Method& method : op.def().methods) {
    const std::vector<FactorId> factors = method.factors(op, placed.rule);
    const bool is_anywhere = method.placements == nullptr;  // each tensor may be
    if (!is_anywhere && axes.empty()) axes = factor_axes(placed);
    if (name != nullptr && *name == method.name && method.partition != nullptr) {
      if (is_anywhere ? !factors.empty() : is_placed_for(placed, method, axes)) return true;
    }
    const auto is_sharded = [&](FactorId id) { return !axes[id].empty(); };
    is_needed = is_needed || (!is_anywhere && std::ranges::any_of(factors, is_sharded));
  }
  if (!is_needed) return false;
  fail<ShardingError>(op.name(), "its operands and results must be sharded as one of its methods needs them",
                      name != nullptr ? "method " + *name : "none", kRunAssign);
}

// ---- the program ---------------------------------------------------------------------------------------------------

// A replicated value is on every mesh.
bool is_same(const Placement& a, const Placement& b) {
  return a == b || (a.is_fully_replicated() && b.is_fully_replicated());
}

constexpr std::string_view kLikeResult = " must be placed like the result";

// Arguments of regions are where the carries of their op are, whatever a text shows for them.
class AssignedVerifier {
 public:
  explicit AssignedVerifier(const Module& module)
      : module_(module), calls_(module), placements_(module), placed_(module.value_count()) {}

  void run() {
    for (const size_t f : calls_.reached()) verify_function(module_.functions[f]);
  }

 private:
  PlacementId at(ValueId value) const { return placed_[value.index]; }

  void verify_function(const Function& function) {
    const Region& body = module_.region(function.body);
    for (const ValueId argument : body.arguments) placed_[argument.index] = placements_.at(argument);
    for (const OpId id : body.ops) verify_op(OpView(module_, id));
    verify_results(function, body.results);
  }

  void verify_results(const Function& function, const std::vector<ValueId>& results) {
    const std::vector<ShardingId>& declared = function.result_shardings;
    for (size_t i = 0; i < std::min(declared.size(), results.size()); ++i) {
      if (!declared[i]) continue;
      const LayoutView layout(module_.context(), {module_.value(results[i]).type, at(results[i])});
      const TensorSharding& wanted = module_.context().sharding(declared[i]);
      const bool is_there = layout.unreduced().empty() &&
                            std::ranges::equal(layout.dims(), wanted.dims, {}, &DimLayout::axes, &DimSharding::axes);
      if (is_there) continue;
      const ShardingId found = module_.value(results[i]).sharding;
      const std::string got = found ? short_text(module_.context().sharding(found)) : "no sharding";
      fail<ShardingError>("localize", str("result ", i, " must be sharded as declared, ", short_text(wanted)), got,
                          kRunAssign);
    }
  }

  void verify_op(const OpView& op) {
    for (size_t i = 0; i < op.result_count(); ++i) placed_[op.result(i).index] = placements_.at(op.result(i));
    if (op.def().is_control_flow()) return verify_control_flow(op);
    if (is_call(module_, op.id())) return verify_call(op);
    // Collectives move values between any placements.
    if (op.def().traits.collective != CollectiveKind::kNone) return;
    PlacedOp placed{.op = op, .rule = sharding_rule(op), .operands = {}, .results = {}};
    for (const ValueId operand : op.operands()) placed.operands.push_back(at(operand));
    for (const ValueId result : results_of(module_, op.id())) placed.results.push_back(at(result));
    located(module_, op.id(), [&] {
      if (has_method(placed)) return;
      check_left_unreduced(placed);
      check_sharded_alike(placed);
    });
  }

  void verify_call(const OpView& op) {
    const Function& called = module_.functions[calls_.callee(op.id())];
    const Region& body = module_.region(called.body);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      expect(op, at(op.operand(i)), placements_.at(body.arguments[i]),
             str("operand ", i, " must be placed like the argument of @", called.name));
    }
    for (size_t i = 0; i < op.result_count(); ++i) {
      expect(op, at(op.result(i)), placements_.at(body.results[i]),
             str("result ", i, " must be placed like that of @", called.name));
    }
  }

  void verify_control_flow(const OpView& op) {
    const RegionId condition = op.def().regions == Regions::kLoop ? loop_parts(op).condition : RegionId{};
    for (size_t i = 0; condition && i < op.operand_count(); ++i) verify_entry(op, i);
    for (const RegionId id : op.regions()) {
      const Region& region = module_.region(id);
      for (size_t i = 0; i < region.arguments.size(); ++i) placed_[region.arguments[i].index] = at(op.result(i));
      for (const OpId inner : region.ops) verify_op(OpView(module_, inner));
      for (size_t i = 0; id != condition && i < region.results.size(); ++i) {
        expect(op, at(region.results[i]), at(op.result(i)), str("result ", i, " of a region", kLikeResult));
      }
    }
  }

  // The entry value of an unreduced carry may be reduced, or owned.
  void verify_entry(const OpView& op, size_t i) const {
    const Placement* entry = placements_.find(at(op.operand(i)));
    const Placement* carry = placements_.find(at(op.result(i)));
    if (entry != nullptr && carry != nullptr && !carry->unreduced.empty()) {
      Placement whole = *carry;
      whole.unreduced.clear();
      whole.reducer = Reducer::kNone;
      Placement addends = *entry;
      addends.is_owned = false;
      if (is_same(*entry, whole) || addends == *carry) return;
    }
    expect(op, at(op.operand(i)), at(op.result(i)), str("operand ", i, kLikeResult));
  }

  void expect(const OpView& op, PlacementId found, PlacementId wanted, const std::string& rule) const {
    if (found == wanted) return;
    const auto text_of = [&](PlacementId id) {
      const Placement* placement = placements_.find(id);
      return placement == nullptr ? std::string("whole") : text(*placement);
    };
    fail_at<ShardingError>(module_, op.loc(),
                           error_message(op.name(), str(rule, ", ", text_of(wanted)), text_of(found), kRunAssign));
  }

  const Module& module_;
  const CallGraph calls_;
  ProgramPlacements placements_;
  std::vector<PlacementId> placed_;  // by value
};

}  // namespace

void verify_assigned(const Module& module) { AssignedVerifier(module).run(); }

}  // namespace shardwise
