// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/control/loop_rows.h"

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/parser.h"

namespace shardwise {
namespace {

struct Rows {
  std::vector<RowRead> reads;
  std::vector<RowWrite> writes;
  std::vector<Dims> written = {};       // the shapes of the rows written
  std::vector<bool> are_distinct = {};  // of the dynamic_slices of the body
};

// while(%i = 0, %xs, %ys = 0) { %i < trips } do { body; return %i + 1, %xs, %next }, where both stacks have this shape.
Rows rows_of(const std::string& shape, const std::string& part, int trips, const std::string& body) {
  register_ops();
  const std::string stack = str("tensor<", shape, "xf32>"), i32 = "tensor<i32>",
                    types = str(i32, ", ", stack, ", ", stack);
  const auto constant = [&](const std::string& name, int value) {
    return str(name, " = stablehlo.constant dense<", value, "> : ", i32, "\n");
  };
  const std::string text =
      str("func.func @main(%a: ", stack, ", %row: tensor<", part, "xf32>) -> ", stack, " {\n", constant("%zero", 0),
          constant("%one", 1), constant("%limit", trips), constant("%last", trips - 1),
          "%zeros = stablehlo.constant dense<0.0> : ", stack,
          "\n%r:3 = stablehlo.while(%i = %zero, %xs = %a, %ys = %zeros) : ", types,
          "\ncond {\n%p = stablehlo.compare LT, %i, %limit : (", i32, ", ", i32,
          ") -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n%down = stablehlo.subtract %last, %i : ", i32,
          "\n", body, "\n%j = stablehlo.add %i, %one : ", i32, "\nstablehlo.return %j, %xs, %next : ", types,
          "\n}\nreturn %r#2 : ", stack, "\n}");
  Module module = parse(text, std::make_shared<Context>());
  const OpView loop(module, module.region(module.main().body).ops.back());
  const auto counted = counted_loop(loop);
  if (!counted) throw std::runtime_error("the loop does not count");
  Rows rows{find_row_reads(module, loop, *counted), find_row_writes(module, loop, *counted)};
  for (const RowWrite& write : rows.writes) rows.written.push_back(module.type(write.row).shape);
  for (const OpId op : module.region(loop.regions()[1]).ops) {
    if (module.op(op).def->name != "stablehlo.dynamic_slice") continue;
    rows.are_distinct.push_back(reads_distinct_rows(module, loop, *counted, op));
  }
  return rows;
}

// dynamic_update_slice of %row into a 2-dim stack.
std::string written(const std::string& shape, const std::string& part, const std::string& starts,
                    const std::string& stack = "%ys") {
  return str("%next = stablehlo.dynamic_update_slice ", stack, ", %row, ", starts, " : (tensor<", shape,
             "xf32>, tensor<", part, "xf32>, tensor<i32>, tensor<i32>) -> tensor<", shape, "xf32>");
}

std::string read(const std::string& name, const std::string& from, const std::string& starts, const std::string& shape,
                 const std::string& part, const std::string& sizes) {
  return str(name, " = stablehlo.dynamic_slice ", from, ", ", starts, ", sizes = [", sizes, "] : (tensor<", shape,
             "xf32>, tensor<i32>, tensor<i32>) -> tensor<", part, "xf32>\n");
}

TEST(LoopRows, AWriteOfEveryRowIsOneAlongAnyDim) {
  const Rows up = rows_of("5x3", "1x3", 5, written("5x3", "1x3", "%i, %zero"));
  ASSERT_EQ(up.writes.size(), 1);
  EXPECT_EQ(up.writes[0].carry, 2);
  EXPECT_EQ(up.writes[0].course, (Course{.dim = 0, .is_reverse = false}));
  EXPECT_EQ(up.written[0], (Dims{1, 3}));  // no reshape adds the dim

  const Rows down = rows_of("3x5", "3x1", 5, written("3x5", "3x1", "%zero, %down"));
  ASSERT_EQ(down.writes.size(), 1);
  EXPECT_EQ(down.writes[0].course, (Course{.dim = 1, .is_reverse = true}));
  EXPECT_EQ(row_of_trip(down.writes[0].course, 5), (LinearInteger{.offset = 4, .stride = -1}));
}

TEST(LoopRows, TheOnlyRowIsARow) {
  for (const std::string at : {"%i", "%zero", "%down"}) {
    const Rows rows = rows_of("1x3", "1x3", 1, written("1x3", "1x3", at + ", %zero"));
    ASSERT_EQ(rows.writes.size(), 1) << at;
    EXPECT_EQ(rows.writes[0].course, (Course{.dim = 0, .is_reverse = false}));
  }
}

TEST(LoopRows, ACarryThatKeepsRowsOrIsReadIsNone) {
  EXPECT_TRUE(rows_of("5x3", "1x3", 5, written("5x3", "1x3", "%zero, %zero")).writes.empty());
  EXPECT_TRUE(rows_of("6x3", "1x3", 5, written("6x3", "1x3", "%i, %zero")).writes.empty());
  EXPECT_TRUE(rows_of("5x3", "1x3", 5, written("5x3", "1x3", "%i, %zero", "%xs")).writes.empty());
  const std::string sum = "%next = stablehlo.add %other, %ys : tensor<5x3xf32>";
  std::string other = written("5x3", "1x3", "%i, %zero");
  other.replace(other.find("%next"), 5, "%other");
  EXPECT_TRUE(rows_of("5x3", "1x3", 5, other + "\n" + sum).writes.empty());
}

TEST(LoopRows, AReadOfDifferentRowsNeedNotReadAll) {
  const std::string write = written("7x3", "1x3", "%i, %zero");
  const auto are_distinct = [&](const std::string& row) {
    return rows_of("7x3", "1x3", 3, row + read("%x", "%a", "%k, %zero", "7x3", "1x3", "1, 3") + write).are_distinct;
  };
  const std::string two = "%k = stablehlo.add %i, %i : tensor<i32>\n";
  EXPECT_EQ(are_distinct(two), std::vector{true});  // rows 0, 2, 4
  EXPECT_EQ(are_distinct("%k = stablehlo.multiply %i, %zero : tensor<i32>\n"), std::vector{false});
  // Row -1 is clamped to row 0, which the next trip reads, too.
  EXPECT_EQ(are_distinct("%k = stablehlo.subtract %i, %one : tensor<i32>\n"), std::vector{false});
  EXPECT_EQ(rows_of("7x3", "1x3", 3, two + read("%x", "%a", "%k, %zero", "7x3", "2x3", "2, 3") + write).are_distinct,
            std::vector{false});  // rows 0 and 1, 2 and 3, …
}

}  // namespace
}  // namespace shardwise
