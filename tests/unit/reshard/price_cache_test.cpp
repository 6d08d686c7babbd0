// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/price_cache.h"

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

MeshPtr grid() { return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}}); }

ReshardProblem problem(const Dims& shape, const char* from, const char* to, int64_t item_size = 4) {
  const MeshPtr mesh = grid();
  return {.shape = shape,
          .item_size = item_size,
          .from = placement_of(parse_short_sharding(from, mesh), shape),
          .to = placement_of(parse_short_sharding(to, mesh), shape)};
}

void expect_price_of_plan(const ReshardProblem& asked) {
  PriceCache cache(4);
  const HardwarePtr hardware = default_hardware();
  for (const HardwarePtr& planned_on : {HardwarePtr(), hardware}) {
    const ReshardPlan plan = plan_reshard(asked, planned_on.get());
    const ReshardPrice found = cache.price(asked, planned_on, hardware).price;
    EXPECT_EQ(found.price.ps, price_of(plan, asked, *hardware).ps);
    EXPECT_EQ(found.bytes, plan.bytes);
    EXPECT_EQ(found.mean_bytes, plan.mean_bytes);
    EXPECT_GT(found.bytes, 0);
  }
}

TEST(PriceCache, HasThePriceOfThePlanWithAllDims) {
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {R"([{}, {"x"}, {}, {"y"}, {}])", R"([{}, {}, {}, {"y"}, {}])"},
           {R"([{}, {"x"}, {}, {}, {}])", R"([{}, {}, {}, {"x"}, {}])"},
           {R"([{}, {"x", "y"}, {}, {}, {}])", R"([{}, {"y", "x"}, {}, {}, {}])"},
           {R"([{}, {"x"}, {}, {"y"}, {}])", R"([{}, {"y"}, {}, {"x"}, {}])"},
           {R"([{}, {"x":(1)2}, {}, {"y"}, {}])", R"([{}, {"x":(2)2, "y"}, {}, {}, {}])"}}) {
    expect_price_of_plan(problem({3, 16, 5, 24, 2}, from, to));
    expect_price_of_plan(problem({1, 13, 7, 9, 1}, from, to, 2));  // uneven
  }
}

TEST(PriceCache, HasThePriceOfReductions) {
  for (const char* to : {R"([{}, {}])", R"([{}, {"x"}])", R"([{"x"}, {}])"}) {
    const MeshPtr mesh = grid();
    const Dims shape{6, 16};
    expect_price_of_plan({.shape = shape,
                          .item_size = 4,
                          .from = placement_of(parse_short_sharding(R"([{}, {"y"}], unreduced={"x"})", mesh), shape),
                          .to = placement_of(parse_short_sharding(to, mesh), shape)});
  }
}

TEST(PriceCache, CountsDimsThatStayWholeAsParts) {
  PriceCache cache(8);
  const HardwarePtr hardware = default_hardware();
  const auto is_new = [&](const Dims& shape, const char* from, const char* to, int64_t item_size) {
    return cache.price(problem(shape, from, to, item_size), nullptr, hardware).is_new;
  };
  EXPECT_TRUE(is_new({8, 6}, R"([{"x"}, {}])", R"([{}, {}])", 4));
  EXPECT_FALSE(is_new({3, 8, 2}, R"([{}, {"x"}, {}])", R"([{}, {}, {}])", 4));
  EXPECT_FALSE(is_new({8, 12}, R"([{"x"}, {}])", R"([{}, {}])", 2));
  EXPECT_TRUE(is_new({8, 12}, R"([{"x"}, {}])", R"([{}, {}])", 4));
  EXPECT_TRUE(is_new({16, 6}, R"([{"x"}, {}])", R"([{}, {}])", 4));
  EXPECT_TRUE(is_new({8, 6}, R"([{"y"}, {}])", R"([{}, {}])", 4));
}

TEST(PriceCache, KeepsPricesOfOtherHardwareApart) {
  PriceCache cache(8);
  const ReshardProblem asked = problem({8, 6}, R"([{"x"}, {}])", R"([{}, {}])");
  const HardwarePtr one = default_hardware();
  auto slower = std::make_shared<Hardware>(*one);
  slower->name = "slower";
  ++slower->hash;
  EXPECT_TRUE(cache.price(asked, nullptr, one).is_new);
  EXPECT_TRUE(cache.price(asked, one, one).is_new);
  EXPECT_TRUE(cache.price(asked, nullptr, slower).is_new);
  EXPECT_FALSE(cache.price(asked, nullptr, one).is_new);
}

}  // namespace
}  // namespace shardwise
