// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/form_scans.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/scan.h"
#include "shardwise/transforms/live_carries.h"

namespace shardwise {
namespace {

// The dim and the direction of rows: row i is that of trip i, or of trip `trips` - 1 - i.
struct Course {
  size_t dim = 0;
  bool is_reverse = false;
  friend auto operator<=>(const Course&, const Course&) = default;
};

// Values of the body that hold row `low` + i of a value from around it in the trip of row i.
struct RowRead {
  Course course;
  ValueId stack;
  int64_t low = 0;
  std::vector<ValueId> rows = {};  // with the dim, or without it
  ValueId instead = {};            // of the row that the stack does not have: the first, or the last
};

struct RowWrite {
  Course course;
  uint32_t carry = 0;
  ValueId row;  // with the dim, or without it
};

// ---- parts of stacks and rows --------------------------------------------------------------------------------------

// The part of a value whose dim `dim` has another size, or goes. It is not sharded along the dim.
GlobalPart resized(const Module& module, GlobalPart part, size_t dim, std::optional<int64_t> size) {
  Context& context = module.context();
  const auto at = static_cast<std::ptrdiff_t>(dim);
  if (part.type) {
    TensorType type = context.type(part.type);
    size ? void(type.shape[dim] = *size) : void(type.shape.erase(type.shape.begin() + at));
    part.type = context.tensor(type.dtype, type.shape);
  }
  if (part.placement) {
    Placement placement = context.placement(part.placement);
    size ? void(placement.dims[dim].block = *size) : void(placement.dims.erase(placement.dims.begin() + at));
    part.placement = context.intern(placement);
  }
  return part;
}

bool is_whole_along(const Module& module, ValueId value, size_t dim) {
  const PlacementId placement = module.part(value).placement;
  return !placement || module.context().placement(placement).dims[dim].axes.empty();
}

// ---- what a loop reads and writes ----------------------------------------------------------------------------------

class RowFinder {
 public:
  RowFinder(Module& module, const OpView& loop, const CountedLoop& counted)
      : module_(module), loop_(loop), body_(loop.regions()[1]), counted_(counted), integers_(loop, counted) {}

  std::vector<RowRead> reads() {
    std::vector<RowRead> found;
    for (const OpId op : module_.region(body_).ops) {
      if (module_.op(op).def->name != "stablehlo.dynamic_slice") continue;
      if (auto read = read_by(op)) found.push_back(std::move(*read));
    }
    return found;
  }

  std::vector<RowWrite> writes() {
    std::vector<RowWrite> found;
    for (uint32_t carry = 0; carry < loop_.operand_count(); ++carry) {
      if (auto write = write_of(carry)) found.push_back(*write);
    }
    return found;
  }

 private:
  struct Access {
    size_t dim = 0;
    LinearInteger row;
  };

  // The one dim along which the op reads or writes one of several rows, and which one.
  std::optional<Access> access(const OpView& op, const Dims& part, size_t first_start) {
    const Dims& whole = op.operand_type(0).shape;
    std::optional<size_t> dim;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (part[d] == whole[d]) continue;
      if (dim || part[d] != 1) return std::nullopt;
      dim = d;
    }
    if (!dim || !is_whole_along(module_, op.operand(0), *dim)) return std::nullopt;
    const auto row = integers_(op.operand(first_start + *dim));
    if (!row || (row->stride != 1 && row->stride != -1)) return std::nullopt;
    return Access{*dim, *row};
  }

  static Course course_of(const Access& access) { return {access.dim, access.row.stride < 0}; }
  int64_t low_of(const LinearInteger& row) const {
    return row.stride > 0 ? row.offset : row.offset - (counted_.trips - 1);
  }

  bool is_outside(ValueId value) const { return region_of(module_, value) != body_; }

  std::optional<RowRead> read_by(OpId id) {
    const OpView slice(module_, id);
    if (!is_outside(slice.operand(0))) return std::nullopt;
    const auto found = access(slice, slice.result_type().shape, 1);
    if (!found) return std::nullopt;
    RowRead read{.course = course_of(*found), .stack = slice.operand(0), .low = low_of(found->row)};
    const int64_t high = read.low + counted_.trips, size = slice.operand_type(0).shape[found->dim];
    if (read.low >= 0 && high <= size) {
      read.rows = rows_of(slice.result(), found->dim);
      return read.rows.empty() ? std::nullopt : std::optional(read);
    }
    const bool lacks_first = read.low == -1 && high <= size;
    if (!lacks_first && !(read.low >= 0 && high == size + 1)) return std::nullopt;
    return find_instead(slice.result(), found->dim, lacks_first != read.course.is_reverse, read) ? std::optional(read)
                                                                                                 : std::nullopt;
  }

  // The results of the reshapes that drop the dim, if nothing else reads the slice; else the slice.
  std::vector<ValueId> rows_of(ValueId slice, size_t dim) {
    std::vector<ValueId> rows;
    for (const Use use : module_.uses(slice)) {
      if (!is_reshape_without(use, dim)) return {slice};
      rows.push_back(module_.result(use.op));
    }
    return rows;
  }

  bool is_reshape_without(const Use& use, size_t dim) const {
    if (!use.op || module_.op(use.op).def->name != "stablehlo.reshape" || module_.op(use.op).parent != body_)
      return false;
    Dims shape = module_.type(module_.operands(use.op)[0]).shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    return module_.type(module_.result(use.op)).shape == shape;
  }

  // Whether a select reads the row, and takes another value in the trip in which the stack has none.
  bool find_instead(ValueId slice, size_t dim, bool in_first_trip, RowRead& read) {
    ValueId row = slice;
    const auto only = only_use(row);
    if (only && is_reshape_without(*only, dim)) row = module_.result(only->op);
    const auto use = only_use(row);
    if (!use || !use->op || module_.op(use->op).def->name != "stablehlo.select") return false;
    const OpView select(module_, use->op);
    const bool is_last_operand = use->index == 2 && module_.op(use->op).parent == body_;
    if (!is_last_operand || !is_outside(select.operand(1))) return false;
    if (!holds_in_one_trip(select.operand(0), in_first_trip ? 0 : counted_.trips - 1)) return false;
    read.instead = select.operand(1);
    read.rows = {select.result()};
    return counted_.trips > 1;
  }

  bool holds_in_one_trip(ValueId predicate, int64_t trip) {
    const OpId maker = module_.value(predicate).op;
    if (!maker || module_.op(maker).def->name != "stablehlo.compare") return false;
    const OpView compare(module_, maker);
    if (compare.attrs().get<EnumAttr>("comparison_direction").value != "EQ") return false;
    const auto a = integers_(compare.operand(0)), b = integers_(compare.operand(1));
    return a && b && a->stride != b->stride && a->offset + trip * a->stride == b->offset + trip * b->stride;
  }

  std::optional<Use> only_use(ValueId value) {
    std::optional<Use> only;
    for (const Use use : module_.uses(value)) {
      if (only) return std::nullopt;
      only = use;
    }
    return only;
  }

  std::optional<RowWrite> write_of(uint32_t carry) {
    const ValueId next = module_.region(body_).results[carry];
    const OpId maker = module_.value(next).op;
    if (!maker || module_.op(maker).def->name != "stablehlo.dynamic_update_slice") return std::nullopt;
    const OpView write(module_, maker);
    const ValueId argument = module_.region(body_).arguments[carry];
    const bool is_read = module_.op(maker).parent != body_ || write.operand(0) != argument || !only_use(argument) ||
                         !only_use(next) || !module_.uses(module_.region(loop_.regions()[0]).arguments[carry]).empty();
    if (is_read) return std::nullopt;
    const auto found = access(write, write.operand_type(1).shape, 2);
    if (!found || low_of(found->row) != 0 || write.operand_type(0).shape[found->dim] != counted_.trips) {
      return std::nullopt;
    }
    ValueId row = write.operand(1);
    if (const OpId shaped = module_.value(row).op; shaped && is_reshape_with(shaped, found->dim)) {
      row = module_.operands(shaped)[0];
    }
    return RowWrite{course_of(*found), carry, row};
  }

  bool is_reshape_with(OpId op, size_t dim) const {
    if (module_.op(op).def->name != "stablehlo.reshape") return false;
    Dims shape = module_.type(module_.operands(op)[0]).shape;
    if (shape.size() < dim) return false;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
    return module_.type(module_.result(op)).shape == shape;
  }

  Module& module_;
  OpView loop_;
  RegionId body_;
  const CountedLoop& counted_;
  LinearIntegers integers_;
};

// ---- the scan ------------------------------------------------------------------------------------------------------

// Keeps the reads and writes of the course that most of them have.
std::optional<Course> choose_course(std::vector<RowRead>& reads, std::vector<RowWrite>& writes) {
  std::map<Course, int> count;
  for (const RowRead& read : reads) ++count[read.course];
  for (const RowWrite& write : writes) ++count[write.course];
  if (count.empty()) return std::nullopt;
  const Course best = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
  std::erase_if(reads, [&](const RowRead& read) { return read.course != best; });
  std::erase_if(writes, [&](const RowWrite& write) { return write.course != best; });
  return best;
}

class ScanFormer {
 public:
  explicit ScanFormer(Module& module) : module_(module), rewrite_(module) {}

  int64_t run() {
    std::vector<OpId> loops;
    walk<Order::kRegionsFirst>(module_, [&](OpId id) {
      if (module_.op(id).def->regions == Regions::kLoop && loop_parts(OpView(module_, id)).condition)
        loops.push_back(id);
    });
    return std::ranges::count_if(loops, [&](OpId loop) { return form(loop); });
  }

 private:
  bool form(OpId id) {
    for (const RegionId region : module_.regions(id)) rewrite_.commit(region);  // the loops in it are new ops
    const OpView loop(module_, id);
    const auto counted = counted_loop(loop);
    if (!counted || counted->trips < 1 || has_effect_in_condition(loop)) return false;
    RowFinder finder(module_, loop, *counted);
    std::vector<RowRead> reads = finder.reads();
    std::vector<RowWrite> writes = finder.writes();
    const auto course = choose_course(reads, writes);
    if (!course) return false;
    replace(id, {static_cast<int64_t>(course->dim), counted->trips, course->is_reverse}, reads, writes);
    return true;
  }

  bool has_effect_in_condition(const OpView& loop) const {
    return std::ranges::any_of(module_.region(loop.regions()[0]).ops,
                               [&](OpId op) { return has_effect(module_, op, UnusedConstraints::kRemove); });
  }

  void replace(OpId loop, const ScanOrder& order, const std::vector<RowRead>& reads,
               const std::vector<RowWrite>& writes) {
    const RegionId body = module_.regions(loop)[1];
    const auto dim = static_cast<size_t>(order.dimension);
    std::vector<ValueId> operands, arguments, results;
    for (const RowRead& read : reads) operands.push_back(stack_of(loop, read, order.trips));
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
    module_.region(body).arguments = arguments;
    for (uint32_t i = 0; i < arguments.size(); ++i) module_.value(arguments[i]).index = i;
    module_.region(body).results = results;
    const OpId scan = create(loop, operands, body, scan_attrs(order, reads.size(), writes.size(), kept.size()));
    uint32_t next = 0;
    for (const RowWrite& write : writes) hand_over(module_.result(loop, write.carry), module_.result(scan, next++));
    for (const uint32_t carry : kept) hand_over(module_.result(loop, carry), module_.result(scan, next++));
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

  // The rows that the trips read, in a value of as many rows.
  ValueId stack_of(OpId loop, const RowRead& read, int64_t trips) {
    const size_t dim = read.course.dim;
    const bool lacks_first = read.instead && read.low < 0;
    const int64_t begin = std::max<int64_t>(read.low, 0);
    const int64_t end = read.low + trips - (read.instead && !lacks_first ? 1 : 0);
    return insert(loop, [&](Builder& builder) {
      Dims start(static_cast<size_t>(module_.type(read.stack).ndim()), 0), limit = module_.type(read.stack).shape;
      start[dim] = begin;
      limit[dim] = end;
      const ValueId rows = build_slice(builder, read.stack, start, limit, Dims(start.size(), 1));
      set_part(rows, read.stack, dim, end - begin);
      if (!read.instead) return rows;
      Dims one = module_.type(read.stack).shape;
      one[dim] = 1;
      const ValueId other = build_reshape(builder, read.instead, one);
      set_part(other, read.stack, dim, 1);
      const std::vector<ValueId> pieces = lacks_first ? std::vector{other, rows} : std::vector{rows, other};
      const ValueId all = build_concatenate(builder, pieces, static_cast<int64_t>(dim));
      set_part(all, read.stack, dim, trips);
      return all;
    });
  }

  void set_part(ValueId made, ValueId stack, size_t dim, int64_t rows) {
    if (!module_.part(made).type) module_.set_part(made, resized(module_, module_.part(stack), dim, rows));
  }

  // The argument that takes the place of the rows.
  ValueId row_argument(RegionId body, const RowRead& read, size_t dim) {
    TensorType type = module_.type(read.stack);
    type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(dim));
    const ValueId first = read.rows.front();
    const ValueId row =
        module_.add_argument(body, module_.context().tensor(type.dtype, type.shape), rewrite_.loc(first));
    module_.set_part(row, resized(module_, module_.part(read.stack), dim, std::nullopt));
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
    module_.set_part(row, resized(module_, module_.part(value), dim, std::nullopt));
    return row;
  }

  // The carries beside the outputs that the scan needs.
  std::vector<uint32_t> kept_carries(OpId loop, const std::vector<RowWrite>& writes, const std::vector<ValueId>& rows) {
    LiveCarries carries(module_, loop);
    for (const ValueId row : rows) carries.reach(row);
    std::vector<bool> is_output(module_.op(loop).operand_count, false);
    for (const RowWrite& write : writes) {
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

  void hand_over(ValueId before, ValueId now) {
    module_.value(now).sharding = module_.value(before).sharding;
    module_.value(now).origin = module_.value(before).origin;
    module_.set_part(now, module_.part(before));
    rewrite_.replace(before, now);
  }

  Module& module_;
  Rewrite rewrite_;
};

}  // namespace

Module form_scans(Module module, PassContext& context) {
  const int64_t formed = ScanFormer(module).run();
  context.counters.add("form_scans.formed", formed);
  if (formed != 0) dce(module);
  return module;
}

}  // namespace shardwise
