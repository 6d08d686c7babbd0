// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/reductions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

constexpr int64_t kFoldedSizes[] = {1, 7, 16, 31, 64, 127, 128, 255, 256, 257, 1000, 1024, 2047, kMostSearched};

class Reductions : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { use_tile_isa(GetParam()); }
  void TearDown() override { use_tile_isa(tile_isas().back()); }
};

// The contract of find_extreme, item by item.
template <class T>
int64_t place_of(const std::vector<T>& items, bool max, T bound) {
  size_t best = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] != items[i]) return static_cast<int64_t>(i);
  }
  for (size_t i = 1; i < items.size(); ++i) {
    if (max ? items[i] > items[best] : items[i] < items[best]) best = i;
  }
  const bool is_worse = max ? items[best] < bound : items[best] > bound;
  return static_cast<int64_t>(is_worse ? items.size() : best);
}

template <class T>
void expect_places(int column) {
  std::mt19937 random(static_cast<uint32_t>(column));
  for (const bool max : {true, false}) {
    const FindExtreme find = reduction_kernels().find_extreme[max ? kFindMax : kFindMin][column];
    for (const int64_t size : kFoldedSizes) {
      for (const int range : {0, 3, 100}) {  // all equal, many equal, few equal
        std::vector<T> items;
        for (int64_t i = 0; i < size; ++i)
          items.push_back(static_cast<T>(5 + static_cast<int>(random() % 101) % (range + 1)));
        for (const T bound : {T{0}, T{5}, T{50}, T{110}}) {
          EXPECT_EQ(find(items.data(), size, &bound), place_of(items, max, bound)) << size << " of column " << column;
        }
        items[random() % items.size()] = std::numeric_limits<T>::lowest();
        items[random() % items.size()] = std::numeric_limits<T>::max();
        const T bound{7};
        EXPECT_EQ(find(items.data(), size, &bound), place_of(items, max, bound)) << size << " of column " << column;
      }
    }
  }
}

TEST_P(Reductions, FindTheFirstOfTheBestItems) {
  expect_places<int8_t>(1);
  expect_places<int16_t>(2);
  expect_places<int32_t>(3);
  expect_places<int64_t>(4);
  expect_places<uint8_t>(5);
  expect_places<uint16_t>(6);
  expect_places<uint32_t>(7);
  expect_places<uint64_t>(8);
  expect_places<float>(11);
  expect_places<double>(12);
}

template <class T>
void expect_special_places(int column) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN(), kInf = std::numeric_limits<T>::infinity();
  for (const bool max : {true, false}) {
    const FindExtreme find = reduction_kernels().find_extreme[max ? kFindMax : kFindMin][column];
    const T worst = max ? -kInf : kInf, best = -worst;
    for (const int64_t size : kFoldedSizes) {
      std::vector<T> items(static_cast<size_t>(size), worst);
      EXPECT_EQ(find(items.data(), size, &worst), 0) << "items that are as bad as the bound";
      EXPECT_EQ(find(items.data(), size, &best), size) << "a bound that is better";
      const size_t last = items.size() - 1;
      items[last / 2] = T(-0.0);
      items[last] = T(0.0);
      EXPECT_EQ(find(items.data(), size, &worst), static_cast<int64_t>(last / 2)) << "zeros are equal";
      items[last / 3] = best;
      EXPECT_EQ(find(items.data(), size, &worst), static_cast<int64_t>(last / 3)) << "an infinity";
      items[last] = -kNaN;
      EXPECT_EQ(find(items.data(), size, &best), static_cast<int64_t>(last)) << "a NaN";
      items[last / 2] = kNaN;
      EXPECT_EQ(find(items.data(), size, &best), static_cast<int64_t>(last / 2)) << "the first NaN";
    }
  }
}

TEST_P(Reductions, NaNsWinAndZerosAreEqual) {
  expect_special_places<float>(11);
  expect_special_places<double>(12);
}

// The order of reductions.h.
template <class T>
T total_of_chunk(const T* items, bool is_sum) {
  const auto combine = [&](T a, T b) { return is_sum ? a + b : a * b; };
  std::vector<T> lanes(kChunkLanes, is_sum ? T(-0.0) : T(1));
  for (int64_t i = 0; i < kChunkItems; ++i) {
    T& lane = lanes[static_cast<size_t>(i % kChunkLanes)];
    lane = combine(lane, items[i]);
  }
  for (size_t half = kChunkLanes / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) lanes[k] = combine(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}

template <class T>
void expect_chunks(int column) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<T> near_one(T(-1.2), T(1.2));
  constexpr int64_t kChunks = 5;
  std::vector<T> items;
  for (int64_t i = 0; i <= kChunks * kChunkItems; ++i) items.push_back(near_one(random));
  for (int64_t i = 1 + kChunkItems; i <= 2 * kChunkItems; ++i) items[static_cast<size_t>(i)] = T(-0.0);
  items[3 * kChunkItems] = std::numeric_limits<T>::quiet_NaN();
  for (const FoldCode fold : {kFoldSum, kFoldProduct}) {
    std::vector<T> totals(kChunks);
    reduction_kernels().fold_chunks[fold][column](items.data() + 1, kChunks, totals.data());
    for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
      const T want = total_of_chunk(items.data() + 1 + chunk * kChunkItems, fold == kFoldSum);
      const T have = totals[static_cast<size_t>(chunk)];
      EXPECT_TRUE(std::memcmp(&want, &have, sizeof want) == 0 || (want != want && have != have))
          << "fold " << fold << ", chunk " << chunk << " of column " << column;
    }
  }
}

TEST_P(Reductions, ChunksAreCombinedInOneOrder) {
  expect_chunks<float>(11);
  expect_chunks<double>(12);
  EXPECT_EQ(reduction_kernels().fold_chunks[kFoldSum][3], nullptr) << "integers are combined in any order";
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Reductions, testing::ValuesIn(tile_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace shardwise
