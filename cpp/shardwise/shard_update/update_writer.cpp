// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/update_writer.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/sharding/constraints.h"

namespace shardwise {
namespace {

bool is_conversion(const Module& module, const Use& use, ValueId value) {
  if (!use.op) return false;
  const OpView op(module, use.op);
  return op.operand_count() == 1 && op.result_count() == 1 && op.def().traits.elementwise &&
         op.result_type().dtype != module.type(value).dtype && is_float(op.result_type().dtype);
}

// Returns the operand of a conversion that only widens it, or the value itself: the model stores no more than that.
ValueId stored_of(const Module& module, ValueId value) {
  const OpId maker = module.value(value).op;
  if (!maker || module.op(maker).operand_count != 1 || !module.op(maker).def->traits.elementwise) return value;
  const ValueId operand = module.operands(maker)[0];
  const DType narrow = module.type(operand).dtype, wide = module.type(value).dtype;
  return is_float(narrow) && is_float(wide) && item_size(narrow) < item_size(wide) ? operand : value;
}

// The outermost branch around the use, inside the region; none if the use, or a loop around it, is in the region itself.
RegionId branch_around(const Module& module, const Use& use, RegionId region) {
  RegionId branch;
  for (RegionId at = module.op(use.op).parent; at != region;) {
    const OpId owner = module.region(at).op;
    branch = module.op(owner).def->regions == Regions::kBranches ? at : RegionId{};
    at = module.op(owner).parent;
  }
  return branch;
}

// The state that an updated state, or a value on the way to one, becomes: results are in the order of the states. The first one
// if that does not tell.
size_t state_of(const UpdateGraph& graph, const UpdateGroup& group, ValueId value) {
  const auto is_value = [&](uint32_t place) { return graph.results()[place] == value; };
  const auto result = std::ranges::find_if(group.results, is_value);
  if (group.results.size() != group.states.size() || result == group.results.end()) return 0;
  return static_cast<size_t>(result - group.results.begin());
}

}  // namespace

std::string UpdateWriter::name_of(ValueId value) const {
  const std::string name = module_.context().name_of(loc_of(module_, value));
  return name.empty() && !module_.value(value).op ? argument_text(module_, value) : name;
}

ValueId UpdateWriter::constrain(ValueId value, const TensorSharding& sharding, const std::string& cause) {
  return constrain(rewrite_.behind(value), value, sharding, cause);
}

ValueId UpdateWriter::constrain(Cursor at, ValueId value, const TensorSharding& sharding, const std::string& cause) {
  const LocId loc = module_.context().without_names(rewrite_.loc(value));
  return rewrite_.insert(at, loc, [&](Builder& builder) {
    return create_sharding_constraint(builder, value, sharding, str("shard_update: ", cause));
  });
}

// The gradient of an annotated weight is annotated like the weight. What the switch asks for comes before that.
void UpdateWriter::scatter_gradient(UpdateGraph& graph, ValueId gradient, const TensorSharding& sharding,
                                    const std::string& name) {
  ValueId sum = gradient;
  while (module_.value(sum).op && module_.op(module_.value(sum).op).def->traits.constraint &&
         !overlaps(module_.context().sharding(module_.value(sum).sharding).axes_used(), axes_)) {
    sum = module_.operands(module_.value(sum).op)[0];
  }
  const ValueId scattered = constrain(sum, sharding, str("gradient of ", name));
  const OpId own = module_.value(scattered).op;
  rewrite_.replace_if(gradient, scattered, [&](const Use& use) { return use.op != own && graph.is_in_update(use); });
}

// If nothing but branches reads the value, each of them gathers it: those that do not run send nothing. Else once, behind it.
void UpdateWriter::gather_where_read(ValueId value, std::span<const Use> uses, const TensorSharding& sharding,
                                     const std::string& cause) {
  const RegionId region = region_of(module_, value);
  std::vector<RegionId> branches;
  for (const Use& use : uses) branches.push_back(branch_around(module_, use, region));
  if (std::ranges::find(branches, RegionId{}) != branches.end()) branches.assign(uses.size(), RegionId{});
  std::unordered_map<RegionId, ValueId> gathered;
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto [made, is_new] = gathered.try_emplace(branches[i]);
    if (is_new) {
      const Cursor at = branches[i] ? rewrite_.begin(branches[i]) : rewrite_.behind(value);
      made->second = constrain(at, value, sharding, cause);
    }
    module_.set_operand(uses[i].op, uses[i].index, made->second);
  }
}

// What the forward pass reads: the weight as the model lays it out, in the dtype to which all that reads it converts it
// anyway, or in that which the user asks for if nothing but products reads it.
void UpdateWriter::gather(UpdateGraph& graph, ValueId weight, const StateUpdate& update, ShardedState& row) {
  std::vector<Use> forward;
  for (const Use use : module_.uses(weight)) {
    if (use.op && !graph.is_in_update(use)) forward.push_back(use);
  }
  if (forward.empty()) return;
  const std::string cause = str("gather of ", name_of(update.state));
  const DType dtype = module_.type(weight).dtype;
  const auto is_narrowing = [&](const Use& use) {
    return is_conversion(module_, use, weight) &&
           item_size(module_.type(module_.result(use.op)).dtype) < item_size(dtype);
  };
  if (std::ranges::all_of(forward, is_narrowing)) {
    for (const Use& use : forward) {
      const ValueId narrow = module_.result(use.op);
      const ValueId local = constrain(narrow, *update.layout.sharding, cause);
      const ValueId whole = constrain(local, update.own, cause);
      rewrite_.replace(narrow, whole, module_.value(local).op);
      row.gathered = numpy_name(module_.type(narrow).dtype);
    }
    return;
  }
  const bool asks = gather_dtype_ && is_float(dtype) && item_size(*gather_dtype_) < item_size(dtype);
  const bool is_narrow = asks && feeds_products_only(graph, weight);
  if (asks && !is_narrow) row.reason = "not every use of it is a product";
  if (gather_dtype_ && is_float(dtype) && !asks && *gather_dtype_ != dtype) {
    row.reason = str("gather_dtype is not narrower than ", numpy_name(dtype));
  }
  const LocId loc = module_.context().without_names(rewrite_.loc(weight));
  const auto convert = [&](ValueId value, DType to) {
    return rewrite_.insert(rewrite_.behind(value), loc, [&](Builder& b) { return build_convert(b, value, to); });
  };
  const ValueId stored = stored_of(module_, weight);
  DType gathered = is_narrow ? *gather_dtype_ : dtype;
  ValueId whole;
  if (stored != weight && (!is_narrow || item_size(module_.type(stored).dtype) <= item_size(gathered))) {
    gathered = module_.type(stored).dtype;
    whole = convert(constrain(stored, update.own, cause), dtype);
  } else if (is_narrow) {
    const ValueId local = constrain(convert(weight, *gather_dtype_), *update.layout.sharding, cause);
    whole = convert(constrain(local, update.own, cause), dtype);
  }
  row.gathered = numpy_name(gathered);
  if (!whole) return gather_where_read(weight, forward, update.own, cause);
  const auto is_forward = [&](const Use& use) {
    return std::ranges::any_of(forward, [&](const Use& one) { return one.op == use.op && one.index == use.index; });
  };
  rewrite_.replace_if(weight, whole, is_forward);
}

void UpdateWriter::scatter_results(const UpdateGraph& graph, const UpdateGroup& group, const TensorSharding& sharding,
                                   const std::string& name) {
  for (const uint32_t place : group.results) {
    const ValueId result = graph.results()[place];
    const auto is_return = [&](const Use& use) { return !use.op && use.region == graph.region(); };
    const UseRange uses = module_.uses(result);
    // A value that is returned twice has its constraint.
    if (std::ranges::none_of(uses.begin(), uses.end(), is_return)) continue;
    rewrite_.replace_if(result, constrain(result, sharding, str("update of ", name)), is_return);
  }
}

ShardedState UpdateWriter::row_of(const StateUpdate& update, const UpdateGroup& group) const {
  const UpdateLayout& layout = update.layout;
  const TensorSharding& sharding = layout.sharding ? *layout.sharding : update.own;
  ShardedState row = whole_state(module_, update.state, sharding, layout.reason);
  row.group = layout.group;
  row.padding = layout.padding;
  row.is_weight = std::ranges::find(group.weights, update.state) != group.weights.end();
  return row;
}

void UpdateWriter::write(UpdateGraph& graph, const UpdateGroup& group, const std::vector<StateUpdate>& updates,
                         std::vector<std::pair<ValueId, ShardedState>>& rows) {
  std::vector<ShardedState> own_rows;
  for (const StateUpdate& update : updates) own_rows.push_back(row_of(update, group));
  const auto named = std::ranges::find_if(
      group.states, [&](ValueId state) { return std::ranges::find(group.weights, state) != group.weights.end(); });
  const std::string name = name_of(named == group.states.end() ? group.states.front() : *named);
  if (const auto& sharding = updates.front().layout.sharding) {
    // The uses of a value are told apart before any of them changes.
    for (const ValueId weight : group.weights) {
      const auto found = std::ranges::find(updates, stored_of(module_, weight), &StateUpdate::state);
      const size_t place =
          found == updates.end() ? state_of(graph, group, weight) : static_cast<size_t>(found - updates.begin());
      gather(graph, weight, updates[place], own_rows[place]);
    }
    for (const ValueId gradient : group.gradients) scatter_gradient(graph, gradient, *sharding, name);
    for (const StateUpdate& update : updates) {
      const ValueId scattered = constrain(update.state, *sharding, str("state ", name_of(update.state)));
      rewrite_.replace(update.state, scattered, module_.value(scattered).op);
      // What a user gives is how the model lays it out, and is part of the constraint.
      module_.value(update.state).sharding = {};
    }
    scatter_results(graph, group, *sharding, name);
  } else if (updates.front().layout.sums_gradient) {
    // Each update reads a sum, whether it is split or not: what is small has the numbers of a step that sums first.
    for (const ValueId gradient : group.gradients) {
      scatter_gradient(graph, gradient, updates.front().own, name);
    }
  }
  for (size_t i = 0; i < updates.size(); ++i) rows.emplace_back(updates[i].state, std::move(own_rows[i]));
}

}  // namespace shardwise
