// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/value_classes.h"

#include <map>
#include <numeric>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

class Union {
 public:
  explicit Union(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  uint32_t find(uint32_t value) {
    // Path halving keeps chains short without a rank.
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  void join(ValueId a, ValueId b) { parent_[find(b.index)] = find(a.index); }

 private:
  std::vector<uint32_t> parent_;
};

}  // namespace

ValueClasses::ValueClasses(const Module& module, const DataFlowEdges& edges) {
  std::map<int64_t, ValueId> first;
  Union classes(module.value_count());
  walk<Order::kRegionsFirst>(module, [&](OpId id) {
    if (!module.op(id).def->traits.sharding_group) return;
    const ValueId member = module.operands(id)[0];
    const auto [it, inserted] = first.try_emplace(module.attrs(id).get_int("group_id"), member);
    if (!inserted) classes.join(it->second, member);
  });
  if (first.empty() && edges.empty() && edges.bare().empty()) return;
  for (const DataFlowEdge& edge : edges.bare()) {
    if (!module.value(edge.owner).op) continue;  // arguments of manual regions are notified separately
    skip_region_users_.resize(module.value_count());
    for (const ValueId target : edge.targets) {
      classes.join(edge.owner, target);
      if (target != edge.owner) skip_region_users_[target.index] = true;
    }
  }
  for (const auto& [op, edge] : edges.all()) {
    for (const ValueId target : edge.targets) {
      // The owner's only user is the edge op, so nothing reads its sharding before the edge is sunk.
      if (target != edge.owner) classes.join(module.result(op), target);
    }
  }

  std::vector<std::vector<ValueId>> found(module.value_count());
  for (uint32_t i = 1; i < module.value_count(); ++i) found[classes.find(i)].push_back(ValueId{i});
  for (const std::vector<ValueId>& members : found) {
    if (members.size() < 2) continue;
    // Only if there is a class: most programs have none.
    if (class_of_.empty()) class_of_.resize(module.value_count());
    for (const ValueId member : members) class_of_[member.index] = static_cast<uint32_t>(begin_.size()) + 1;
    begin_.push_back(static_cast<uint32_t>(members_.size()));
    members_.insert(members_.end(), members.begin(), members.end());
  }
  // The end of the last class.
  if (!begin_.empty()) begin_.push_back(static_cast<uint32_t>(members_.size()));
}

std::span<const ValueId> ValueClasses::members(ValueId value) const {
  if (begin_.empty() || class_of_[value.index] == 0) return {};
  const uint32_t index = class_of_[value.index] - 1;
  return std::span(members_).subspan(begin_[index], begin_[index + 1] - begin_[index]);
}

}  // namespace shardwise
