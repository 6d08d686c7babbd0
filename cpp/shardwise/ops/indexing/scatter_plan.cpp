// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/scatter_plan.h"

namespace shardwise {
namespace {

constexpr int64_t kWorthSplitting = 1 << 15;  // elements

}  // namespace

WindowPlaces::WindowPlaces(KernelContext& context, const NdArray& indices, const Indexing& indexing)
    : starts_(context, indices, indexing.dims) {
  const IndexingDims& dims = indexing.dims;
  const Dims out_strides = row_major_strides(indexing.out, 1), strides = row_major_strides(indexing.operand, 1);
  const Dims out_dims = indexing.batch_dims(), indices_dims = indexing.indices_dims();
  for (size_t i = 0; i < out_dims.size(); ++i) {
    const std::optional<size_t> paired = indexing.paired(indices_dims[i]);
    const int64_t to = paired ? strides[*paired] : 0;
    batch_.add(starts_.batch_shape()[i], out_strides[static_cast<size_t>(out_dims[i])], to);
  }
  // A window of 3 rows in 8 that starts at -2 has one row inside, and at -3 none.
  for (const int64_t entry : dims.index_map) {
    const auto dim = static_cast<size_t>(entry);
    components_.push_back({-std::max<int64_t>(indexing.slice[dim], 1), indexing.operand[dim], strides[dim]});
  }
}

ScatterPlan::ScatterPlan(KernelContext& context, const Indexing& indexing, size_t inputs)
    : indexing_(indexing), places_(context, context.operand(inputs), indexing) {
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
  if (!has_elements()) place_all(context);
  worth_splitting_ = places_.count() * box_.count() >= kWorthSplitting;
  // Windows that are not cut have one row in each indexed dim: those with different starts share no element. So threads
  // may take ranges of starts. Otherwise they share a dim of the window that no index moves.
  if (has_elements()) span_ = element_count(indexing_.operand);
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

void ScatterPlan::place_all(KernelContext& context) {
  from_.resize(static_cast<size_t>(places_.count()));
  to_.resize(from_.size());
  context.parallel_for(places_.count(), 1 << 12, [&](int64_t begin, int64_t end) {
    auto place = static_cast<size_t>(begin);
    places_.for_each(begin, end, [&](int64_t from, int64_t to) {
      from_[place] = from;
      to_[place++] = to;
    });
  });
}

void ScatterPlan::cut(int64_t place, PairedDims& box, int64_t& from, int64_t& to) const {
  for (size_t d = 0; d < box.dims.size(); ++d) {
    if (box_components_[d] < 0) continue;
    const auto component = static_cast<size_t>(box_components_[d]);
    const int64_t start = places_.start(place, component);
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
