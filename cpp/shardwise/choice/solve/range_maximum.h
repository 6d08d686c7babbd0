// SPDX-License-Identifier: Apache-2.0
//
// Numbers by position, of which ranges are changed by a sum and asked for their largest, each in O(log n).
//
//   RangeMaximum used({3, 8, 5});
//   used.add(0, 2, 4);        7, 12, 5
//   used.largest(1, 3)        12
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace shardwise {

class RangeMaximum {
 public:
  explicit RangeMaximum(std::span<const double> values) {
    while (leaves_ < values.size()) leaves_ *= 2;
    largest_.assign(2 * leaves_, -std::numeric_limits<double>::infinity());
    added_.assign(2 * leaves_, 0);
    std::ranges::copy(values, largest_.begin() + static_cast<ptrdiff_t>(leaves_));
    for (size_t i = leaves_ - 1; i > 0; --i) largest_[i] = std::max(largest_[2 * i], largest_[2 * i + 1]);
  }

  void add(size_t begin, size_t end, double change) {
    if (begin < end) add(1, 0, leaves_, begin, end, change);
  }
  double largest(size_t begin, size_t end) const {
    return begin < end ? largest(1, 0, leaves_, begin, end) : -std::numeric_limits<double>::infinity();
  }
  double largest() const { return largest_[1]; }

 private:
  // Node `at` covers the positions [first, last). Its largest number includes what was added to all of them.
  void add(size_t at, size_t first, size_t last, size_t begin, size_t end, double change) {
    if (begin <= first && last <= end) {
      largest_[at] += change;
      added_[at] += change;
      return;
    }
    const size_t middle = first + (last - first) / 2;
    if (begin < middle) add(2 * at, first, middle, begin, end, change);
    if (end > middle) add(2 * at + 1, middle, last, begin, end, change);
    largest_[at] = std::max(largest_[2 * at], largest_[2 * at + 1]) + added_[at];
  }
  double largest(size_t at, size_t first, size_t last, size_t begin, size_t end) const {
    if (begin <= first && last <= end) return largest_[at];
    const size_t middle = first + (last - first) / 2;
    double found = -std::numeric_limits<double>::infinity();
    if (begin < middle) found = std::max(found, largest(2 * at, first, middle, begin, end));
    if (end > middle) found = std::max(found, largest(2 * at + 1, middle, last, begin, end));
    return found + added_[at];
  }

  size_t leaves_ = 1;
  std::vector<double> largest_, added_;
};

}  // namespace shardwise
