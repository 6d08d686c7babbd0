// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/digits.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/dims.h"
#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// Appends the digits of `ref`; false when no single split of the axis has the borders, for which `borders` is storage.
bool append_digits(const AxisRef& ref, AxisSpan others, Dims& borders, AxisList& digits) {
  // (1)8 among (1)2 and (4)2 has the borders 1, 2, 4, 8 and the digits (1)2, (2)2, (4)2.
  borders.assign({ref.pre, ref.next()});
  for (const AxisRef& other : others) {
    if (other.axis != ref.axis) continue;
    for (const int64_t border : {other.pre, other.next()}) {
      if (border > ref.pre && border < ref.next()) borders.push_back(border);
    }
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    // (1)2 and (1)3 of 6 give 1, 2, 3, 6: three is no multiple of two, so no digit ends at both.
    if (borders[i + 1] % borders[i] != 0) return false;
    digits.push_back({ref.axis, borders[i], borders[i + 1] / borders[i]});
  }
  return true;
}

// The digits that pass the test with one of the refs of their axis.
template <class Test>
DigitSet digits_where(AxisSpan digits, AxisSpan axes, Test&& test) {
  DigitSet set = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto holds = [&](const AxisRef& ref) { return ref.axis == digits[i].axis && test(ref, digits[i]); };
    if (std::ranges::any_of(axes, holds)) set |= DigitSet{1} << i;
  }
  return set;
}

}  // namespace

std::optional<AxisList> cut_at(AxisSpan axes, AxisSpan others) {
  AxisList digits;
  Dims borders;
  for (const AxisRef& ref : axes) {
    if (!append_digits(ref, others, borders, digits)) return std::nullopt;
  }
  return digits;
}

AxisList dividing_prefix(AxisSpan axes, int64_t size) {
  AxisList prefix;
  for (AxisRef ref : axes) {
    // A prefix of the axis can have any size that divides it. For {"x"=4, "y"=3} and size 6, the result is {"x":(1)2}:
    // "y" may not follow a part of "x".
    const int64_t common = std::gcd(size, ref.size);
    if (common == ref.size) {
      prefix.push_back(ref);
      size /= common;
      continue;
    }
    ref.size = common;
    if (common > 1) prefix.push_back(ref);
    break;
  }
  return prefix;
}

Digits::Digits(const Mesh& mesh, AxisSpan used) {
  Dims borders;
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const size_t before = digits_.size();
    const AxisRef whole = full_axis(mesh, axis);
    if (append_digits(whole, used, borders, digits_)) continue;
    // append_digits may have added digits before it failed.
    digits_.resize(before);
    digits_.push_back(whole);
  }
  if (digits_.size() > kMost) {
    fail<MeshError>("run", "a program may use at most 64 axes and sub-axes larger than 1", str(digits_.size()),
                    "merge axes of the mesh");
  }
}

std::optional<Digits> Digits::covering(AxisSpan used) {
  // Sorted, the refs of an axis are neighbors, and the first of them has the smallest `pre`.
  AxisList sorted(used.begin(), used.end());
  std::sort(sorted.begin(), sorted.end());
  Digits result;
  AxisList digits;
  Dims borders;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    int64_t next = 1;
    for (; end < sorted.size() && sorted[end].axis == sorted[begin].axis; ++end) {
      next = std::max(next, sorted[end].next());
    }
    if (next == 1) {  // an axis of size 1
      result.digits_.push_back({sorted[begin].axis, 1, 1});
      continue;
    }
    const AxisRef first = sorted[begin];
    // The interval from the first to the last used digit must be a ref before it can be cut.
    if (next % first.pre != 0) return std::nullopt;
    digits.clear();
    if (!append_digits({first.axis, first.pre, next / first.pre}, used, borders, digits)) return std::nullopt;
    // (1)2 and (4)2 of 8 leave out the digit (2)2 between them. It would only make the lists of digits longer.
    std::copy_if(digits.begin(), digits.end(), std::back_inserter(result.digits_),
                 [&](const AxisRef& digit) { return overlaps(used, digit); });
  }
  return result;
}

void Digits::cut_inside(int32_t axis, int64_t border) {
  for (size_t i = 0; i < digits_.size(); ++i) {
    const AxisRef whole = digits_[i];
    if (whole.axis != axis || border <= whole.pre || border >= whole.next()) continue;
    // The digit (1)6 can be cut at 2 or 3, not at 4.
    if (border % whole.pre != 0 || whole.next() % border != 0) return;
    digits_[i].size = border / whole.pre;
    digits_.insert(digits_.begin() + static_cast<std::ptrdiff_t>(i) + 1, {axis, border, whole.next() / border});
    return;
  }
}

DigitList Digits::encode(AxisSpan axes) const {
  DigitList list;
  for (const AxisRef& ref : axes) {
    for (size_t i = 0; i < digits_.size(); ++i) {
      // Digits are in mesh order, so those of one ref are found major first.
      if (contains(ref, digits_[i])) list.push_back(static_cast<Digit>(i));
    }
  }
  return list;
}

AxisList Digits::decode(const DigitList& list) const {
  AxisList axes;
  for (const Digit digit : list) append_merged(axes, digits_[digit]);
  return axes;
}

int64_t Digits::count(const DigitList& list) const {
  int64_t result = 1;
  for (const Digit digit : list) result *= digits_[digit].size;
  return result;
}

// To shift by all 64 bits is undefined.
DigitSet Digits::all() const { return digits_.size() == kMost ? ~DigitSet{0} : (DigitSet{1} << digits_.size()) - 1; }

DigitSet Digits::touched(AxisSpan axes) const {
  return digits_where(digits_, axes, [](const AxisRef& ref, const AxisRef& digit) {
    // Refs of size 1 have one coordinate, so nothing varies along them.
    return ref.size > 1 && overlaps(ref, digit);
  });
}

DigitSet Digits::covered(AxisSpan axes) const {
  const AxisList merged = sort_and_merge(axes);  // (1)3 and (3)2 together cover an axis of 6 that is one digit
  return digits_where(digits_, merged, [](const AxisRef& ref, const AxisRef& digit) {
    return ref.pre <= digit.pre && digit.next() <= ref.next();
  });
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
