// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/cse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/structural_equality.h"

namespace shardwise {
namespace {

// The ops of one region by hash, with open addressing: a node per op would cost more than all comparisons.
class OpTable {
 public:
  // A power of two, so that `& mask` is the remainder, and at least twice the ops, so that probes stay short.
  explicit OpTable(size_t ops) : slots_(std::bit_ceil(2 * ops + 1)) {}

  // The op of that hash that `is_equal` accepts; if there is none, `op` joins the table and is returned.
  template <class F>
  OpId find_or_add(size_t hash, OpId op, F&& is_equal) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (!slot.op) slot = {.op = op, .hash = static_cast<uint32_t>(hash >> 32)};
      if (slot.op == op || (slot.hash == static_cast<uint32_t>(hash >> 32) && is_equal(slot.op))) return slot.op;
    }
  }

 private:
  struct Slot {
    OpId op;
    uint32_t hash = 0;  // its upper half
  };
  std::vector<Slot> slots_;  // at most half of them are taken
};

class EqualOps {
 public:
  explicit EqualOps(Module& module)
      : module_(module),
        replacement_(module.value_count()),
        run_of_(module.value_count()),
        same_regions_(module),
        effects_(module, UnusedConstraints::kKeep),
        reshards_(module, IsReshard{&module}) {}

  // Equal ops are looked for in the same region only: a value of a body is not visible outside.
  int64_t merge_region(RegionId region) {
    std::vector<OpId>& ops = module_.region(region).ops;
    OpTable known(ops.size());
    uint32_t run = 1;
    int64_t merged = 0;
    size_t kept = 0;
    for (const OpId id : ops) {
      for (uint32_t i = 0; i < module_.op(id).operand_count; ++i) {
        // First the operands: two ops are equal only after the ops that they read have been merged.
        if (const ValueId by = replacement(module_.operands(id)[i])) module_.set_operand(id, i, by);
      }
      // Regions before the op, for the same reason.
      for (const RegionId inner : module_.regions(id)) merged += merge_region(inner);
      if (module_.op(id).def->passes_through()) ++run;
      if (reads_nothing(id)) mark(id, run);
      if (is_mergeable(id) && merge(id, known)) {
        module_.drop_uses(id);
      } else {
        ops[kept++] = id;
      }
    }
    merged += static_cast<int64_t>(ops.size() - kept);
    ops.resize(kept);
    for (uint32_t i = 0; i < module_.region(region).results.size(); ++i) {
      if (const ValueId by = replacement(module_.region(region).results[i])) module_.set_region_result(region, i, by);
    }
    return merged;
  }

 private:
  struct IsReshard {
    const Module* module;
    bool operator()(OpId id) const { return module->op(id).def->traits.reshard; }
  };

  // One walk down replaces operands as it goes: that needs no lists of uses.
  ValueId replacement(ValueId value) const { return replacement_[value.index]; }

  bool is_mergeable(OpId id) { return module_.op(id).result_count != 0 && !reshards_(id) && !effects_(id); }

  // Whether the op reads no argument, not even through other ops.
  bool reads_nothing(OpId id) const {
    return module_.op(id).region_count == 0 &&
           std::ranges::all_of(module_.operands(id), [&](ValueId value) { return run_of_[value.index] != 0; });
  }
  void mark(OpId id, uint32_t run) {
    // A constant is in memory anyway.
    const bool is_constant = module_.op(id).operand_count == 0 && module_.attrs(id).find<DenseAttr>("value") != nullptr;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      run_of_[module_.result(id, i).index] = is_constant ? 1 : run;
    }
  }
  uint32_t run_of(OpId id) const { return run_of_[module_.result(id).index]; }

  bool merge(OpId id, OpTable& known) {
    const AttrsId attrs = attrs_of(id);
    const OpId equal =
        known.find_or_add(hash_of(id, attrs), id, [&](OpId other) { return equal_ops(other, id, attrs); });
    if (equal == id) return false;
    for (uint32_t i = 0; i < module_.op(id).result_count; ++i) {
      replacement_[module_.result(id, i).index] = module_.result(equal, i);
    }
    return true;
  }

  // The cause of a collective does not count.
  AttrsId attrs_of(OpId id) const {
    if (module_.op(id).def->traits.collective == CollectiveKind::kNone) return module_.op(id).attrs;
    Attrs attrs = module_.attrs(id);
    if (attrs.find(kCauseAttr) == nullptr) return module_.op(id).attrs;
    attrs.erase(kCauseAttr);
    return module_.context().intern(attrs);
  }

  // Commutative operands in canonical order.
  std::array<ValueId, 2> ordered(OpId id) const {
    const auto operands = module_.operands(id);
    return {std::min(operands[0], operands[1]), std::max(operands[0], operands[1])};
  }
  bool is_commutative(OpId id) const {
    return module_.op(id).def->traits.commutative && module_.op(id).operand_count == 2;
  }

  size_t hash_of(OpId id, AttrsId attrs) const {
    const Operation& op = module_.op(id);
    size_t hash = hash_combine(hash_combine(std::hash<const void*>()(op.def), attrs.index), run_of(id));
    if (is_commutative(id)) {
      for (const ValueId operand : ordered(id)) hash = hash_combine(hash, operand.index);
    } else {
      for (const ValueId operand : module_.operands(id)) hash = hash_combine(hash, operand.index);
    }
    for (uint32_t i = 0; i < op.result_count; ++i) {
      const Value& result = module_.value(module_.result(id, i));
      hash = hash_combine(hash_combine(hash, result.type.index), result.sharding.index);
    }
    for (const RegionId region : module_.regions(id)) {
      for (const OpId inner : module_.region(region).ops) {
        // A cheap part of the region; equal_ops compares all of it.
        hash = hash_combine(hash, std::hash<const void*>()(module_.op(inner).def));
      }
    }
    return hash;
  }

  bool equal_ops(OpId a, OpId b, AttrsId attrs) {
    const Operation& x = module_.op(a);
    const Operation& y = module_.op(b);
    if (x.def != y.def || x.result_count != y.result_count || x.region_count != y.region_count) return false;
    if (attrs_of(a) != attrs || run_of(a) != run_of(b)) return false;
    if (is_commutative(a) ? ordered(a) != ordered(b) : !std::ranges::equal(module_.operands(a), module_.operands(b))) {
      return false;
    }
    for (uint32_t i = 0; i < x.result_count; ++i) {
      if (!equal_values(module_.result(a, i), module_.result(b, i))) return false;
    }
    return std::ranges::equal(module_.regions(a), module_.regions(b), std::ref(same_regions_));
  }

  bool equal_values(ValueId a, ValueId b) const {
    const Value& u = module_.value(a);
    const Value& v = module_.value(b);
    // An annotation is part of the program: a value with another sharding is another value.
    return u.type == v.type && u.sharding == v.sharding && module_.part(a) == module_.part(b);
  }

  Module& module_;
  std::vector<ValueId> replacement_;  // by value; none for a value that stays
  std::vector<uint32_t> run_of_;      // by value: 0 if it depends on an argument, else one more for each barrier before
  SameRegions same_regions_;
  Effects effects_;
  AnyExecuted<IsReshard> reshards_;
};

}  // namespace

int64_t cse(Module& module) {
  EqualOps equal_ops(module);
  int64_t merged = 0;
  for (const Function& function : module.functions) merged += equal_ops.merge_region(function.body);
  return merged;
}

}  // namespace shardwise
