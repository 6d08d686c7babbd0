// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/memory_use.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

using Events = std::vector<MemoryEvent>;

TEST(MemoryUse, ListsWhatIsAliveAtTheFirstPeak) {
  const Events events{{0, 10}, {1, 50}, {1, -50}, {2, 40}, {0, 10}, {2, -40}, {3, 30}};
  const MemoryUse use = memory_use(events);
  EXPECT_EQ(use.peak_bytes, 60);
  ASSERT_EQ(use.at_peak.size(), 2U);
  EXPECT_EQ(use.at_peak[0].value, ValueId{0});
  EXPECT_EQ(use.at_peak[0].bytes, 10);
  EXPECT_EQ(use.at_peak[1].bytes, 50);
}

TEST(MemoryUse, BuffersOfOneValueAreOneRow) {
  const MemoryUse use = memory_use(Events{{7, 10}, {8, 1}, {7, 10}, {8, -1}});
  EXPECT_EQ(use.peak_bytes, 21);
  ASSERT_EQ(use.at_peak.size(), 2U);
  EXPECT_EQ(use.at_peak[0].bytes, 20);
}

TEST(MemoryUse, ARunWithoutBuffersTakesNone) {
  EXPECT_EQ(memory_use({}).peak_bytes, 0);
  EXPECT_TRUE(memory_use({}).at_peak.empty());
}

}  // namespace
}  // namespace shardwise
