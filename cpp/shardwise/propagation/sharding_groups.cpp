// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/sharding_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/value_classes.h"

namespace shardwise {
namespace {

struct Member {
  OpId op;  // the sharding_group op
  ValueId value;
  ValueId holder;  // the value with the sharding: its edge, or the value itself
  OpId manual;     // the innermost op around it that has local shapes inside; none outside of all
};

class GroupSync {
 public:
  GroupSync(Module& module, PassContext& context)
      : module_(module), rewrite_(module), context_(context), edges_(module) {
    for (const auto& [op, edge] : edges_.all()) {
      for (const ValueId target : edge.targets) edge_of_.emplace(target, module.result(op));
    }
    for (const DataFlowEdge& edge : edges_.bare()) {
      // The argument of a region is a member by itself: a manual region sees other axes than the source outside.
      if (!module.value(edge.owner).op) continue;
      for (const ValueId target : edge.targets) edge_of_.emplace(target, edge.owner);
    }
    for (const Function& function : module_.functions) collect(function.body, {});
  }

  void run() {
    for (auto& [id, members] : merged()) {
      check(id, members);
      // Interned: equal shardings have one id.
      std::set<ShardingId> distinct;
      for (const Member& member : members) {
        if (const ShardingId sharding = sharding_of(member)) distinct.insert(sharding);
      }
      if (distinct.size() == 1) sync(members, *distinct.begin());
      if (distinct.size() > 1) {
        warn(id, members);
        set_apart(members);
      }
    }
  }

 private:
  bool sees_local_shapes(OpId op) const { return module_.op(op).def->regions == Regions::kManual; }

  void collect(RegionId region, OpId manual) {
    for (const OpId id : module_.region(region).ops) {
      if (module_.op(id).def->traits.sharding_group) {
        const ValueId member = module_.operands(id)[0];
        const auto edge = edge_of_.find(member);
        const ValueId holder = edge == edge_of_.end() ? member : edge->second;
        groups_[module_.attrs(id).get_int("group_id")].push_back({id, member, holder, manual});
      }
      for (const RegionId inner : module_.regions(id)) collect(inner, sees_local_shapes(id) ? id : manual);
    }
  }

  // Merges groups that share a value, under the smallest of their ids.
  std::map<int64_t, std::vector<Member>> merged() {
    const ValueClasses classes(module_, edges_);
    std::map<ValueId, int64_t> ids;  // by the first value of a class
    std::map<int64_t, std::vector<Member>> result;
    for (const auto& [id, members] : groups_) {
      const ValueId member = members.front().value;
      const std::span<const ValueId> tied = classes.members(member);
      const int64_t first = ids.try_emplace(tied.empty() ? member : tied.front(), id).first->second;
      result[first].insert(result[first].end(), members.begin(), members.end());
    }
    return result;
  }

  void check(int64_t id, const std::vector<Member>& members) const {
    const auto refuse = [&](const Member& member, std::string_view must_hold, const std::string& got) {
      fail_at<ShardingError>(module_, module_.op(member.op).loc,
                             error_message(str("sharding_group ", id), must_hold, got, "use a group for each of them"));
    };
    const Member& first = members.front();
    for (const Member& member : members) {
      const TensorType& type = module_.type(member.value);
      const TensorType& other = module_.type(first.value);
      if (type.shape != other.shape) {
        refuse(member, "all members must have the same shape", other.text() + " and " + type.text());
      }
      // Inside, shapes are local and manual axes are hidden, so that equal shardings would mean different tiles.
      if (member.manual != first.manual) {
        refuse(member, "all members must be inside the same manual computation", "members inside and outside of one");
      }
    }
  }

  // None if the sharding is open and has no axes, whatever its priorities.
  ShardingId sharding_of(const Member& member) {
    const ShardingId id = module_.value(member.holder).sharding;
    if (!id) return {};
    const TensorSharding sharding = module_.context().sharding(id).without_priorities();
    return sharding == TensorSharding::open(sharding.mesh, sharding.ndim()) ? ShardingId{} : id;
  }

  void sync(const std::vector<Member>& members, ShardingId sharding) {
    for (const Member& member : members) {
      ShardingId& current = module_.value(member.holder).sharding;
      if (current == sharding) continue;
      context_.provenance.steps.push_back({.op = member.op, .value = member.holder, .after = sharding});
      current = sharding;
    }
  }

  // Lists each sharding once, with the first member that has it: the location of the annotation if known, else that of
  // the group.
  void warn(int64_t id, const std::vector<Member>& members) {
    std::set<ShardingId> told;
    std::vector<std::string> shardings;
    for (const Member& member : members) {
      const ShardingId sharding = sharding_of(member);
      if (!sharding || !told.insert(sharding).second) continue;
      std::string place = module_.context().location_text(loc_of(module_, member.value));
      if (place.empty()) place = module_.context().location_text(module_.op(member.op).loc);
      const std::string name = shown_name(module_, member.value);
      shardings.push_back(str(short_text(module_.context().sharding(sharding)), name.empty() ? "" : " of ", name,
                              place.empty() ? "" : " at ", place));
    }
    context_.warnings.push_back(error_message(str("sharding_group ", id), "members should be annotated alike",
                                              join(shardings, " and "),
                                              "each keeps its own, and their users follow the group"));
  }

  // Each member gets an open constraint, which its users use. Of members in one place the last one's comes first, as in
  // Shardy.
  void set_apart(const std::vector<Member>& members) {
    std::unordered_set<ValueId> apart;
    for (const Member& member : members) {
      const ShardingId sharding = module_.value(member.holder).sharding;
      // A value may be in a group twice.
      if (!sharding || !apart.insert(member.value).second) continue;
      const TensorSharding& known = module_.context().sharding(sharding);
      // The annotation stays at the value. The constraint, which is in the group instead, takes the sharding of the
      // group.
      const TensorSharding open = TensorSharding::open(known.mesh, known.ndim());
      const Cursor at = rewrite_.behind(member.value);
      const ValueId made = rewrite_.insert(at, rewrite_.loc(member.value), [&](Builder& builder) {
        return create_sharding_constraint(builder, member.value, open);
      });
      rewrite_.replace(member.value, made, module_.value(made).op);
    }
  }

  Module& module_;
  Rewrite rewrite_;
  PassContext& context_;
  DataFlowEdges edges_;
  std::unordered_map<ValueId, ValueId> edge_of_;   // by the value that an edge represents, or a value without one
  std::map<int64_t, std::vector<Member>> groups_;  // by group_id, in the order of the program
};

}  // namespace

void sync_sharding_groups(Module& module, PassContext& context) {
  const auto is_group = [](const OpDef& def) { return def.traits.sharding_group; };
  if (any_op(module, is_group)) GroupSync(module, context).run();
}

void drop_sharding_groups(Module& module) {
  Rewrite rewrite(module);
  walk(module, [&](OpId id) {
    if (module.op(id).def->traits.sharding_group) rewrite.erase(id);
  });
}

bool is_made_constraint(const Module& module, const Provenance& provenance, ValueId value) {
  const OpId op = module.value(value).op;
  return op && module.op(op).def->traits.constraint && value.index >= provenance.initial.size() &&
         !provenance.initial.empty();
}

}  // namespace shardwise
