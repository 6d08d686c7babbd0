// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/loop_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// A local program: a dim that has axes holds the rows of one shard, so row i of a trip may be on another device.
bool is_whole_along(const Module& module, ValueId value, size_t dim) {
  const PlacementId placement = module.part(value).placement;
  return !placement || module.context().placement(placement).dims[dim].axes.empty();
}

bool is_reshape_with(const Module& module, OpId op, size_t dim) {
  if (module.op(op).def->name != "stablehlo.reshape") return false;
  Dims shape = module.type(module.operands(op)[0]).shape;
  if (shape.size() < dim) return false;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  return module.type(module.result(op)).shape == shape;
}

// The one dim along which `part` is one of several rows. A stack of one row has it along the first dim of size 1.
std::optional<size_t> dim_of_rows(const Dims& whole, const Dims& part) {
  std::optional<size_t> dim;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] == whole[d]) continue;
    if (dim || part[d] != 1) return std::nullopt;
    dim = d;
  }
  if (dim) return dim;
  const auto one = std::ranges::find(whole, 1);
  return one == whole.end() ? std::nullopt : std::optional(static_cast<size_t>(one - whole.begin()));
}

// ---- what a loop reads and writes ----------------------------------------------------------------------------------

class RowFinder {
 public:
  RowFinder(Module& module, const OpView& loop, const CountedLoop& counted)
      : module_(module), parts_(loop_parts(loop)), body_(parts_.body), counted_(counted), integers_(loop, counted) {}

  std::vector<RowRead> reads() {
    std::vector<RowRead> found;
    for (const OpId op : module_.region(body_).ops) {
      if (module_.op(op).def->name != "stablehlo.dynamic_slice") continue;
      if (auto read = read_by(op)) found.push_back(std::move(*read));
    }
    return found;
  }

  bool reads_distinct(OpId id) {
    const OpView slice(module_, id);
    if (slice.name() != "stablehlo.dynamic_slice") return false;
    const auto found = access(slice, slice.result_type().shape, 1);
    if (!found || (found->row.stride == 0 && counted_.trips > 1)) return false;
    // dynamic_slice clamps its start. Rows between two that are inside are inside, so no trip is clamped.
    const int64_t rows = slice.operand_type(0).shape[found->dim];
    const __int128 last = found->row.offset + __int128{counted_.trips - 1} * found->row.stride;
    return found->row.offset >= 0 && found->row.offset < rows && last >= 0 && last < rows;
  }

  std::vector<RowWrite> writes() {
    std::vector<RowWrite> found;
    for (uint32_t carry = 0; carry < parts_.carries.size(); ++carry) {
      if (auto write = write_of(carry)) found.push_back(*write);
    }
    return found;
  }

 private:
  struct Access {
    size_t dim = 0;
    LinearInteger row;
  };

  // The rows that the op reads or writes, and which one in each trip.
  std::optional<Access> access(const OpView& op, const Dims& part, size_t first_start) {
    const auto dim = dim_of_rows(op.operand_type(0).shape, part);
    if (!dim || !is_whole_along(module_, op.operand(0), *dim)) return std::nullopt;
    const auto row = integers_(op.operand(first_start + *dim));
    return row ? std::optional(Access{*dim, *row}) : std::nullopt;
  }

  // A loop over rows visits them in their order, one after the other.
  bool is_in_order(const Access& access) const {
    return access.row.stride == 1 || access.row.stride == -1 || counted_.trips == 1;
  }
  Course course_of(const Access& access) const { return {access.dim, access.row.stride < 0 && counted_.trips > 1}; }
  // The smallest row: a loop that counts down from row 9 reads row 9 - (trips - 1) in its last trip.
  int64_t low_of(const LinearInteger& row) const {
    return row.stride > 0 ? row.offset : row.offset - (counted_.trips - 1);
  }

  // A carry belongs to the body: its rows may change from trip to trip, whereas a stack from around it stays.
  bool is_outside(ValueId value) const { return region_of(module_, value) != body_; }

  std::optional<RowRead> read_by(OpId id) {
    const OpView slice(module_, id);
    if (!is_outside(slice.operand(0))) return std::nullopt;
    const auto found = access(slice, slice.result_type().shape, 1);
    if (!found || !is_in_order(*found)) return std::nullopt;
    RowRead read{.course = course_of(*found), .stack = slice.operand(0), .low = low_of(found->row)};
    const int64_t high = read.low + counted_.trips, size = slice.operand_type(0).shape[found->dim];
    if (read.low >= 0 && high <= size) {
      read.rows = rows_of(slice.result(), found->dim);
      return read.rows.empty() ? std::nullopt : std::optional(read);
    }
    // One row too few at either end is the border of a scan, if the loop takes another value there. dynamic_slice
    // clamps: it reads a neighbor in that trip, which the select drops.
    const bool lacks_first = read.low == -1 && high <= size;
    if (!lacks_first && !(read.low >= 0 && high == size + 1)) return std::nullopt;
    // Row 0 is that of the first trip, or of the last one if the loop counts down.
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
    const auto only = only_use(module_, row);
    if (only && is_reshape_without(*only, dim)) row = module_.result(only->op);
    const auto use = only_use(module_, row);
    if (!use || !use->op || module_.op(use->op).def->name != "stablehlo.select") return false;
    const OpView select(module_, use->op);
    // select(is_border, instead, row): the row must be what is taken if the comparison fails.
    const bool is_last_operand = use->index == 2 && module_.op(use->op).parent == body_;
    if (!is_last_operand || !is_outside(select.operand(1))) return false;
    if (!holds_in_one_trip(select.operand(0), in_first_trip ? 0 : counted_.trips - 1)) return false;
    read.instead = select.operand(1);
    // The reshapes that drop the dim may come after the select.
    read.rows = row == slice ? rows_of(select.result(), dim) : std::vector{select.result()};
    return counted_.trips > 1 && !read.rows.empty();
  }

  bool holds_in_one_trip(ValueId predicate, int64_t trip) {
    const auto compare = made_by(module_, predicate, "stablehlo.compare");
    if (!compare || compare->attrs().get<EnumAttr>("comparison_direction").value != "EQ") return false;
    const auto a = integers_(compare->operand(0)), b = integers_(compare->operand(1));
    // The strides differ, so both sides are equal in one trip at most.
    return a && b && a->stride != b->stride && a->offset + trip * a->stride == b->offset + trip * b->stride;
  }

  std::optional<RowWrite> write_of(uint32_t index) {
    const LoopParts::Carry& carry = parts_.carries[index];
    const auto write = made_by(module_, carry.next, "stablehlo.dynamic_update_slice");
    if (!write) return std::nullopt;
    // A stack of results has no entry value: all its rows must come from the body, and nothing may read it before.
    const bool is_read = module_.op(write->id()).parent != body_ || write->operand(0) != carry.argument ||
                         !only_use(module_, carry.argument) || !only_use(module_, carry.next) ||
                         !module_.uses(carry.tested).empty();
    if (is_read) return std::nullopt;
    const auto found = access(*write, write->operand_type(1).shape, 2);
    if (!found || !is_in_order(*found) || low_of(found->row) != 0 ||
        write->operand_type(0).shape[found->dim] != counted_.trips) {
      return std::nullopt;
    }
    return RowWrite{course_of(*found), index, written_row(module_, write->id(), found->dim)};
  }

  Module& module_;
  LoopParts parts_;
  RegionId body_;
  const CountedLoop& counted_;
  LinearIntegers integers_;
};

}  // namespace

LinearInteger row_of_trip(const Course& course, int64_t trips) {
  return course.is_reverse ? LinearInteger{trips - 1, -1} : LinearInteger{0, 1};
}

ValueId written_row(const Module& module, OpId write, size_t dim) {
  const ValueId update = module.operands(write)[1];
  const OpId shaped = module.value(update).op;
  return shaped && is_reshape_with(module, shaped, dim) ? module.operands(shaped)[0] : update;
}

std::vector<RowRead> find_row_reads(Module& module, const OpView& loop, const CountedLoop& counted) {
  return RowFinder(module, loop, counted).reads();
}

std::vector<RowWrite> find_row_writes(Module& module, const OpView& loop, const CountedLoop& counted) {
  return RowFinder(module, loop, counted).writes();
}

bool reads_distinct_rows(Module& module, const OpView& loop, const CountedLoop& counted, OpId slice) {
  return RowFinder(module, loop, counted).reads_distinct(slice);
}

}  // namespace shardwise
