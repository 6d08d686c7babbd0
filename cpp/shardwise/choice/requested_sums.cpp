// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/requested_sums.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/partitioning/addends.h"

namespace shardwise {
namespace {

// An op that adds up terms, which devices may share.
bool makes_sum(const ShardingRule& rule, Reducer reducer) {
  return std::ranges::any_of(rule.factors(), [&](const Factor& factor) {
    return factor.kind == FactorKind::kReduction && factor.reducer == reducer && factor.size > 1;
  });
}

// The operands that an op passes a sum on from.
std::vector<size_t> passed_on(const OpView& op, const OpLinearity& passing) {
  std::vector<size_t> operands;
  for (size_t i = 0; passing.may_pass() && i < op.operand_count(); ++i) {
    if (!passing.may_be_pending(i)) continue;
    // A square is not linear in its operand.
    const bool is_alone = passing.kind != Linear::kEach || std::ranges::count(op.operands(), op.operand(i)) == 1;
    if (is_alone) operands.push_back(i);
  }
  return operands;
}

}  // namespace

// All annotations of a sum share what the search found about a value, so it visits each value once.
class RequestedSums::Search {
 public:
  Search(const Module& module, const ProgramLinearity& linearity, ProgramPlacements& placements, Sum sum)
      : module_(module), linearity_(linearity), placements_(placements), sum_(std::move(sum)) {}

  const Sum& sum() const { return sum_; }

  // The obstacle, or "" if the value can be left unreduced.
  std::string obstacle(ValueId value) {
    find(value);
    return obstacle_of(value);
  }

  // The values that must be left unreduced for this one, without those of earlier calls.
  std::vector<ValueId> new_values(ValueId value) {
    std::vector<ValueId> requested, left{value};
    while (!left.empty()) {
      const ValueId next = left.back();
      left.pop_back();
      if (!obstacle_of(next).empty() || !requested_.insert(next).second) continue;
      const Found& found = found_.at(next);
      if (found.is_made) requested.push_back(next);
      for (const ValueId operand : found.operands) {
        if (!obstacle_of(operand).empty()) continue;
        left.push_back(operand);
        if (!found.is_joint) break;  // of an op that is linear in each operand, one is a sum
      }
    }
    return requested;
  }

 private:
  struct Found {
    std::string obstacle;
    std::vector<ValueId> operands = {};  // that it passes a sum on from
    bool is_joint = false;               // all of them are parts
    bool is_made = false;                // by an op of its own, not an argument or another name
  };

  const std::string& obstacle_of(ValueId value) const { return found_.at(value).obstacle; }

  // Depth first, without recursion: chains are as long as programs.
  void find(ValueId value) {
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      const ValueId top = stack.back();
      const auto [entry, is_new] = found_.try_emplace(top);
      if (is_new) {
        entry->second = found(top);
        for (const ValueId operand : entry->second.operands) {
          if (!found_.contains(operand)) stack.push_back(operand);
        }
        continue;
      }
      stack.pop_back();
      resolve(entry->second);
    }
  }

  // A value that passes sums on can be left unreduced if one of its operands can.
  void resolve(Found& found) {
    if (found.operands.empty()) return;
    found.obstacle = obstacle_of(found.operands.back());
    for (const ValueId operand : found.operands) {
      if (obstacle_of(operand).empty()) found.obstacle.clear();
    }
  }

  Found found(ValueId value) const {
    const OpId maker = module_.value(value).op;
    if (!maker) return {.obstacle = obstacle_of_argument(value)};
    const OpView op(module_, maker);
    if (op.def().traits.annotates()) return {.obstacle = {}, .operands = {op.operand(0)}};
    // The result of a loop or a branch may be such a sum: warn_of_refused sees it in the choice.
    if (op.def().regions == Regions::kLoop || op.def().regions == Regions::kBranches) return {.obstacle = {}};
    const ShardingRule& rule = sharding_rule(op);
    if (!rule.empty() && makes_sum(rule, sum_.reducer)) {
      const bool is_wider = addend_dtype(op, 0) != op.result_type().dtype;
      return {.obstacle = is_wider ? str(op.name(), ", whose parts are wider than the sum until they are reduced") : "",
              .is_made = true};
    }
    // Nothing is known about an op without a rule.
    const OpLinearity passing = rule.empty() ? OpLinearity{} : linearity_.of(maker, sum_.reducer);
    Found made{.obstacle = {}, .is_joint = passing.kind == Linear::kJoint, .is_made = true};
    for (const size_t i : passed_on(op, passing)) made.operands.push_back(op.operand(i));
    if (made.operands.empty()) made.obstacle = str(op.name(), ", which does not distribute over one");
    return made;
  }

  std::string obstacle_of_argument(ValueId value) const {
    const Value& argument = module_.value(value);
    const Placement* given = placements_.find(placements_.of(argument.sharding, argument.type));
    const bool is_sum = given != nullptr && given->reducer == sum_.reducer && given->mesh == sum_.mesh &&
                        difference(sum_.axes, given->unreduced).empty();
    return is_sum ? "" : "an argument that is whole";
  }

  const Module& module_;
  const ProgramLinearity& linearity_;
  ProgramPlacements& placements_;
  const Sum sum_;
  std::unordered_map<ValueId, Found> found_;
  std::unordered_set<ValueId> requested_;
};

RequestedSums::RequestedSums(const Module& module, const ProgramLinearity& linearity, ProgramPlacements& placements)
    : module_(module), placements_(placements) {
  std::vector<Search> searches;  // few: one for each set of axes
  walk(module, [&](OpId id) {
    const OpView op(module_, id);
    if (!op.def().traits.annotates()) return;
    const Value& value = module_.value(op.result());
    const Placement* wanted = placements_.find(placements_.of(value.sharding, value.type));
    if (wanted == nullptr || wanted->unreduced.empty()) return;
    const Sum sum{wanted->unreduced, wanted->reducer, wanted->mesh};
    auto search = std::ranges::find(searches, sum, &Search::sum);
    if (search == searches.end()) {
      searches.emplace_back(module_, linearity, placements_, sum);
      search = std::prev(searches.end());
    }
    add_annotation(op, *search);
  });
}

void RequestedSums::add_annotation(const OpView& annotation, Search& search) {
  std::string obstacle = search.obstacle(annotation.operand(0));
  if (obstacle.empty()) {
    for (const ValueId made : search.new_values(annotation.operand(0))) add(made, search.sum());
  }
  annotations_.push_back({annotation.id(), std::move(obstacle)});
}

void RequestedSums::add(ValueId value, const Sum& sum) {
  AxisList axes = sum.axes;
  if (const Placement* known = placements_.find(of(value))) {
    // Another annotation asks for its own axes. A value has one reducer: the first one stays.
    if (known->reducer != sum.reducer || known->mesh != sum.mesh) return;
    append(axes, difference(known->unreduced, axes));
    axes = sort_and_merge(axes);
  }
  const Placement& declared = *placements_.find(placements_.declared(value));
  std::vector<AxisList> dims(declared.dims.size());
  for (size_t d = 0; declared.mesh == sum.mesh && d < dims.size(); ++d) {
    dims[d] = truncate_at_overlap(declared.dims[d].axes, axes);
  }
  placements_of_[value] = placements_.of(module_.value(value).type, std::move(dims), axes, sum.reducer, sum.mesh);
}

void RequestedSums::warn_of_refused(const Choice& choice, std::vector<std::string>& warnings) const {
  for (const Annotation& annotation : annotations_) {
    const OpView op(module_, annotation.op);
    const Value& value = module_.value(op.result());
    const Placement& wanted = *placements_.find(placements_.of(value.sharding, value.type));
    const std::vector<PlacementId>& results = choice.ops[annotation.op.index].results;
    if (results.empty()) continue;  // of a function that main does not reach
    const Placement* left = placements_.find(results[0]);
    if (left != nullptr && left->mesh == wanted.mesh && difference(wanted.unreduced, left->unreduced).empty()) continue;
    const std::string_view obstacle =
        annotation.obstacle.empty() ? "a value that is reduced before" : std::string_view(annotation.obstacle);
    const std::string place = module_.context().location_text(op.loc());
    warnings.push_back(error_message(
        "shard", str("unreduced=", axis_list_text(*wanted.mesh, wanted.unreduced), " takes a sum of parts"),
        str(obstacle, place.empty() ? "" : str(" (at ", place, ")")), "drop unreduced="));
  }
}

}  // namespace shardwise
