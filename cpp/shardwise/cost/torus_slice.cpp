// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/torus_slice.h"

#include <algorithm>
#include <numeric>

namespace shardwise {
namespace {

// Tries all shapes with dims in falling order that fit into `limits`, which fall, too.
class SliceSearch {
 public:
  SliceSearch(Dims limits, int64_t units) : limits_(std::move(limits)) { try_dims(units, units); }

  Dims best() && { return std::move(best_); }

 private:
  void try_dims(int64_t rest, int64_t most) {
    if (shape_.size() == limits_.size()) {
      if (rest == 1) keep();
      return;
    }
    for (int64_t dim = std::min({limits_[shape_.size()], most, rest}); dim >= 1; --dim) {
      if (rest % dim != 0) continue;
      shape_.push_back(dim);
      try_dims(rest / dim, dim);
      shape_.pop_back();
    }
  }

  // Of shapes with the same number of units, the nearest to a cube has the smallest sum.
  void keep() {
    const auto sum = [](const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{0}); };
    if (best_.empty() || sum(shape_) < sum(best_)) best_ = shape_;
  }

  const Dims limits_;  // by falling size
  Dims shape_, best_;
};

}  // namespace

Dims slice_shape(const Dims& torus, int64_t units) {
  if (units == element_count(torus)) return torus;
  Dims limits = torus;
  std::ranges::sort(limits, std::greater<>());
  Dims best = SliceSearch(std::move(limits), units).best();
  return best.empty() ? Dims{units} : best;
}

}  // namespace shardwise
