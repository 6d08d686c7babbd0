// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/elementwise_chains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "shardwise/base/array_view.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/tile/program.h"

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
  std::unordered_map<ValueId, Scalar> take() { return std::move(scalars_); }

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

class ChainGrouping {
 public:
  ChainGrouping(const Module& module, const std::vector<DigitSet>& varying)
      : module_(module),
        varying_(varying),
        splats_(module),
        uses_(module.value_count(), 0),
        taken_(module.op_count(), false),
        places_(module.op_count(), 0) {}

  ElementwiseChains run() {
    for (const Function& function : module_.functions) count_uses(function.body);
    for (const Function& function : module_.functions) group(function.body);
    return {std::move(chains_), splats_.take()};
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
      if (is_fusable(module_, op.id()) && !taken_[op.id().index]) chains_.emplace(op.id(), grow(op.id()));
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

  ElementwiseChain grow(OpId root_op) {
    ElementwiseChain chain;
    const ValueId root = module_.result(root_op);
    std::vector<OpId> pending{root_op};
    taken_[root_op.index] = true;
    size_t inputs = 0;                           // distinct inputs; splats are scalars of the program
    std::unordered_map<ValueId, uint32_t> seen;  // uses inside the group: a producer joins when it has no others
    while (!pending.empty()) {
      const OpId op = pending.back();
      pending.pop_back();
      chain.ops.push_back(op);
      for (ValueId operand : module_.operands(op)) {
        if (splats_.of(operand) != nullptr) continue;
        const bool has_room = chain.ops.size() + pending.size() < kMostOps && inputs + pending.size() < kMostInputs;
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
    std::sort(chain.ops.begin(), chain.ops.end(), [&](OpId a, OpId b) { return places_[a.index] < places_[b.index]; });
    add_inputs(chain);
    return chain;
  }

  void add_inputs(ElementwiseChain& chain) const {
    std::unordered_set<ValueId> known;
    for (OpId op : chain.ops) {
      for (ValueId operand : module_.operands(op)) {
        if (known.insert(operand).second && splats_.of(operand) == nullptr) chain.inputs.push_back(operand);
      }
      // Ops are in program order, so that a later op of the chain finds its operand here.
      known.insert(module_.result(op));
    }
  }

  const Module& module_;
  const std::vector<DigitSet>& varying_;
  Splats splats_;
  std::vector<uint32_t> uses_;  // by value, in all regions
  std::vector<bool> taken_;     // by op
  std::vector<size_t> places_;  // by op: in its region
  std::unordered_map<OpId, ElementwiseChain> chains_;
};

// A splat has the shape, but no order in memory that could be copied.
bool has_shape(const NdArray& array, const Dims& shape) { return array.shape() == shape && !array.is_splat(); }

// Whether the result may overwrite this buffer: it has no other owner, and the result's dtype and shape without gaps.
bool is_reusable(const NdArray& array, DType dtype, const Dims& shape) {
  // is_gapless excludes broadcast arrays, whose elements share memory.
  return array.dtype() == dtype && array.owner().use_count() == 1 && array.shape() == shape && is_gapless(array);
}

}  // namespace

ElementwiseChains elementwise_chains(const Module& module, const std::vector<DigitSet>& varying) {
  return ChainGrouping(module, varying).run();
}

ChainMemory chain_memory(std::span<const NdArray> inputs, DType dtype, const Dims& shape) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_reusable(inputs[i], dtype, shape)) return {.over = i};
  }
  // In the memory order of an input, so that the chain runs along memory, and shards of one array stay adjacent.
  const auto like = std::ranges::find_if(inputs, [&](const NdArray& array) { return has_shape(array, shape); });
  if (like != inputs.end() && !like->is_contiguous()) return {.over = {}, .order = memory_order(*like)};
  ChainMemory rows{.over = {}, .order = std::vector<size_t>(shape.size())};
  std::iota(rows.order.begin(), rows.order.end(), size_t{0});
  return rows;
}

}  // namespace shardwise
