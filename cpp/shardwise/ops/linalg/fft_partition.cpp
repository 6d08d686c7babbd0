// SPDX-License-Identifier: Apache-2.0
//
// Transforms along sharded dims. A transform of several dims is one of each dim after the other, and the dim that is
// transformed is the only one that must be whole:
//
//   fft of f64[8, 12], both dims transformed, [{"x"}, {}] on x=4
//     transform dim 1        [{"x"}, {}]
//     all_to_all             [{}, {"x"}]
//     transform dim 0        [{}, {"x"}], which is where the result stays
//
// A batch dim takes the axes where there is one, so that it is split while the other dims are transformed.
#include <algorithm>
#include <optional>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/linalg/fft.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/moved_axes.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// Transforms one dim, after its axes have moved to another one.
struct PencilStep {
  size_t dim = 0;
  std::optional<size_t> target;
};

struct Pencils {
  std::vector<PencilStep> steps;
  std::vector<AxisList> axes;  // of the result
};

class PencilPlan {
 public:
  PencilPlan(const OpView& op, std::vector<AxisList> axes)
      : type_(fft_type(op.attrs())),
        shape_(op.operand_type(0).shape),
        result_(op.result_type().shape),
        begin_(shape_.size() - op.attrs().get<IntArray>("fft_length").size()),
        axes_(std::move(axes)) {}

  // None if no dim can take the axes of one that is transformed.
  std::optional<Pencils> run() {
    Pencils pencils;
    for (const size_t dim : order()) {
      PencilStep step{.dim = dim, .target = std::nullopt};
      if (!axes_[dim].empty()) {
        step.target = target_of(dim);
        if (!step.target) return std::nullopt;
        axes_[*step.target] = std::exchange(axes_[dim], {});
      }
      shape_[dim] = result_[dim];
      done_.push_back(dim);
      pencils.steps.push_back(step);
    }
    pencils.axes = std::move(axes_);
    return pencils;
  }

 private:
  // Real numbers come first and last: along the last dim. Of the others, those that are whole come first, so that they
  // can take the axes of those that are not.
  std::vector<size_t> order() const {
    const size_t last = shape_.size() - 1;
    const bool is_first = type_ == FftType::kRfft, is_last = type_ == FftType::kIrfft;
    std::vector<size_t> dims;
    for (const bool sharded : {false, true}) {
      for (size_t dim = begin_; dim < shape_.size(); ++dim) {
        const bool is_fixed = dim == last && (is_first || is_last);
        if (!is_fixed && axes_[dim].empty() != sharded) dims.push_back(dim);
      }
    }
    if (is_first || is_last) dims.insert(is_first ? dims.begin() : dims.end(), last);
    return dims;
  }

  // Returns the dim that receives least among those that can take the axes.
  std::optional<size_t> target_of(size_t from) const {
    std::optional<std::pair<int64_t, size_t>> best;
    for (size_t dim = 0; dim < shape_.size(); ++dim) {
      if (dim == from || !axes_[dim].empty() || shape_[dim] < 2) continue;
      const bool is_done = dim < begin_ || std::ranges::find(done_, dim) != done_.end();
      const int64_t received = saturated_product(is_done ? 1 : 2, received_along(from, dim));
      if (!best || received < best->first) best = {received, dim};
    }
    return best ? std::optional(best->second) : std::nullopt;
  }

  // The elements that a device receives: those of its tile along `to` without those that it has along `from`.
  int64_t received_along(size_t from, size_t to) const {
    const int64_t shards = product(axes_[from]), have = shape_[from], need = shape_[to];
    const int64_t have_block = ceil_div(have, shards), need_block = ceil_div(need, shards);
    const auto tile = [](int64_t size, int64_t block, int64_t i) {
      return std::clamp<int64_t>(size - i * block, 0, block);
    };
    int64_t most = 0;
    // Tiles are full, then one is not, then they are empty.
    for (const int64_t i : {int64_t{0}, have / have_block, have / have_block + 1, need / need_block, shards - 1}) {
      if (i >= shards) continue;
      const int64_t kept = tile(have, have_block, i);
      most = std::max(most, saturated_product(tile(need, need_block, i), have - kept));
    }
    int64_t rest = most;
    for (size_t dim = 0; dim < shape_.size(); ++dim) {
      if (dim != from && dim != to) rest = saturated_product(rest, shape_[dim]);
    }
    return rest;
  }

  FftType type_;
  Dims shape_;  // so far
  const Dims result_;
  size_t begin_;
  std::vector<AxisList> axes_;
  std::vector<size_t> done_;
};

class PencilWriter {
 public:
  explicit PencilWriter(PartitionContext& context)
      : context_(context),
        builder_(context.builder()),
        type_(fft_type(context.op().attrs())),
        length_(context.op().attrs().get<IntArray>("fft_length")),
        layouts_(context.operand_layout(0).dims()) {}

  ValueId run() {
    std::vector<AxisList> axes;
    for (const DimLayout& layout : layouts_) axes.push_back(layout.axes);
    const OpView op = context_.op();
    const auto pencils = PencilPlan(op, std::move(axes)).run();
    check_internal(pencils.has_value(), "a method's placement is one that it can make");
    ValueId value = context_.operand(0);
    for (const auto& [dim, target] : pencils->steps) {
      if (target) value = moved(value, dim, *target);
      value = transformed(value, dim);
      const int64_t size = op.result_type().shape[dim];
      layouts_[dim] = {.size = size, .axes = {}, .shards = 1, .block = size};
    }
    return value;
  }

 private:
  ValueId moved(ValueId value, size_t from, size_t to) {
    std::vector<DimLayout> want = layouts_;
    DimLayout& taker = want[to];
    taker.axes = std::exchange(want[from].axes, {});
    taker.shards = std::exchange(want[from].shards, 1);
    taker.block = ceil_div(taker.size, taker.shards);
    want[from].block = want[from].size;
    const auto is_even = [](const DimLayout& layout) { return !layout.uneven(); };
    const auto dim = static_cast<int64_t>(from);
    const bool swaps = is_even(layouts_[from]) && is_even(taker);
    ValueId made;
    if (swaps) {
      const AllToAllMove move{taker.axes, dim, static_cast<int64_t>(to)};
      made = create_all_to_all(builder_, context_.mesh(), value, {&move, 1});
    } else {
      ExchangeMap map{.to = {}, .from = {{}}};
      for (size_t d = 0; d < want.size(); ++d) {
        map.to.push_back(target_of(want[d]));
        map.from[0].push_back(source_of(layouts_[d]));
      }
      made = create_exchange(builder_, context_.mesh(), {&value, 1}, {}, map);
    }
    layouts_ = std::move(want);
    return context_.explain(made, dim);
  }

  // The kernel transforms the last dim.
  ValueId transformed(ValueId value, size_t dim) {
    const size_t ndim = layouts_.size(), last = ndim - 1;
    const bool is_real = type_ == FftType::kRfft || type_ == FftType::kIrfft;
    const bool is_inverse = type_ == FftType::kIfft || type_ == FftType::kIrfft;
    const FftType complex = is_inverse ? FftType::kIfft : FftType::kFft;
    const FftType type = is_real && dim == last ? type_ : complex;
    Dims swapped = identity_dims(static_cast<int64_t>(ndim));
    std::swap(swapped[dim], swapped[last]);
    const IntArray length{length_[dim - (ndim - length_.size())]};
    const ValueId lines = build_transpose(builder_, value, swapped);
    return build_transpose(builder_, build_fft(builder_, lines, type, length), swapped);
  }

  PartitionContext& context_;
  Builder& builder_;
  FftType type_;
  const IntArray length_;
  std::vector<DimLayout> layouts_;  // so far
};

}  // namespace

std::vector<FactorId> transformed_factors(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  const size_t ndim = rule.ndim(0), count = op.attrs().get<IntArray>("fft_length").size();
  for (size_t dim = ndim - count; dim < ndim; ++dim) factors.push_back(rule.dim(0, dim)[0]);
  return factors;
}

void placements_along_batch(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                            std::vector<OpPlacement>& found) {
  placements_along_other_dims(rule, transformed_factors(op, rule), axes, found);
}

void placements_of_pencils(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                           std::vector<OpPlacement>& found) {
  std::vector<AxisList> dims = dims_by_rule(rule, 0, axes);
  if (auto pencils = PencilPlan(op, dims).run()) {
    found.push_back({.tensors = {std::move(dims), std::move(pencils->axes)}, .unreduced = {}});
  }
}

void partition_by_pencils(PartitionContext& context) {
  context.set_result(0, PencilWriter(context).run(), result_padding(context.result_layout(0)));
}

}  // namespace shardwise
