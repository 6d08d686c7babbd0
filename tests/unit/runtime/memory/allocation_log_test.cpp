// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/allocation_log.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

TEST(AllocationLog, RecordsBuffersThatAreOnlyAddresses) {
  const int64_t before = live_buffer_bytes();
  NdArray outlives;
  {
    AllocationLog log;
    log.set_label(3);
    NdArray huge = pooled_empty(DType::kF32, {int64_t{1} << 38});  // 1 TiB
    EXPECT_EQ(*reinterpret_cast<const float*>(huge.data() + (int64_t{1} << 39)), 0.0F);
    log.set_label(4);
    outlives = pooled_empty(DType::kI8, {100});
    huge = {};
    ASSERT_EQ(log.events().size(), 3U);
    EXPECT_EQ(log.events()[0].label, 3U);
    EXPECT_EQ(log.events()[0].bytes, int64_t{1} << 40);
    EXPECT_EQ(log.events()[1].label, 4U);
    EXPECT_EQ(log.events()[2].bytes, -(int64_t{1} << 40));
    EXPECT_EQ(live_buffer_bytes(), before);
  }
  EXPECT_EQ(outlives.size(), 100);
}

TEST(AllocationLog, OnlyLargeDataIsLeftOut) {
  EXPECT_FALSE(leaves_out(1 << 20));
  const AllocationLog log;
  EXPECT_TRUE(leaves_out(1 << 20));
  EXPECT_FALSE(leaves_out(8));
}

TEST(AllocationLog, AddressSpaceEnds) {
  const AllocationLog log;
  EXPECT_THROW(pooled_empty(DType::kF64, {int64_t{1} << 59}), OutOfMemoryError);
}

}  // namespace
}  // namespace shardwise
