// SPDX-License-Identifier: Apache-2.0
//
// The price of a plan on some hardware: its collectives one after another. Slices send nothing.
//
//   (1024, 1024) of float32 on x=8, from [{"x"}, {}] to [{}, {}]      all_gather
//   price_of(plan, problem, default hardware)      8.16 us, 3.5 MiB, 1 round
#pragma once

#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

struct ReshardPrice {
  Price price;
  double bytes = 0, mean_bytes = 0;  // of the plan (problem.h)
};

Price price_of(const ReshardPlan& plan, const ReshardProblem& problem, const Hardware& hardware);

}  // namespace shardwise
