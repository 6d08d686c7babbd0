// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/fuse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// Every live register of a program is one tile in the cache. Most are dead soon, so the inputs limit a group. The limit
// on ops leaves room for random numbers, which take more than a hundred.
constexpr size_t kMostOps = 256;
constexpr size_t kMostInputs = 12;

// A NaN is an input: as a double, it would lose that it is a signalling one.
bool is_nan(const Scalar& scalar) {
  return is_inexact(scalar.dtype) && (std::isnan(scalar.real) || std::isnan(scalar.imag));
}

bool is_fusable(const Module& module, OpId op) {
  const Operation& operation = module.op(op);
  if (!operation.def->traits.elementwise || operation.def->tile == nullptr || operation.result_count != 1) return false;
  // bitcast_convert between widths does not map one element to one element.
  const Dims& shape = module.type(module.result(op)).shape;
  const bool may_spread = module.operands(op).size() > 1;  // a scalar operand
  return std::ranges::all_of(module.operands(op), [&](ValueId operand) {
    const Dims& from = module.type(operand).shape;
    return from == shape || (may_spread && from.empty());
  });
}

// The value of each splat: constants, moved splats, and elementwise ops on splats. A chain has it as a scalar, so that
// no step computes it:
//
//   %1 = divide %one, %count ; %2 = broadcast_in_dim %1 ; %3 = multiply %2, %x         one chain: 0.0078125 * %x
class Splats {
 public:
  explicit Splats(const Module& module) : module_(module) {
    walk(module_, [&](OpId op) {
      if (const std::optional<Scalar> scalar = result_of(op); scalar && !is_nan(*scalar)) {
        scalars_.emplace(module_.result(op), *scalar);
      }
    });
  }

  const Scalar* of(ValueId value) const {
    const auto found = scalars_.find(value);
    return found == scalars_.end() ? nullptr : &found->second;
  }

 private:
  std::optional<Scalar> result_of(OpId id) const {
    const Operation& op = module_.op(id);
    if (op.result_count != 1 || module_.type(module_.result(id)).size() == 0) return std::nullopt;
    if (op.def->traits.constant_like) return splat_value(module_, module_.result(id));
    std::vector<const Scalar*> operands;
    for (ValueId operand : module_.operands(id)) {
      operands.push_back(of(operand));
      if (operands.back() == nullptr) return std::nullopt;
    }
    // Moving equal elements leaves them equal. A pad has two operands, and may add others.
    const Traits& traits = op.def->traits;
    if (traits.movement && traits.collective == CollectiveKind::kNone && operands.size() == 1) return *operands[0];
    if (!is_fusable(module_, id)) return std::nullopt;
    return computed(id, operands);
  }

  // By the same code as in a chain, so that the bits are equal.
  Scalar computed(OpId id, std::span<const Scalar* const> operands) const {
    TileBuilder tiles;
    std::vector<uint32_t> registers;
    for (const Scalar* operand : operands) registers.push_back(tiles.scalar(*operand));
    const OpView view(module_, id);
    tiles.output(view.def().tile(tiles, view, registers));
    const NdArray result = NdArray::empty(view.result_type().dtype, {});
    run_tiles(std::move(tiles).build(), {}, std::array{result}, serial_for());
    return result.scalar_at();
  }

  const Module& module_;
  std::unordered_map<ValueId, Scalar> scalars_;
};

class Grouping {
 public:
  Grouping(const Module& module, const std::vector<DigitSet>& varying)
      : module_(module),
        varying_(varying),
        splats_(module),
        uses_(module.value_count(), 0),
        taken_(module.op_count(), false),
        places_(module.op_count(), 0) {}

  std::unordered_map<OpId, FusedGroup> run() {
    for (const Function& function : module_.functions) count_uses(function.body);
    for (const Function& function : module_.functions) group(function.body);
    return std::move(groups_);
  }

 private:
  void count_uses(RegionId id) {
    const Region& region = module_.region(id);
    // A result of a region is read by its owner, so it must exist as an array.
    for (ValueId result : region.results) ++uses_[result.index];
    for (OpId op : region.ops) {
      for (ValueId operand : module_.operands(op)) ++uses_[operand.index];
      for (RegionId inner : module_.regions(op)) count_uses(inner);
    }
  }

  void group(RegionId id) {
    const std::vector<OpId>& ops = module_.region(id).ops;
    for (size_t i = 0; i < ops.size(); ++i) places_[ops[i].index] = i;
    // From the last op to the first: a group grows from its root to its producers.
    for (size_t i = ops.size(); i-- > 0;) {
      const OpView op(module_, ops[i]);
      if (is_fusable(module_, op.id()) && !taken_[op.id().index]) groups_.emplace(op.id(), grow(op.id()));
      if (!op.def().is_control_flow()) continue;
      for (RegionId inner : op.regions()) group(inner);
    }
  }

  // A use in a region inside of the one of `root` is never seen by the group.
  bool joins(ValueId value, ValueId root) const {
    const Value& produced = module_.value(value);
    return produced.op && is_fusable(module_, produced.op) && !taken_[produced.op.index] &&
           module_.op(produced.op).parent == module_.op(module_.value(root).op).parent &&
           module_.type(value).shape == module_.type(root).shape && varying_[value.index] == varying_[root.index];
  }

  FusedGroup grow(OpId root_op) {
    FusedGroup group;
    const ValueId root = module_.result(root_op);
    std::vector<OpId> pending{root_op};
    taken_[root_op.index] = true;
    size_t inputs = 0;                           // distinct inputs; splats are scalars of the program
    std::unordered_map<ValueId, uint32_t> seen;  // uses inside the group: a producer joins when it has no others
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      group.ops.push_back(op);
      for (ValueId operand : module_.operands(op)) {
        if (splats_.of(operand) != nullptr) continue;
        const bool has_room = group.ops.size() + pending.size() < kMostOps && inputs + pending.size() < kMostInputs;
        const uint32_t seen_uses = ++seen[operand];
        // A producer with a use outside the group would have to be computed twice.
        if (seen_uses == uses_[operand.index] && has_room && joins(operand, root)) {
          pending.push_back(module_.value(operand).op);
          taken_[pending.back().index] = true;
          // Its first use inside the group has counted it as an input.
          if (seen_uses > 1) --inputs;
        } else if (seen_uses == 1) {
          ++inputs;
        }
      }
    }
    std::sort(group.ops.begin(), group.ops.end(), [&](OpId a, OpId b) { return places_[a.index] < places_[b.index]; });
    write_program(group);
    return group;
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
          if (const Scalar* splat = splats_.of(operand)) {
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
      // Ops are in program order, so that a later op of the group finds its operand here.
      registers[view.result()] = last;
    }
    tiles.output(last);
    group.program = std::move(tiles).build();
  }

  const Module& module_;
  const std::vector<DigitSet>& varying_;
  const Splats splats_;
  std::vector<uint32_t> uses_;  // by value, in all regions
  std::vector<bool> taken_;     // by op
  std::vector<size_t> places_;  // by op: in its region
  std::unordered_map<OpId, FusedGroup> groups_;
};

}  // namespace

std::unordered_map<OpId, FusedGroup> fuse_elementwise(const Module& module, const std::vector<DigitSet>& varying) {
  return Grouping(module, varying).run();
}

}  // namespace shardwise
