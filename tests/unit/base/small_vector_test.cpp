// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/small_vector.h"

#include <vector>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

using Numbers = SmallVector<int, 2>;

std::vector<int> listed(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

TEST(SmallVector, GrowsOntoTheHeap) {
  Numbers numbers;
  std::vector<int> expected;
  for (int i = 0; i < 20; ++i) {
    numbers.push_back(i);
    expected.push_back(i);
    EXPECT_EQ(listed(numbers), expected);
  }
  const Numbers copied = numbers;
  Numbers moved = std::move(numbers);
  EXPECT_EQ(listed(copied), expected);
  EXPECT_EQ(listed(moved), expected);
  moved = Numbers{7};
  EXPECT_EQ(listed(moved), std::vector<int>{7});
}

TEST(SmallVector, KeepsAShortListInside) {
  Numbers numbers{3, 4};
  const auto* begin = reinterpret_cast<const std::byte*>(&numbers);
  const auto* data = reinterpret_cast<const std::byte*>(numbers.data());
  EXPECT_TRUE(data >= begin && data < begin + sizeof(numbers));
  Numbers moved = std::move(numbers);
  EXPECT_EQ(listed(moved), (std::vector<int>{3, 4}));
}

TEST(SmallVector, TakesItsOwnElements) {
  Numbers numbers{1, 2};
  numbers.push_back(numbers[0]);
  numbers.insert(numbers.end(), numbers.begin(), numbers.end());
  EXPECT_EQ(listed(numbers), (std::vector<int>{1, 2, 1, 1, 2, 1}));
  numbers.insert(numbers.begin(), numbers.back());
  EXPECT_EQ(listed(numbers), (std::vector<int>{1, 1, 2, 1, 1, 2, 1}));
  numbers = *&numbers;
  EXPECT_EQ(numbers.size(), 7u);
}

TEST(SmallVector, InsertsAndErasesInTheMiddle) {
  Numbers numbers{1, 5};
  const std::vector<int> more{2, 3, 4};
  EXPECT_EQ(*numbers.insert(numbers.begin() + 1, more.begin(), more.end()), 2);
  EXPECT_EQ(listed(numbers), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(*numbers.erase(numbers.begin() + 1, numbers.begin() + 3), 4);
  EXPECT_EQ(listed(numbers), (std::vector<int>{1, 4, 5}));
  EXPECT_EQ(erase_if(numbers, [](int number) { return number > 3; }), 2u);
  EXPECT_EQ(listed(numbers), std::vector<int>{1});
  numbers.resize(4, 9);
  EXPECT_EQ(erase(numbers, 9), 3u);
}

TEST(SmallVector, ComparesAsListsDo) {
  EXPECT_EQ((Numbers{1, 2, 3}), (Numbers{1, 2, 3}));
  EXPECT_NE((Numbers{1, 2}), (Numbers{1, 2, 3}));
  EXPECT_LT((Numbers{1, 2}), (Numbers{1, 2, 3}));
  EXPECT_LT((Numbers{1, 9}), (Numbers{2}));
}

}  // namespace
}  // namespace shardwise
