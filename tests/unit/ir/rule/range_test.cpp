// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/range.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/base/dims.h"

namespace shardwise {
namespace {

// The elements that one index of the result reads, and whether some of its reads are outside the dim.
struct Read {
  std::set<int64_t> elements;
  bool outside = false;
};

Read read_by(const Range& range, int64_t index, int64_t size) {
  Read read;
  for (int64_t t = 0; t < range.window; ++t) {
    const int64_t at = range.scale * index + range.offset + t * range.dilation;
    const bool is_hole = at % range.holes != 0;
    if (at <= -range.holes || at >= range.holes * size) {  // holes belong to the element after or before them
      read.outside = true;
    } else if (!is_hole) {
      read.elements.insert(at / range.holes);
    }
  }
  return read;
}

std::vector<Range> all_ranges() {
  std::vector<Range> ranges;
  for (const int64_t scale : {-2, -1, 1, 2, 3}) {
    for (int64_t offset = -4; offset <= 7; ++offset) {
      for (const int64_t window : {1, 2, 4}) {
        for (const int64_t holes : {1, 2, 3}) {
          ranges.push_back({.scale = scale, .offset = offset, .window = window, .dilation = 2, .holes = holes});
        }
      }
    }
  }
  return ranges;
}

TEST(Range, ReadsFromTheFirstElementToTheLast) {
  EXPECT_EQ((Range{.scale = 2, .offset = 1}.reads({0, 4}, 8)), (Interval{1, 8}));
  EXPECT_EQ((Range{.offset = -2, .holes = 2}.reads({0, 3}, 3)), (Interval{0, 1}));  // _ _ 0
  EXPECT_EQ((Range{.offset = -4}.reads({0, 4}, 8)), (Interval{}));                  // all outside
  EXPECT_EQ((Range{.scale = -1, .offset = 7}.reads({6, 8}, 8)), (Interval{0, 2}));
  EXPECT_EQ((Range{.scale = 2, .offset = -1, .window = 3}.reads({0, 2}, 8)), (Interval{0, 4}));
  EXPECT_EQ((Range{}.reads({3, 3}, 8)), (Interval{}));
}

TEST(Range, ContainsWhatEachIndexReads) {
  constexpr int64_t kSize = 6;
  for (const Range& range : all_ranges()) {
    for (int64_t begin = 0; begin < 5; ++begin) {
      for (int64_t end = begin + 1; end <= 5; ++end) {
        const Interval hull = range.reads({begin, end}, kSize);
        for (int64_t i = begin; i < end; ++i) {
          for (const int64_t element : read_by(range, i, kSize).elements) {
            EXPECT_LE(hull.begin, element);
            EXPECT_LT(element, hull.end);
          }
        }
      }
    }
  }
}

// Locality promises that one local op is right on every shard: each index reads the same places of its own block.
TEST(Range, StaysLocalOnlyIfEachBlockReadsItsOwn) {
  int local = 0;
  for (const Range& range : all_ranges()) {
    for (const int64_t size : {5, 8, 12}) {
      for (const int64_t count : {1, 4, 5, 6, 8, 12, 15, 24}) {
        for (const int64_t shards : {2, 4}) {
          const Blocks from{size, ceil_div(size, shards)}, to{count, ceil_div(count, shards)};
          if (!range.stays_local(from, to)) continue;
          ++local;
          for (int64_t i = 0; i < count; ++i) {
            const Read whole = read_by(range, i, size);
            const Read part = read_by(range, i % to.block, from.block);
            const int64_t first = i / to.block * from.block;
            EXPECT_FALSE(whole.outside);
            std::set<int64_t> moved;
            for (const int64_t element : part.elements) moved.insert(first + element);
            EXPECT_EQ(whole.elements, moved) << range.scale << " " << range.offset << " " << size << " " << count;
          }
        }
      }
    }
  }
  EXPECT_GT(local, 20);
}

TEST(Range, AttributesNearTheEndOfInt64DoNotOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const Range padded{.offset = -2, .holes = kHuge, .outside = Outside::kScalar};
  EXPECT_FALSE(padded.stays_local({8, 4}, {16, 8}));
  EXPECT_EQ(padded.reads({0, 4}, 8), (Interval{0, 1}));
  const Range strided{.scale = kHuge, .offset = kHuge};
  EXPECT_FALSE(strided.stays_local({8, 4}, {2, 1}));
  EXPECT_EQ(strided.reads({1, 3}, 8), Interval{});
}

TEST(Range, TellsLocalSlicesFromOthers) {
  const auto slice = [](int64_t start, int64_t stride, int64_t size, int64_t count) {
    return Range{.scale = stride, .offset = start}.stays_local({size, ceil_div(size, 8)}, {count, ceil_div(count, 8)});
  };
  EXPECT_TRUE(slice(0, 2, 64, 32));   // x[::2]
  EXPECT_TRUE(slice(0, 1, 64, 60));   // x[:60], in blocks of 8 as before
  EXPECT_FALSE(slice(0, 1, 64, 56));  // x[:56], in blocks of 7
  EXPECT_FALSE(slice(1, 1, 64, 63));  // x[1:]
  EXPECT_FALSE(slice(0, 1, 64, 1));   // x[:1]
  EXPECT_FALSE((Range{.start = 1}.stays_local({64, 8}, {64, 8})));
}

}  // namespace
}  // namespace shardwise
