// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/cause.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

struct Row {
  Cause cause;
  std::string_view text;
};

TEST(CauseTest, EachKindHasAText) {
  const Row rows[] = {
      {{}, ""},
      {{.kind = Cause::kAnnotation}, "annotation"},
      {{.kind = Cause::kReshard}, "reshard"},
      {{.kind = Cause::kOperand, .of = "stablehlo.dot_general", .index = 1}, "operand 1 of dot_general"},
      {{.kind = Cause::kOperand, .of = "stablehlo.slice", .detail = ": the range [1, 4) crosses shards along dim 0"},
       "operand 0 of slice: the range [1, 4) crosses shards along dim 0"},
      {{.kind = Cause::kMainArgument, .detail = "argument x"}, "argument x"},
      {{.kind = Cause::kArgument, .of = "layer", .index = 2}, "argument 2 of @layer"},
      {{.kind = Cause::kResult, .index = 3}, "result 3"},
      {{.kind = Cause::kResult, .of = "layer", .index = 3}, "result 3 of @layer"},
      {{.kind = Cause::kResultOfRegion, .of = "stablehlo.while", .index = 1}, "result 1 of a region of while"},
      {{.kind = Cause::kCondition, .of = "stablehlo.while"}, "condition of while"},
      {{.kind = Cause::kReduction, .of = "stablehlo.reduce"}, "reduction in reduce"},
      {{.kind = Cause::kMethod, .of = "chlo.top_k", .detail = "candidates"}, "candidates of top_k"},
  };
  for (const Row& row : rows) EXPECT_EQ(row.cause.text(), row.text);
}

TEST(CauseTest, AReductionThatALoopLeavesPendingIsAfterTheLoop) {
  const Cause cause{.kind = Cause::kReduction, .of = "stablehlo.dot_general", .is_after_loop = true};
  EXPECT_EQ(cause.text(), "reduction in dot_general, after the loop");
  const Attrs attrs = cause.attrs();
  EXPECT_EQ(attrs.get<std::string>(kCauseAttr), cause.text());
}

}  // namespace
}  // namespace shardwise
