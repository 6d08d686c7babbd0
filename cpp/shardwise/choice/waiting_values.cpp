// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/waiting_values.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

class WaitingValues {
 public:
  explicit WaitingValues(const Module& module) : module_(module), waits_(module.value_count(), false) {
    for (const Function& function : module.functions) {
      if (&function == &module.main()) continue;
      for (const ValueId argument : module.region(function.body).arguments) waits_[argument.index] = true;
    }
  }

  std::vector<bool> take() {
    do {
      is_changed_ = false;
      walk(module_, [&](OpId id) { visit(OpView(module_, id)); });
    } while (is_changed_);
    return std::move(waits_);
  }

 private:
  bool waits(ValueId value) const { return waits_[value.index]; }
  void add(ValueId value, bool does_wait) {
    if (!does_wait || waits(value)) return;
    waits_[value.index] = true;
    is_changed_ = true;
  }

  void visit(const OpView& op) {
    if (op.def().regions == Regions::kLoop) return visit_loop(op);
    const bool has_code = !op.regions().empty() && op.def().regions != Regions::kCombiner;
    const bool does_wait = has_code || op.def().regions == Regions::kCall ||
                           is_contraction(op.def(), sharding_rule(op)) ||
                           std::ranges::any_of(op.operands(), [&](ValueId operand) { return waits(operand); });
    for (size_t i = 0; i < op.result_count(); ++i) add(op.result(i), does_wait);
  }

  void visit_loop(const OpView& op) {
    const LoopParts parts = loop_parts(op);
    for (const LoopParts::Carry& carry : parts.carries) {
      const bool does_wait = waits(carry.entry) || waits(carry.next);
      add(carry.argument, does_wait);
      if (carry.tested) add(carry.tested, does_wait);
      add(carry.result, does_wait);
    }
    for (const LoopParts::Input& input : parts.inputs) add(input.row, waits(input.stack));
    for (const LoopParts::Output& output : parts.outputs) add(output.stack, waits(output.row));
  }

  const Module& module_;
  std::vector<bool> waits_;
  bool is_changed_ = false;
};

}  // namespace

std::vector<bool> waiting_values(const Module& module) { return WaitingValues(module).take(); }

}  // namespace shardwise
