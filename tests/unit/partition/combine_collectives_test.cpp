// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/combine_collectives.h"

#include <gtest/gtest.h>

#include "shardwise/analysis/collective_ledger.h"
#include "shardwise/analysis/device_bytes.h"
#include "shardwise/ir/verifier.h"
#include "support/program_texts.h"

namespace shardwise {
namespace {

using testing::program_of;

Module two_sums() {
  return program_of(
      R"("x"=4)", "%arg0: tensor<5xf32>, %arg1: tensor<3x2xf32>", "tensor<5xf32>, tensor<3x2xf32>",
      R"(%0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "a"}> : (tensor<5xf32>) -> tensor<5xf32>
                                  %1 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "b"}> : (tensor<3x2xf32>) -> tensor<3x2xf32>
                                  return %0, %1 : tensor<5xf32>, tensor<3x2xf32>)");
}

// Parts are of whole elements: 5 and 6 of them in parts of two are no 11 in parts of three.
TEST(CombineCollectives, BytesAreThoseOfSingleCollectives) {
  PassContext context;
  const Module alone = two_sums();
  const Module combined = combine_collectives(two_sums(), context);
  verify(combined);
  EXPECT_EQ(context.counters.get("combine_collectives.fewer"), 1);
  const std::vector<LedgerRow> before = collective_ledger(alone), after = collective_ledger(combined);
  ASSERT_EQ(before.size(), 2);
  ASSERT_EQ(after.size(), 1);
  ASSERT_EQ(after[0].combined.size(), 2);
  EXPECT_EQ(after[0].bytes, before[0].bytes + before[1].bytes);
  double sum = 0;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(after[0].combined[i].bytes, before[i].bytes);
    EXPECT_EQ(after[0].combined[i].cause, before[i].cause);
    EXPECT_EQ(after[0].combined[i].operand, before[i].operand);
    sum += device_bytes(OpView(alone, before[i].op), before[i].bytes).sum;
  }
  EXPECT_EQ(device_bytes(OpView(combined, after[0].op), after[0].bytes).sum, sum);
}

TEST(CombineCollectives, NoBytesLeaveEachAlone) {
  PassContext context{.options = {.combine_bytes = 0}};
  EXPECT_EQ(collective_ledger(combine_collectives(two_sums(), context)).size(), 2);
}

}  // namespace
}  // namespace shardwise
