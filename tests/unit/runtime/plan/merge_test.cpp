// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/merge.h"

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/simulator.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/runtime/plan/plan.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

class Merged : public ::testing::Test {
 protected:
  Merged() : mesh_(std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}, {"y", 4}})), program_(mesh_) {}

  AxisList x() const { return {full_axis(*mesh_, 0)}; }
  AxisList y() const { return {full_axis(*mesh_, 1)}; }

  // Both modes agree, and the quick one's shards are parts of one array: what one call for all of them leaves.
  void expect_one_call(const Executable& executable) {
    Random random(31);
    std::vector<ShardedArray> arguments;
    for (size_t i = 0; i < executable.argument_count(); ++i) {
      const NdArray whole = NdArray::empty(DType::kF32, executable.argument_type(i).shape);
      for (int64_t k = 0; k < whole.size(); ++k) store_at(whole, k, Scalar::of_int(DType::kF32, below(random, 9) - 4));
      arguments.push_back(given(executable, i, whole));
    }
    const auto quick = run_virtual(executable, arguments);
    const auto faithful = run_virtual(executable, arguments, {.faithful = true});
    for (size_t i = 0; i < quick.size(); ++i) {
      EXPECT_TRUE(same_elements(gather(quick[i]), gather(faithful[i])));
      ASSERT_TRUE(quick[i].shards().is_stacked());
      EXPECT_EQ(gather(quick[i]).data(), quick[i].shards().stacked().data());
    }
  }

  MeshPtr mesh_;
  LocalProgram program_;
};

TEST_F(Merged, RowsAndColumnsOfAProduct) {
  const ValueId lhs = program_.argument(DType::kF32, {8, 6}, {x(), {}});
  const ValueId rhs = program_.argument(DType::kF32, {6, 12}, {{}, y()});
  Builder builder = program_.builder();
  const ValueId product = build_dot(builder, lhs, rhs, {{}, {}, {1}, {0}}, DType::kF32);
  expect_one_call(*program_.finish({{product, {8, 12}, {x(), y()}}}));
}

TEST_F(Merged, TheBatchDimThatIsSharded) {  // both batch dims would do; the shards lie beside the second
  const ValueId lhs = program_.argument(DType::kF32, {3, 8, 2, 5}, {{}, y(), {}, {}});
  const ValueId rhs = program_.argument(DType::kF32, {3, 8, 5, 4}, {{}, y(), {}, {}});
  Builder builder = program_.builder();
  const ValueId product = build_dot(builder, lhs, rhs, {{0, 1}, {0, 1}, {3}, {2}}, DType::kF32);
  expect_one_call(*program_.finish({{product, {3, 8, 2, 4}, {{}, y(), {}, {}}}}));
}

TEST_F(Merged, ChainsOfMovementReductionAndArithmetic) {
  const ValueId a = program_.argument(DType::kF32, {8, 12, 3}, {x(), y(), {}});
  Builder builder = program_.builder();
  const ValueId turned = build_transpose(builder, a, Dims{2, 1, 0});
  const ValueId doubled = builder.create("stablehlo.add", {turned, turned});
  const ValueId summed = build_reduce(builder, doubled, ValueId{}, Reducer::kSum, Dims{0});
  expect_one_call(*program_.finish({{summed, {12, 8}, {y(), x()}}, {doubled, {3, 12, 8}, {{}, y(), x()}}}));
}

TEST_F(Merged, NotWhereAttributesNameTheLocalShape) {
  const ValueId a = program_.argument(DType::kF32, {8, 6}, {x(), {}});
  Builder builder = program_.builder();
  const ValueId part = build_slice(builder, a, Dims{0, 1}, Dims{4, 3}, Dims{1, 1});
  const auto executable = program_.finish({{part, {8, 2}, {x(), {}}}});
  const Plan plan = make_plan(program_.module(), *mesh_, {});
  EXPECT_FALSE(std::get<KernelCall>(plan.main.steps.back().work).merge.has_value());
  Random random(32);
  const NdArray whole = random_array(random, DType::kF32, {8, 6});
  const auto results = run_virtual(*executable, std::vector{given(*executable, 0, whole)});
  EXPECT_TRUE(same_elements(gather(results[0]), whole.sliced(1, 1, 2)));
}

TEST_F(Merged, ContractingShardsStayApart) {
  const ValueId lhs = program_.argument(DType::kF32, {4, 8}, {{}, y()});
  const ValueId rhs = program_.argument(DType::kF32, {8, 4}, {y(), {}});
  Builder builder = program_.builder();
  const ValueId partial = build_dot(builder, lhs, rhs, {{}, {}, {1}, {0}}, DType::kF32);
  program_.module().region(program_.module().main().body).results.push_back(partial);
  const Plan plan = make_plan(program_.module(), *mesh_, {});
  EXPECT_FALSE(std::get<KernelCall>(plan.main.steps.back().work).merge.has_value());
  EXPECT_EQ(product(plan.main.steps.back().axes), 4);
}

}  // namespace
}  // namespace shardwise
