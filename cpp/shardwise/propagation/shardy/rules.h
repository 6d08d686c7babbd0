// SPDX-License-Identifier: Apache-2.0
//
// How Shardy propagates through an op, where that does not follow from the op's definition. An op's own rule states
// what computing it needs; Shardy's rule may differ, depend on the ops around it, or be weaker in conservative mode:
//
//   dynamic_update_slice at computed starts     ([i], [j], [])->([i]) {i=8, j=2} need_replication={j}
//   the same at constant starts                 ([i], [j], [])->([i]) {i=8, j=2}
//   slice                                       ([i])->([i]) {i=8} permutation={i}
//   slice, conservative                         ([i])->([i]) {i=8} permutation={i} blocked_propagation={i}
//
// One row per op, one function per rule; ops without a row propagate by their own rule, in turn. The folder rules/ has
// the functions by family. Tests compare all of them with Shardy (tests/conformance/shardy).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The rounds in which an op propagates, and the direction. Elementwise ops and constraints are kEarly.
//   kEarly          from the first round on: it changes no element, or each one alone          reshape, transpose
//   kForwardEarly   the same, but before its round from operands to results only               dynamic_slice
//   kBackwardFirst  from results to operands in its round, the other way in the last round     broadcast_in_dim
enum class Precedence : uint8_t { kInTurn, kEarly, kForwardEarly, kBackwardFirst };

// The ops around an op: those that define its operands and those that use its results.
class Neighbors {
 public:
  explicit Neighbors(const Module& module) : module_(module) {}

  static const OpDef* maker(const OpView& op, size_t operand);  // null for an argument
  bool has_user(const OpView& op, const OpDef& user);           // of its first result; the first call walks the module

 private:
  const Module& module_;
  const OpDef* user_ = nullptr;  // of the values in used_
  std::unordered_set<ValueId> used_ = {};
};

struct RuleMode {
  bool neighbors = false;     // the answer of `ShardyOp::looks_around`
  bool conservative = false;  // nothing propagates along dims whose elements are exchanged
};

// The op's own rule, with each factor as `edit` gives it back; none drops the factor.
using FactorEdit = std::function<std::optional<Factor>(Factor own, size_t id)>;
ShardingRule edited_rule(const OpView& op, const FactorEdit& edit);

struct ShardyOp {
  std::string_view op;
  ShardingRule (*rule)(const OpView& op, RuleMode mode) = nullptr;         // null: the op's own
  bool (*looks_around)(const OpView& op, Neighbors& neighbors) = nullptr;  // if the rule depends on other ops
  Precedence precedence = Precedence::kInTurn;
  Precedence (*precedence_of)(const OpView& op) = nullptr;  // if it depends on the op's attributes or types
  bool keeps_constants = false;  // its result is a constant if its operands are; also required of its inner ops
};

// Rows by the address of the definition. Few ops have one, so most look-ups end at the first slot, an empty one.
class ShardyOps {
 public:
  static const ShardyOps& table();

  // An empty row for an op without one.
  const ShardyOp& operator[](const OpDef& def) const {
    static constexpr ShardyOp kNone;
    for (size_t slot = first_slot(def);; slot = (slot + 1) % kSlots) {
      if (slots_[slot].def == &def) return *slots_[slot].row;
      if (slots_[slot].def == nullptr) return kNone;
    }
  }

 private:
  static constexpr size_t kSlots = 256;
  struct Slot {
    const OpDef* def = nullptr;
    const ShardyOp* row = nullptr;
  };

  ShardyOps();
  static size_t first_slot(const OpDef& def) {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(&def) >> 3) * 0x9e3779b97f4a7c15ULL >> 56);
  }
  void insert(const OpDef& def, const ShardyOp& row);

  std::array<Slot, kSlots> slots_ = {};
};

// Each element depends on entire matrices, so only the batch can be split.
ShardingRule rule_replicated_matrices(const OpView& op, RuleMode mode);

// The rows of the families in rules/.
std::span<const ShardyOp> shardy_slicing_ops();
std::span<const ShardyOp> shardy_window_ops();
std::span<const ShardyOp> shardy_custom_call_ops();
std::span<const ShardyOp> shardy_linalg_ops();

}  // namespace shardwise
