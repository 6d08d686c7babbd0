// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/digits.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr size_t kMostDigits = 64;

// Sorted borders of one axis. Only its ends when some border is not a multiple of the one before.
Dims borders_of(int axis, int64_t size, AxisSpan used) {
  Dims borders{1, size};
  for (const AxisRef& ref : used) {
    if (ref.axis != axis) continue;
    borders.push_back(ref.pre);
    borders.push_back(ref.next());
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    if (borders[i + 1] % borders[i] != 0) return {1, size};
  }
  return borders;
}

}  // namespace

Digits::Digits(const Mesh& mesh, AxisSpan used) {
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const Dims borders = borders_of(axis, mesh.axis_size(axis), used);
    for (size_t i = 0; i + 1 < borders.size(); ++i) digits_.push_back({axis, borders[i], borders[i + 1] / borders[i]});
  }
  if (digits_.size() > kMostDigits) {
    fail<MeshError>("run", "a program may use at most 64 axes and sub-axes larger than 1", str(digits_.size()),
                    "merge axes of the mesh");
  }
}

DigitSet Digits::all() const {
  return digits_.size() == kMostDigits ? ~DigitSet{0} : (DigitSet{1} << digits_.size()) - 1;
}

DigitSet Digits::touched(AxisSpan axes) const {
  DigitSet set = 0;
  for (size_t i = 0; i < digits_.size(); ++i) {
    const bool hit = std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) {
      // Refs of size 1 have one coordinate, so nothing varies along them.
      return ref.size > 1 && ref.axis == digits_[i].axis && overlaps(ref, digits_[i]);
    });
    if (hit) set |= DigitSet{1} << i;
  }
  return set;
}

DigitSet Digits::covered(AxisSpan axes) const {
  DigitSet set = 0;
  for (size_t i = 0; i < digits_.size(); ++i) {
    const AxisRef& digit = digits_[i];
    const bool inside = std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) {
      return ref.axis == digit.axis && ref.pre <= digit.pre && digit.next() <= ref.next();
    });
    if (inside) set |= DigitSet{1} << i;
  }
  return set;
}

AxisList Digits::axes(DigitSet set) const {
  AxisList axes;
  for (size_t i = 0; i < digits_.size(); ++i) {
    if ((set >> i & 1) != 0) axes.push_back(digits_[i]);
  }
  return axes;
}

int64_t Digits::count(DigitSet set) const { return product(axes(set)); }

}  // namespace shardwise
