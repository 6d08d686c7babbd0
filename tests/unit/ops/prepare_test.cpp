// SPDX-License-Identifier: Apache-2.0
//
// Kernels for other types than the op's own: those of two shards side by side along one dim.
#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/reduce_window.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/indexing/indexing.h"

namespace shardwise::test {
namespace {

// Twice as large along one dim of each tensor; -1: not.
std::optional<Kernel> prepared_for_two(const OpView& op, const std::vector<int>& operand_dims, int result_dim) {
  OwnTypes own(op);
  for (size_t i = 0; i < operand_dims.size(); ++i) {
    if (operand_dims[i] >= 0) own.operands[i].shape[static_cast<size_t>(operand_dims[i])] *= 2;
  }
  own.results[0].shape[static_cast<size_t>(result_dim)] *= 2;
  return op.def().prepare(op, own.types());
}

class Prepare : public ::testing::Test {
 protected:
  ValueId input(Dims shape, DType dtype = DType::kF32) { return graph_.input(random_array(dtype, std::move(shape))); }
  OpView op(ValueId result) { return {graph_.module(), graph_.module().value(result).op}; }

  TestGraph graph_;
};

TEST_F(Prepare, NoneWhereAttributesHaveTheSizesOfOneShard) {
  Builder builder = graph_.builder();
  const ValueId x = input({4, 6});
  const OpView slice = op(build_slice(builder, x, Dims{0, 1}, Dims{4, 3}, Dims{1, 1}));
  EXPECT_FALSE(prepared_for_two(slice, {0}, 0).has_value());
  const ValueId zero = build_scalar(builder, Scalar::of_int(DType::kI32, 0));
  const OpView dynamic =
      op(builder.create("stablehlo.dynamic_slice", {x, zero, zero}, {{"slice_sizes", IntArray{4, 2}}}));
  EXPECT_FALSE(prepared_for_two(dynamic, {0, -1, -1}, 0).has_value());
  const ValueId pad_value = build_scalar(builder, Scalar::of_float(DType::kF32, 0));
  const OpView pad = op(build_pad(builder, x, pad_value, Dims{0, 1}, Dims{0, 1}, Dims{0, 0}));
  EXPECT_FALSE(prepared_for_two(pad, {1, -1}, 1).has_value());
  EXPECT_TRUE(prepared_for_two(pad, {0, -1}, 0).has_value());
  Window window = Window::trivial(2);
  window.sizes[1] = 3;
  const OpView windows = op(build_reduce_window(builder, x, {}, Reducer::kSum, window));
  EXPECT_FALSE(prepared_for_two(windows, {1, -1}, 1).has_value());
  EXPECT_TRUE(prepared_for_two(windows, {0, -1}, 0).has_value());
}

TEST_F(Prepare, GathersMergeAlongIndicesButNotAlongSlices) {
  Builder builder = graph_.builder();
  const ValueId table = input({8, 6}), indices = input({5, 1}, DType::kI32);
  const IndexingDims dims{.offset = {1},
                          .collapsed = {0},
                          .operand_batching = {},
                          .indices_batching = {},
                          .index_map = {0},
                          .index_vector_dim = 1};
  const OpView gather = op(build_gather(builder, table, indices, dims, Dims{1, 6}));
  EXPECT_TRUE(prepared_for_two(gather, {-1, 0}, 0).has_value());
  EXPECT_FALSE(prepared_for_two(gather, {1, -1}, 1).has_value());
}

// Rows of two shards: what each shard gives, one above the other.
TEST_F(Prepare, OneCallComputesBothShards) {
  Builder builder = graph_.builder();
  const NdArray rows = random_array(DType::kF32, {8, 6}), columns = random_array(DType::kF32, {6, 3});
  const ValueId x = input({4, 6}), w = graph_.input(columns);
  const ValueId results[] = {build_dot(builder, x, w, {{}, {}, {1}, {0}}, DType::kF32),
                             build_transpose(builder, x, Dims{1, 0}), build_reshape(builder, x, Dims{4, 3, 2}),
                             build_reduce(builder, x, {}, Reducer::kMax, Dims{1}), build_reverse(builder, x, Dims{1})};
  for (const ValueId result : results) {
    const OpView whole = op(result);
    const int dim = whole.name() == "stablehlo.transpose" ? 1 : 0;
    const auto kernel = prepared_for_two(whole, {0}, dim);
    ASSERT_TRUE(kernel.has_value()) << whole.name();
    OwnTypes own(whole);
    std::vector<NdArray> operands{rows}, rest;
    if (whole.operand_count() > 1) rest.push_back(graph_.evaluate(whole.operand(1)));
    operands.insert(operands.end(), rest.begin(), rest.end());
    TensorType both = own.results[0];
    both.shape[static_cast<size_t>(dim)] *= 2;
    TestKernelContext context({both}, operands, 1 << 30);
    (*kernel)(context);
    for (const int64_t shard : {0, 1}) {
      std::vector<NdArray> part{rows.sliced(0, 4 * shard, 4)};
      part.insert(part.end(), rest.begin(), rest.end());
      TestKernelContext alone(own.results, part, 1 << 30);
      prepared(whole)(alone);
      const int64_t size = own.results[0].shape[static_cast<size_t>(dim)];
      EXPECT_TRUE(same_bytes(context.result(0).sliced(dim, size * shard, size), alone.result(0))) << whole.name();
    }
  }
}

}  // namespace
}  // namespace shardwise::test
