// SPDX-License-Identifier: Apache-2.0
//
// The algebra of axis refs against a model that knows nothing of divisibility: an axis is the coordinates 0 … n-1, a
// ref is the value it takes at each of them, and a split of the axis into digits is a chain of divisors 1 | … | n.
#include "shardwise/mesh/axis.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

constexpr int64_t kLargestAxis = 24;

// All refs of one axis of size n, the whole axis among them.
AxisList all_refs(int64_t n) {
  AxisList refs;
  if (n == 1) return {{0, 1, 1}};
  for (int64_t pre = 1; pre <= n; ++pre) {
    for (int64_t size = 2; pre * size <= n; ++size) {
      if (n % (pre * size) == 0) refs.push_back({0, pre, size});
    }
  }
  return refs;
}

// All chains of divisors from 1 to n.
std::vector<Dims> all_splits(int64_t n, int64_t from = 1) {
  if (from == n) return {{n}};
  std::vector<Dims> splits;
  for (int64_t next = 2 * from; next <= n; next += from) {
    if (n % next != 0) continue;
    for (Dims split : all_splits(n, next)) {
      split.insert(split.begin(), from);
      splits.push_back(std::move(split));
    }
  }
  return splits;
}

// The digits (numbered in `split`) that make up `ref`, when its ends are cuts of the split.
std::optional<std::set<size_t>> digits_of(const AxisRef& ref, const Dims& split) {
  auto first = std::find(split.begin(), split.end(), ref.pre);
  auto last = std::find(split.begin(), split.end(), ref.next());
  if (first == split.end() || last == split.end()) return std::nullopt;
  std::set<size_t> digits;
  for (auto it = first; it != last; ++it) digits.insert(static_cast<size_t>(it - split.begin()));
  return digits;
}

Dims values_of(const AxisRef& ref, int64_t n) {
  const Mesh mesh("m", {{"x", n}});
  Dims values;
  for (int64_t c = 0; c < n; ++c) values.push_back(axis_coordinate(mesh, ref, c));
  return values;
}

// Whoever knows a's value knows b's.
bool determines(const Dims& a, const Dims& b) {
  std::map<int64_t, int64_t> known;
  for (size_t c = 0; c < a.size(); ++c) {
    if (!known.emplace(a[c], b[c]).second && known[a[c]] != b[c]) return false;
  }
  return true;
}

struct SplitPair {
  std::set<size_t> a, b;
  const Dims* split;
};

// The coarsest common view of two refs: the first split that has both.
std::optional<SplitPair> split_both(const AxisRef& a, const AxisRef& b, const std::vector<Dims>& splits) {
  for (const Dims& split : splits) {
    auto of_a = digits_of(a, split);
    auto of_b = digits_of(b, split);
    if (of_a && of_b) return SplitPair{*of_a, *of_b, &split};
  }
  return std::nullopt;
}

std::optional<AxisRef> ref_of(const std::set<size_t>& digits, const Dims& split) {
  if (digits.empty()) return std::nullopt;
  const int64_t pre = split[*digits.begin()];
  return AxisRef{0, pre, split[*digits.rbegin() + 1] / pre};
}

template <class F>
std::set<size_t> select(const std::set<size_t>& digits, F&& keep) {
  std::set<size_t> kept;
  std::copy_if(digits.begin(), digits.end(), std::inserter(kept, kept.end()), keep);
  return kept;
}

void expect_matches_digits(const AxisRef& a, const AxisRef& b, const SplitPair& pair) {
  const auto& [da, db, split] = pair;
  const auto in_b = [&](size_t d) { return db.contains(d); };
  const auto common = select(da, in_b);
  const bool a_in_b = common == da;
  EXPECT_EQ(contains(b, a), a_in_b);
  EXPECT_EQ(prefix_of(a, b), a_in_b && *da.begin() == *db.begin());
  EXPECT_EQ(suffix_of(a, b), a_in_b && *da.rbegin() == *db.rbegin());
  EXPECT_EQ(overlaps(a, b), !common.empty());
  EXPECT_EQ(overlap(a, b), ref_of(common, *split));
  const auto before = common.empty() ? da : select(da, [&](size_t d) { return d < *db.begin(); });
  const auto behind = common.empty() ? da : select(da, [&](size_t d) { return d > *db.rbegin(); });
  EXPECT_EQ(prefix_without_overlap(a, b), ref_of(before, *split));
  EXPECT_EQ(suffix_without_overlap(a, b), ref_of(behind, *split));
  EXPECT_EQ(can_merge(a, b), *da.rbegin() + 1 == *db.begin());
}

void expect_nothing_common(const AxisRef& a, const AxisRef& b) {
  EXPECT_FALSE(contains(a, b) || prefix_of(a, b) || suffix_of(a, b) || can_merge(a, b));
  EXPECT_EQ(overlap(a, b), std::nullopt);
  EXPECT_EQ(prefix_without_overlap(a, b), std::nullopt);
  EXPECT_EQ(suffix_without_overlap(a, b), std::nullopt);
  EXPECT_EQ(greatest_common_prefix(a, b), std::nullopt);
}

TEST(AxisAlgebra, MatchesDigitsOfEverySplit) {
  for (int64_t n = 2; n <= kLargestAxis; ++n) {
    const AxisList refs = all_refs(n);
    const std::vector<Dims> splits = all_splits(n);
    for (const AxisRef& a : refs) {
      for (const AxisRef& b : refs) {
        SCOPED_TRACE(testing::Message() << n << ": (" << a.pre << ")" << a.size << " (" << b.pre << ")" << b.size);
        const auto pair = split_both(a, b, splits);
        EXPECT_EQ(can_coexist(a, b), pair.has_value());
        if (pair) {
          expect_matches_digits(a, b, *pair);
        } else {
          expect_nothing_common(a, b);
        }
      }
    }
  }
}

TEST(AxisAlgebra, MatchesCoordinates) {
  for (int64_t n = 1; n <= kLargestAxis; ++n) {
    for (const AxisRef& a : all_refs(n)) {
      const Dims of_a = values_of(a, n);
      EXPECT_EQ(std::set<int64_t>(of_a.begin(), of_a.end()).size(), static_cast<size_t>(a.size));
      for (const AxisRef& b : all_refs(n)) {
        const Dims of_b = values_of(b, n);
        EXPECT_EQ(contains(a, b), determines(of_a, of_b));
        const auto common = greatest_common_prefix(a, b);
        if (common) {
          EXPECT_TRUE(determines(of_a, values_of(*common, n)) && determines(of_b, values_of(*common, n)));
        }
        if (can_merge(a, b)) {
          AxisList merged{a};
          append_merged(merged, b);
          ASSERT_EQ(merged.size(), 1u);
          const Dims of_both = values_of(merged[0], n);
          for (size_t c = 0; c < of_both.size(); ++c) EXPECT_EQ(of_both[c], of_a[c] * b.size + of_b[c]);
        }
      }
    }
  }
}

TEST(AxisAlgebra, OtherAxesNeverMeet) {
  const AxisRef a{0, 1, 4};
  const AxisRef b{1, 2, 3};
  EXPECT_TRUE(can_coexist(a, b));
  EXPECT_FALSE(overlaps(a, b) || contains(a, b) || can_merge(a, b));
  EXPECT_EQ(prefix_without_overlap(a, b), a);
  EXPECT_EQ(suffix_without_overlap(a, b), a);
  EXPECT_EQ(overlap(a, b), std::nullopt);
}

TEST(AxisAlgebra, AnAxisOfSizeOneMeetsItself) {
  const AxisRef one{0, 1, 1};
  EXPECT_TRUE(overlaps(one, one) && contains(one, one));
  EXPECT_FALSE(can_merge(one, one));
  EXPECT_EQ(prefix_without_overlap(one, one), std::nullopt);
  EXPECT_EQ(difference(AxisList{one}, AxisList{one}), AxisList{});
  EXPECT_EQ(without_prefix(AxisList{one}, AxisList{one}), AxisList{});
  EXPECT_EQ(without_suffix(AxisList{one}, AxisList{one}), AxisList{});
}

TEST(AxisAlgebra, OrdersLikeShardy) {
  // A prefix of the axis, the axis, its other digits; then the next axis.
  const AxisList sorted{{0, 1, 2}, {0, 1, 8}, {0, 2, 2}, {0, 2, 4}, {1, 1, 4}};
  AxisList shuffled{sorted[4], sorted[3], sorted[1], sorted[0], sorted[2]};
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, sorted);
}

TEST(AxisList, MergesNeighbours) {
  AxisList list{{0, 1, 2}};
  append_merged(list, {0, 2, 4});
  EXPECT_EQ(list, (AxisList{{0, 1, 8}}));
  append_merged(list, AxisList{{1, 2, 2}, {1, 1, 2}});
  EXPECT_EQ(list, (AxisList{{0, 1, 8}, {1, 2, 2}, {1, 1, 2}}));
  EXPECT_EQ(sort_and_merge(list), (AxisList{{0, 1, 8}, {1, 1, 4}}));
  EXPECT_EQ(product(list), 32);
  EXPECT_EQ(product(AxisList{}), 1);
}

TEST(AxisList, DifferenceSplitsSubAxes) {
  EXPECT_EQ(difference(AxisList{{1, 1, 4}, {0, 1, 8}}, AxisList{{0, 2, 2}}),
            (AxisList{{1, 1, 4}, {0, 1, 2}, {0, 4, 2}}));
  EXPECT_EQ(difference(AxisList{{0, 1, 8}}, AxisList{{0, 1, 2}, {0, 4, 2}}), (AxisList{{0, 2, 2}}));
  EXPECT_EQ(difference(AxisList{{0, 1, 8}}, AxisList{{0, 1, 8}}), AxisList{});
  EXPECT_EQ(difference(AxisList{{0, 1, 3}}, AxisList{{0, 1, 2}}), AxisList{});  // cannot coexist, of 6
}

// Every digit of the axis, cut as finely as the refs allow, is in the difference iff it is in a and not in b.
TEST(AxisList, DifferenceKeepsExactlyTheOtherDigits) {
  const Dims split{1, 2, 4, 8, 16};
  AxisList refs;
  for (const AxisRef& ref : all_refs(16)) refs.push_back(ref);
  for (const AxisRef& a : refs) {
    for (const AxisRef& b : refs) {
      for (const AxisRef& c : refs) {
        if (overlaps(b, c)) continue;
        const AxisList left = difference(AxisList{a}, AxisList{b, c});
        for (size_t d = 0; d + 1 < split.size(); ++d) {
          const AxisRef digit{0, split[d], 2};
          EXPECT_EQ(overlaps(left, digit), contains(a, digit) && !contains(b, digit) && !contains(c, digit));
        }
      }
    }
  }
}

TEST(AxisList, TruncatesAtOverlap) {
  const AxisList list{{1, 1, 4}, {0, 1, 8}, {2, 1, 2}};
  EXPECT_EQ(truncate_at_overlap(list, AxisList{{0, 2, 2}}), (AxisList{{1, 1, 4}, {0, 1, 2}}));
  EXPECT_EQ(truncate_at_overlap(list, AxisList{{0, 4, 2}, {0, 2, 2}}), (AxisList{{1, 1, 4}, {0, 1, 2}}));
  EXPECT_EQ(truncate_at_overlap(list, AxisList{{0, 1, 2}}), (AxisList{{1, 1, 4}}));
  EXPECT_EQ(truncate_at_overlap(list, AxisList{{3, 1, 2}}), list);
  EXPECT_EQ(truncate_at_overlap(AxisList{{0, 1, 12}}, AxisList{{0, 3, 2}, {0, 2, 3}}), AxisList{});
  EXPECT_EQ(truncate_at_overlap(AxisList{{0, 1, 12}}, AxisList{{0, 2, 3}, {0, 3, 2}}), AxisList{});
}

TEST(AxisList, FindsCommonPrefix) {
  const AxisList a{{1, 1, 4}, {0, 1, 4}, {2, 1, 2}};
  EXPECT_EQ(greatest_common_prefix(a, AxisList{{1, 1, 4}, {0, 1, 8}}), (AxisList{{1, 1, 4}, {0, 1, 4}}));
  EXPECT_EQ(greatest_common_prefix(a, AxisList{{1, 1, 2}, {0, 1, 8}}), (AxisList{{1, 1, 2}}));
  EXPECT_EQ(greatest_common_prefix(a, a), a);
  EXPECT_EQ(greatest_common_prefix(a, AxisList{{0, 1, 8}}), AxisList{});
  EXPECT_EQ(greatest_common_prefix(AxisList{{0, 1, 2}}, AxisList{{0, 1, 3}}), AxisList{});
}

TEST(AxisList, PrefixesKnowSubAxes) {
  const AxisList list{{1, 1, 4}, {0, 1, 8}};
  EXPECT_TRUE(is_prefix_of(AxisList{{1, 1, 4}, {0, 1, 2}}, list));
  EXPECT_TRUE(is_prefix_of(AxisList{{1, 1, 2}, {1, 2, 2}, {0, 1, 2}}, list));
  EXPECT_TRUE(is_prefix_of(AxisList{}, list));
  EXPECT_TRUE(is_prefix_of(list, list));
  EXPECT_TRUE(is_prefix_of(AxisList{{1, 1, 4}}, list));
  EXPECT_FALSE(is_prefix_of(AxisList{{0, 1, 8}}, list));
  EXPECT_FALSE(is_prefix_of(list, AxisList{{1, 1, 4}}));
}

// Cutting a list anywhere gives a prefix and a suffix that leave each other.
TEST(AxisList, PrefixAndSuffixLeaveEachOther) {
  const AxisList digits{{1, 1, 2}, {1, 2, 2}, {0, 4, 2}, {0, 1, 2}, {0, 2, 2}, {2, 1, 3}};
  AxisList whole;
  append_merged(whole, digits);
  for (size_t cut = 0; cut <= digits.size(); ++cut) {
    AxisList prefix, suffix;
    append_merged(prefix, AxisSpan(digits).first(cut));
    append_merged(suffix, AxisSpan(digits).subspan(cut));
    EXPECT_EQ(without_prefix(whole, prefix), suffix);
    EXPECT_EQ(without_suffix(whole, suffix), prefix);
  }
  EXPECT_EQ(without_suffix(whole, AxisList{{0, 1, 2}}), std::nullopt);
  EXPECT_EQ(without_suffix(AxisList{}, whole), std::nullopt);
}

std::string resolve_error(const RawAxisRef& raw) {
  const Mesh mesh("m", {{"x", 12}, {"y", 2}});
  try {
    resolve(mesh, raw);
  } catch (const ShardingError& error) {
    return error.message();
  }
  return "no error";
}

TEST(AxisText, RoundTripsThroughRaw) {
  const Mesh mesh("m", {{"x", 12}, {"y", 2}});
  const AxisList axes{{0, 2, 3}, {1, 1, 2}};
  EXPECT_EQ(axis_list_text(mesh, axes), R"({"x":(2)3, "y"})");
  EXPECT_EQ(axis_list_text(mesh, {}), "{}");
  EXPECT_EQ(to_raw(mesh, axes), (std::vector<RawAxisRef>{{"x", {{2, 3}}}, {"y", {}}}));
  EXPECT_EQ(resolve(mesh, to_raw(mesh, axes)), axes);
  EXPECT_TRUE(is_full(mesh, full_axis(mesh, 0)));
  EXPECT_NE(hash_value(axes), hash_value(AxisList{axes[1], axes[0]}));
}

TEST(AxisError, NamesRuleValuesAndWayOut) {
  EXPECT_EQ(resolve_error({"q", {}}), R"(sharding: an axis must be of mesh @m, got "q"; use one of "x", "y")");
  EXPECT_EQ(resolve_error({"x", {{0, 2}}}),
            R"(sharding: the pre-size of a sub-axis must be at least 1, got "x":(0)2 of "x"=12)");
  EXPECT_EQ(resolve_error({"x", {{2, 1}}}),
            R"(sharding: the size of a sub-axis must be greater than 1, got "x":(2)1 of "x"=12)");
  EXPECT_EQ(resolve_error({"x", {{2, 4}}}),
            "sharding: pre-size times size of a sub-axis must divide the size of its axis, got "
            R"("x":(2)4 of "x"=12; split the axis into factors of 12)");
  EXPECT_EQ(resolve_error({"x", {{int64_t{1} << 62, 4}}}).substr(0, 60),
            "sharding: pre-size times size of a sub-axis must divide the ");
  EXPECT_EQ(resolve_error({"x", {{1, 12}}}),
            R"(sharding: a sub-axis must be smaller than its axis, got "x":(1)12 of "x"=12; write "x")");
  try {
    resolve(Mesh("e", {}), {"x", {}});
    FAIL();
  } catch (const ShardingError& error) {
    EXPECT_EQ(error.message(), R"(sharding: an axis must be of mesh @e, got "x"; use no axis, for it has none)");
  }
}

}  // namespace
}  // namespace shardwise
