// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/rows_in_trips.h"

#include <algorithm>
#include <span>
#include <vector>

#include "shardwise/emission/row_of_op.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/partition/rebuilt_scan.h"

namespace shardwise {
namespace {

class RowWriter {
 public:
  explicit RowWriter(Module& local) : local_(local), rewrite_(local) {}

  void write(const MadeStack& stack) {
    for (size_t i = 0; i < stack.readers.size(); ++i) write_in(stack.readers[i], std::span(&stack, 1), i > 0, false);
  }

  void write_in_first(std::span<const MadeStack> stacks) {
    const RebuiltScan first = write_in(stacks.front().readers.front(), stacks, false, true);
    size_t next = 0;
    for (const MadeStack& stack : stacks) {
      if (!has_other_readers(stack)) continue;
      const ValueId kept = first.stacks[next++];
      local_.set_part(kept, local_.part(stack.stack));
      local_.value(kept).loc = local_.op(stack.ops.back()).loc;
      local_.value(kept).origin = local_.value(stack.stack).origin;
      rewrite_.hand_over(stack.stack, kept);
    }
  }

 private:
  static bool has_other_readers(const MadeStack& stack) { return stack.readers.size() > 1; }

  // `keeps`: rows that have other readers are outputs of the scan, too, in the order of the stacks.
  RebuiltScan write_in(OpId scan, std::span<const MadeStack> stacks, bool is_again, bool keeps) {
    const LoopParts parts = loop_parts(OpView(local_, scan));
    std::vector<LoopParts::Input> inputs = parts.inputs;
    std::vector<ValueId> kept;
    for (const MadeStack& stack : stacks) {
      ValueId first;
      for (LoopParts::Input& input : inputs) {
        if (input.stack != stack.stack) continue;
        const ValueId old = input.row;
        input.stack = stack.source;
        input.row = add_row_of(local_, parts.body, stack.source, stack.dims.front());
        const ValueId made = made_row(parts.body, stack, input.row, old, is_again);
        rewrite_.hand_over(old, made);
        if (!first) first = made;
      }
      if (keeps && has_other_readers(stack)) kept.push_back(first);
    }
    return rebuild_scan(local_, rewrite_, scan, inputs, {}, kept);
  }

  // The rows keep their dim while ops make them, with size 1: the attributes of the ops name dims.
  ValueId made_row(RegionId body, const MadeStack& stack, ValueId row, ValueId old, bool is_again) {
    return rewrite_.insert(rewrite_.begin(body), local_.op(stack.ops.back()).loc, [&](Builder& builder) {
      const TypeId first = row_type(local_, local_.value(stack.source).type, stack.dims.front());
      ValueId value = build_reshape(builder, row, local_.context().type(first).shape);
      for (size_t i = 0; i < stack.ops.size(); ++i) {
        const OpView op(local_, stack.ops[i]);
        builder.set_loc(local_.op(op.id()).loc, local_.op(op.id()).origin);
        const size_t first_made = local_.op_count();
        value = emit_row(builder, op, stack.dims[i + 1], value);
        if (is_again) mark_new(first_made);
      }
      return build_reshape(builder, value, local_.type(old).shape);
    });
  }

  void mark_new(size_t first) {
    for (size_t i = first; i < local_.op_count(); ++i) mark_again(local_, OpId{static_cast<uint32_t>(i)});
  }

  Module& local_;
  Rewrite rewrite_;
};

OpId reported_op(const Module& local, const MadeStack& stack) {
  const auto transfer = std::ranges::find_if(
      stack.ops, [&](OpId op) { return local.op(op).def->traits.collective != CollectiveKind::kNone; });
  return transfer == stack.ops.end() ? stack.ops.back() : *transfer;
}

}  // namespace

std::optional<RepeatedRow> make_rows_in_trips(Module& local, const LiveWalk& walk, const Hardware& hardware) {
  const std::vector<MadeStack> stacks = made_stacks_at_peak(local, walk, hardware);
  if (stacks.empty()) return std::nullopt;
  const MadeStack& stack = stacks.front();
  const OpId op = reported_op(local, stack);
  const TypeId global = local.part(stack.stack).type;
  const RepeatedRow row{.loc = local.op(op).loc,
                        .op = OpView(local, op).name(),
                        .type = global ? global : local.value(stack.stack).type,
                        .how = Repeated::kInTrips,
                        .bytes = stack.bytes,
                        .ps = stack.ps};
  RowWriter(local).write(stack);
  dce(local, UnusedConstraints::kRemove);
  return row;
}

void make_rows_in_first_scan(Module& local, std::span<const MadeStack> stacks) {
  RowWriter(local).write_in_first(stacks);
  dce(local, UnusedConstraints::kRemove);
}

}  // namespace shardwise
