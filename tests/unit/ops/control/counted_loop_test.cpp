// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/counted_loop.h"

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "shardwise/ops/control/loop_rows.h"
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
  const auto counted = counted_loop(OpView(module, module.region(module.main().body).ops.back()));
  return counted ? std::optional(counted->trips) : std::nullopt;
}

TEST(CountedLoop, CountsUpAndDown) {
  EXPECT_EQ(trips({}), 10);
  EXPECT_EQ(trips({.direction = "LE"}), 11);
  EXPECT_EQ(trips({.start = "3", .limit = "10", .step = "4"}), 2);
  EXPECT_EQ(trips({.start = "10", .limit = "0", .step = "-3", .direction = "GT"}), 4);
  EXPECT_EQ(trips({.start = "10", .limit = "0", .step = "5", .direction = "GE", .op = "subtract"}), 3);
  EXPECT_EQ(trips({.direction = "GT", .is_mirrored = true}), 10);
  EXPECT_EQ(trips({.limit = "255", .step = "5", .dtype = "ui8"}), 51);
  EXPECT_EQ(trips({.limit = "7", .step = "2", .direction = "LE", .dtype = "ui4"}), 4);
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
  EXPECT_EQ(trips({.limit = "127", .step = "2", .dtype = "i8"}), std::nullopt);        // wraps after 126
  EXPECT_EQ(trips({.limit = "7", .step = "5", .dtype = "i4"}), std::nullopt);          // 10 wraps to -6
  EXPECT_EQ(trips({.limit = "18446744073709551615", .dtype = "ui64"}), std::nullopt);  // more than an int64
}

// A scan over 5 rows, as JAX writes it: negative indices wrap, and the limit and the array are carries.
constexpr std::string_view kScan = R"(func.func @main(%xs: tensor<5x3xf32>, %x: tensor<3xf32>) -> tensor<5x3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<5x3xf32>
  %r:5 = stablehlo.while(%i = %zero, %n = %five, %a = %xs, %c = %x, %ys = %zeros)
      : tensor<i32>, tensor<i32>, tensor<5x3xf32>, tensor<3xf32>, tensor<5x3xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<4> : tensor<i32>
    %at = stablehlo.subtract %last, %i : tensor<i32>
    %q = stablehlo.compare LT, %at, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = stablehlo.add %at, %five : tensor<i32>
    %k = stablehlo.select %q, %w, %at : tensor<i1>, tensor<i32>
    %row = stablehlo.dynamic_slice %a, %k, %zero, sizes = [1, 3] : (tensor<5x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %flat = stablehlo.reshape %row : (tensor<1x3xf32>) -> tensor<3xf32>
    %d = stablehlo.add %c, %flat : tensor<3xf32>
    %out = stablehlo.reshape %d : (tensor<3xf32>) -> tensor<1x3xf32>
    %next = stablehlo.dynamic_update_slice %ys, %out, %INDEX, %zero
        : (tensor<5x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x3xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %n, %a, %d, %next : tensor<i32>, tensor<i32>, tensor<5x3xf32>, tensor<3xf32>, tensor<5x3xf32>
  }
  return %r#4 : tensor<5x3xf32>
})";

Module scan(const std::string& index) {
  register_ops();
  std::string text(kScan);
  text.replace(text.find("INDEX"), 5, index);
  return parse(text, std::make_shared<Context>());
}

TEST(CountedLoop, FindsInvariantsAndInductions) {
  const Module module = scan("k");
  const auto counted = counted_loop(OpView(module, module.region(module.main().body).ops.back()));
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->trips, 5);
  EXPECT_EQ(counted->is_invariant, (std::vector<bool>{false, true, true, false, false}));
  EXPECT_EQ(counted->inductions[0], (LinearInteger{.offset = 0, .stride = 1}));
  EXPECT_EQ(counted->inductions[1], (LinearInteger{.offset = 5, .stride = 0}));
  EXPECT_FALSE(counted->inductions[3]);
}

TEST(LoopRows, OfAScanAreFoundThroughWrappedIndices) {
  Module module = scan("k");
  const OpView loop(module, module.region(module.main().body).ops.back());
  const auto writes = find_row_writes(module, loop, *counted_loop(loop));
  ASSERT_EQ(writes.size(), 1);
  EXPECT_EQ(writes[0].carry, 4);
  EXPECT_EQ(row_of_trip(writes[0].course, 5), (LinearInteger{.offset = 4, .stride = -1}));
  EXPECT_EQ(module.type(writes[0].row).shape, (Dims{3}));  // before the reshape that adds the dim
}

TEST(LoopRows, AnOutputWritesEveryRow) {
  Module module = scan("zero");
  const OpView loop(module, module.region(module.main().body).ops.back());
  EXPECT_TRUE(find_row_writes(module, loop, *counted_loop(loop)).empty());
}

}  // namespace
}  // namespace shardwise
