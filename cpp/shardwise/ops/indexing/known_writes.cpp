// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/known_writes.h"

#include <algorithm>
#include <optional>

#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/indexing/known_rows.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// start, start + step, …, of which each other step leaves rows out; step 0: a single row.
struct Steps {
  int64_t start = 0, step = 1, count = 1;
  bool is_descending = false;
};

std::optional<Steps> steps_of(const std::vector<int64_t>& rows) {
  const int64_t step = rows.size() < 2 ? 1 : rows[1] - rows[0];
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] - rows[i - 1] != step) return std::nullopt;
  }
  return Steps{.start = std::min(rows.front(), rows.back()),
               .step = std::abs(step),
               .count = std::ssize(rows),
               .is_descending = step < 0};
}

// The place of each row in `rows`, if every row of the dim is there once.
std::optional<std::vector<int64_t>> inverse_of(const std::vector<int64_t>& rows, int64_t size) {
  std::vector<int64_t> inverse(static_cast<size_t>(size), -1);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= size || inverse[static_cast<size_t>(rows[i])] >= 0) return std::nullopt;
    inverse[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  }
  return std::ssize(rows) == size ? std::optional(std::move(inverse)) : std::nullopt;
}

// Whole rows of one dim, by indices of one dim.
bool writes_rows(const Indexing& indexing, size_t dim) {
  const IndexingDims& dims = indexing.dims;
  if (dims.index_map.size() != 1 || !dims.operand_batching.empty() || indexing.batch_dims().size() != 1) return false;
  if (dims.collapsed.size() != 1 || !contains_dim(dims.collapsed, static_cast<int64_t>(dim))) return false;
  for (size_t d = 0; d < indexing.operand.size(); ++d) {
    if (d != dim && indexing.slice[d] != indexing.operand[d]) return false;
  }
  return true;
}

// The updates with the dims of the operand.
ValueId in_operand_order(Builder& builder, ValueId updates, const Indexing& indexing, size_t dim) {
  Dims order;
  const Dims window = indexing.window_dims();
  for (size_t d = 0; d < indexing.operand.size(); ++d) {
    const auto found = std::ranges::find(window, static_cast<int64_t>(d));
    order.push_back(d == dim ? indexing.batch_dims()[0]
                             : indexing.dims.offset[static_cast<size_t>(found - window.begin())]);
  }
  return build_transpose(builder, updates, order);
}

// Which rows of the dim are written, in the shape of the operand.
ValueId build_is_written(Builder& builder, const TensorType& type, size_t dim, const Steps& steps) {
  const Dims row{type.shape[dim]};
  const auto number = [&](int64_t value) { return build_splat(builder, row, Scalar::of_int(DType::kI64, value)); };
  const ValueId place =
      builder.create("stablehlo.subtract", {build_iota(builder, DType::kI64, row, 0), number(steps.start)});
  ValueId is_written = build_compare(builder, "GE", place, number(0));
  const ValueId is_before = build_compare(builder, "LT", place, number(steps.count * steps.step));
  is_written = builder.create("stablehlo.and", {is_written, is_before});
  if (steps.step > 1) {
    const ValueId rest = builder.create("stablehlo.remainder", {place, number(steps.step)});
    is_written = builder.create("stablehlo.and", {is_written, build_compare(builder, "EQ", rest, number(0))});
  }
  return build_broadcast(builder, is_written, type.shape, Dims{static_cast<int64_t>(dim)});
}

// `x` combined with the updates, which have a row for each of the steps, and x in the other rows.
ValueId build_written_steps(Builder& builder, const OpView& op, ValueId updates, size_t dim, const Steps& steps) {
  const TensorType type = op.operand_type(0);
  const ValueId x = op.operand(0);
  const int64_t last = steps.start + (steps.count - 1) * steps.step;
  const ValueId spread =
      build_pad_along(builder, updates, 0, dim, steps.start, type.shape[dim] - 1 - last, steps.step - 1);
  const ValueId combined = apply_region(builder, op.module(), op.regions()[0], std::vector{x, spread})[0];
  return builder.create("stablehlo.select", {build_is_written(builder, type, dim, steps), combined, x});
}

constexpr int64_t kLeastShare = 8;  // fewer rows than an eighth of the dim are written one by one

}  // namespace

ValueId build_known_writes(Builder& builder, const OpView& op, const std::vector<int64_t>& rows) {
  const Indexing indexing = scatter_indexing(op);
  const auto dim = static_cast<size_t>(indexing.dims.index_map[0]);
  const TensorType type = op.operand_type(0);
  const int64_t size = type.shape[dim];
  if (!writes_rows(indexing, dim) || rows.empty() || std::ranges::min(rows) < 0 || std::ranges::max(rows) >= size) {
    return {};
  }
  if (const auto inverse = inverse_of(rows, size)) {
    const ValueId updates = in_operand_order(builder, op.operand(2), indexing, dim);
    const ValueId moved = build_known_rows(builder, updates, dim, *inverse);
    if (!moved) return {};
    return apply_region(builder, op.module(), op.regions()[0], std::vector{op.operand(0), moved})[0];
  }
  const std::optional<Steps> steps = steps_of(rows);
  if (!steps || steps->step == 0 || steps->count * kLeastShare < size) return {};
  ValueId updates = in_operand_order(builder, op.operand(2), indexing, dim);
  if (steps->is_descending) updates = build_reverse(builder, updates, Dims{static_cast<int64_t>(dim)});
  return build_written_steps(builder, op, updates, dim, *steps);
}

ValueId build_known_window(Builder& builder, const OpView& op, int64_t start) {
  const Indexing indexing = scatter_indexing(op);
  const auto dim = static_cast<size_t>(indexing.dims.index_map[0]);
  const int64_t size = indexing.operand[dim], count = indexing.slice[dim];
  if (!indexing.dims.operand_batching.empty() || !indexing.batch_dims().empty() || start < 0 || start + count > size) {
    return {};
  }
  // A collapsed dim has a window of one row, which is cheaper to write by itself.
  if (!indexing.dims.collapsed.empty() || count * kLeastShare < size) return {};
  for (size_t d = 0; d < indexing.operand.size(); ++d) {
    if (d != dim && indexing.slice[d] != indexing.operand[d]) return {};
  }
  return build_written_steps(builder, op, op.operand(2), dim, {.start = start, .step = 1, .count = count});
}

}  // namespace shardwise
