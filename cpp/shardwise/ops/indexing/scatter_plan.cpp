// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/scatter_plan.h"

namespace shardwise {
namespace {

constexpr int64_t kWorthSplitting = 1 << 15;  // elements

}  // namespace

ScatterPlan::ScatterPlan(KernelContext& context, const Indexing& indexing, size_t inputs)
    : indexing_(indexing), starts_(context, context.operand(inputs), indexing_.dims) {
  const Dims out_strides = row_major_strides(indexing_.out, 1), strides = row_major_strides(indexing_.operand, 1);
  const Dims window = indexing_.window_dims();
  for (size_t i = 0; i < window.size(); ++i) {
    const auto dim = static_cast<size_t>(window[i]);
    const int64_t size = indexing_.slice[dim];
    // A window of one row is inside or outside as a whole; a longer one may be cut at either end.
    const std::optional<size_t> component = size > 1 ? indexing_.component(window[i]) : std::nullopt;
    box_.add(size, out_strides[static_cast<size_t>(indexing_.dims.offset[i])], strides[dim]);
    box_components_.push_back(component ? static_cast<int>(*component) : -1);
    may_cut_ = may_cut_ || component;
  }
  // cut() changes the dims of a window one by one, so merged dims are for windows that stay whole.
  if (!may_cut_) box_ = box_.merged();
  from_.resize(static_cast<size_t>(starts_.count()));
  to_.resize(from_.size());
  context.parallel_for(starts_.count(), 1 << 12,
                       [&](int64_t begin, int64_t end) { place(begin, end, out_strides, strides); });
  worth_splitting_ = starts_.count() * box_.count() >= kWorthSplitting;
  // Windows that are not cut have one row in each indexed dim: those with different starts share no element. So threads
  // may take ranges of starts. Otherwise they share a dim of the window that no index moves.
  if (!may_cut_) {
    for (const int64_t to : to_) span_ = std::max(span_, to + 1);
  }
  by_rows_ = span_ > 1;
  for (size_t d = 0; !by_rows_ && d < box_.dims.size(); ++d) {
    const bool fixed = !may_cut_ || box_components_[d] < 0;
    if (fixed && (split_ < 0 || box_.dims[d].size > box_.dims[static_cast<size_t>(split_)].size))
      split_ = static_cast<int>(d);
  }
  worth_splitting_ = worth_splitting_ && (by_rows_ || split_ >= 0);
}

void ScatterPlan::place(int64_t begin, int64_t end, const Dims& out_strides, const Dims& strides) {
  const IndexingDims& dims = indexing_.dims;
  const Dims out_dims = indexing_.batch_dims(), indices_dims = indexing_.indices_dims();
  PairedDims batch;
  for (size_t i = 0; i < out_dims.size(); ++i) {
    int64_t to = 0;  // of a batching dim: its stride in the result
    for (size_t k = 0; k < dims.indices_batching.size(); ++k) {
      if (dims.indices_batching[k] == indices_dims[i]) to = strides[static_cast<size_t>(dims.operand_batching[k])];
    }
    batch.add(starts_.batch_shape()[i], out_strides[static_cast<size_t>(out_dims[i])], to);
  }
  // A window of 3 rows in 8 that starts at -2 has one row inside, and at -3 none.
  struct Component {
    int64_t after, before, stride;  // a window that starts outside of (after, before) is dropped
  };
  std::vector<Component> components;
  for (const int64_t entry : dims.index_map) {
    const auto dim = static_cast<size_t>(entry);
    components.push_back({-std::max<int64_t>(indexing_.slice[dim], 1), indexing_.operand[dim], strides[dim]});
  }
  auto place = static_cast<size_t>(begin);
  const int64_t* start = starts_[begin];
  for_each_offset(batch, begin, end, [&](int64_t from, int64_t to) {
    bool inside = true;
    for (const Component& component : components) {
      const int64_t index = *start++;
      inside = inside && index > component.after && index < component.before;
      // The offset of an index far outside could overflow.
      if (inside) to += index * component.stride;
    }
    from_[place] = from;
    to_[place++] = inside ? to : kDropped;
  });
}

void ScatterPlan::cut(int64_t place, PairedDims& box, int64_t& from, int64_t& to) const {
  for (size_t d = 0; d < box.dims.size(); ++d) {
    if (box_components_[d] < 0) continue;
    const auto component = static_cast<size_t>(box_components_[d]);
    const int64_t start = starts_[place][component];
    const int64_t whole = indexing_.operand[static_cast<size_t>(indexing_.dims.index_map[component])];
    PairedDims::Dim& dim = box.dims[d];
    // A window of 3 that starts at -2 keeps its row 2: low 2, high 3.
    const int64_t low = std::max<int64_t>(0, -start), high = std::min(dim.size, whole - start);
    dim.size = high - low;
    from += low * dim.first;
    to += low * dim.second;
  }
}

}  // namespace shardwise
