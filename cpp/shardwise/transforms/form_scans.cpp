// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/form_scans.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/control/loop_rows.h"
#include "shardwise/ops/control/scan.h"
#include "shardwise/transforms/live_carries.h"

namespace shardwise {
namespace {

// The part of a value without the dim `dim`, along which it is not sharded.
GlobalPart part_of_row(const Module& module, GlobalPart part, size_t dim) {
  Context& context = module.context();
  const auto at = static_cast<std::ptrdiff_t>(dim);
  if (part.type) {
    TensorType type = context.type(part.type);
    type.shape.erase(type.shape.begin() + at);
    part.type = context.tensor(type.dtype, type.shape);
  }
  if (part.placement) {
    Placement placement = context.placement(part.placement);
    placement.dims.erase(placement.dims.begin() + at);
    part.placement = context.intern(placement);
  }
  return part;
}

// Keeps the reads and writes of the course that most of them have.
std::optional<Course> choose_course(std::vector<RowRead>& reads, std::vector<RowWrite>& writes) {
  std::map<Course, int> count;
  for (const RowRead& read : reads) ++count[read.course];
  for (const RowWrite& write : writes) ++count[write.course];
  if (count.empty()) return std::nullopt;
  // Equally frequent courses: the least one in the map, so that the choice does not depend on the order of the ops.
  const Course best = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
  std::erase_if(reads, [&](const RowRead& read) { return read.course != best; });
  std::erase_if(writes, [&](const RowWrite& write) { return write.course != best; });
  return best;
}

class ScanFormer {
 public:
  explicit ScanFormer(Module& module)
      : module_(module), rewrite_(module), effects_(module, unused_constraints(module)) {}

  int64_t run() {
    const auto is_loop = [&](OpId id) { return module_.op(id).def->regions == Regions::kLoop; };
    const std::vector<OpId> loops = find_ops<Order::kRegionsFirst>(module_, is_loop);
    return std::ranges::count_if(loops, [&](OpId loop) { return form(loop); });
  }

 private:
  bool form(OpId id) {
    rewrite_.commit_inside(id);  // the loops in it are new ops
    const OpView loop(module_, id);
    const auto counted = counted_loop(loop);  // none for a scan
    if (!counted || counted->trips < 1) return false;
    const LoopParts parts = loop_parts(loop);
    // The condition goes with the while, so that an effect in it would be lost.
    if (has_effect(parts.condition)) return false;
    std::vector<RowRead> reads = find_row_reads(module_, loop, *counted);
    std::vector<RowWrite> writes = find_row_writes(module_, loop, *counted);
    const auto course = choose_course(reads, writes);
    if (!course) return false;
    replace(id, parts, {static_cast<int64_t>(course->dim), counted->trips, course->is_reverse}, reads, writes);
    return true;
  }

  bool has_effect(RegionId region) {
    return std::ranges::any_of(module_.region(region).ops, [&](OpId op) { return effects_(op); });
  }

  void replace(OpId loop, const LoopParts& parts, const ScanOrder& order, const std::vector<RowRead>& reads,
               const std::vector<RowWrite>& writes) {
    const RegionId body = parts.body;
    const auto dim = static_cast<size_t>(order.dimension);
    std::vector<ValueId> operands, arguments, results;
    Dims offsets;
    for (const RowRead& read : reads) {
      operands.push_back(read.stack);
      offsets.push_back(read.low);
    }
    for (const RowRead& read : reads) {
      // The segments of scan.h: all inputs, then all borders, then the carries.
      if (read.instead) operands.push_back(border(loop, read, dim));
    }
    const size_t borders = operands.size() - reads.size();
    for (const RowRead& read : reads) arguments.push_back(row_argument(body, read, dim));
    for (const RowWrite& write : writes) results.push_back(without_dim(body, write.row, dim, write));
    const std::vector<uint32_t> kept = kept_carries(loop, writes, results);
    for (const uint32_t carry : kept) {
      operands.push_back(module_.operands(loop)[carry]);
      arguments.push_back(module_.region(body).arguments[carry]);
      results.push_back(module_.region(body).results[carry]);
    }
    rewrite_.commit(body);
    module_.drop_uses(loop);
    module_.release_regions(loop);
    // The body is reused, not copied: the loop has released it, and its values keep their origins and parts.
    module_.region(body).arguments = arguments;
    for (uint32_t i = 0; i < arguments.size(); ++i) module_.value(arguments[i]).index = i;
    module_.region(body).results = results;
    const OpId scan = create(loop, operands, body, scan_attrs(order, offsets, {borders, writes.size(), kept.size()}));
    uint32_t next = 0;
    const auto hand_over = [&](uint32_t carry) {
      rewrite_.hand_over(module_.result(loop, carry), module_.result(scan, next++));
    };
    for (const RowWrite& write : writes) hand_over(write.carry);
    for (const uint32_t carry : kept) hand_over(carry);
    rewrite_.erase(loop);
  }

  template <class Make>
  auto insert(OpId loop, Make&& make) {
    const Operation old = module_.op(loop);
    return rewrite_.insert(rewrite_.before(loop), old.loc, [&](Builder& builder) {
      builder.set_loc(old.loc, old.origin);
      return make(builder);
    });
  }

  // A border has the shape of the rows, which lack the dim.
  ValueId border(OpId loop, const RowRead& read, size_t dim) {
    const Dims shape = row_type(read, dim).shape;
    if (module_.type(read.instead).shape == shape) return read.instead;
    const ValueId shaped = insert(loop, [&](Builder& builder) { return build_reshape(builder, read.instead, shape); });
    module_.set_part(shaped, part_of_row(module_, module_.part(read.instead), dim));
    return shaped;
  }

  TensorType row_type(const RowRead& read, size_t dim) const {
    TensorType type = module_.type(read.stack);
    type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(dim));
    return type;
  }

  // The argument that takes the place of the rows.
  ValueId row_argument(RegionId body, const RowRead& read, size_t dim) {
    const TensorType type = row_type(read, dim);
    const ValueId first = read.rows.front();
    const ValueId row =
        module_.add_argument(body, module_.context().tensor(type.dtype, type.shape), rewrite_.loc(first));
    module_.set_part(row, part_of_row(module_, module_.part(read.stack), dim));
    module_.value(row).origin = module_.value(first).origin;
    for (const ValueId value : read.rows) {
      if (module_.value(value).type == module_.value(row).type) {
        rewrite_.replace(value, row);
        continue;
      }
      const ValueId shaped = rewrite_.insert(rewrite_.behind(value), rewrite_.loc(value), [&](Builder& builder) {
        return build_reshape(builder, row, module_.type(value).shape);
      });
      module_.set_part(shaped, module_.part(value));
      rewrite_.replace(value, shaped);
    }
    return row;
  }

  ValueId without_dim(RegionId body, ValueId value, size_t dim, const RowWrite& write) {
    const ValueId stack = module_.region(body).arguments[write.carry];
    Dims shape = module_.type(stack).shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    if (module_.type(value).shape == shape) return value;
    const ValueId row = rewrite_.insert(rewrite_.end(body), rewrite_.loc(value),
                                        [&](Builder& builder) { return build_reshape(builder, value, shape); });
    module_.set_part(row, part_of_row(module_, module_.part(value), dim));
    return row;
  }

  // The carries beside the outputs that the scan needs.
  std::vector<uint32_t> kept_carries(OpId loop, const std::vector<RowWrite>& writes, const std::vector<ValueId>& rows) {
    LiveCarries carries(module_, loop, effects_);
    for (const ValueId row : rows) carries.reach(row);
    std::vector<bool> is_output(module_.op(loop).operand_count, false);
    for (const RowWrite& write : writes) {
      // Live, but not followed: its dynamic_update_slice goes, and so does the counter if nothing else reads it.
      carries.keep(write.carry);
      is_output[write.carry] = true;
    }
    const std::vector<bool> live = carries.find();
    std::vector<uint32_t> kept;
    for (uint32_t i = 0; i < live.size(); ++i) {
      if (live[i] && !is_output[i]) kept.push_back(i);
    }
    return kept;
  }

  OpId create(OpId loop, const std::vector<ValueId>& operands, RegionId body, const Attrs& attrs) {
    const RegionId regions[] = {body};
    return insert(loop, [&](Builder& builder) {
      return builder.create_op(local_scan(), operands, builder.context().intern(attrs), {}, regions);
    });
  }

  Module& module_;
  Rewrite rewrite_;
  Effects effects_;
};

}  // namespace

Module form_scans(Module module, PassContext& context) {
  const int64_t formed = ScanFormer(module).run();
  context.counters.add("form_scans.formed", formed);
  if (formed != 0) dce(module, unused_constraints(module));
  return module;
}

}  // namespace shardwise
