// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/group_time.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

class GroupTimer {
 public:
  GroupTimer(const Module& module, const LocalTypeOf& type_of, const Hardware& hardware)
      : module_(module), type_of_(type_of), hardware_(hardware) {}

  OpTime run(const FusionGroup& group) {
    for (const OpId op : group.ops) add_operations_of(op);
    for (const OpId op : group.computed_again) add_operations_of(op);
    time_.bytes = saturated_sum(bytes_of(group.reads), bytes_of(group.writes));
    if (time_.bytes == 0 && time_.flops == 0) return time_;
    time_.launch_ps = hardware_.launch_ps;
    time_.memory_ps = hardware_.memory_time(time_.bytes);
    return time_;
  }

 private:
  std::vector<TypeId> types_of(const OpView& op) const {
    std::vector<TypeId> types;
    for (const ValueId operand : op.operands()) types.push_back(type_of_(operand));
    for (size_t i = 0; i < op.result_count(); ++i) types.push_back(type_of_(op.result(i)));
    return types;
  }

  void add_operations_of(OpId id) {
    const OpView op(module_, id);
    const std::vector<TypeId> types = types_of(op);
    const OpCost cost = op.def().cost(op, LocalTypes(op, types));
    add_operations(op, LocalTypes(op, types), cost, hardware_, time_);
    touched_.emplace(id, cost.touched);
  }

  // Several views of a value are read, at most all of it. Elements are read in the dtype that they have in memory.
  int64_t bytes_of(const std::vector<BorderAccess>& accesses) const {
    std::map<ValueId, std::map<ValueId, int64_t>> elements;  // by value in memory and view of it
    for (const BorderAccess& access : accesses) {
      const ValueId seen = seen_value(access);
      int64_t& most = elements[access.memory][seen];
      const int64_t bytes = touched_.at(access.op)[access.tensor];
      most = std::max(most, bytes == kSaturated ? bytes : bytes / item_size(module_.type(seen).dtype));
    }
    int64_t sum = 0;
    for (const auto& [memory, views] : elements) {
      const TensorType& type = module_.context().type(type_of_(memory));
      int64_t read = 0;
      for (const auto& [view, count] : views) read = saturated_sum(read, count);
      sum = saturated_sum(sum, saturated_product(std::min(read, type.element_quantity()), item_size(type.dtype)));
    }
    return sum;
  }

  ValueId seen_value(const BorderAccess& access) const {
    const OpView op(module_, access.op);
    const bool is_operand = access.tensor < op.operand_count();
    return is_operand ? op.operand(access.tensor) : op.result(access.tensor - op.operand_count());
  }

  const Module& module_;
  const LocalTypeOf& type_of_;
  const Hardware& hardware_;
  OpTime time_;
  std::unordered_map<OpId, std::vector<int64_t>> touched_;
};

}  // namespace

OpTime group_time(const Module& module, const FusionGroup& group, const LocalTypeOf& type_of,
                  const Hardware& hardware) {
  return GroupTimer(module, type_of, hardware).run(group);
}

OpTime group_time(const Module& module, const FusionGroup& group, const Hardware& hardware) {
  return group_time(module, group, [&](ValueId value) { return module.value(value).type; }, hardware);
}

}  // namespace shardwise
