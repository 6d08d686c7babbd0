// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// Every live register of a program is one tile in the cache. Most are dead soon, so the inputs limit a group. The limit
// on ops leaves room for random numbers, which take more than a hundred.
constexpr size_t kMostOps = 256;
constexpr size_t kMostInputs = 12;

bool is_fusable(const Module& module, OpId op) {
  const Operation& operation = module.op(op);
  if (!operation.def->traits.elementwise || operation.def->tile == nullptr || operation.result_count != 1) return false;
  // bitcast_convert between widths does not map one element to one element.
  const Dims& shape = module.type(module.result(op)).shape;
  return std::ranges::all_of(module.operands(op), [&](ValueId operand) {
    const Dims& from = module.type(operand).shape;
    return from.empty() || from == shape;
  });
}

std::vector<uint32_t> count_uses(const Module& module, const Region& region) {
  std::vector<uint32_t> uses(module.value_count(), 0);
  for (ValueId result : region.results) ++uses[result.index];
  for (OpId op : region.ops) {
    for (ValueId operand : module.operands(op)) ++uses[operand.index];
    for (RegionId inner : module.regions(op)) {  // regions may use captured values often: these never join
      for (OpId inner_op : module.region(inner).ops) {
        for (ValueId operand : module.operands(inner_op)) uses[operand.index] += 2;
      }
      for (ValueId result : module.region(inner).results) uses[result.index] += 2;
    }
  }
  return uses;
}

class Grouping {
 public:
  Grouping(const Module& module, RegionId region, const std::vector<DigitSet>& varying)
      : module_(module), region_(module.region(region)), varying_(varying), uses_(count_uses(module, region_)) {}

  std::vector<FusedGroup> run() {
    std::vector<FusedGroup> groups;
    // From the last op to the first: a group grows from its root to its producers.
    for (size_t i = region_.ops.size(); i-- > 0;) {
      const OpId op = region_.ops[i];
      if (!is_fusable(module_, op) || taken(op)) continue;
      groups.push_back(grow(op));
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
  }

 private:
  bool taken(OpId op) const { return op.index < taken_.size() && taken_[op.index]; }
  void take(OpId op) {
    if (taken_.empty()) taken_.resize(module_.op_count(), false);
    taken_[op.index] = true;
  }

  bool joins(ValueId value, ValueId root) const {
    const Value& produced = module_.value(value);
    return produced.op && is_fusable(module_, produced.op) && !taken(produced.op) &&
           module_.type(value).shape == module_.type(root).shape && varying_[value.index] == varying_[root.index];
  }

  FusedGroup grow(OpId root_op) {
    FusedGroup group;
    const ValueId root = module_.result(root_op);
    std::vector<OpId> pending{root_op};
    take(root_op);
    size_t inputs = 0;                           // distinct inputs; splats are scalars of the program
    std::unordered_map<ValueId, uint32_t> seen;  // uses inside the group: a producer joins when it has no others
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      group.ops.push_back(op);
      for (ValueId operand : module_.operands(op)) {
        const bool has_room = group.ops.size() + pending.size() < kMostOps && inputs + pending.size() < kMostInputs;
        const uint32_t seen_uses = ++seen[operand];
        // A producer with a use outside the group would have to be computed twice.
        if (seen_uses == uses_[operand.index] && has_room && joins(operand, root)) {
          pending.push_back(module_.value(operand).op);
          take(pending.back());
          if (seen_uses > 1) --inputs;
        } else if (seen_uses == 1 && !splat_value(module_, operand)) {
          ++inputs;
        }
      }
    }
    std::sort(group.ops.begin(), group.ops.end(), [&](OpId a, OpId b) { return place(a) < place(b); });
    write_program(group);
    return group;
  }

  size_t place(OpId op) {
    if (places_.empty()) {
      places_.resize(module_.op_count(), 0);
      for (size_t i = 0; i < region_.ops.size(); ++i) places_[region_.ops[i].index] = i;
    }
    return places_[op.index];
  }

  void write_program(FusedGroup& group) const {
    TileBuilder tiles;
    std::unordered_map<ValueId, uint32_t> registers;
    uint32_t last = 0;
    for (OpId op : group.ops) {
      std::vector<uint32_t> operands;
      for (ValueId operand : module_.operands(op)) {
        auto [found, is_new] = registers.try_emplace(operand, 0);
        if (is_new) {
          if (const std::optional<Scalar> splat = splat_value(module_, operand)) {
            found->second = tiles.scalar(*splat);
          } else {
            found->second = tiles.input(module_.type(operand).dtype);
            group.inputs.push_back(operand);
          }
        }
        operands.push_back(found->second);
      }
      const OpView view(module_, op);
      last = view.def().tile(tiles, view, operands);
      registers[view.result()] = last;
    }
    tiles.output(last);
    group.program = std::move(tiles).build();
  }

  const Module& module_;
  const Region& region_;
  const std::vector<DigitSet>& varying_;
  std::vector<uint32_t> uses_;
  std::vector<bool> taken_;
  std::vector<size_t> places_;
};

}  // namespace

std::vector<FusedGroup> fuse_elementwise(const Module& module, RegionId region, const std::vector<DigitSet>& varying) {
  return Grouping(module, region, varying).run();
}

}  // namespace shardwise
