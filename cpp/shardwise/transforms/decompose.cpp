// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/decompose.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/rewrite.h"

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

class Decomposer {
 public:
  Decomposer(Module& module, OpFilter is_chosen) : module_(module), rewrite_(module), is_chosen_(is_chosen) {}

  int64_t run() {
    for (size_t f = 0; f < module_.functions.size(); ++f) visit(module_.functions[f].body);
    return count_;
  }

 private:
  void visit(RegionId region) {
    const std::vector<OpId> ops = module_.region(region).ops;
    for (const OpId op : ops) visit(op);
  }

  void visit(OpId id) {
    if (is_chosen_(*module_.op(id).def) && replace(id)) return;
    for (size_t r = 0; r < module_.op(id).region_count; ++r) visit(module_.regions(id)[r]);
  }

  bool replace(OpId id) {
    const auto first = static_cast<uint32_t>(module_.op_count());
    const auto known_values = static_cast<uint32_t>(module_.value_count());
    const std::vector<ValueId> results =
        rewrite_.insert(rewrite_.before(id), module_.op(id).loc,
                        [&](Builder& builder) { return append_decomposition(builder, OpView(module_, id)); });
    if (results.empty()) return false;
    const RegionId parent = module_.op(id).parent;
    for (uint32_t i = 0; i < results.size(); ++i) {
      if (results[i].index < known_values) continue;
      const Value& old = module_.value(module_.result(id, i));
      Value& made = module_.value(results[i]);
      made.sharding = old.sharding;
      made.origin = old.origin;
    }
    rewrite_.replace(id, results);
    ++count_;
    // Ops in the regions of made ops are visited with these.
    for (uint32_t made = first, end = static_cast<uint32_t>(module_.op_count()); made < end; ++made) {
      if (module_.op(OpId{made}).parent == parent) visit(OpId{made});
    }
    return true;
  }

  Module& module_;
  Rewrite rewrite_;
  OpFilter is_chosen_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<ValueId> append_decomposition(Builder& builder, const OpView& op) {
  const LocId loc = builder.loc();
  const OpId origin = builder.origin();
  builder.set_loc(op.loc(), op.module().op(op.id()).origin);
  Decomposition context(builder, op);
  try {
    op.def().decompose(context);
  } catch (Error& error) {
    error.at(op.module().context().location_text(op.loc()));
    throw;
  }
  builder.set_loc(loc, origin);
  return context.take_results();
}

void refuse_to_decompose(const OpView& op, std::string_view what) {
  if (op.def().verify_runnable != nullptr) op.def().verify_runnable(op);
  fail<UnsupportedError>(op.name(), str("can be read, propagated and printed, but not ", what), {},
                         "replace it by other ops");
}

int64_t decompose_ops(Module& module, OpFilter is_chosen) { return Decomposer(module, is_chosen).run(); }

bool has_no_kernel(const OpDef& def) { return def.decompose != nullptr && def.prepare == nullptr; }

}  // namespace shardwise
