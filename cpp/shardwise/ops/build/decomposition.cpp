// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/decomposition.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/again.h"

namespace shardwise {
namespace {

class Decomposition final : public DecomposeContext {
 public:
  Decomposition(Builder& builder, const OpView& op) : builder_(builder), op_(op), results_(op.result_count()) {}

  OpView op() const override { return op_; }
  Builder& builder() override { return builder_; }
  ValueId operand(size_t i) const override { return op_.operand(i); }
  void set_result(size_t i, ValueId value) override { results_[i] = value; }

  // All results, or none.
  std::vector<ValueId> take_results() {
    const auto is_set = [](ValueId value) { return static_cast<bool>(value); };
    // An op may turn out to have no decomposition for its attributes; it then sets nothing, and the caller refuses it.
    if (std::ranges::none_of(results_, is_set)) return {};
    for (size_t i = 0; i < results_.size(); ++i) {
      const Module& module = builder_.module();
      check_internal(is_set(results_[i]) && module.value(results_[i]).type == module.value(op_.result(i)).type,
                     str("the decomposition of ", op_.name(), " gives result ", i, " another type"));
    }
    return std::move(results_);
  }

 private:
  Builder& builder_;
  OpView op_;
  std::vector<ValueId> results_;
};

}  // namespace

bool is_composed(const OpDef& def) { return def.runs == Runs::kOps; }

std::vector<ValueId> append_decomposition(Builder& builder, const OpView& op) {
  const LocId loc = builder.loc();
  const OpId origin = builder.origin();
  // The ops that replace it are at the user's line of the op, and have its origin: reports
  // and errors lead to what was written.
  builder.set_loc(op.loc(), op.module().op(op.id()).origin);
  const size_t first = builder.module().op_count();
  Decomposition context(builder, op);
  try {
    op.def().decompose(context);
  } catch (Error& error) {
    error.at(op.module().context().location_text(op.loc()));
    throw;
  }
  builder.set_loc(loc, origin);
  mark_as(builder.module(), op.id(), first);
  return context.take_results();
}

void refuse_to_decompose(const OpView& op, std::string_view what) {
  // Its message is more precise, so it comes first.
  if (op.def().verify_runnable != nullptr) op.def().verify_runnable(op);
  refuse_op(op, what);
}

}  // namespace shardwise
