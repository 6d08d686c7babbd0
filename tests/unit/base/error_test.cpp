// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/error.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(Error, SaysWhatMustHoldWhatWasFoundAndTheWayOut) {
  try {
    fail<ShapeError>("stablehlo.add", "operands must have the same shape", "tensor<4xf32> and tensor<5xf32>",
                     "broadcast one of them first");
  } catch (ShapeError& error) {
    error.at("train.py:31");
    error.at("outer.py:1");  // the innermost location stays
    EXPECT_STREQ(error.what(),
                 "stablehlo.add: operands must have the same shape, got tensor<4xf32> and tensor<5xf32>; "
                 "broadcast one of them first (at train.py:31)");
  }
}

TEST(Error, InternalErrorNamesTheSourceLine) {
  EXPECT_NO_THROW(check_internal(true, "holds"));
  try {
    check_internal(false, "two is three");
    FAIL();
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("a bug in shardwise: two is three ["), 0U);
    EXPECT_NE(message.find("error_test.cpp:"), std::string::npos);
  }
}

TEST(ParseError, BeginsWithLineAndColumn) {
  const ParseError error("an axis is missing", 3, 14);
  EXPECT_STREQ(error.what(), "3:14: an axis is missing");
  EXPECT_EQ(error.line(), 3);
  EXPECT_EQ(error.column(), 14);
}

}  // namespace
}  // namespace shardwise
