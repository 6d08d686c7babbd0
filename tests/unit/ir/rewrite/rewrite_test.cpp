// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/rewrite.h"

#include <gtest/gtest.h>

#include "ir/test_ops.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/verifier.h"

namespace shardwise::testing {
namespace {

// %0 = add %a, %b; %1 = any(%0) { add %0, %0; return it }; %2 = add %1, %0; return %2
Module nested() {
  return parse_test(
      program("%0 = stablehlo.add %a, %b : tensor<8x8xf32>\n"
              "%1 = \"test.any\"(%0) ({\n"
              "  %9 = stablehlo.add %0, %0 : tensor<8x8xf32>\n"
              "  stablehlo.return %0 : tensor<8x8xf32>\n"
              "}) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
              "%2 = stablehlo.add %1, %0 : tensor<8x8xf32>\n"));
}

const std::vector<OpId>& ops(const Module& module) { return module.region(module.main().body).ops; }

size_t count_uses(Module& module, ValueId value) {
  size_t count = 0;
  for ([[maybe_unused]] const Use use : module.uses(value)) ++count;
  return count;
}

// The use lists hold exactly the uses that a walk finds.
void expect_current_uses(Module& module) {
  std::vector<size_t> found(module.value_count());
  const auto results = [&](RegionId region) {
    for (const ValueId result : module.region(region).results) ++found[result.index];
  };
  for (const Function& function : module.functions) results(function.body);
  walk(module, [&](OpId op) {
    for (const ValueId operand : module.operands(op)) ++found[operand.index];
    for (const RegionId region : module.regions(op)) results(region);
  });
  for (uint32_t v = 1; v < module.value_count(); ++v) EXPECT_EQ(count_uses(module, ValueId{v}), found[v]) << v;
}

ValueId add(Rewrite& rewrite, Cursor at, ValueId a, ValueId b) {
  return rewrite.insert(at, {}, [&](Builder& builder) { return builder.create("stablehlo.add", {a, b}); });
}

TEST(Walk, VisitsOpsBeforeOrBehindTheirRegions) {
  const Module module = nested();
  const OpId outer = ops(module)[1], inner = module.region(module.regions(outer)[0]).ops[0];
  std::vector<OpId> first, last;
  walk(module, [&](OpId op) { first.push_back(op); });
  walk<Order::kRegionsFirst>(module, [&](OpId op) { last.push_back(op); });
  EXPECT_EQ(first, (std::vector<OpId>{ops(module)[0], outer, inner, ops(module)[2]}));
  EXPECT_EQ(last, (std::vector<OpId>{ops(module)[0], inner, outer, ops(module)[2]}));
}

TEST(Rewrite, ReplacesUsesInRegionsAndTheirResults) {
  Module module = nested();
  const ValueId sum = module.result(ops(module)[0]), a = module.region(module.main().body).arguments[0];
  EXPECT_EQ(count_uses(module, sum), 5u);
  Rewrite(module).replace(sum, a);
  EXPECT_TRUE(module.uses(sum).empty());
  const RegionId region = module.regions(ops(module)[1])[0];
  EXPECT_EQ(module.region(region).results[0], a);
  EXPECT_EQ(module.operands(module.region(region).ops[0])[1], a);
  verify(module);
  expect_current_uses(module);
}

TEST(Rewrite, KeepsTheUsesOfOneOp) {
  Module module = nested();
  Rewrite rewrite(module);
  const ValueId sum = module.result(ops(module)[0]);
  const ValueId twice = add(rewrite, rewrite.behind(sum), sum, sum);
  rewrite.replace(sum, twice, module.value(twice).op);
  rewrite.commit();
  EXPECT_EQ(ops(module)[1], module.value(twice).op);
  EXPECT_EQ(module.operands(ops(module)[1])[0], sum);
  EXPECT_EQ(module.operands(ops(module)[3])[1], twice);
  verify(module);
  expect_current_uses(module);
}

// Lists of ops change on commit; what is inserted at one cursor keeps its order.
TEST(Rewrite, InsertsAtCursors) {
  Module module = nested();
  const std::vector<OpId> before = ops(module);
  const RegionId body = module.main().body;
  const ValueId a = module.region(body).arguments[0];
  Rewrite rewrite(module);
  const Cursor second = rewrite.before(before[1]);
  std::vector<OpId> made;
  for (const Cursor at : {second, second, rewrite.begin(body), rewrite.end(body), rewrite.after(before[2])}) {
    made.push_back(module.value(add(rewrite, at, a, a)).op);
    EXPECT_EQ(ops(module), before);
  }
  rewrite.commit();
  EXPECT_EQ(ops(module),
            (std::vector<OpId>{made[2], before[0], made[0], made[1], before[1], before[2], made[3], made[4]}));
  verify(module);
  expect_current_uses(module);
}

// The new op in the inner region replaces one that is still in the list, and the region itself is in a new op's list.
TEST(Rewrite, CommitsAllRegionsInsideAnOp) {
  Module module =
      parse_test(program("%0 = stablehlo.add %a, %b : tensor<8x8xf32>\n"
                         "%1 = \"test.any\"(%0) ({\n"
                         "  %2 = \"test.any\"(%0) ({\n"
                         "    %3 = stablehlo.add %0, %0 : tensor<8x8xf32>\n"
                         "    stablehlo.return %3 : tensor<8x8xf32>\n"
                         "  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                         "  stablehlo.return %2 : tensor<8x8xf32>\n"
                         "}) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                         "%4 = stablehlo.add %1, %0 : tensor<8x8xf32>\n"));
  const OpId outer = ops(module)[1];
  const RegionId middle = module.regions(outer)[0];
  const RegionId inner = module.regions(module.region(middle).ops[0])[0];
  const OpId old = module.region(inner).ops[0];
  Rewrite rewrite(module);
  const ValueId sum = module.result(ops(module)[0]);
  const ValueId made = add(rewrite, rewrite.before(old), sum, module.operands(old)[1]);
  rewrite.replace(old, std::span(&made, 1));
  EXPECT_EQ(module.region(inner).ops, std::vector{old});
  rewrite.commit_inside(outer);
  EXPECT_EQ(module.region(inner).ops, std::vector{module.value(made).op});
  verify(module);
  expect_current_uses(module);
}

TEST(Rewrite, ErasesWithRegionsAndMoves) {
  Module module = nested();
  const std::vector<OpId> before = ops(module);
  const ValueId sum = module.result(before[0]);
  {
    Rewrite rewrite(module);
    const ValueId by[] = {sum};
    rewrite.replace(before[1], by);
    EXPECT_TRUE(rewrite.is_erased(before[1]));
    const ValueId late = add(rewrite, rewrite.end(module.main().body), sum, sum);
    rewrite.move(module.value(late).op, rewrite.after(before[0]));
    EXPECT_EQ(ops(module), before);
  }
  EXPECT_EQ(ops(module).size(), 3u);
  EXPECT_EQ(ops(module)[2], before[2]);
  EXPECT_EQ(count_uses(module, sum), 4u);
  verify(module);
  expect_current_uses(module);
}

TEST(Rewrite, MovesAllOpsOfARegion) {
  Module module = nested();
  const std::vector<OpId> before = ops(module);
  const RegionId region = module.regions(before[1])[0];
  const OpId inner = module.region(region).ops[0];
  Rewrite rewrite(module);
  rewrite.move_ops(region, rewrite.before(before[1]));
  const ValueId results[] = {module.region(region).results[0]};
  rewrite.replace(before[1], results);
  rewrite.commit();
  EXPECT_EQ(ops(module), (std::vector<OpId>{before[0], inner, before[2]}));
  verify(module);
  expect_current_uses(module);
}

TEST(Rewrite, CommitsOneRegion) {
  Module module = nested();
  const RegionId region = module.regions(ops(module)[1])[0];
  Rewrite rewrite(module);
  rewrite.erase(module.region(region).ops[0]);
  rewrite.erase(ops(module)[2]);
  rewrite.commit(region);
  EXPECT_TRUE(module.region(region).ops.empty());
  EXPECT_EQ(ops(module).size(), 3u);
}

TEST(UseLists, FollowWhatIsAppended) {
  Module module = nested();
  const ValueId sum = module.result(ops(module)[0]);
  EXPECT_EQ(count_uses(module, sum), 5u);
  GraphCopy(module, module).op(ops(module)[1], module.main().body);
  EXPECT_EQ(count_uses(module, sum), 9u);
  expect_current_uses(module);
  Module copy = module;
  expect_current_uses(copy);
  EXPECT_EQ(count_uses(copy, copy.result(ops(copy)[0])), 9u);
}

// A region that was made before the lists belongs to an op that comes after.
TEST(UseLists, FindRegionsThatAreOlder) {
  Module module = nested();
  const RegionId region = GraphCopy(module, module).region(module.regions(ops(module)[1])[0]);
  const ValueId sum = module.result(ops(module)[0]);
  EXPECT_EQ(count_uses(module, sum), 5u);
  const ValueId operands[] = {sum};
  const TypeId types[] = {module.value(sum).type};
  const RegionId regions[] = {region};
  module.append_op(module.main().body, get_op("test.any"), operands, {}, types, {}, regions);
  EXPECT_EQ(count_uses(module, sum), 9u);
  expect_current_uses(module);
}

TEST(Origins, ReplaceAndCloneKeepThem) {
  Module module = nested();
  module.mark_origins();
  const OpId outer = ops(module)[1];
  const OpId copied = GraphCopy(module, module).op(outer, module.main().body);
  EXPECT_EQ(module.op(copied).origin, outer);
  EXPECT_EQ(module.value(module.result(copied)).origin, module.result(outer));
  EXPECT_EQ(module.op(module.region(module.regions(copied)[0]).ops[0]).origin,
            module.region(module.regions(outer)[0]).ops[0]);
  Rewrite(module).replace(module.result(outer), module.result(copied));
  EXPECT_EQ(module.value(module.result(copied)).origin, module.result(outer));
}

}  // namespace
}  // namespace shardwise::testing
