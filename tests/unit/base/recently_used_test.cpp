// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/recently_used.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

struct Key {
  std::string name;
  friend bool operator==(const Key&, const Key&) = default;
};

size_t hash_value(const Key& key) { return std::hash<std::string>()(key.name); }

TEST(RecentlyUsedTest, EvictsTheLeastRecentlyUsedValue) {
  RecentlyUsed<Key, int> cache(2);
  cache.keep({"a"}, std::make_shared<int>(1));
  cache.keep({"b"}, std::make_shared<int>(2));
  EXPECT_EQ(*cache.find({"a"}), 1);  // now "b" is the oldest
  cache.keep({"c"}, std::make_shared<int>(3));
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.find({"b"}), nullptr);
  EXPECT_EQ(*cache.find({"a"}), 1);
  EXPECT_EQ(*cache.find({"c"}), 3);
}

TEST(RecentlyUsedTest, TheFirstValueOfAKeyStays) {
  RecentlyUsed<Key, int> cache(2);
  cache.keep({"a"}, std::make_shared<int>(1));
  cache.keep({"a"}, std::make_shared<int>(2));
  EXPECT_EQ(*cache.find({"a"}), 1);
  EXPECT_EQ(cache.size(), 1U);
}

TEST(RecentlyUsedTest, AnEvictedValueLivesAsLongAsItIsHeld) {
  RecentlyUsed<Key, std::string> cache(1);
  cache.keep({"a"}, std::make_shared<std::string>("first"));
  const auto held = cache.find({"a"});
  cache.keep({"b"}, std::make_shared<std::string>("second"));
  EXPECT_EQ(cache.find({"a"}), nullptr);
  EXPECT_EQ(*held, "first");
}

}  // namespace
}  // namespace shardwise
