// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/contraction/convolution.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/local_ranges.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

size_t at(int64_t dim) { return static_cast<size_t>(dim); }

// The factors of a spatial dim: the windows are along the input and the result, the taps along the kernel.
struct SpatialFactors {
  FactorId windows, taps;
};

SpatialFactors spatial_factors(const ShardingRule& rule, const ConvolutionNumbers& numbers, size_t i) {
  return {rule.dim(0, at(numbers.lhs.spatial[i]))[0], rule.dim(1, at(numbers.rhs.spatial[i]))[0]};
}

// The placement with each factor's axes; the taps' axes shard the input, too.
OpPlacement placement_of(const ShardingRule& rule, const ConvolutionNumbers& numbers, std::span<const AxisList> axes) {
  OpPlacement placement = placement_by_rule(rule, axes);
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    const AxisList& taps = axes[spatial_factors(rule, numbers, i).taps];
    if (taps.empty()) continue;
    placement.tensors[0][at(numbers.lhs.spatial[i])] = taps;
    placement.unreduced.insert(placement.unreduced.end(), taps.begin(), taps.end());
    placement.reducer = Reducer::kSum;
  }
  placement.unreduced = sort_and_merge(placement.unreduced);
  return placement;
}

// The groups of one device.
Convolution local_convolution(const PartitionContext& context) {
  Convolution local = Convolution::of(context.op());
  const int64_t shards = context.operand_layout(1).dim(at(local.numbers.rhs.feature)).shards;
  // Shards of the kernel's outputs have whole groups first (convolution_rule): 6 groups on 2 shards are 3 on each.
  // 2 groups on 4 shards are half a group, whose input is that of the one group: the count is 1.
  for (int64_t* count : {&local.feature_groups, &local.batch_groups}) *count = ceil_div(*count, shards);
  return local;
}

// ---- what a device receives ----------------------------------------------------------------------------------------

struct MovedDim {
  ExchangeTarget to;
  ExchangeSource from;
};

MovedDim unmoved(const DimLayout& layout) { return {.to = target_of(layout), .from = source_of(layout)}; }

// Elements in the padding of a dim become zeros, which add nothing to a sum.
void fill_padding(MovedDim& dim) {
  dim.from.end = dim.to.size;
  dim.to.size = dim.to.step * std::max<int64_t>(product(dim.to.axes) - 1, 0) + dim.to.rows;
}

// The rows of the input that the windows of one device read. Windows that begin at the same place between two elements
// on every device keep the base dilation; otherwise the zeros between elements are part of the rows.
MovedDim rows_of_windows(Window& window, size_t i, const DimLayout& input, const DimLayout& result) {
  const int64_t stride = window.strides[i], spanned = window.spanned(i);
  const int64_t block = result.block, holes = window.base_dilations[i], low = window.low[i];
  MovedDim dim = unmoved(input);
  dim.to.axes = result.axes;
  window.low[i] = window.high[i] = 0;
  if (window.sizes[i] == 1) {  // each window reads one row
    dim.to = {.axes = result.axes, .rows = block, .step = block, .size = result.size};
    dim.from.scale = stride;
    dim.from.offset = -low;
    dim.from.holes = holes;
    window.strides[i] = window.base_dilations[i] = 1;
    return dim;
  }
  // Returns where the last of so many windows ends, counted from where the first begins.
  const auto end_of = [&](int64_t windows) { return windows == 0 ? 0 : (windows - 1) * stride + spanned; };
  // The step between devices is stride · block / holes, which is no whole number of elements here.
  if (stride * block % holes != 0) {
    dim.to = {.axes = result.axes, .rows = end_of(block), .step = stride * block, .size = end_of(result.size)};
    dim.from.offset = -low;
    dim.from.holes = holes;
    window.base_dilations[i] = 1;
    return dim;
  }
  //   window 3, low 1, holes 2, block 4     the first window begins at place -1, the fourth ends before place 5:
  //                                         elements 0, 1, 2 at the places 0, 2, 4; the next device begins at element 2
  const int64_t first = -floor_div(low, holes);  // the first element that the first window may read
  const auto count = [&](int64_t windows) {
    return windows == 0 ? 0 : std::max<int64_t>(floor_div(end_of(windows) - 1 - low, holes) + 1 - first, 0);
  };
  dim.to = {.axes = result.axes, .rows = count(block), .step = stride * block / holes, .size = count(result.size)};
  dim.from.offset = first;
  window.low[i] = holes * first + low;
  window.high[i] = end_of(block) - window.padded_size(i, dim.to.rows);
  return dim;
}

// The rows of the input that all windows read with the taps of one device. If taps count backwards, so do the rows:
// then the result comes out reversed.
MovedDim rows_of_taps(Convolution& local, size_t i, const DimLayout& input, const DimLayout& kernel, int64_t windows) {
  Window& window = local.window;
  // Window w reads the places stride · w + dilation · tap - low: each tap is read by all windows.
  const int64_t others = std::max<int64_t>(windows - 1, 0) * window.strides[i];
  const auto end_of = [&](int64_t taps) {
    return windows == 0 || taps == 0 ? 0 : others + (taps - 1) * window.dilations[i] + 1;
  };
  MovedDim dim = unmoved(input);
  dim.to = {.axes = kernel.axes,
            .rows = end_of(kernel.block),
            .step = kernel.block * window.dilations[i],
            .size = end_of(kernel.size)};
  // Rows counted backwards begin at the last one that any tap reads, and make the reversal of the taps superfluous.
  dim.from.offset = local.reversed[i] != 0 ? dim.to.size - 1 - window.low[i] : -window.low[i];
  dim.from.scale = local.reversed[i] != 0 ? -1 : 1;
  dim.from.holes = window.base_dilations[i];
  fill_padding(dim);
  window.low[i] = window.high[i] = 0;
  window.base_dilations[i] = 1;
  local.reversed[i] = 0;
  return dim;
}

// The part of the result that a device computes, and the rows that it receives for it.
class ConvolutionOfShards {
 public:
  explicit ConvolutionOfShards(PartitionContext& context)
      : context_(context), builder_(context.builder()), local_(local_convolution(context)) {}

  ValueId run() {
    const ConvolutionNumbers& numbers = local_.numbers;
    for (const DimLayout& layout : context_.operand_layout(0).dims()) dims_.push_back(unmoved(layout));
    // Padding of the feature dim is summed over, too.
    fill_padding(dims_[at(numbers.lhs.feature)]);
    for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) move(i);
    const ValueId input = received();
    const TensorType type = builder_.context().type(context_.local_result_type(0));
    const ValueId found =
        builder_.create("stablehlo.convolution", {input, kernel()}, local_.attrs(context_.op().attrs()),
                        {builder_.context().tensor(type.dtype, type.shape)});
    return build_reverse(builder_, found, reversed_);
  }

 private:
  DimLayout input(size_t i) const { return context_.operand_layout(0).dim(at(local_.numbers.lhs.spatial[i])); }
  DimLayout taps(size_t i) const { return context_.operand_layout(1).dim(at(local_.numbers.rhs.spatial[i])); }
  DimLayout result(size_t i) const { return context_.result_layout(0).dim(at(local_.numbers.result.spatial[i])); }

  void move(size_t i) {
    MovedDim& dim = dims_[at(local_.numbers.lhs.spatial[i])];
    if (!taps(i).axes.empty()) {
      if (local_.reversed[i] != 0) reversed_.push_back(local_.numbers.result.spatial[i]);
      dim = rows_of_taps(local_, i, input(i), taps(i), result(i).size);
    } else if (!local_.window.is_trivial(i) && !result(i).axes.empty()) {
      dim = rows_of_windows(local_.window, i, input(i), result(i));
    }
  }

  ValueId received() {
    ExchangeMap map{.to = {}, .from = {{}}};
    for (const MovedDim& dim : dims_) {
      map.to.push_back(dim.to);
      map.from[0].push_back(dim.from);
    }
    const ValueId operand = context_.operand(0);
    return emit_exchange(context_, {&operand, 1}, {}, map);
  }

  ValueId kernel() {
    const ConvolutionNumbers& numbers = local_.numbers;
    const Scalar zero = scalar_of(context_.op().operand_type(1).dtype, 0);
    return context_.masked_operand(1, context_.rule().dim(1, at(numbers.rhs.batch))[0], zero);
  }

  PartitionContext& context_;
  Builder& builder_;
  Convolution local_;
  std::vector<MovedDim> dims_;  // of the input
  Dims reversed_;               // dims of the result that come out in reverse
};

bool stays_in_shards(const PartitionContext& context) {
  const ConvolutionNumbers numbers = ConvolutionNumbers::of(context.op());
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    const DimLayout input = context.operand_layout(0).dim(at(numbers.lhs.spatial[i]));
    const DimLayout result = context.result_layout(0).dim(at(numbers.result.spatial[i]));
    const Range* range = context.rule().range(0, at(numbers.lhs.spatial[i]));
    if (!context.operand_layout(1).axes(at(numbers.rhs.spatial[i])).empty()) return false;
    if (range == nullptr || result.axes.empty()) continue;
    if (!range->stays_local({input.size, input.block}, {result.size, result.block})) return false;
  }
  return true;
}

}  // namespace

// A sharded spatial dim ends past the last window of its block.
void partition_convolution(PartitionContext& context) {
  Convolution local = local_convolution(context);
  Window& window = local.window;
  for (size_t i = 0; i < window.sizes.size(); ++i) {
    const DimLayout from = context.operand_layout(0).dim(at(local.numbers.lhs.spatial[i]));
    const DimLayout to = context.result_layout(0).dim(at(local.numbers.result.spatial[i]));
    if (window.is_trivial(i) || to.axes.empty()) continue;
    window.high[i] = padding_after(window.range(i), to.block, from.block);
  }
  partition_by_rule(context, context.builder().context().intern(local.attrs(context.op().attrs())));
}

void partition_convolution_by_exchange(PartitionContext& context) {
  if (stays_in_shards(context)) return partition_convolution(context);
  context.set_result(0, ConvolutionOfShards(context).run(), result_padding(context.result_layout(0)));
}

std::vector<FactorId> moved_factors_of_convolution(const OpView& op, const ShardingRule& rule) {
  if (op.module().meshes.empty()) return {};
  const ConvolutionNumbers numbers = ConvolutionNumbers::of(op);
  std::vector<FactorId> factors;
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    if (rule.range(0, at(numbers.lhs.spatial[i])) == nullptr) continue;
    const auto [windows, taps] = spatial_factors(rule, numbers, i);
    factors.push_back(windows);
    // A sum of bools is not one over devices.
    if (op.result_type().dtype != DType::kBool) factors.push_back(taps);
  }
  return factors;
}

namespace {

// A device with fewer taps than its block has would multiply rows, which other windows read, by zeros: NaN for
// infinity.
bool are_taps_even(const ShardingRule& rule, const ConvolutionNumbers& numbers, const std::vector<AxisList>& axes) {
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    const FactorId taps = spatial_factors(rule, numbers, i).taps;
    if (rule.factors()[taps].size % product(axes[taps]) != 0) return false;
  }
  return true;
}

}  // namespace

void placements_of_moved_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                 std::vector<OpPlacement>& found) {
  const ConvolutionNumbers numbers = ConvolutionNumbers::of(op);
  std::vector<AxisList> given(axes.begin(), axes.end()), turned;
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    const auto [windows, taps] = spatial_factors(rule, numbers, i);
    if (given[windows].empty() || given[taps].empty()) continue;
    if (given[windows] != given[taps]) return;
    given[windows].clear();  // those of the input, which is sharded like the taps
  }
  if (are_taps_even(rule, numbers, given)) found.push_back(placement_of(rule, numbers, given));
  // The gradient of a kernel has few windows, and as many taps as there are pixels: the input's axes are for the taps.
  turned = given;
  for (size_t i = 0; i < numbers.lhs.spatial.size(); ++i) {
    const auto [windows, taps] = spatial_factors(rule, numbers, i);
    const bool has_more_taps = rule.factors()[taps].size >= rule.factors()[windows].size;
    const bool may_turn = rule.range(0, at(numbers.lhs.spatial[i])) != nullptr && has_more_taps;
    if (may_turn && op.result_type().dtype != DType::kBool && given[taps].empty()) {
      std::swap(turned[windows], turned[taps]);
    }
  }
  if (turned != given && are_taps_even(rule, numbers, turned)) found.push_back(placement_of(rule, numbers, turned));
}

}  // namespace shardwise
