// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_cache.h"

#include <thread>

#include <gtest/gtest.h>

#include "shardwise/mesh/sharding_text.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

MeshPtr line() { return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 8}}); }

ReshardProblem rows_to_columns(const MeshPtr& mesh, int64_t rows) {
  const Dims shape{rows, 16};
  return {.shape = shape,
          .item_size = 4,
          .from = placement_of(parse_short_sharding(R"([{"x"}, {}])", mesh), shape),
          .to = placement_of(parse_short_sharding(R"([{}, {"x"}])", mesh), shape)};
}

TEST(PlanCache, MakesAPlanOnce) {
  PlanCache cache(8);
  const ReshardProblem problem = rows_to_columns(line(), 64);
  const PlanCache::Found first = cache.plan(problem), second = cache.plan(problem);
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(second.is_new);
  ASSERT_EQ(second.plan->steps.size(), 1u);
  EXPECT_EQ(second.plan->bytes, plan_reshard(problem).bytes);
  ReshardProblem wide = problem;
  wide.item_size = 8;
  EXPECT_TRUE(cache.plan(wide).is_new);
  EXPECT_TRUE(cache.plan(rows_to_columns(problem.to.mesh, 65)).is_new);
  ReshardProblem back = problem;
  std::swap(back.from, back.to);
  EXPECT_TRUE(cache.plan(back).is_new);
  EXPECT_TRUE(cache.plan(problem, default_hardware()).is_new);
  EXPECT_FALSE(cache.plan(problem, default_hardware()).is_new);
}

// Another program has its own object for an equal mesh.
TEST(PlanCache, NamesTheMeshOfTheProblem) {
  PlanCache cache(4);
  cache.plan(rows_to_columns(line(), 64));
  const MeshPtr mesh = line();
  const PlanCache::Found found = cache.plan(rows_to_columns(mesh, 64));
  EXPECT_FALSE(found.is_new);
  EXPECT_EQ(found.plan->steps[0].after.mesh, mesh);
  EXPECT_EQ(found.plan->steps[0].after, rows_to_columns(mesh, 64).to);
}

TEST(PlanCache, ForgetsThePlanThatNobodyAskedForTheLongest) {
  PlanCache cache(2);
  const MeshPtr mesh = line();
  cache.plan(rows_to_columns(mesh, 8));
  cache.plan(rows_to_columns(mesh, 16));
  cache.plan(rows_to_columns(mesh, 8));
  cache.plan(rows_to_columns(mesh, 24));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_FALSE(cache.plan(rows_to_columns(mesh, 8)).is_new);
  EXPECT_TRUE(cache.plan(rows_to_columns(mesh, 16)).is_new);
}

TEST(PlanCache, ServesThreads) {
  PlanCache cache(8);
  const MeshPtr mesh = line();
  const double bytes = plan_reshard(rows_to_columns(mesh, 17)).bytes;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 200; ++i) {
        cache.plan(rows_to_columns(mesh, 1 + (i * 7 + static_cast<int64_t>(t)) % 20));
        wrong[t] += cache.plan(rows_to_columns(mesh, 17)).plan->bytes == bytes ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_LE(cache.size(), 8u);
}

}  // namespace
}  // namespace shardwise
