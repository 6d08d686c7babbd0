// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/price.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/cost/collective_cost.h"

namespace shardwise {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(Price, IsComparedFieldByField) {
  const Price slow{.ps = 2}, fast{.ps = 1, .bytes = 9, .rounds = 9, .work = 9, .position = 9};
  EXPECT_LT(fast, slow);
  EXPECT_LT((Price{.ps = 1, .bytes = 1, .rounds = 9}), (Price{.ps = 1, .bytes = 2}));
  EXPECT_LT((Price{.work = 1}), (Price{.work = 1, .position = 1}));
}

TEST(Price, SumsAndTripsAreFieldByField) {
  const Price price{1, 2, 3, 4, 5};
  EXPECT_EQ(price + price, (Price{2, 4, 6, 8, 10}));
  EXPECT_EQ(price * 3, price + price + price);
  EXPECT_EQ(price * 0, Price{});
}

TEST(Price, SumsAndTripsSaturate) {
  const Price most{kSaturated, kSaturated, kSaturated, kSaturated, kSaturated};
  EXPECT_EQ(most + most, most);
  EXPECT_EQ(most * kSaturated, most);
  EXPECT_EQ(most * kLargest, most);
  EXPECT_TRUE((Price{.rounds = 1} * kSaturated).is_saturated());
  EXPECT_FALSE((Price{.rounds = 1} * (kSaturated - 1)).is_saturated());
  EXPECT_EQ(saturated_sum(kSaturated - 1, 1), kSaturated);
  EXPECT_EQ(saturated_product(int64_t{1} << 31, int64_t{1} << 31), kSaturated);
  EXPECT_EQ(saturated_product(3, (int64_t{1} << 60)), 3 * (int64_t{1} << 60));
}

TEST(Picoseconds, AreRoundedUp) {
  EXPECT_EQ(picoseconds(0, 7), 0);
  EXPECT_EQ(picoseconds(1, 1'000'000'000'000), 1);
  EXPECT_EQ(picoseconds(1, 3'000'000'000'000), 1);
  EXPECT_EQ(picoseconds(4, 3'000'000'000'000), 2);
  EXPECT_EQ(picoseconds(7'340'032, 450'000'000'000), 16'311'183);  // 16311182.2
  EXPECT_EQ(picoseconds(kSaturated, kSaturated), 1'000'000'000'000);
  EXPECT_EQ(picoseconds(kLargest, 1), kSaturated);
  EXPECT_EQ(picoseconds(1, 0), kSaturated);
  EXPECT_EQ(picoseconds(-5, 7), 0);
}

// The next size up, or the next rate down, never takes less time; no value of 64 bits overflows.
TEST(Picoseconds, AreMonotone) {
  std::mt19937_64 random(7);
  const auto any = [&] { return static_cast<int64_t>(random() >> (2 + random() % 62)); };
  for (int i = 0; i < 20'000; ++i) {
    const int64_t size = any(), more = any(), rate = 1 + any() / 4, faster = 1 + any() / 4;
    const int64_t time = picoseconds(size, rate);
    ASSERT_GE(time, 0);
    ASSERT_LE(time, kSaturated);
    ASSERT_LE(time, picoseconds(saturated_sum(size, more), rate));
    ASSERT_GE(time, picoseconds(size, saturated_sum(rate, faster)));
    ASSERT_LE(Price{.ps = time} * more, Price{.ps = time} * saturated_sum(more, 1));
    ASSERT_LE((Price{.ps = size}), (Price{.ps = size} + Price{.ps = more}));
  }
}

TEST(WholeQuantity, IsRoundedUpAndSaturates) {
  EXPECT_EQ(whole_quantity(0.25), 1);
  EXPECT_EQ(whole_quantity(7), 7);
  EXPECT_EQ(whole_quantity(-3), 0);
  EXPECT_EQ(whole_quantity(1e300), kSaturated);
  EXPECT_EQ(whole_quantity(std::numeric_limits<double>::infinity()), kSaturated);
  EXPECT_EQ(whole_quantity(std::numeric_limits<double>::quiet_NaN()), kSaturated);
}

TEST(Price, TextShowsThatAFieldIsSaturated) {
  EXPECT_EQ(to_text(Price{.ps = 1, .bytes = 2, .rounds = kSaturated}), "1 ps, 2 B, >= 4611686018427387904 rounds");
  EXPECT_EQ(to_text(Price{.ps = 1, .work = kSaturated}), "1 ps, >= 4611686018427387904 flops");
  EXPECT_EQ(to_text(Price{.ps = 1, .work = kSaturated - 1}), "1 ps");
}

TEST(AllReduceBytes, AreThoseOfTheLargestPart) {
  EXPECT_EQ(all_reduce_bytes(16384, 8, 4), 28672);
  EXPECT_EQ(all_reduce_bytes(4, 4096, 4), 4095 * 4);
  EXPECT_EQ(mean_all_reduce_bytes(4, 8), 7);
  EXPECT_EQ(all_reduce_bytes(40, 8, 4), 10 * 4 + 6 * 2 * 4);
}

TEST(AllReduceBytes, AreThoseOfEqualPartsForHugeOperands) {
  for (const double bytes : {0x1p62, 0x1p63, 0x1p80}) {
    EXPECT_EQ(all_reduce_bytes(bytes, 8, 4), mean_all_reduce_bytes(bytes, 8));
  }
  // 2^60 elements - 4 of 4 B on 3 devices: (elements + part) * 4 B, beyond 2^62
  EXPECT_NEAR(all_reduce_bytes(0x1p62 - 0x1p20, 3, 4) / 0x1p62, 4.0 / 3, 1e-6);
  EXPECT_NEAR(all_reduce_bytes(0x1p61, kSaturated, 1) / 0x1p62, 1, 0.51);
}

TEST(Price, TextHasThreeDigits) {
  EXPECT_EQ(to_text(Price{.ps = 1'240'400'000, .bytes = 616 << 20, .rounds = 3}), "1.24 ms, 616 MiB, 3 rounds");
  EXPECT_EQ(to_text(Price{.ps = 16'311'183, .bytes = 7 << 20, .rounds = 1}), "16.3 us, 7 MiB, 1 round");
  EXPECT_EQ(to_text(Price{.ps = 16'311'183, .bytes = 7'340'032, .rounds = 1} * 36), "587 us, 252 MiB, 36 rounds");
  EXPECT_EQ(to_text(Price{}), "0 ps");
  EXPECT_EQ(duration_text(590), "590 ps");
  EXPECT_EQ(duration_text(999'600), "1 us");
  EXPECT_EQ(duration_text(3'500'000'000'000'000), "3500 s");
  EXPECT_EQ(byte_count_text(1000), "1000 B");
  EXPECT_EQ(byte_count_text(1024), "1 KiB");
}

TEST(Price, TextSaysWhatIsSaturated) {
  EXPECT_EQ(to_text(Price{.ps = kSaturated, .bytes = 12}), ">= 4611686 s, 12 B");
  EXPECT_EQ(byte_count_text(kSaturated), ">= 4096 PiB");
}

}  // namespace
}  // namespace shardwise
