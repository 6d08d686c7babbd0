// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/loop_rows.h"

#include <optional>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// A local program: a dim that has axes holds the rows of one shard, so row i of a trip may be on another device.
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
    // A scan visits all rows in their order, so another stride cannot become one.
    if (!row || (row->stride != 1 && row->stride != -1)) return std::nullopt;
    return Access{*dim, *row};
  }

  static Course course_of(const Access& access) { return {access.dim, access.row.stride < 0}; }
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
    if (!found) return std::nullopt;
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
    const auto only = only_use(row);
    if (only && is_reshape_without(*only, dim)) row = module_.result(only->op);
    const auto use = only_use(row);
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
    const OpId maker = module_.value(predicate).op;
    if (!maker || module_.op(maker).def->name != "stablehlo.compare") return false;
    const OpView compare(module_, maker);
    if (compare.attrs().get<EnumAttr>("comparison_direction").value != "EQ") return false;
    const auto a = integers_(compare.operand(0)), b = integers_(compare.operand(1));
    // The strides differ, so both sides are equal in one trip at most.
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
    // A stack of results has no entry value: all its rows must come from the body, and nothing may read it before.
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

}  // namespace

std::vector<RowRead> find_row_reads(Module& module, const OpView& loop, const CountedLoop& counted) {
  return RowFinder(module, loop, counted).reads();
}

std::vector<RowWrite> find_row_writes(Module& module, const OpView& loop, const CountedLoop& counted) {
  return RowFinder(module, loop, counted).writes();
}

}  // namespace shardwise
