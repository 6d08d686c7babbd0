// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/permute_digits.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

// Splits a ref at every cut that lies inside it.
void append_split(AxisList& list, AxisRef ref, const AxisList& cuts) {
  std::vector<int64_t> ends{ref.next()};
  for (const AxisRef& cut : cuts) {
    if (cut.axis != ref.axis) continue;
    for (const int64_t end : {cut.pre, cut.next()}) {
      if (end > ref.pre && end < ref.next()) ends.push_back(end);
    }
  }
  std::sort(ends.begin(), ends.end());
  for (const int64_t end : ends) {
    if (end == ref.pre) continue;
    list.push_back({ref.axis, ref.pre, end / ref.pre});
    ref.pre = end;
  }
}

AxisList split_at(const AxisList& list, const AxisList& cuts) {
  AxisList result;
  for (const AxisRef& ref : list) append_split(result, ref, cuts);
  return result;
}

// Splits both lists into equally many refs of pairwise equal sizes.
void pair_sizes(AxisList& from, AxisList& to) {
  for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
    AxisRef& a = from[i];
    AxisRef& b = to[i];
    const int64_t common = std::gcd(a.size, b.size);
    check_internal(common > 1 || a.size == b.size, "a permute must keep the shards of each dim");
    const AxisRef rest_a{a.axis, a.pre * common, a.size / common}, rest_b{b.axis, b.pre * common, b.size / common};
    a.size = b.size = common;
    const auto next = static_cast<std::ptrdiff_t>(i) + 1;
    if (rest_a.size > 1) from.insert(from.begin() + next, rest_a);
    if (rest_b.size > 1) to.insert(to.begin() + next, rest_b);
  }
}

// Cuts both lists until every ref of one is a ref of the other or free of it, and pairs have equal sizes.
void refine(AxisList& from, AxisList& to) {
  for (size_t before = 0; before != from.size() + to.size();) {
    before = from.size() + to.size();
    pair_sizes(from, to);
    AxisList cuts = from;
    cuts.insert(cuts.end(), to.begin(), to.end());
    from = split_at(from, cuts);
    to = split_at(to, cuts);
  }
}

}  // namespace

PermuteDigits permute_digits(std::span<const AxisList> from_dims, std::span<const AxisList> to_dims) {
  AxisList from, to;
  for (size_t d = 0; d < from_dims.size(); ++d) {
    AxisList a = from_dims[d], b = to_dims[d];
    std::erase_if(a, [](const AxisRef& ref) { return ref.size == 1; });
    std::erase_if(b, [](const AxisRef& ref) { return ref.size == 1; });
    from.insert(from.end(), a.begin(), a.end());
    to.insert(to.end(), b.begin(), b.end());
  }
  refine(from, to);
  // What enters and what leaves the dims changes places, so that the whole is a permutation of digits.
  AxisList entering = to, leaving = from;
  std::erase_if(entering, [&](const AxisRef& ref) { return overlaps(from, ref); });
  std::erase_if(leaving, [&](const AxisRef& ref) { return overlaps(to, ref); });
  for (const AxisRef& ref : leaving) {
    const auto match =
        std::find_if(entering.begin(), entering.end(), [&](const AxisRef& other) { return other.size == ref.size; });
    check_internal(match != entering.end(), "a permute must exchange axes of equal sizes");
    from.push_back(*match);
    to.push_back(ref);
    entering.erase(match);
  }
  PermuteDigits digits;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    digits.from.push_back(from[i]);
    digits.to.push_back(to[i]);
  }
  return digits;
}

}  // namespace shardwise
