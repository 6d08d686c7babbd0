// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dims.h"

#include <limits>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(Dims, CountsAndStrides) {
  EXPECT_EQ(element_count(Dims{}), 1);
  EXPECT_EQ(element_count(Dims{4, 0, 2}), 0);
  EXPECT_EQ(row_major_strides(Dims{4, 3, 2}, 4), (Dims{24, 8, 4}));
  EXPECT_TRUE(equal(Dims{1, 2}, Dims{1, 2}));
  EXPECT_FALSE(equal(Dims{1, 2}, Dims{1}));
  EXPECT_EQ(ceil_div(17, 8), 3);
  EXPECT_EQ(ceil_div(0, 8), 0);
  EXPECT_EQ(ceil_div(-4, 3), -1);
  EXPECT_EQ(floor_div(-4, 3), -2);
  EXPECT_EQ(floor_div(4, 3), 1);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ceil_div(kLargest, kLargest - 1), 2);
  EXPECT_EQ(floor_div(-kLargest, kLargest - 1), -2);
}

TEST(Dims, NextIndexIsRowMajor) {
  Dims index{0, 0};
  const Dims shape{2, 2};
  EXPECT_TRUE(next_index(index, shape));
  EXPECT_EQ(index, (Dims{0, 1}));
  EXPECT_TRUE(next_index(index, shape));
  EXPECT_EQ(index, (Dims{1, 0}));
  EXPECT_TRUE(next_index(index, shape));
  EXPECT_FALSE(next_index(index, shape));
  EXPECT_EQ(index, (Dims{0, 0}));
}

}  // namespace
}  // namespace shardwise
