// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/fuse.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "analysis/timed.h"
#include "shardwise/analysis/group_time.h"
#include "shardwise/analysis/mergeable_groups.h"
#include "shardwise/analysis/placement_cuts.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

using testing::main_text;
using testing::round_hardware;

// Groups as lines: the ops, what they read and write in bytes.
//   "dot_general add tanh: 147456"
std::string groups_text(const Module& module, const FusionOptions& options = {}) {
  std::string text;
  for (const FusionGroup& group : fuse(module, options).groups) {
    std::string line;
    for (const OpId op : group.ops) {
      const std::string_view name = OpView(module, op).name();
      line += str(line.empty() ? "" : " ", name.substr(name.find('.') + 1));
    }
    for (const OpId op : group.computed_again) {
      const std::string_view name = OpView(module, op).name();
      line += str(" +", name.substr(name.find('.') + 1));
    }
    text += str(line, ": ", group_time(module, group, round_hardware()).bytes, "\n");
  }
  return text;
}

std::string groups_of(const std::string& body, const std::string& arguments, const std::string& result,
                      const FusionOptions& options = {}) {
  return groups_text(parse_program(main_text(body, arguments, result)), options);
}

TEST(Fusion, AnElementwiseChainPaysItsEndsAlone) {
  // 1000 floats in and out
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<1000xf32>
    %1 = stablehlo.add %0, %0 : tensor<1000xf32>
    %r = stablehlo.exponential %1 : tensor<1000xf32>)",
                      "%a: tensor<1000xf32>", "tensor<1000xf32>"),
            "tanh add exponential: 8000\n");
}

TEST(Fusion, ALongChainIsOneGroup) {
  std::string body = "%0 = stablehlo.tanh %a : tensor<1000xf32>\n";
  for (int i = 0; i < 1000; ++i) body += str("%", i + 1, " = stablehlo.add %", i, ", %a : tensor<1000xf32>\n");
  const Module module = parse_program(
      main_text(body + "%r = stablehlo.negate %1000 : tensor<1000xf32>", "%a: tensor<1000xf32>", "tensor<1000xf32>"));
  const Fusion fusion = fuse(module, {});
  ASSERT_EQ(fusion.groups.size(), 1);
  EXPECT_EQ(group_time(module, fusion.groups[0], round_hardware()).bytes, 8000);
}

TEST(Fusion, ChainsThatMeetAreOne) {
  // two in, one out; %0 is computed once
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<1000xf32>
    %1 = stablehlo.exponential %b : tensor<1000xf32>
    %r = stablehlo.add %0, %1 : tensor<1000xf32>)",
                      "%a: tensor<1000xf32>, %b: tensor<1000xf32>", "tensor<1000xf32>"),
            "tanh exponential add: 12000\n");
}

TEST(Fusion, AnEpilogueBelongsToItsProduct) {
  // 4·(64·128 + 128·256 + 64·256 + 256): the bias is read as it is, before it is broadcast
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
    %2 = stablehlo.add %0, %1 : tensor<64x256xf32>
    %r = stablehlo.tanh %2 : tensor<64x256xf32>)",
                      "%a: tensor<64x128xf32>, %b: tensor<128x256xf32>, %c: tensor<256xf32>", "tensor<64x256xf32>"),
            "dot_general add tanh: 230400\n");
}

TEST(Fusion, WideningIsPartOfWhatReadsIt) {
  // 2·(64·128 + 128·256) as bf16, 2·64·256 of the result
  EXPECT_EQ(groups_of(R"(%x = stablehlo.convert %a : (tensor<64x128xbf16>) -> tensor<64x128xf32>
    %y = stablehlo.convert %b : (tensor<128x256xbf16>) -> tensor<128x256xf32>
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
    %r = stablehlo.convert %0 : (tensor<64x256xf32>) -> tensor<64x256xbf16>)",
                      "%a: tensor<64x128xbf16>, %b: tensor<128x256xbf16>", "tensor<64x256xbf16>"),
            "dot_general convert: 114688\n");
}

TEST(Fusion, IntegersAreWidenedWhereTheyAreRead) {
  // 2·64·128 as bf16, 128·256 as i8, 2·64·256 of the result
  EXPECT_EQ(groups_of(R"(%w = stablehlo.convert %b : (tensor<128x256xi8>) -> tensor<128x256xbf16>
    %r = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
        : (tensor<64x128xbf16>, tensor<128x256xbf16>) -> tensor<64x256xbf16>)",
                      "%a: tensor<64x128xbf16>, %b: tensor<128x256xi8>", "tensor<64x256xbf16>"),
            "dot_general: 81920\n");
}

// Two products read %0: it is written once and read twice.
TEST(Fusion, AValueThatOtherGroupsReadIsWrittenOnce) {
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<32x32xf32>
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0]
        : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
        : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %r = stablehlo.add %2, %1 : tensor<32x32xf32>)",
                      "%a: tensor<32x32xf32>", "tensor<32x32xf32>"),
            // 4·32²: in, out; %0, out; %0, %1, out
            "tanh: 8192\ndot_general: 8192\ndot_general add: 12288\n");
}

// A residual: the product reads %0 from memory, and so does the add behind it.
TEST(Fusion, AProducerOfAProductIsAnotherKernel) {
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<32x32xf32>
    %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
        : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %r = stablehlo.add %0, %1 : tensor<32x32xf32>)",
                      "%a: tensor<32x32xf32>, %b: tensor<32x32xf32>", "tensor<32x32xf32>"),
            "tanh: 8192\ndot_general add: 12288\n");
}

// A mask that is made of positions is made where it is used.
TEST(Fusion, ValuesOfPositionsAreMadeWhereTheyAreUsed) {
  EXPECT_EQ(groups_of(R"(%i = stablehlo.iota dim = 0 : tensor<32x32xi32>
    %j = stablehlo.iota dim = 1 : tensor<32x32xi32>
    %m = stablehlo.compare GE, %i, %j : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %r = stablehlo.select %m, %a, %b : tensor<32x32xi1>, tensor<32x32xf32>)",
                      "%a: tensor<32x32xf32>, %b: tensor<32x32xf32>", "tensor<32x32xf32>"),
            "select: 12288\n");
}

// An add of %0 and of what is sorted from it: the sort would wait for a group that waits for it.
TEST(Fusion, NoGroupWaitsForItself) {
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<64xf32>
    %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<64xf32>) -> tensor<64xf32>
    %r = stablehlo.add %0, %1 : tensor<64xf32>)",
                      "%a: tensor<64xf32>", "tensor<64xf32>"),
            // the second group reads %0 once for both of its ops
            "tanh: 512\nsort add: 512\n");
}

const std::string kSoftmax = R"(
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%s init: %ninf) applies stablehlo.maximum across dimensions = [1]
      : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %d = stablehlo.subtract %s, %mb : tensor<64x256xf32>
  %e = stablehlo.exponential %d : tensor<64x256xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %r = stablehlo.divide %e, %zb : tensor<64x256xf32>)";

TEST(Fusion, RowsStayOnTheChip) {
  // in and out once: 2·4·64·256; the init values are splats
  EXPECT_EQ(groups_of(kSoftmax, "%s: tensor<64x256xf32>", "tensor<64x256xf32>"),
            "reduce subtract exponential reduce divide: 131072\n");
}

// The mean of a column is known only when all rows have been read.
TEST(Fusion, ColumnsAreReadAgain) {
  EXPECT_EQ(groups_of(R"(%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.tanh %a : tensor<64x256xf32>
    %m = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
    %r = stablehlo.subtract %0, %mb : tensor<64x256xf32>)",
                      "%a: tensor<64x256xf32>", "tensor<64x256xf32>"),
            // 65536 in, %0 out, 1024 sums; both in again, 65536 out
            "tanh reduce: 132096\nsubtract: 132096\n");
}

TEST(Fusion, HalvesOfAValueAreReadOnceEach) {
  // both halves of 512 columns are all of it: 4·(64·512 + 64·256)
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.slice %a [0:64, 0:256] : (tensor<64x512xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.slice %a [0:64, 256:512] : (tensor<64x512xf32>) -> tensor<64x256xf32>
    %2 = stablehlo.logistic %1 : tensor<64x256xf32>
    %r = stablehlo.multiply %0, %2 : tensor<64x256xf32>)",
                      "%a: tensor<64x512xf32>", "tensor<64x256xf32>"),
            "logistic multiply: 196608\n");
}

TEST(Fusion, AnUpdateInPlaceIsNotReadWhole) {
  // tanh: 256 in and out; the update: 256 in and out and two scalars; then the whole of %1 in and out
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %b : tensor<1x64xf32>
    %1 = stablehlo.dynamic_update_slice %a, %0, %i, %i : (tensor<36x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>)
        -> tensor<36x64xf32>
    %r = stablehlo.negate %1 : tensor<36x64xf32>)",
                      "%a: tensor<36x64xf32>, %b: tensor<1x64xf32>, %i: tensor<i32>", "tensor<36x64xf32>"),
            "tanh: 512\ndynamic_update_slice: 516\nnegate: 18432\n");
}

TEST(Fusion, AReturnedViewOfAnArgumentIsACopy) {
  EXPECT_EQ(groups_of("%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>",
                      "%a: tensor<8x16xf32>", "tensor<16x8xf32>"),
            "transpose: 1024\n");
  // a reshape is the same memory
  EXPECT_EQ(groups_of("%r = stablehlo.reshape %a : (tensor<8x16xf32>) -> tensor<128xf32>", "%a: tensor<8x16xf32>",
                      "tensor<128xf32>"),
            "");
  // a result is written as its view
  EXPECT_EQ(groups_of("%0 = stablehlo.tanh %a : tensor<8x16xf32>\n"
                      "%r = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>",
                      "%a: tensor<8x16xf32>", "tensor<16x8xf32>"),
            "tanh: 1024\n");
}

// A loop reads its carries and captures from memory in each trip.
TEST(Fusion, GroupsEndAtRegions) {
  EXPECT_EQ(groups_of(R"(%0 = stablehlo.tanh %a : tensor<100xf32>
    %r = "stablehlo.case"(%i) ({
      %1 = stablehlo.negate %0 : tensor<100xf32>
      stablehlo.return %1 : tensor<100xf32>
    }, {
      stablehlo.return %0 : tensor<100xf32>
    }) : (tensor<i32>) -> tensor<100xf32>)",
                      "%a: tensor<100xf32>, %i: tensor<i32>", "tensor<100xf32>"),
            "tanh: 800\nnegate: 800\n");
}

// ---- attention -----------------------------------------------------------------------------------------------------

// Of 8 heads: 64 queries and 128 keys of 16 numbers.
std::string attention(bool has_mask) {
  return std::string(R"(%s0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<8x64x16xf32>, tensor<8x128x16xf32>) -> tensor<8x64x128xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<-1.0e30> : tensor<8x64x128xf32>
  %maskb = stablehlo.broadcast_in_dim %mask, dims = [1, 2] : (tensor<64x128xi1>) -> tensor<8x64x128xi1>
)") +
         (has_mask ? "%s = stablehlo.select %maskb, %s0, %low : tensor<8x64x128xi1>, tensor<8x64x128xf32>\n"
                   : "%s = stablehlo.negate %s0 : tensor<8x64x128xf32>\n") +
         R"(%m = stablehlo.reduce(%s init: %ninf) applies stablehlo.maximum across dimensions = [2]
      : (tensor<8x64x128xf32>, tensor<f32>) -> tensor<8x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x64xf32>) -> tensor<8x64x128xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x64x128xf32>
  %e = stablehlo.exponential %d : tensor<8x64x128xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
      : (tensor<8x64x128xf32>, tensor<f32>) -> tensor<8x64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0, 1] : (tensor<8x64xf32>) -> tensor<8x64x128xf32>
  %p = stablehlo.divide %e, %zb : tensor<8x64x128xf32>
  %r = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<8x64x128xf32>, tensor<8x128x16xf32>) -> tensor<8x64x16xf32>)";
}
const std::string kHeads =
    "%q: tensor<8x64x16xf32>, %k: tensor<8x128x16xf32>, %v: tensor<8x128x16xf32>, %mask: tensor<64x128xi1>";

TEST(Fusion, AttentionIsOneGroupWhereTheHardwareFusesIt) {
  // q, k, v and the result: 4·8·16·(64 + 128 + 128 + 64) = 196608
  EXPECT_EQ(groups_of(attention(false), kHeads, "tensor<8x64x16xf32>", {.fused_attention = true}),
            "dot_general negate reduce subtract exponential reduce divide dot_general: 196608\n");
  // and the mask, 64·128, which is not broadcast in memory
  EXPECT_EQ(groups_of(attention(true), kHeads, "tensor<8x64x16xf32>", {.fused_attention = true}),
            "dot_general select reduce subtract exponential reduce divide dot_general: 204800\n");
}

TEST(Fusion, AttentionIsTwoGroupsElsewhere) {
  // q, k, the mask and 4·8·64·128 probabilities out; probabilities, v and the result
  EXPECT_EQ(groups_of(attention(true), kHeads, "tensor<8x64x16xf32>"),
            "dot_general select reduce subtract exponential reduce divide: 368640\ndot_general: 360448\n");
}

TEST(Fusion, ProductsWithoutRowsThatAreReducedAreApart) {
  EXPECT_EQ(groups_of(R"(%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<8x64x16xf32>, tensor<8x128x16xf32>) -> tensor<8x64x128xf32>
    %r = stablehlo.dot_general %s, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<8x64x128xf32>, tensor<8x128x16xf32>) -> tensor<8x64x16xf32>)",
                      kHeads, "tensor<8x64x16xf32>", {.fused_attention = true}),
            "dot_general: 360448\ndot_general: 360448\n");
}

// A normalized layer between two products with weights has the same shape, but no batch: no kernel keeps the weights.
TEST(Fusion, ProductsWithWeightsAreApart) {
  const std::string text = groups_of(R"(%s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x32xf32>, tensor<32x256xf32>) -> tensor<64x256xf32>)" +
                                         kSoftmax.substr(0, kSoftmax.rfind("%r")) +
                                         R"(%n = stablehlo.divide %e, %zb : tensor<64x256xf32>
    %r = stablehlo.dot_general %n, %c, contracting_dims = [1] x [0]
      : (tensor<64x256xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>)",
                                     "%a: tensor<64x32xf32>, %b: tensor<32x256xf32>, %c: tensor<256x32xf32>",
                                     "tensor<64x32xf32>", {.fused_attention = true});
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

// ---- size ----------------------------------------------------------------------------------------------------------

constexpr int kMany = 100'000;

TEST(Fusion, ReadsOfManyOpsStayDistinct) {
  std::string body, arguments = "%a: tensor<8xf32>";
  for (int i = 0; i < kMany; ++i) {
    arguments += str(", %a", i, ": tensor<8xf32>");
    body += str(i + 1 == kMany ? "%r" : str("%", i), " = stablehlo.add %", i == 0 ? "a" : str(i - 1), ", %a", i,
                " : tensor<8xf32>\n");
  }
  const Fusion fusion = fuse(parse_program(main_text(body, arguments, "tensor<8xf32>")), {});
  ASSERT_EQ(fusion.groups.size(), 1);
  EXPECT_EQ(fusion.groups[0].ops.size(), kMany);
  EXPECT_EQ(fusion.groups[0].reads.size(), kMany + 1);
}

// Without recursion, and each view once, although each is read.
TEST(Fusion, AChainOfManyViewsIsSeenThrough) {
  std::string body;
  for (int i = 0; i < kMany; ++i) {
    body += str("%v", i, " = stablehlo.reverse %", i == 0 ? "a" : str("v", i - 1), ", dims = [0] : tensor<8xf32>\n");
    body += str("%t", i, " = stablehlo.add %v", i, ", %", i == 0 ? "a" : str("t", i - 1), " : tensor<8xf32>\n");
  }
  body += str("%r = stablehlo.negate %t", kMany - 1, " : tensor<8xf32>");
  const Module module = parse_program(main_text(body, "%a: tensor<8xf32>", "tensor<8xf32>"));
  const std::vector<PlacementId> placements(module.value_count());
  const Fusion fusion = fuse(module, {.is_cut = cuts_between(placements)});
  ASSERT_EQ(fusion.groups.size(), 1);
  EXPECT_EQ(fusion.groups[0].ops.size(), kMany + 1);
  EXPECT_EQ(fusion.groups[0].reads.front().memory, module.operands(module.region(module.main().body).ops[0])[0]);
}

// A chain of elementwise groups that join one by one, each of which reads another sort from memory.
TEST(MergeableGroups, AProductDoesNotWaitForATransferBehindIt) {
  MergeableGroups groups;
  const auto early = groups.add({});
  const auto product = groups.add({.core = GroupCore::kProduct, .products = 1});
  const auto late = groups.add({});
  const auto reads = [&](MergeableGroups::Id sent) {
    const auto add = groups.add({.transfer_read = groups.place(sent) + 1});
    groups.add_read(add, product, false);
    return add;
  };
  const auto behind = reads(late), after_behind = groups.add({});
  groups.add_read(after_behind, behind, false);
  EXPECT_FALSE(groups.merge(product, behind, false));
  EXPECT_TRUE(groups.merge(behind, after_behind, false));
  EXPECT_FALSE(groups.merge(product, after_behind, false));
  EXPECT_TRUE(groups.merge(product, reads(early), false));
}

TEST(MergeableGroups, NeighborsAreLookedAtAFewTimes) {
  MergeableGroups groups;
  MergeableGroups::Id chain = groups.add({});
  for (int i = 0; i < kMany; ++i) {
    const MergeableGroups::Id sort = groups.add({.core = GroupCore::kOther});
    const MergeableGroups::Id next = groups.add({});
    groups.add_read(next, chain, false);
    groups.add_read(next, sort, true);
    groups.merge(chain, next, false);
    chain = groups.find(next);
  }
  // Lists are copied into longer ones and halve when repetitions are dropped: far from kMany * kMany.
  EXPECT_LT(groups.steps(), int64_t{kMany} * 1000);
}

// ---- placements ----------------------------------------------------------------------------------------------------

TEST(Fusion, AGroupIsCutWhereAnOpReadsAnotherPlacement) {
  const Module module = parse_program(main_text(R"(%0 = stablehlo.tanh %a : tensor<1000xf32>
    %r = stablehlo.negate %0 : tensor<1000xf32>)",
                                                "%a: tensor<1000xf32>", "tensor<1000xf32>"));
  const auto cut = [](const OpView& op, size_t) { return op.name() == "stablehlo.negate"; };
  EXPECT_EQ(groups_text(module, {.is_cut = cut}), "tanh: 8000\nnegate: 8000\n");
}

// The placements of the values of a program, by their names in its text.
struct Placements {
  const Module& module;
  MeshPtr mesh;
  std::vector<PlacementId> ids;

  explicit Placements(const Module& program)
      : module(program), mesh(program.find_mesh("mesh")), ids(program.value_count()) {
    walk(module, [&](OpId op) {
      for (const ValueId value : module.operands(op)) set(value, {});
      set(module.result(op), {});
    });
  }
  // `dims`: whether each dim is sharded along "x".
  void set(ValueId value, const std::vector<bool>& dims) {
    Placement placement = replicated_placement(mesh, module.type(value).shape);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d]) placement.dims[d] = {{full_axis(*mesh, 0)}, module.type(value).shape[d] / 2};
    }
    ids[value.index] = module.context().intern(placement);
  }
};

TEST(Fusion, PlacementsCutWhereTheRuleDisagrees) {
  const Module module =
      parse_program("sdy.mesh @mesh = <[\"x\"=2]>\n" + main_text(R"(
    %0 = stablehlo.tanh %a : tensor<8x16xf32>
    %1 = stablehlo.negate %0 : tensor<8x16xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %r = stablehlo.exponential %2 : tensor<16x8xf32>)",
                                                                 "%a: tensor<8x16xf32>", "tensor<16x8xf32>"));
  Placements placements(module);
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  const auto cuts = [&](const OpView& op, size_t operand) { return cuts_between(placements.ids)(op, operand); };
  EXPECT_FALSE(cuts(OpView(module, ops[1]), 0));
  placements.set(module.result(ops[0]), {true, false});
  EXPECT_TRUE(cuts(OpView(module, ops[1]), 0));
  placements.set(module.result(ops[1]), {true, false});
  EXPECT_FALSE(cuts(OpView(module, ops[1]), 0));
  // through the transpose
  placements.set(module.result(ops[2]), {false, true});
  placements.set(module.result(ops[3]), {false, true});
  EXPECT_FALSE(cuts(OpView(module, ops[3]), 0));
  placements.set(module.result(ops[1]), {false, true});
  EXPECT_TRUE(cuts(OpView(module, ops[3]), 0));
}

TEST(Fusion, PlacementsCutBehindASumOverShards) {
  const Module module = parse_program("sdy.mesh @mesh = <[\"x\"=2]>\n" + main_text(R"(
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %r = stablehlo.tanh %0 : tensor<8x4xf32>)",
                                                                                   "%a: tensor<8x16xf32>, "
                                                                                   "%b: tensor<16x4xf32>",
                                                                                   "tensor<8x4xf32>"));
  Placements placements(module);
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  const auto cuts = [&](const OpView& op, size_t operand) { return cuts_between(placements.ids)(op, operand); };
  EXPECT_FALSE(cuts(OpView(module, ops[1]), 0));
  placements.set(module.operands(ops[0])[0], {false, true});
  placements.set(module.operands(ops[0])[1], {true, false});
  EXPECT_TRUE(cuts(OpView(module, ops[1]), 0));
}

}  // namespace
}  // namespace shardwise
