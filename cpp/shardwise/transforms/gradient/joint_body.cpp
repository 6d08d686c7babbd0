// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/joint_body.h"

#include <algorithm>
#include <unordered_set>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/transforms/gradient/differentiate.h"

namespace shardwise {
namespace {

// Backward analysis: the carries, and the values from around the loop, that the differentiated results depend on.
class WantedCotangents {
 public:
  WantedCotangents(const ReverseWalk& walk, const OpView& loop)
      : walk_(walk), module_(loop.module()), parts_(loop_parts(loop)) {
    for (const LoopParts::Carry& carry : parts_.carries) {
      is_wanted_.push_back(bool{walk.cotangent_of_result(carry.result)} && walk.is_active(carry.argument));
    }
    // Until nothing changes: a carry that is wanted in one trip may need another one in the trip before.
    while (spread()) continue;
  }

  bool is_wanted(size_t carry) const { return is_wanted_[carry]; }
  // In the order in which the body reads them.
  std::vector<ValueId> captured() const {
    std::vector<ValueId> values;
    std::unordered_set<ValueId> known;
    const auto add = [&](ValueId value) {
      const ValueId outside = seen_from_outside(value);
      if (outside && reached_.contains(value) && known.insert(outside).second) values.push_back(outside);
    };
    visit_region_reads(module_, parts_.body, add);
    return values;
  }

 private:
  // None for a value that the body makes, or a carry that changes.
  ValueId seen_from_outside(ValueId value) const {
    const auto carry = std::ranges::find(parts_.carries, value, &LoopParts::Carry::argument);
    if (carry == parts_.carries.end()) return is_inside(module_, value, parts_.body) ? ValueId{} : value;
    // A carry that the body returns unchanged is the operand, so its cotangent is a sum over trips, as for a capture.
    return carry->is_invariant() ? carry->entry : ValueId{};
  }

  void reach(ValueId value) {
    if (walk_.is_active(value)) reached_.insert(value);
  }

  // One trip back. Returns whether a carry is newly wanted.
  bool spread() {
    for (size_t i = 0; i < is_wanted_.size(); ++i) {
      if (is_wanted_[i]) reach(parts_.carries[i].next);
    }
    const auto is_reached = [&](ValueId value) { return reached_.contains(value); };
    for (const OpId op : module_.region(parts_.body).ops | std::views::reverse) {
      if (any_result(module_, op, is_reached)) visit_reads(module_, op, [&](ValueId value) { reach(value); });
    }
    bool changed = false;
    for (size_t i = 0; i < is_wanted_.size(); ++i) {
      if (is_wanted_[i] || !reached_.contains(parts_.carries[i].argument)) continue;
      is_wanted_[i] = changed = true;
    }
    return changed;
  }

  const ReverseWalk& walk_;
  const Module& module_;
  LoopParts parts_;
  std::vector<bool> is_wanted_;  // by carry
  std::unordered_set<ValueId> reached_;
};

// The only operand of an elementwise op that is not a splat, if it has the result's shape and is not larger.
std::optional<ValueId> elementwise_source(const Module& module, ValueId result) {
  const OpId maker = module.value(result).op;
  if (!maker || module.op(maker).result_count != 1) return std::nullopt;
  const OpDef& def = *module.op(maker).def;
  if (!def.traits.elementwise || def.tile == nullptr) return std::nullopt;
  const TensorType& type = module.type(result);
  std::optional<ValueId> source;
  for (const ValueId operand : module.operands(maker)) {
    const TensorType& from = module.type(operand);
    // Row by row it costs nothing more, unless the loop then reads larger rows: f32 ones where bf16 ones would do.
    if (from.shape != type.shape || item_size(from.dtype) > item_size(type.dtype)) return std::nullopt;
    if (splat_value(module, operand)) continue;
    if (source && *source != operand) return std::nullopt;
    source = operand;
  }
  return source;
}

// Whether the op copies a part of operand 0, at places that the operands after it give.
bool reads_part(const Module& module, OpId id) {
  const OpView op(module, id);
  if (!op.def().traits.movement || op.result_count() != 1) return false;
  const ShardingRule& rule = sharding_rule(op);
  bool is_part = false;
  for (size_t d = 0; d < static_cast<size_t>(op.operand_type(0).ndim()); ++d) {
    const Range* range = rule.range(0, d);
    if (range == nullptr) continue;
    // As dynamic_slice has it: the start of dim d is operand d + 1, and nothing outside operand 0 is read.
    if (range->start != static_cast<int32_t>(d + 1) || range->outside != Outside::kNever) return false;
    is_part = true;
  }
  return is_part;
}

// A value from around the loop whose cotangent is summed over the iterations: all of it, or only the rows that the body
// reads.
struct Captured {
  ValueId value = {};
  bool is_read_whole = false;
  std::vector<OpId> rows = {};         // the ops that read them
  bool is_each_row_read_once = false;  // and nothing else of it
};

// The arguments of append_vjp: the cotangents of `outputs`, and the values whose gradients are wanted.
struct Derivative {
  std::vector<ValueId> outputs, cotangents, wrt;
};

class JointBodyBuilder {
 public:
  JointBodyBuilder(ReverseWalk& walk, const OpView& loop, const CountedLoop& counted,
                   const std::vector<RowWrite>& writes)
      : walk_(walk),
        module_(walk.module()),
        loop_(loop),
        parts_(loop_parts(loop)),
        counted_(counted),
        writes_(writes),
        wanted_(walk, loop),
        builder_(module_, module_.add_region(), loop.loc()) {}

  JointBody run() {
    joint_.region = builder_.region();
    copy_body();
    seed_carries();
    seed_outputs();
    for (const ValueId value : wanted_.captured()) add_captured(value);
    // One gradient for all carries and captures, so that ops which several of them depend on are differentiated once.
    const Gradients gradients =
        append_vjp_without_zeros(builder_, derivative_.outputs, derivative_.cotangents, derivative_.wrt);
    for (ValueId& result : joint_.results) result = gradients.replaced(result);
    size_t next = 0;
    for (CotangentCarry& carry : joint_.cotangents) carry.next = or_zeros(gradients.values[next++], carry.argument);
    for (const Captured& captured : captured_) sum_captured(captured, gradients.values, next);
    return std::move(joint_);
  }

 private:
  ValueId add_argument(TypeId type) { return module_.add_argument(joint_.region, type, loop_.loc()); }
  TypeId type_of(ValueId value) const { return module_.value(value).type; }
  ValueId or_zeros(ValueId value, ValueId like) {
    return value ? value : build_zeros(builder_, TensorType(module_.type(like)));
  }

  void copy_body() {
    GraphCopy copy(module_, module_);
    for (const LoopParts::Carry& carry : parts_.carries) {
      joint_.arguments.push_back(carry.is_invariant() ? carry.entry : add_argument_like(carry.argument));
      copy.map(carry.argument, joint_.arguments.back());
    }
    copy.ops(parts_.body, joint_.region);
    for (const LoopParts::Carry& carry : parts_.carries) joint_.results.push_back(copy(carry.next));
    // Ops are numbered in the order in which they are made, so this number separates the body from its gradient.
    joint_.first_made = static_cast<uint32_t>(module_.op_count());
  }

  ValueId add_argument_like(ValueId argument) {
    return module_.add_argument(joint_.region, type_of(argument), module_.value(argument).loc);
  }

  bool is_output(size_t carry) const { return std::ranges::find(writes_, carry, &RowWrite::carry) != writes_.end(); }

  void seed(ValueId output, ValueId cotangent) {
    derivative_.outputs.push_back(output);
    derivative_.cotangents.push_back(cotangent);
  }

  void seed_carries() {
    for (size_t i = 0; i < loop_.operand_count(); ++i) {
      if (!wanted_.is_wanted(i) || counted_.is_invariant[i] || is_output(i)) continue;
      const ValueId argument = add_argument(type_of(loop_.operand(i)));
      joint_.cotangents.push_back({.of = loop_.operand(i),
                                   .init = walk_.cotangent_of_result(loop_.result(i)),
                                   .argument = argument,
                                   .next = {}});
      seed(joint_.results[i], argument);
      derivative_.wrt.push_back(joint_.arguments[i]);
    }
  }

  // The cotangent of a row that the body writes is that row of the result's cotangent. All rows are written, so nothing
  // flows into the operand.
  void seed_outputs() {
    for (const RowWrite& output : writes_) {
      const ValueId cotangent = walk_.cotangent_of_result(loop_.result(output.carry));
      if (!cotangent || !wanted_.is_wanted(output.carry)) continue;
      const OpView write(module_, module_.value(joint_.results[output.carry]).op);
      const ValueId row = written_row(module_, write.id(), output.course.dim);
      seed(row, row_of(cotangent, write, module_.type(row).shape));
    }
  }

  // The row of a stack that `write` visits. Elementwise ops on a stack are done row by row instead.
  ValueId row_of(ValueId stack, const OpView& write, const Dims& shape) {
    if (const auto source = elementwise_source(module_, stack)) {
      const OpId maker = module_.value(stack).op;
      const ValueId row = row_of(*source, write, shape);
      std::vector<ValueId> operands;
      for (const ValueId operand : module_.operands(maker)) {
        const std::optional<Scalar> splat = splat_value(module_, operand);
        operands.push_back(splat ? build_splat(builder_, shape, *splat) : row);
      }
      const TypeId type = module_.context().tensor(module_.type(stack).dtype, shape);
      return builder_.create(*module_.op(maker).def, operands, module_.op(maker).attrs, {&type, 1});
    }
    const ValueId argument = add_argument(type_of(stack));
    joint_.outputs.push_back({.argument = argument, .value = stack});
    const std::vector<ValueId> starts(write.operands().begin() + 2, write.operands().end());
    const Dims sizes = write.operand_type(1).shape;
    return build_reshape(builder_, build_dynamic_slice(builder_, argument, starts, sizes), shape);
  }

  // A row that the body reads is a variable of its own, so that its cotangent is added only to that row.
  void add_captured(ValueId value) {
    Captured captured{.value = value};
    size_t reads = 0;
    for (size_t i = 0; i < joint_.results.size(); ++i) {
      reads += joint_.results[i] == value && !counted_.is_invariant[i] ? 1 : 0;
    }
    visit_region_reads(module_, joint_.region, [&](ValueId read) { reads += read == value ? 1 : 0; });
    const std::vector<OpId>& originals = module_.region(parts_.body).ops;
    // The first ops of the joint region are copies of the body's ops, in order; those of row_of come after them.
    for (size_t i = 0; i < originals.size(); ++i) {
      const OpId op = module_.region(joint_.region).ops[i];
      if (!reads_part(module_, op) || module_.operands(op)[0] != value) continue;
      captured.rows.push_back(op);
      captured.is_each_row_read_once = reads_distinct_rows(module_, loop_, counted_, originals[i]);
    }
    captured.is_read_whole = reads != captured.rows.size();
    captured.is_each_row_read_once = captured.is_each_row_read_once && reads == 1;
    if (captured.is_read_whole) derivative_.wrt.push_back(value);
    for (const OpId row : captured.rows) derivative_.wrt.push_back(module_.result(row));
    captured_.push_back(std::move(captured));
  }

  // `next`: where its gradients begin among all.
  void sum_captured(const Captured& captured, const std::vector<ValueId>& gradients, size_t& next) {
    const ValueId whole = captured.is_read_whole ? gradients[next++] : ValueId{};
    const std::span<const ValueId> rows = std::span(gradients).subspan(next, captured.rows.size());
    next += rows.size();
    if (!whole && std::ranges::none_of(rows, [](ValueId row) { return bool{row}; })) return;
    const ValueId argument = add_argument(type_of(captured.value));
    ValueId sum = whole ? builder_.create("stablehlo.add", {argument, whole}) : argument;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i]) sum = add_row(sum, rows[i], captured.rows[i], captured.is_each_row_read_once);
    }
    joint_.cotangents.push_back({.of = captured.value, .init = {}, .argument = argument, .next = sum});
  }

  ValueId add_row(ValueId sum, ValueId row, OpId slice, bool is_first) {
    const std::vector<ValueId> starts(module_.operands(slice).begin() + 1, module_.operands(slice).end());
    const Dims sizes = module_.type(row).shape;
    // If each row is read once, the sum's row is still 0, and the update alone saves a read and an addition per trip.
    if (!is_first) {
      const ValueId before = build_dynamic_slice(builder_, sum, starts, sizes);
      row = builder_.create("stablehlo.add", {before, row});
    }
    return build_dynamic_update_slice(builder_, sum, row, starts);
  }

  ReverseWalk& walk_;
  Module& module_;
  OpView loop_;
  LoopParts parts_;
  const CountedLoop& counted_;
  const std::vector<RowWrite>& writes_;
  WantedCotangents wanted_;
  Builder builder_;
  JointBody joint_;
  std::vector<Captured> captured_;
  Derivative derivative_;
};

}  // namespace

JointBody build_joint_body(ReverseWalk& walk, const OpView& loop, const CountedLoop& counted,
                           const std::vector<RowWrite>& writes) {
  return JointBodyBuilder(walk, loop, counted, writes).run();
}

}  // namespace shardwise
