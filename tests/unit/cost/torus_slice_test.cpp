// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/torus_slice.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(SliceShape, IsTheNearestToACube) {
  EXPECT_EQ(slice_shape({16, 16}, 32), (Dims{8, 4}));
  EXPECT_EQ(slice_shape({16, 16}, 8), (Dims{4, 2}));
  EXPECT_EQ(slice_shape({16, 16, 16}, 64), (Dims{4, 4, 4}));
  EXPECT_EQ(slice_shape({16, 20, 28}, 256), (Dims{8, 8, 4}));
  EXPECT_EQ(slice_shape({32, 32}, 1), (Dims{1, 1}));
  EXPECT_EQ(slice_shape({7}, 5), (Dims{5}));
}

TEST(SliceShape, OfAllUnitsIsTheTorus) { EXPECT_EQ(slice_shape({4, 8}, 32), (Dims{4, 8})); }

TEST(SliceShape, OfTooLongAPrimeIsALine) {
  EXPECT_EQ(slice_shape({16, 16}, 17), (Dims{17}));
  EXPECT_EQ(slice_shape({16, 16}, 13), (Dims{13, 1}));
}

// Every number of units has a shape that fits, or a prime factor that is longer than all dims.
TEST(SliceShape, Fits) {
  const Dims torus{4, 6, 10};
  for (int64_t units = 1; units <= 240; ++units) {
    Dims slice = slice_shape(torus, units);
    EXPECT_EQ(element_count(slice), units);
    if (slice.size() == 1) continue;
    std::ranges::sort(slice);
    for (size_t d = 0; d < 3; ++d) EXPECT_LE(slice[d], torus[d]) << units;
  }
}

}  // namespace
}  // namespace shardwise
