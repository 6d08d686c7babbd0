// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/counted_loop.h"

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/parser.h"

namespace shardwise {
namespace {

struct Loop {
  std::string start = "0", limit = "10", step = "1", direction = "LT", op = "add", dtype = "i32";
  bool is_mirrored = false;  // limit OP counter
};

std::optional<int64_t> trips(const Loop& loop) {
  register_ops();
  const std::string type = str("tensor<", loop.dtype, ">");
  const auto constant = [&](const std::string& name, const std::string& value) {
    return str(name, " = stablehlo.constant dense<", value, "> : ", type, "\n");
  };
  const std::string sides = loop.is_mirrored ? "%limit, %i" : "%i, %limit";
  const std::string text =
      str("func.func @main(%start: ", type, ") -> ", type, " {\n", constant("%c", loop.start),
          constant("%limit", loop.limit), constant("%step", loop.step), "%r = stablehlo.while(%i = ", "%c) : ", type,
          "\ncond {\n%p = stablehlo.compare ", loop.direction, ", ", sides, " : (", type, ", ", type,
          ") -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n%n = stablehlo.", loop.op, " %i, %step : ", type,
          "\nstablehlo.return %n : ", type, "\n}\nreturn %r : ", type, "\n}");
  const Module module = parse(text, std::make_shared<Context>());
  return trip_count(OpView(module, module.region(module.main().body).ops.back()));
}

TEST(CountedLoop, CountsUpAndDown) {
  EXPECT_EQ(trips({}), 10);
  EXPECT_EQ(trips({.direction = "LE"}), 11);
  EXPECT_EQ(trips({.start = "3", .limit = "10", .step = "4"}), 2);
  EXPECT_EQ(trips({.start = "10", .limit = "0", .step = "-3", .direction = "GT"}), 4);
  EXPECT_EQ(trips({.start = "10", .limit = "0", .step = "5", .direction = "GE", .op = "subtract"}), 3);
  EXPECT_EQ(trips({.direction = "GT", .is_mirrored = true}), 10);
  EXPECT_EQ(trips({.limit = "255", .step = "5", .dtype = "ui8"}), 51);
}

TEST(CountedLoop, CountsNoTrips) {
  EXPECT_EQ(trips({.start = "10"}), 0);
  EXPECT_EQ(trips({.start = "11", .direction = "LE"}), 0);
}

TEST(CountedLoop, KnowsNothingOfOtherLoops) {
  EXPECT_EQ(trips({.step = "0"}), std::nullopt);
  EXPECT_EQ(trips({.step = "-1"}), std::nullopt);  // away from the limit
  EXPECT_EQ(trips({.direction = "NE"}), std::nullopt);
  EXPECT_EQ(trips({.op = "multiply"}), std::nullopt);
  EXPECT_EQ(trips({.limit = "127", .step = "2", .dtype = "i8"}), std::nullopt);        // wraps behind 126
  EXPECT_EQ(trips({.limit = "18446744073709551615", .dtype = "ui64"}), std::nullopt);  // more than an int64
}

}  // namespace
}  // namespace shardwise
