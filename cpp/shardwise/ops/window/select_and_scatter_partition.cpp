// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/window/select_and_scatter.h"

namespace shardwise {
namespace {

// The rows that a device reads along a sharded dim with windows. They count from the first of its own. The windows over
// those do not begin at the same place on every device unless the stride divides the block. Otherwise there is a window
// at each row, and those between the op's own are masked.
struct WindowedDim {
  int64_t begin = 0, rows = 0;     // of the operand
  int64_t first = 0, windows = 0;  // window first + step·i of device i is its first one
  int64_t step = 0;
  int64_t holes = 1;  // from one window of the op to the next

  //   block 8, window 3, stride 1, low 0     the windows from -2 to 7 have a row in [0, 8): first -2, windows 10,
  //                                          and they read the rows [-2, 10)
  static WindowedDim of(Window& window, size_t dim, int64_t block) {
    const int64_t low = window.low[dim], span = window.sizes[dim];
    WindowedDim found;
    if (block % window.strides[dim] != 0) {
      found.holes = window.strides[dim];
      window.strides[dim] = 1;
    }
    const int64_t stride = window.strides[dim];
    found.step = block / stride;
    found.first = -floor_div(span - 1 - low, stride);
    found.windows = std::max<int64_t>(floor_div(block - 1 + low, stride) + 1 - found.first, 0);
    const int64_t at = stride * found.first - low;  // of the first window
    const int64_t read = found.windows == 0 ? 0 : (found.windows - 1) * stride + span;
    found.begin = std::min<int64_t>(at, 0);
    found.rows = std::max(at + read, block) - found.begin;
    // The window op pads what the device does not receive: rows before `begin`, or after the last one.
    window.low[dim] = found.begin - at;
    window.high[dim] = read - window.low[dim] - found.rows;
    return found;
  }
};

class SelectAndScatterOfShards {
 public:
  explicit SelectAndScatterOfShards(PartitionContext& context)
      : context_(context), builder_(context.builder()), window_(Window::of(context.op())) {}

  ValueId run() {
    const LayoutView to = context_.result_layout(0);
    const size_t ndim = to.ndim();
    SelectedWindows parts{.operand = {},
                          .source = {},
                          .init = context_.operand(2),
                          .window = {},
                          .rows_inside = std::vector<ValueId>(ndim),
                          .windows_inside = std::vector<ValueId>(ndim)};
    ExchangeMap operand{.to = {}, .from = {{}}}, source{.to = {}, .from = {{}}};
    Dims start(ndim, 0), limit = to.local_shape();
    bool moves = false;
    for (size_t dim = 0; dim < ndim; ++dim) {
      operand.to.push_back(exchange_target(context_, dim));
      operand.from[0].push_back(exchange_source(context_, 0, dim));
      source.from[0].push_back(exchange_source(context_, 1, dim));
      const DimLayout own = context_.operand_layout(1).dim(dim);
      source.to.push_back(target_of(own));
      if (window_.is_trivial(dim) || to.axes(dim).empty()) continue;
      moves = true;
      const WindowedDim rows = WindowedDim::of(window_, dim, to.block(dim));
      receive(rows, dim, operand, source);
      start[dim] = -rows.begin;
      limit[dim] += start[dim];
      parts.rows_inside[dim] = inside(dim, rows.rows, to.block(dim), rows.begin, to.dim(dim).size, 1);
      parts.windows_inside[dim] = inside(dim, rows.windows, rows.step, rows.first, own.size, rows.holes);
    }
    parts.operand = moves ? exchanged(0, operand) : context_.operand(0);
    parts.source = moves ? exchanged(1, source) : context_.operand(1);
    parts.window = window_;
    const ValueId found = build_select_and_scatter(builder_, context_.op(), parts);
    if (!moves) return found;
    // Also if it is whole, so that the program is the same text for every number of devices.
    return create_slice(builder_, found, start, limit);
  }

 private:
  static void receive(const WindowedDim& rows, size_t dim, ExchangeMap& operand, ExchangeMap& source) {
    ExchangeTarget& to = operand.to[dim];
    to.rows = rows.rows;
    to.size -= rows.begin;
    operand.from[0][dim].offset = rows.begin;
    // The source has an element at every `holes`-th window, counted from `first`.
    ExchangeSource& from = source.from[0][dim];
    from.offset = rows.first;
    from.holes = rows.holes;
    source.to[dim] = {.axes = to.axes,
                      .rows = rows.windows,
                      .step = rows.step,
                      .size = std::max<int64_t>((from.size - 1) * rows.holes - rows.first + 1, 0)};
  }

  ValueId exchanged(size_t operand, const ExchangeMap& map) {
    const ValueId value = context_.operand(operand);
    const ValueId made = create_exchange(builder_, context_.mesh(), {&value, 1}, {}, map);
    size_t dim = 0;
    while (window_.is_trivial(dim) || map.to[dim].axes.empty()) ++dim;
    return context_.explain(made, static_cast<int64_t>(dim));
  }

  ValueId number(int64_t value) { return build_scalar(builder_, scalar_of(DType::kI64, value)); }

  // Whether index first + step·device + row is that of one of `size` elements, each `holes` from the next.
  ValueId inside(size_t dim, int64_t rows, int64_t step, int64_t first, int64_t size, int64_t holes) {
    const Dims shape{rows};
    const auto splat = [&](int64_t value) { return build_broadcast(builder_, number(value), shape, {}); };
    const ValueId device =
        build_convert(builder_, context_.axis_index(context_.result_layout(0).axes(dim)), DType::kI64);
    const ValueId offset = builder_.create(
        "stablehlo.add", {builder_.create("stablehlo.multiply", {device, number(step)}), number(first)});
    const ValueId index = builder_.create(
        "stablehlo.add", {build_iota(builder_, DType::kI64, shape, 0), build_broadcast(builder_, offset, shape, {})});
    const ValueId after = build_compare(builder_, "GE", index, splat(0));
    const ValueId before = build_compare(builder_, "LE", index, splat((size - 1) * holes));
    const ValueId found = builder_.create("stablehlo.and", {after, before});
    // Windows between the op's own have an index that `holes` does not divide.
    const ValueId rest = builder_.create("stablehlo.remainder", {index, splat(holes)});
    return builder_.create("stablehlo.and", {found, build_compare(builder_, "EQ", rest, splat(0))});
  }

  PartitionContext& context_;
  Builder& builder_;
  Window window_;
};

}  // namespace

void partition_select_and_scatter(PartitionContext& context) {
  context.set_result(0, SelectAndScatterOfShards(context).run(), result_padding(context.result_layout(0)));
}

std::vector<FactorId> moved_factors_of_select_and_scatter(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  const Window window = Window::of(op);
  for (size_t dim = 0; dim < rule.ndim(0) && !op.module().meshes.empty(); ++dim) {
    if (window.is_trivial(dim)) continue;
    factors.push_back(rule.dim(0, dim)[0]);
    factors.push_back(rule.dim(1, dim)[0]);
  }
  return factors;
}

// The source is sharded like the operand.
void placements_of_select_and_scatter(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                      std::vector<OpPlacement>& found) {
  OpPlacement placement = placement_by_rule(rule, axes);
  const Window window = Window::of(op);
  for (size_t dim = 0; dim < rule.ndim(0); ++dim) {
    if (window.is_trivial(dim)) continue;
    const AxisList &own = axes[rule.dim(0, dim)[0]], &of_source = axes[rule.dim(1, dim)[0]];
    if (!own.empty() && !of_source.empty() && own != of_source) return;
    for (std::vector<AxisList>& tensor : placement.tensors) {
      if (dim < tensor.size()) tensor[dim] = own.empty() ? of_source : own;
    }
  }
  found.push_back(std::move(placement));
}

}  // namespace shardwise
