// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/local_ranges.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(LocalRanges, PlacesThatASliceReads) {
  const Range slice{.scale = 2, .offset = 1};
  EXPECT_EQ(places_read(slice, 2), (Interval{1, 4}));
  EXPECT_EQ(places_read(slice, 1), (Interval{1, 2}));
  EXPECT_EQ(places_read(slice, 0), (Interval{1, 1}));
}

TEST(LocalRanges, PlacesThatWindowsRead) {
  const Range windows{.scale = 2, .offset = -1, .window = 3, .dilation = 2};
  EXPECT_EQ(places_read(windows, 1), (Interval{-1, 4}));
  EXPECT_EQ(places_read(windows, 3), (Interval{-1, 8}));
}

TEST(LocalRanges, PaddingFillsABlockOfTheResult) {
  const Range pad{.offset = 0, .holes = 2, .outside = Outside::kScalar};
  EXPECT_EQ(padding_after(pad, 4, 2), 1);
  EXPECT_EQ(padding_after(pad, 2, 2), -1);  // it cuts a row off
  EXPECT_EQ(padding_after(pad, 4, 0), 4);
}

}  // namespace
}  // namespace shardwise
