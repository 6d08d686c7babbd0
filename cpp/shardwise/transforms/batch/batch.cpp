// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/batch.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/collectives/device_ops.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/transforms/batch/batch_dependence.h"
#include "shardwise/transforms/batch/batch_walk.h"
#include "shardwise/transforms/batch/manual_regions.h"
#include "shardwise/transforms/batch/rule_of_rows.h"

namespace shardwise {
class BatchWalk::Context final : public BatchContext {
 public:
  Context(BatchWalk& walk, OpId id)
      : walk_(walk), id_(id), set_(walk.dependence().read_by(id)), rule_(walk.module_, id) {}

  OpView op() const override { return OpView(walk_.module_, id_); }
  Builder& builder() override { return *walk_.builder_; }
  int64_t size() const override { return walk_.axes_.rows(set_); }
  bool is_batched(size_t i) const override { return walk_.varies(original(i)) != 0; }
  ValueId operand(size_t i) const override { return walk_.image(original(i), is_batched(i) ? set_ : 0); }
  ValueId batched(size_t i) override { return walk_.image(original(i), set_); }
  std::vector<std::string> mesh_axes() const override { return walk_.axes_.mesh_axes(); }
  void set_result(size_t i, ValueId value) override {
    const ValueId result = walk_.module_.result(id_, static_cast<uint32_t>(i));
    const TensorType& type = walk_.module_.type(result);
    const TensorType& got = walk_.module_.type(value);
    if (got.shape != with_leading(size(), type.shape)) {
      fail<InternalError>(op().name(), str("result ", i, " must be batched"), got.text());
    }
    rule_.add_to(walk_.module_.value(value).op, size());
    walk_.map(result, stays_by_itself() ? value : constrain_rows(builder(), walk_.axes_, value, set_), set_);
  }

 private:
  // Calls of functions that propagation does not know keep no sharding of their operands. These two kinds of ops, and
  // those with regions, do: they would only be more constraints.
  bool stays_by_itself() const {
    const OpDef& def = op().def();
    return def.traits.elementwise || def.traits.movement || def.regions != Regions::kNone;
  }
  ValueId original(size_t i) const { return walk_.module_.operands(id_)[i]; }
  BatchWalk& walk_;
  OpId id_;
  AxisSet set_;  // of the op: all batched operands and results have rows along these axes
  RuleOfExample rule_;
};

void BatchWalk::map(ValueId original, ValueId image, AxisSet set) {
  copy_.map(original, image);
  varies_[original] = set;
}

AxisSet BatchWalk::varies(ValueId original) const {
  const auto it = varies_.find(original);
  return it == varies_.end() ? 0 : it->second;
}

ValueId BatchWalk::align(ValueId value, AxisSet from, AxisSet to) {
  const ValueId repeated = repeat_rows(*builder_, axes_, value, from, to);
  // A value that is equal everywhere gets the sharding of the values that it meets.
  return from == 0 || from == to ? repeated : constrain_rows(*builder_, axes_, repeated, to);
}

ValueId BatchWalk::image(ValueId original, AxisSet set) { return align(image(original), varies(original), set); }

BatchDependence BatchWalk::dependence() const {
  return BatchDependence(module_, axes_, [this](ValueId value) { return varies(value); });
}

void BatchWalk::run(RegionId body) {
  // A copy of the list: visiting adds regions to the module, and a reference to this one would dangle.
  const std::vector<OpId> ops = module_.region(body).ops;
  const LocId loc = builder_->loc();
  for (const OpId id : ops) visit(id);
  builder_->set_loc(loc);
}

void BatchWalk::visit(OpId id) {
  located(module_, id, [&] { visit_located(id); });
}

void BatchWalk::visit_located(OpId id) {
  builder_->set_loc(module_.op(id).loc);
  const OpDef& def = *module_.op(id).def;
  if (!masked_by_.empty()) check_no_effect(id);
  if (!axes_.are_examples() && number_of_device(id)) return;
  if (find_device_op(OpView(module_, id), axes_) != nullptr) return device_op(id);
  if (!axes_.are_examples() && def.regions == Regions::kManual) return manual_region(id);
  // In a masked region a call is expanded even without batched operands: only its ops show whether it has an effect.
  if (dependence().read_by(id) == 0 && !dependence().sees_devices(id) && (masked_by_.empty() || !expands(id))) {
    copy_.op(id, builder_->region());
    for (const ValueId result : results_of(module_, id)) varies_.erase(result);
  } else if (expands(id)) {
    // Tested before the kinds of regions: select_and_scatter has a region, but no batch of its own.
    expand(id);
  } else if (def.regions == Regions::kLoop) {
    loop(id);
  } else if (def.regions == Regions::kBranches) {
    branches(id);
  } else if (def.regions == Regions::kInline) {
    inline_region(id);
  } else if (is_pass_through(OpView(module_, id))) {
    pass_through(id);
  } else {
    check_no_capture(id);
    batch(id);
  }
}

// An operand without rows keeps its result without rows.
void BatchWalk::pass_through(OpId id) {
  const OpView op(module_, id);
  std::vector<ValueId> operands;
  std::vector<AxisSet> sets;
  for (const ValueId operand : op.operands()) {
    operands.push_back(image(operand));
    sets.push_back(varies(operand));
  }
  map_results(id, builder_->create_op(op.def(), operands, module_.op(id).attrs), sets);
}

// Calls, composed ops, manual computations, and regions with annotated values: their annotations become constraints.
bool BatchWalk::expands(OpId id) const {
  const OpView op(module_, id);
  if (op.def().is_batched_as_ops() || is_call(module_, id) || op.def().regions == Regions::kManual) return true;
  if (op.def().regions != Regions::kInline) return false;
  const auto is_annotated = [&](ValueId value) { return bool{module_.value(value).sharding}; };
  return any_result(module_, id, is_annotated) ||
         std::ranges::any_of(module_.region(op.regions()[0]).arguments, is_annotated);
}

// Batches the ops that make it up, which a region of their own holds meanwhile.
void BatchWalk::expand(OpId id) {
  const OpView op(module_, id);
  if (++expanded_ > kMaxCallDepth) {
    // Calls and composed ops recurse here, and a program must not overflow the stack.
    fail<ShardingError>(op.name(), str("calls and regions must nest at most ", kMaxCallDepth, " deep"), "more",
                        "call fewer in a row");
  }
  Builder inner(module_, module_.add_region(), module_.op(id).loc);
  const std::vector<ValueId> results = append_expansion(inner, op, "batched");
  run(inner.region());
  for (size_t i = 0; i < results.size(); ++i) map(op.result(i), image(results[i]), varies(results[i]));
  --expanded_;
}

// The region of a reduction works on scalars.
void BatchWalk::check_no_capture(OpId owner) const {
  for (const ValueId value : captures_of(module_, owner)) {
    if (varies(value) == 0) continue;
    fail<ShapeError>(module_.op(owner).def->name, "a batched value must reach the region as an operand",
                     "a captured value", "pass it as an argument");
  }
}

void BatchWalk::batch(OpId id) {
  if (dependence().sees_devices(id)) {
    fail<UnsupportedError>(module_.op(id).def->name, "its region must combine scalars of one device", "a collective",
                           "move the collective out of the region");
  }
  const size_t first = module_.op_count();
  Context context(*this, id);
  apply_batch(context);
  mark_as(module_, id, first);
}

namespace {

void check_argument(const Module& module, ValueId parameter, ValueId argument, bool batched, int64_t size) {
  const TensorType& wanted = module.type(parameter);
  const TensorType& got = module.type(argument);
  const Dims shape = batched ? with_leading(size, wanted.shape) : wanted.shape;
  if (got.dtype == wanted.dtype && got.shape == shape) return;
  fail<ShapeError>("vmap", str("an argument must be ", TensorType{wanted.dtype, shape}.text()), got.text(),
                   "all mapped axes must have the same size");
}

}  // namespace

BatchedResults append_batched(Builder& builder, RegionId body, std::span<const ValueId> arguments,
                              const std::vector<bool>& batched, const Examples& examples) {
  Module& module = builder.module();
  const std::vector<ValueId> parameters = module.region(body).arguments;
  check_internal(parameters.size() == arguments.size() && batched.size() == arguments.size(),
                 "one argument and one flag per parameter");
  BatchAxes axes = examples.named ? BatchAxes::of_examples(examples.named) : BatchAxes::of_examples(examples.size);
  axes.set_mesh_axes(examples.mesh_axes);
  BatchWalk walk(builder, axes);
  for (size_t i = 0; i < parameters.size(); ++i) {
    check_argument(module, parameters[i], arguments[i], batched[i], examples.size);
    walk.map(parameters[i], arguments[i], batched[i] ? 1 : 0);
  }
  walk.run(body);
  BatchedResults results;
  for (ValueId result : module.region(body).results) {
    results.values.push_back(walk.image(result));
    results.batched.push_back(walk.varies(result) != 0);
  }
  return results;
}

ValueId append_leading_dim(Builder& builder, ValueId value, int64_t size) {
  const TensorType type = builder.module().type(value);
  // Dim d of the value is dim d + 1 of the result: tensor<4x3> with dims [1, 2] becomes tensor<8x4x3>.
  return build_broadcast(builder, value, with_leading(size, type.shape), identity_dims(type.ndim(), 1));
}

}  // namespace shardwise
