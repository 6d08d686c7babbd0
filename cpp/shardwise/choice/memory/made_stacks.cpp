// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/made_stacks.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/base/quantity.h"
#include "shardwise/choice/memory/aligned_scans.h"
#include "shardwise/emission/row_of_op.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"

namespace shardwise {
namespace {

class StackReader {
 public:
  StackReader(Module& local, const LiveWalk& walk, const Hardware& hardware)
      : local_(local),
        walk_(walk),
        hardware_(hardware),
        executions_(local),
        scans_(find_ops(local, [&](OpId op) { return row_course(local, op).has_value(); })) {
    for (const LiveBuffers& buffers : walk.use.at_peak) alive_.insert(buffers.value);
  }

  const std::vector<OpId>& scans() const { return scans_; }  // in the order of a run

  // `at_peak`: only if it is alive at the peak and frees memory.
  std::optional<MadeStack> read(ValueId stack, bool at_peak) const {
    MadeStack found{.stack = stack, .source = stack};
    size_t dim = 0;
    if (!find_readers(found, dim)) return std::nullopt;
    const int64_t rows = local_.type(stack).shape[dim];
    find_source(found, dim);
    if (rows == 0 || found.ops.empty() || (at_peak && !alive_.contains(home(stack)))) return std::nullopt;
    // Two rows: that of a trip, and that which the next one is making.
    found.bytes = bytes(home(stack)) / rows * std::max<int64_t>(rows - 2, 0) - added_bytes(found, found.source);
    if (at_peak && found.bytes <= 0) return std::nullopt;
    found.ps = more_ps(found, rows);
    return found;
  }

 private:
  bool find_readers(MadeStack& found, size_t& dim) const {
    for (const Use& use : local_.uses(found.stack)) {
      const std::optional<RowCourse> course = use.op ? row_course(local_, use.op) : std::nullopt;
      if (!course) return false;
      if (std::ranges::find(found.readers, use.op) != found.readers.end()) continue;
      if (!found.readers.empty() && dim != static_cast<size_t>(course->dimension)) return false;
      dim = static_cast<size_t>(course->dimension);
      found.readers.push_back(use.op);
    }
    if (found.readers.empty()) return false;
    std::ranges::sort(found.readers, {}, [&](OpId scan) { return std::ranges::find(scans_, scan) - scans_.begin(); });
    return std::ranges::all_of(found.readers, [&](OpId scan) { return reads_rows_only(scan, found.stack); });
  }

  bool reads_rows_only(OpId scan, ValueId stack) const {
    const LoopParts parts = loop_parts(OpView(local_, scan));
    ptrdiff_t as_rows = 0;
    for (const LoopParts::Input& input : parts.inputs) {
      if (input.stack == stack && input.border) return false;
      as_rows += input.stack == stack ? 1 : 0;
    }
    const std::span<const ValueId> operands = local_.operands(scan);
    return as_rows > 0 && as_rows == std::ranges::count(operands, stack);
  }

  // As far as the memory that is added becomes less.
  void find_source(MadeStack& found, size_t dim) const {
    std::vector<OpId> ops;
    std::vector<size_t> dims = {dim};
    int64_t least = bytes(home(found.stack));
    for (ValueId value = found.stack; local_.value(value).op;) {
      const OpId maker = local_.value(value).op;
      const std::optional<size_t> before = operand_dim_of_rows(OpView(local_, maker), dims.back());
      if (!before) break;
      ops.push_back(maker);
      dims.push_back(*before);
      value = local_.operands(maker)[0];
      const int64_t added = added_bytes(found, value);
      if (added >= least) continue;
      least = added;
      found.source = value;
      found.ops.assign(ops.rbegin(), ops.rend());
      found.dims.assign(dims.rbegin(), dims.rend());
    }
  }

  // A source that is alive at the peak adds nothing, unless it lies in the memory of the stack.
  int64_t added_bytes(const MadeStack& found, ValueId source) const {
    const ValueId own = home(source);
    return alive_.contains(own) && own != home(found.stack) ? 0 : bytes(own);
  }

  int64_t bytes(ValueId value) const { return local_.type(value).byte_quantity(); }

  // The value in whose memory a view lies.
  ValueId home(ValueId value) const {
    while (walk_.lies_in[value.index]) value = walk_.lies_in[value.index];
    return value;
  }

  // Each trip makes one row, so that a collective becomes as many messages as there are trips.
  int64_t more_ps(const MadeStack& found, int64_t rows) const {
    int64_t once = 0, in_trips = 0;
    for (size_t i = 0; i < found.ops.size(); ++i) {
      const OpView op(local_, found.ops[i]);
      const TypeId types[] = {row_type(local_, local_.value(op.operand(0)).type, found.dims[i]),
                              row_type(local_, local_.value(op.result()).type, found.dims[i + 1])};
      once = saturated_sum(once, op_time(op, hardware_).ps());
      in_trips = saturated_sum(in_trips, op_time(op, types, hardware_).ps());
      if (op.def().traits.collective == CollectiveKind::kNone) continue;
      LocalCollective collective = read_collective(op);
      once = saturated_sum(once, collective_price(collective, hardware_).ps);
      collective.bytes /= static_cast<double>(rows);
      collective.operand_bytes /= rows;
      in_trips = saturated_sum(in_trips, collective_price(collective, hardware_).ps);
    }
    in_trips = saturated_product(in_trips, rows);
    int64_t all = 0;
    for (const OpId scan : found.readers) all = saturated_sum(all, executions_.of(scan).times(in_trips));
    once = executions_.of(found.ops.back()).times(once);
    return std::max<int64_t>(all - once, 0);
  }

  Module& local_;
  const LiveWalk& walk_;
  const Hardware& hardware_;
  const ModuleExecutions executions_;
  const std::vector<OpId> scans_;
  std::unordered_set<ValueId> alive_;
};

std::vector<MadeStack> read_stacks(Module& local, const LiveWalk& walk, const Hardware& hardware, bool at_peak) {
  const StackReader reader(local, walk, hardware);
  std::vector<MadeStack> stacks;
  std::unordered_set<ValueId> seen;
  for (const OpId scan : reader.scans()) {
    for (const LoopParts::Input& input : loop_parts(OpView(local, scan)).inputs) {
      if (!local.value(input.stack).op || !seen.insert(input.stack).second) continue;
      if (std::optional<MadeStack> found = reader.read(input.stack, at_peak)) stacks.push_back(std::move(*found));
    }
  }
  return stacks;
}

}  // namespace

TypeId row_type(const Module& local, TypeId stack, size_t dim) {
  TensorType row = local.context().type(stack);
  row.shape[dim] = 1;
  return local.context().tensor(row.dtype, row.shape);
}

std::vector<MadeStack> made_stacks_at_peak(Module& local, const LiveWalk& walk, const Hardware& hardware) {
  std::vector<MadeStack> stacks = read_stacks(local, walk, hardware, true);
  std::ranges::stable_sort(stacks, {}, [](const MadeStack& stack) {
    return std::pair(static_cast<double>(stack.ps) / static_cast<double>(stack.bytes), -stack.bytes);
  });
  return stacks;
}

std::vector<MadeStack> made_stacks(Module& local, const LiveWalk& walk, const Hardware& hardware) {
  return read_stacks(local, walk, hardware, false);
}

}  // namespace shardwise
