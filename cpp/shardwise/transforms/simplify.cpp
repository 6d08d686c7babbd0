// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/simplify.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace shardwise {
namespace {

template <class F>
void for_each_region(const Module& module, RegionId region, F&& visit) {
  visit(region);
  for (size_t i = 0; i < module.region(region).ops.size(); ++i) {
    const OpId op = module.region(region).ops[i];
    for (size_t r = 0; r < module.regions(op).size(); ++r) for_each_region(module, module.regions(op)[r], visit);
  }
}

// ---- equal ops -----------------------------------------------------------------------------------------------------

class EqualOps {
 public:
  explicit EqualOps(Module& module) : module_(module), replacement_(module.value_count()) {}

  int64_t run() {
    for (const Function& function : module_.functions) merge_region(function.body);
    return merged_;
  }

 private:
  ValueId replaced(ValueId value) const { return replacement_[value.index] ? replacement_[value.index] : value; }

  // Merges equal ops of one region only, because values of a body are not visible outside.
  void merge_region(RegionId region) {
    std::unordered_multimap<size_t, OpId> known;
    std::vector<OpId>& ops = module_.region(region).ops;
    known.reserve(ops.size());
    size_t kept = 0;
    for (OpId id : ops) {
      for (ValueId& operand : module_.operands(id)) operand = replaced(operand);
      for (RegionId inner : module_.regions(id)) merge_region(inner);
      if (!is_mergeable(id) || !merge(id, known)) ops[kept++] = id;
    }
    merged_ += static_cast<int64_t>(ops.size() - kept);
    ops.resize(kept);
    for (ValueId& result : module_.region(region).results) result = replaced(result);
  }

  bool is_mergeable(OpId id) const {
    const Operation& op = module_.op(id);
    const Traits& traits = op.def->traits;
    return !op.def->has_side_effect(OpView(module_, id)) && !traits.constraint && !traits.reshard &&
           op.region_count == 0 && op.result_count != 0;
  }

  bool merge(OpId id, std::unordered_multimap<size_t, OpId>& known) {
    const size_t hash = hash_of(id);
    auto [begin, end] = known.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (!equal_ops(it->second, id)) continue;
      for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
        replacement_[module_.result(id, i).index] = module_.result(it->second, i);
      }
      return true;
    }
    known.emplace(hash, id);
    return false;
  }

  // The operands in an order that does not depend on their sides, if the op is commutative.
  std::array<ValueId, 2> ordered(OpId id) const {
    const auto operands = module_.operands(id);
    return {std::min(operands[0], operands[1]), std::max(operands[0], operands[1])};
  }
  bool is_commutative(OpId id) const {
    return module_.op(id).def->traits.commutative && module_.op(id).operand_count == 2;
  }

  size_t hash_of(OpId id) const {
    const Operation& op = module_.op(id);
    size_t hash = hash_combine(std::hash<const void*>()(op.def), op.attrs.index);
    if (is_commutative(id)) {
      for (ValueId operand : ordered(id)) hash = hash_combine(hash, operand.index);
    } else {
      for (ValueId operand : module_.operands(id)) hash = hash_combine(hash, operand.index);
    }
    for (uint32_t i = 0; i < op.result_count; ++i) {
      hash = hash_combine(hash, module_.value(module_.result(id, i)).sharding.index);
    }
    return hash;
  }

  bool equal_ops(OpId a, OpId b) const {
    const Operation& x = module_.op(a);
    const Operation& y = module_.op(b);
    if (x.def != y.def || x.attrs != y.attrs || x.result_count != y.result_count) return false;
    if (is_commutative(a) ? ordered(a) != ordered(b) : !std::ranges::equal(module_.operands(a), module_.operands(b))) {
      return false;
    }
    for (uint32_t i = 0; i < x.result_count; ++i) {
      const Value& u = module_.value(module_.result(a, i));
      const Value& v = module_.value(module_.result(b, i));
      if (u.type != v.type || u.sharding != v.sharding) return false;
    }
    return true;
  }

  Module& module_;
  std::vector<ValueId> replacement_;  // by value
  int64_t merged_ = 0;
};

// ---- splats --------------------------------------------------------------------------------------------------------

// The value of a constant whose elements are all the same; null for other ops.
const DenseAttr* splat_of(const Module& module, ValueId value) {
  const OpId id = module.value(value).op;
  if (!id || !module.op(id).def->traits.constant_like || module.op(id).operand_count != 0) return nullptr;
  const auto* dense = module.attrs(id).find<DenseAttr>("value");
  return dense != nullptr && dense->data.is_splat() && dense->data.size() > 0 ? dense : nullptr;
}

// A movement of a splat is the splat with the result's shape. The op becomes that constant in place.
bool fold_splat(Module& module, OpId id) {
  const Operation op = module.op(id);
  const Traits& traits = op.def->traits;
  if (!traits.movement || traits.side_effect || traits.reshard || traits.constraint) return false;
  if (traits.collective != CollectiveKind::kNone) return false;
  if (op.operand_count != 1 || op.result_count != 1 || op.region_count != 0) return false;
  const ValueId operand = module.operands(id)[0];
  const DenseAttr* dense = splat_of(module, operand);
  if (dense == nullptr) return false;
  const TensorType& type = module.type(module.result(id));
  if (type.dtype != dense->data.dtype()) return false;
  const NdArray& data = dense->data;
  NdArray moved(type.dtype, type.shape, Dims(type.shape.size(), 0), data.data(), data.owner());
  Attrs attrs = module.attrs(module.value(operand).op);
  attrs.set("value", DenseAttr{std::move(moved)});
  Operation& folded = module.op(id);
  folded.def = module.op(module.value(operand).op).def;
  folded.attrs = module.context().intern(attrs);
  folded.operand_count = 0;
  return true;
}

}  // namespace

int64_t fold_splats(Module& module) {
  int64_t folded = 0;
  for (const Function& function : module.functions) {
    for_each_region(module, function.body, [&](RegionId region) {
      for (OpId id : module.region(region).ops) folded += fold_splat(module, id) ? 1 : 0;
    });
  }
  return folded;
}

int64_t merge_equal_ops(Module& module) { return EqualOps(module).run(); }

namespace {

class UnusedOps {
 public:
  UnusedOps(Module& module, UnusedConstraints constraints)
      : module_(module), constraints_(constraints), used_(module.value_count()) {}

  // From the last op to the first: when an op is reached, all its users have been.
  int64_t sweep(RegionId region) {
    for (ValueId result : module_.region(region).results) used_[result.index] = true;
    std::vector<OpId>& ops = module_.region(region).ops;
    std::vector<OpId> kept;
    kept.reserve(ops.size());
    int64_t removed = 0;
    for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
      if (!is_needed(*it)) {
        ++removed;
        continue;
      }
      for (ValueId operand : module_.operands(*it)) used_[operand.index] = true;
      for (RegionId inner : module_.regions(*it)) removed += sweep(inner);
      kept.push_back(*it);
    }
    ops.assign(kept.rbegin(), kept.rend());
    return removed;
  }

 private:
  bool is_needed(OpId id) const {
    const Operation& op = module_.op(id);
    if (has_effect(module_, id, constraints_)) return true;
    for (uint32_t i = 0; i < op.result_count; ++i) {
      if (used_[op.first_result + i]) return true;
    }
    return false;
  }

  Module& module_;
  UnusedConstraints constraints_;
  std::vector<bool> used_;  // by value
};

}  // namespace

bool has_effect(const Module& module, OpId id, UnusedConstraints constraints) {
  const OpView op(module, id);
  if (op.def().has_side_effect(op)) return true;
  if (op.def().traits.constraint && constraints == UnusedConstraints::kKeep) return true;
  return std::ranges::any_of(op.regions(), [&](RegionId region) {
    return std::ranges::any_of(module.region(region).ops,
                               [&](OpId inner) { return has_effect(module, inner, constraints); });
  });
}

int64_t remove_unused_ops(Module& module, UnusedConstraints constraints) {
  UnusedOps unused(module, constraints);
  int64_t removed = 0;
  for (const Function& function : module.functions) removed += unused.sweep(function.body);
  return removed;
}

Module simplify(Module module, PassContext& context) {
  context.counters.add("simplify.folded", fold_splats(module));
  context.counters.add("simplify.merged", merge_equal_ops(module));
  context.counters.add("simplify.removed", remove_unused_ops(module));
  return module;
}

}  // namespace shardwise
