// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/collective_price.h"

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

Module program_of(std::string_view op, std::string_view type, std::string_view result,
                  std::string_view mesh = R"(sdy.mesh @mesh = <["x"=2, "y"=4]>)") {
  return parse_program(str(mesh, "\nfunc.func @main(%arg0: ", type, ") -> ", result, " {\n  %0 = \"shardwise.", op,
                           " : (", type, ") -> ", result, "\n  return %0 : ", result, "\n}\n"));
}

LocalCollective read(const Module& module) {
  return read_collective(OpView(module, module.region(module.main().body).ops.front()));
}

std::string text_of(const LocalCollective& found) {
  return str(axis_list_text(*found.mesh, found.axes), " ", found.group_size, " devices ", found.bytes, " B",
             found.is_exact ? "" : " at most", found.is_chain ? " chain" : "");
}

struct Row {
  std::string op, type, result, text, price;
};

TEST(LocalCollective, IsReadAsNumbers) {
  const Row rows[] = {
      {R"(all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh}>)", "tensor<2x4xf32>",
       "tensor<8x4xf32>", R"({"y"} 4 devices 96 B)", "214 ps, 96 B, 1 round"},
      {R"(reduce_scatter"(%arg0) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum", scatter = )"
       R"(#sdy<list_of_axis_ref_lists[{}, {"y"}]>}>)",
       "tensor<6x12xf32>", "tensor<6x3xf32>", R"({"y"} 4 devices 216 B)", "480 ps, 216 B, 1 round"},
      {R"(all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh, reducer = "sum"}>)",
       "tensor<1024xf32>", "tensor<1024xf32>", R"({"x", "y"} 8 devices 7168 B)", "15.9 ns, 7 KiB, 2 rounds"},
      // The one element is the part of one device, which receives an addend of each other one.
      {R"(all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum"}>)", "tensor<f32>",
       "tensor<f32>", R"({"y"} 4 devices 12 B)", "14 ps, 12 B, 2 rounds"},
      {R"(all_to_all"(%arg0) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"y"}>, from_dim = 0 : i64, to_dim = 1 )"
       R"(: i64}]}>)",
       "tensor<2x12xf32>", "tensor<8x3xf32>", R"({"y"} 4 devices 72 B)", "160 ps, 72 B, 1 round"},
      {R"(collective_permute"(%arg0) <{from = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh, to = )"
       R"(#sdy<axis_ref_list{"y", "x"}>}>)",
       "tensor<2x3xf32>", "tensor<2x3xf32>", R"({"x", "y"} 8 devices 24 B)", "54 ps, 24 B, 1 round"},
      {R"(collective_permute"(%arg0) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, shift = 1 : i64, wrap = true}>)",
       "tensor<2x3xf32>", "tensor<2x3xf32>", R"({"y"} 4 devices 24 B)", "54 ps, 24 B, 1 round"},
      {R"(collective_permute"(%arg0) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum", shift = 1 : i64, wrap = false}>)",
       "tensor<2x3xf32>", "tensor<2x3xf32>", R"({"y"} 4 devices 24 B chain)", "162 ps, 24 B, 3 rounds"},
      {R"(exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"y"}>, offset = 1 : i64}]], mesh = @mesh, to = [{axes = )"
       R"(#sdy<axis_ref_list{"y"}>, rows = 3 : i64, size = 11 : i64}]}>)",
       "tensor<3xf32>", "tensor<3xf32>", R"({"y"} 4 devices 4 B)", "9 ps, 4 B, 1 round"},
      // From {"y"} on dim 0 to {"y"} on dim 1: from all devices.
      {R"(exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"y"}>}, {}]], mesh = @mesh, to = [{rows = 8 : i64}, )"
       R"({axes = #sdy<axis_ref_list{"y"}>, rows = 3 : i64}]}>)",
       "tensor<2x12xf32>", "tensor<8x3xf32>", R"({"y"} 4 devices 72 B)", "160 ps, 72 B, 1 round"},
  };
  for (const Row& row : rows) {
    const LocalCollective found = read(program_of(row.op, row.type, row.result));
    EXPECT_EQ(text_of(found), row.text);
    EXPECT_EQ(to_text(collective_price(found, *default_hardware())), row.price) << row.text;
  }
}

TEST(LocalCollective, HasWhatItsKindHas) {
  const Row& gather = {R"(all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {"x"}]>, mesh = @mesh}>)",
                       "tensor<2x4xf32>", "tensor<8x8xf32>", "", ""};
  const LocalCollective found = read(program_of(gather.op, gather.type, gather.result));
  ASSERT_EQ(found.dims.size(), 2u);
  EXPECT_EQ(axis_list_text(*found.mesh, found.dims[0]), R"({"y"})");
  EXPECT_EQ(axis_list_text(*found.mesh, found.dims[1]), R"({"x"})");
  EXPECT_EQ(found.operand_bytes, 32);
}

TEST(LocalCollective, OfAxisIndexMovesNothing) {
  const Module module = parse_program(R"(sdy.mesh @mesh = <["x"=2]>
func.func @main() -> tensor<i32> {
  %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
  return %0 : tensor<i32>
}
)");
  const LocalCollective found = read(module);
  EXPECT_EQ(found.kind, CollectiveKind::kAxisIndex);
  EXPECT_EQ(found.group_size, 1);
  EXPECT_EQ(collective_price(found, *default_hardware()), Price{});
}

// Past the node, 50 GB/s: 16 devices, and a shift that crosses it.
TEST(CollectivePrice, FollowsTheTiersOfTheMesh) {
  const std::string_view mesh = R"(sdy.mesh @mesh = <["x"=16]>)";
  const LocalCollective found = read(program_of(
      R"(collective_permute"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = 1 : i64, wrap = true}>)",
      "tensor<250xf32>", "tensor<250xf32>", mesh));
  EXPECT_EQ(collective_price(found, *default_hardware()), (Price{20'000, 1000, 1}));
}

// 64 rows in blocks of 4 on 16 devices: a halo comes from the neighbor, the reverse from the other end.
TEST(LocalCollective, ExchangesComeFromNeighborsOrFromFarther) {
  const auto transfer = [](std::string_view from, std::string_view rows) {
    const Module module = program_of(str("exchange\"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{\"x\"}>, ", from,
                                         "}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{\"x\"}>, rows = ", rows,
                                         " : i64, size = 64 : i64, step = 4 : i64}]}>"),
                                     "tensor<4xf32>", str("tensor<", rows, "xf32>"), R"(sdy.mesh @mesh = <["x"=16]>)");
    return read(module).transfer;
  };
  EXPECT_EQ(transfer("offset = -1 : i64", "6"), TransferKind::kShift);
  EXPECT_EQ(transfer("offset = 4 : i64", "4"), TransferKind::kShift);
  EXPECT_EQ(transfer("offset = 5 : i64", "4"), TransferKind::kPermute);
  EXPECT_EQ(transfer("offset = 63 : i64, scale = -1 : i64", "4"), TransferKind::kPermute);
  // Where a roll comes round: the first tile takes rows of the last one, or of the one before that.
  EXPECT_EQ(transfer("end = 4 : i64, offset = 60 : i64", "4"), TransferKind::kShift);
  EXPECT_EQ(transfer("end = 4 : i64, offset = 56 : i64", "4"), TransferKind::kPermute);
  EXPECT_EQ(transfer("begin = 60 : i64, offset = -60 : i64", "4"), TransferKind::kShift);
}

// On data=2, model=8, a node holds the 8 devices along "model": 450 GB/s. Over both axes, it would be 50 GB/s.
TEST(CollectivePrice, OfAnExchangeIsAmongTheDevicesThatItMovesBetween) {
  struct Moved {
    std::string_view from, to, result, price;
    TransferKind transfer;
  };
  // 4 rows of a device stay; each row has 64 columns on 8 devices.
  const Moved rows[] = {
      // a column from each side: 2 * 4 * 4 B
      {"offset = -1 : i64", "rows = 10 : i64, size = 66 : i64, step = 8 : i64", "4x10", "72 ps, 32 B, 1 round",
       TransferKind::kShift},
      // columns [40, 50) on the device that has [32, 40): 10 * 4 * 4 B
      {"size = 60 : i64", "rows = 10 : i64, size = 60 : i64", "4x10", "356 ps, 160 B, 1 round", TransferKind::kPermute},
      // 8 * 4 * 4 B
      {"offset = 63 : i64, scale = -1 : i64", "rows = 8 : i64", "4x8", "285 ps, 128 B, 1 round",
       TransferKind::kPermute},
  };
  for (const Moved& row : rows) {
    const std::string data = R"({axes = #sdy<axis_ref_list{"data"}>})";
    const std::string op = str(
        R"(exchange"(%arg0) <{from = [[)", data, R"(, {axes = #sdy<axis_ref_list{"model"}>, )", row.from,
        R"(}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"data"}>, rows = 4 : i64}, {axes = #sdy<axis_ref_list{"model"}>, )",
        row.to, "}]}>");
    const LocalCollective found = read(program_of(op, "tensor<4x8xf32>", str("tensor<", row.result, "xf32>"),
                                                  R"(sdy.mesh @mesh = <["data"=2, "model"=8]>)"));
    EXPECT_EQ(found.transfer, row.transfer) << row.from;
    EXPECT_EQ(to_text(collective_price(found, *default_hardware())), row.price) << row.from;
    // The ledger shows the axes of all dims.
    EXPECT_EQ(axis_list_text(*found.mesh, found.axes), R"({"data", "model"})");
    EXPECT_EQ(found.group_size, 16);
  }
}

TEST(CollectivePrice, OfAnExchangeAcrossMeshes) {
  const LocalCollective found = read(program_of(
      R"(exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>}]], from_mesh = @mesh, mesh = @other, to = [{axes = )"
      R"(#sdy<axis_ref_list{"a"}>, rows = 4 : i64}]}>)",
      "tensor<4xf32>", "tensor<4xf32>",
      "sdy.mesh @mesh = <[\"x\"=2]>\nsdy.mesh @other = <[\"a\"=2], device_ids=[1, 0]>"));
  EXPECT_EQ(found.group_size, 2);
  EXPECT_EQ(found.bytes, 16);
  EXPECT_EQ(found.from_mesh->name(), "mesh");
  EXPECT_EQ(found.mesh->name(), "other");
  EXPECT_EQ(axis_list_text(*found.from_mesh, found.from_axes), R"({"x"})");
  EXPECT_EQ(collective_price(found, *default_hardware()), (Price{36, 16, 1}));
}

}  // namespace
}  // namespace shardwise
