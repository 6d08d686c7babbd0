// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/factor_projection.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace shardwise {
namespace {

// Reads the axes of one dim from major to minor, digit by digit.
class AxisCursor {
 public:
  explicit AxisCursor(AxisSpan axes) : axes_(axes) {
    if (!axes_.empty()) rest_ = axes_[0];
  }
  bool done() const { return position_ == axes_.size(); }
  int64_t size() const { return rest_.size; }

  AxisRef take(int64_t size) {
    AxisRef taken = rest_;
    if (size == rest_.size) {
      next();
    } else {
      taken.size = size;
      // 2 of "x" = 8: "x":(1)2 is taken, and "x":(2)4 is left.
      rest_ = AxisRef{rest_.axis, taken.next(), rest_.size / size};
    }
    return taken;
  }
  void take_all(AxisList& list) {
    for (; !done(); next()) append_merged(list, rest_);
  }

 private:
  void next() {
    if (++position_ < axes_.size()) rest_ = axes_[position_];
  }
  AxisSpan axes_;
  size_t position_ = 0;
  AxisRef rest_;
};

bool is_closed(const DimSharding& dim) { return !dim.open; }
bool is_closed(const DimPlacement&) { return true; }

// Only the first axis can continue the last one of the factor before, because axes within a factor are already merged.
void append_factor_axes(AxisList& dim, const AxisList& axes) {
  if (axes.empty()) return;
  append_merged(dim, axes.front());
  dim.insert(dim.end(), axes.begin() + 1, axes.end());
}

}  // namespace

size_t dim_of(const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < rule.ndim(tensor); ++d) {
    if (std::ranges::find(rule.dim(tensor, d), factor) != rule.dim(tensor, d).end()) return d;
  }
  return rule.ndim(tensor);
}

FactorSharding* FactorProjection::find(size_t tensor, FactorId factor) {
  return const_cast<FactorSharding*>(std::as_const(*this).find(tensor, factor));
}

const FactorSharding* FactorProjection::find(size_t tensor, FactorId factor) const {
  const FactorSharding& sharding = tensors_[tensor].factors[factor];
  return sharding.mapped ? &sharding : nullptr;
}

TensorFactors& FactorProjection::start_tensor(size_t index) {
  TensorFactors& tensor = tensors_[index];
  if (tensor.factors.size() < rule_->factors().size()) tensor.factors.resize(rule_->factors().size());
  // The lists of unmapped factors keep their storage, and project_dim clears those that it maps.
  for (FactorSharding& factor : tensor.factors) factor.mapped = false;
  tensor.replicated.clear();
  tensor.unreduced.clear();
  tensor.reducer = Reducer::kNone;
  return tensor;
}

void FactorProjection::project(const ShardingRule& rule, std::span<const TensorSharding* const> shardings) {
  project_tensors(rule, shardings, false);
}

void FactorProjection::project(const ShardingRule& rule, std::span<const Placement* const> placements) {
  project_tensors(rule, placements, true);
}

template <class Sharding>
void FactorProjection::project_tensors(const ShardingRule& rule, std::span<const Sharding* const> shardings,
                                       bool is_closed_without) {
  rule_ = &rule;
  tensor_count_ = rule.tensor_count();
  if (tensors_.size() < tensor_count_) tensors_.resize(tensor_count_);
  for (size_t t = 0; t < tensor_count_; ++t) {
    TensorFactors& tensor = start_tensor(t);
    const Sharding* sharding = shardings[t];
    if (sharding == nullptr) {
      for (size_t d = 0; d < rule.ndim(t); ++d) project_dim(tensor, rule.dim(t, d), {}, is_closed_without);
      continue;
    }
    if constexpr (std::is_same_v<Sharding, TensorSharding>) tensor.replicated = sharding->replicated;
    tensor.unreduced = sharding->unreduced;
    tensor.reducer = sharding->reducer;
    for (size_t d = 0; d < rule.ndim(t); ++d) {
      project_dim(tensor, rule.dim(t, d), sharding->dims[d].axes, is_closed(sharding->dims[d]));
    }
  }
}

void FactorProjection::project_dim(TensorFactors& tensor, std::span<const FactorId> factors, AxisSpan axes,
                                   bool closed) {
  AxisCursor cursor(axes);
  bool has_overflow = false;
  for (size_t i = 0; i < factors.size(); ++i) {
    FactorSharding& factor = tensor.factors[factors[i]];
    factor.axes.clear();
    factor.overflow.clear();
    factor.mapped = true;
    factor.minor_most = i + 1 == factors.size();
    // After an overflow, the next factor is closed, and further factors are not available.
    factor.closed = closed || has_overflow;
    if (has_overflow) return;
    // The last factor takes the remaining axes, divisible or not: its shards are contiguous in the dim either way.
    if (factor.minor_most) return cursor.take_all(factor.axes);

    int64_t left = rule_->factors()[factors[i]].size;
    while (!cursor.done()) {
      const int64_t common = std::gcd(left, cursor.size());
      // An axis of size 1 splits nothing, so any factor can take it.
      if (common == 1 && cursor.size() != 1) break;
      factor.axes.push_back(cursor.take(common));
      left /= common;
    }
    if (left > 1 && !cursor.done()) {
      has_overflow = true;
      cursor.take_all(factor.overflow);
    }
  }
}

TensorSharding FactorProjection::sharding(size_t index, const MeshPtr& mesh) const {
  const TensorFactors& tensor = tensors_[index];
  TensorSharding result{.mesh = mesh,
                        .dims = std::vector<DimSharding>(rule_->ndim(index)),
                        .replicated = tensor.replicated,
                        .unreduced = tensor.unreduced,
                        .reducer = tensor.reducer};
  for (size_t d = 0; d < result.dims.size(); ++d) {
    DimSharding& dim = result.dims[d];
    dim.open = true;
    for (FactorId id : rule_->dim(index, d)) {
      const FactorSharding& factor = tensor.factors[id];
      if (factor.closed) dim.open = false;
      append_factor_axes(dim.axes, factor.axes);
      append_factor_axes(dim.axes, factor.overflow);
      // 4x4 [{"a"}, {"b"}] reshaped to 16 on a=2, b=2: with "b", a device would hold rows 0, 1, 4 and 5, which is no
      // tile.
      if (!factor.overflow.empty() || product(factor.axes) < rule_->factors()[id].size) break;
    }
  }
  return result;
}

}  // namespace shardwise
