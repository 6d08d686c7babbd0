// SPDX-License-Identifier: Apache-2.0
//
// Prices of the plans of reshards, kept across compilations. A choice compares many more plans than a program has, so only
// their prices are kept. A dim that is whole before and after a movement is part of its elements:
//
//   bf16 (16, 1024, 128) on x=8, from [{}, {"x"}, {}] to [{}, {}, {}]     priced as (1024) of 16 * 128 * 2 bytes each
//
//   PriceCache cache(1024);
//   cache.price(problem, planned_on, priced_on).is_new      // true: a plan was made
//   cache.price(problem, planned_on, priced_on).is_new      // false
#pragma once

#include "shardwise/base/recently_used.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/reshard/plan_price.h"

namespace shardwise {

// Any number of threads may use it. It forgets the price that was not asked for the longest.
class PriceCache {
 public:
  struct Found {
    ReshardPrice price;
    bool is_new = false;
  };

  explicit PriceCache(size_t most) : prices_(most) {}
  // The price on `priced_on` of the plan for `planned_on` (plan.h; none: that which sends least).
  Found price(ReshardProblem problem, HardwarePtr planned_on, HardwarePtr priced_on);

 private:
  struct Key {
    ReshardProblem problem;
    HardwarePtr planned_on, priced_on;
    friend bool operator==(const Key& a, const Key& b) {
      const auto is_same = [](const HardwarePtr& x, const HardwarePtr& y) { return x == y || (x && y && *x == *y); };
      return is_same(a.planned_on, b.planned_on) && is_same(a.priced_on, b.priced_on) && a.problem == b.problem;
    }
    friend size_t hash_value(const Key& key) {
      const size_t hash = hash_combine(hash_value(key.problem), key.planned_on ? key.planned_on->hash : 0);
      return hash_combine(hash, key.priced_on->hash);
    }
  };
  RecentlyUsed<Key, ReshardPrice> prices_;
};

PriceCache& prices_of_process();

}  // namespace shardwise
