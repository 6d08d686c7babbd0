// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/reverse_walk.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"

namespace shardwise {
namespace {

void check_float(const Module& module, ValueId value) {
  if (is_inexact(module.type(value).dtype)) return;
  fail<DTypeError>("grad", "what is differentiated with respect to must be floating point", module.type(value).text(),
                   "convert it to a float first, or leave it out of argnums");
}

}  // namespace

ReverseWalk::ReverseWalk(Builder& builder, std::span<const ValueId> wrt)
    : builder_(builder),
      module_(builder.module()),
      // A copy of the list: the walk appends gradient ops to the same region, and must not visit those.
      ops_(module_.region(builder.region()).ops),
      is_wrt_(module_.value_count()),
      cotangents_(module_.value_count()),
      activity_(module_, wrt),
      replaced_(module_),
      matches_(MatchesVarying::is_on()) {
  for (const ValueId value : wrt) {
    check_float(module_, value);
    is_wrt_[value.index] = true;
  }
  for (const OpId op : ops_) located(module_, op, [&] { activity_.visit(op); });
}

void ReverseWalk::seed(ValueId output, ValueId cotangent) {
  if (!is_active(output)) return;
  const TypeId wanted = module_.value(output).type;
  if (module_.value(cotangent).type != wanted) {
    fail<ShapeError>("vjp", "a cotangent must have the type of its output",
                     str(module_.type(cotangent).text(), " for ", module_.type(output).text()));
  }
  accumulate(output, matches_ ? create_match_varying(builder_, cotangent, output) : cotangent);
}

void ReverseWalk::run() {
  const LocId loc = builder_.loc();
  for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) {
    if (!flows_into(*it)) continue;
    // Without its name, which is that of the value and not of a cotangent.
    builder_.set_loc(module_.context().without_names(module_.op(*it).loc));
    located(module_, *it, [&] {
      // Those of other ops vary as the result, which has the variation of the one operand.
      const OpDef& def = *module_.op(*it).def;
      mixes_ = matches_ && (module_.op(*it).operand_count > 1 || def.regions != Regions::kNone || find_device_op(def));
      pull_back(*it);
    });
  }
  builder_.set_loc(loc);
  commit();
}

ValueId ReverseWalk::cotangent_or_zeros(ValueId value) {
  const ValueId known = cotangent(value);
  return known ? known : build_zeros(builder_, module_.type(value));
}

void ReverseWalk::accumulate(ValueId value, ValueId cotangent) {
  if (!is_active(value)) return;
  if (mixes_) cotangent = create_match_varying(builder_, cotangent, value);
  ValueId& sum = cotangents_[value.index];
  // Users come after the value in the program, so in reverse the sum is complete when the op of the value is reached.
  sum = sum ? builder_.create("stablehlo.add", {sum, cotangent}) : cotangent;
}

bool ReverseWalk::flows_into(OpId op) const {
  // Regions included: a loop may read a `wrt` value that is no operand of it.
  return any_result(module_, op, [&](ValueId result) { return bool{cotangent_of_result(result)}; }) &&
         reads_any(module_, op, [&](ValueId value) { return is_active(value); });
}

// ---- replaced ops --------------------------------------------------------------------------------------------------

void ReverseWalk::take_appended(OpId op, size_t known) {
  std::vector<OpId>& ops = module_.region(builder_.region()).ops;
  in_place_[op].assign(ops.begin() + static_cast<std::ptrdiff_t>(known), ops.end());
  ops.resize(known);
}

void ReverseWalk::commit() {
  if (in_place_.empty()) return;
  std::vector<OpId> kept;
  for (const OpId op : module_.region(builder_.region()).ops) {
    const auto found = in_place_.find(op);
    if (found == in_place_.end()) {
      kept.push_back(op);
      continue;
    }
    kept.insert(kept.end(), found->second.begin(), found->second.end());
    // The op leaves the region but not the module, where it would still count as a user of its operands.
    module_.drop_uses(op);
  }
  for (const OpId op : kept) replaced_.apply(op);
  module_.region(builder_.region()).ops = std::move(kept);
  for (ValueId& cotangent : cotangents_) cotangent = replaced_(cotangent);
}

// ---- ops without regions -------------------------------------------------------------------------------------------

class ReverseWalk::Context final : public VjpContext {
 public:
  Context(ReverseWalk& walk, OpId id) : walk_(walk), id_(id) {}

  OpView op() const override { return OpView(walk_.module_, id_); }
  Builder& builder() override { return walk_.builder_; }
  ValueId operand(size_t i) const override { return walk_.module_.operands(id_)[i]; }
  ValueId result(size_t i) const override { return walk_.module_.result(id_, static_cast<uint32_t>(i)); }
  ValueId cotangent(size_t i) override {
    const ValueId value = result(i);
    // Not stored: the entry of a `wrt` value is the gradient that the caller asks for.
    if (walk_.is_wrt_[value.index]) return build_zeros(builder(), walk_.module_.type(value));
    ValueId& known = walk_.cotangents_[value.index];
    if (!known) known = build_zeros(builder(), walk_.module_.type(value));
    return known;
  }
  bool needs(size_t i) const override { return walk_.is_active(operand(i)); }
  void set(size_t i, ValueId cotangent) override {
    if (!needs(i)) return;
    if (walk_.module_.value(cotangent).type != walk_.module_.value(operand(i)).type) refuse(i, cotangent);
    walk_.accumulate(operand(i), cotangent);
  }

 private:
  // A text for each cotangent would cost a third of the walk.
  [[noreturn]] void refuse(size_t i, ValueId cotangent) const {
    fail<InternalError>(op().name(), str("the cotangent of operand ", i, " must have its type"),
                        str(walk_.module_.type(cotangent).text(), " for ", walk_.module_.type(operand(i)).text()));
  }

  ReverseWalk& walk_;
  OpId id_;
};

void ReverseWalk::pull_back(OpId op) {
  switch (module_.op(op).def->regions) {
    case Regions::kLoop: return differentiate_loop(*this, op);
    case Regions::kBranches: return differentiate_branches(*this, op);
    case Regions::kInline:
      return has_given_derivative(module_, op) ? differentiate_given(*this, op) : differentiate_checkpoint(*this, op);
    case Regions::kNone:
    case Regions::kCombiner:
    case Regions::kCall:
    case Regions::kManual: break;
  }
  const size_t first = module_.op_count();
  Context context(*this, op);
  apply_vjp(context);
  if (times_before(module_, op) > 0) unmark(module_, first);
}

}  // namespace shardwise
