// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/executor.h"

#include <cmath>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/processes.h"
#include "runtime/simulator.h"
#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/runtime/memory/buffer_pool.h"
#include "shardwise/runtime/memory/one_device.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using testing::message_of;

using namespace shardwise::testing;

MeshPtr mesh_2x4() { return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}, {"y", 4}}); }

// Small integers, so that sums are exact in any order.
NdArray integers(Random& random, DType dtype, Dims shape) {
  NdArray array = NdArray::empty(dtype, std::move(shape));
  for (int64_t i = 0; i < array.size(); ++i) store_at(array, i, Scalar::of_int(dtype, below(random, 9) - 4));
  return array;
}

NdArray matmul(const NdArray& a, const NdArray& b) {
  NdArray c = NdArray::empty(a.dtype(), {a.shape()[0], b.shape()[1]});
  const int64_t inner = a.shape()[1];
  for (int64_t i = 0; i < c.shape()[0]; ++i) {
    for (int64_t j = 0; j < c.shape()[1]; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += a.scalar_at(i * inner + k).real * b.scalar_at(k * c.shape()[1] + j).real;
      store_at(c, i * c.shape()[1] + j, Scalar::of_float(c.dtype(), sum));
    }
  }
  return c;
}

NdArray relu(const NdArray& a) {
  NdArray result = NdArray::empty(a.dtype(), a.shape());
  for (int64_t i = 0; i < a.size(); ++i)
    store_at(result, i, Scalar::of_float(a.dtype(), std::max(a.scalar_at(i).real, 0.0)));
  return result;
}

// relu(x w1) w2 with the batch along x and the hidden dim along y: one all_reduce.
struct Mlp {
  explicit Mlp(ExecutorOptions options = {}) : program(mesh_2x4()) {
    const Mesh& mesh = *program.module().meshes[0];
    const AxisList x{full_axis(mesh, 0)};
    const AxisList y{full_axis(mesh, 1)};
    const DotDims dims{{}, {}, {1}, {0}};
    const ValueId input = program.argument(DType::kF32, {8, 16}, {x, {}});
    const ValueId w1 = program.argument(DType::kF32, {16, 32}, {{}, y});
    const ValueId w2 = program.argument(DType::kF32, {32, 16}, {y, {}});
    Builder builder = program.builder();
    const ValueId hidden = build_dot(builder, input, w1, dims, DType::kF32);
    const ValueId zero = build_splat(builder, Dims{4, 8}, Scalar::of_float(DType::kF32, 0));
    const ValueId active = builder.create("stablehlo.maximum", {hidden, zero});
    const ValueId partial = build_dot(builder, active, w2, dims, DType::kF32);
    const ValueId out = create_all_reduce(builder, mesh, partial, y, Reducer::kSum);
    executable = program.finish({{out, {8, 16}, {x, {}}}}, options);
    Random random(1);
    whole = {integers(random, DType::kF32, {8, 16}), integers(random, DType::kF32, {16, 32}),
             integers(random, DType::kF32, {32, 16})};
    for (size_t i = 0; i < 3; ++i) arguments.push_back(given(*executable, i, whole[i]));
    expected = matmul(relu(matmul(whole[0], whole[1])), whole[2]);
  }

  LocalProgram program;
  std::unique_ptr<Executable> executable;
  std::vector<NdArray> whole;
  std::vector<ShardedArray> arguments;
  NdArray expected;
};

TEST(Executor, RunsATensorParallelMlp) {
  for (bool fuse : {true, false}) {
    for (bool faithful : {true, false}) {
      Mlp mlp({.fuse = fuse});
      const auto results = run_virtual(*mlp.executable, mlp.arguments, {.faithful = faithful});
      ASSERT_EQ(results.size(), 1U);
      EXPECT_TRUE(same_elements(gather(results[0]), mlp.expected));
      EXPECT_EQ(results[0].shards().count(), faithful ? 8 : 2);
      EXPECT_TRUE(replicas_agree(results[0]));
    }
  }
}

TEST(Executor, ComputesEveryDistinctShardOnce) {
  Mlp mlp;
  std::vector<StepTiming> trace;
  run_virtual(*mlp.executable, mlp.arguments, {.trace = &trace});
  ASSERT_EQ(trace.size(), 4U);  // the zeros went into the chain
  EXPECT_EQ(trace[0].op, "stablehlo.dot_general");
  EXPECT_EQ(trace[0].shards, 8);
  EXPECT_EQ(trace[0].bytes, 8 * 4 * 8 * 4);
  EXPECT_EQ(trace[1].op, "stablehlo.maximum");
  EXPECT_EQ(trace[3].op, "shardwise.all_reduce");
  EXPECT_EQ(trace[3].shards, 2);
  for (const StepTiming& row : trace) EXPECT_GE(row.duration_ns, 0);
}

// One device of the mesh, with results of collectives that nobody filled.
TEST(Executor, KnowsTheMemoryOfOneDeviceBeforeTheRun) {
  for (const bool fuse : {true, false}) {
    const auto mesh = mesh_2x4();
    const DeviceSet one{{full_axis(*mesh, 0), full_axis(*mesh, 1)}, 0};
    const Mlp mlp({.fuse = fuse, .devices = one});
    const MemoryUse use = mlp.executable->memory();
    OneDevice communicator;
    restart_peak_buffer_bytes();
    const int64_t before = live_buffer_bytes();
    const auto results = mlp.executable->run(communicator, mlp.arguments);
    EXPECT_EQ(restart_peak_buffer_bytes() - before, use.peak_bytes - use.argument_bytes);
    EXPECT_EQ(live_buffer_bytes() - before, use.result_bytes);
  }
}

TEST(Executor, NeverWritesArguments) {
  const auto mesh = mesh_2x4();
  LocalProgram program(mesh);
  const AxisList x{full_axis(*mesh, 0)};
  const ValueId a = program.argument(DType::kF32, {4, 4}, {x, {}});
  const ValueId twice = program.op("stablehlo.add", {a, a});
  const ValueId result = program.op("stablehlo.tanh", {twice});
  const auto executable = program.finish({{result, {4, 4}, {x, {}}}, {a, {4, 4}, {x, {}}}}, {.fuse = true});
  Random random(2);
  const NdArray whole = integers(random, DType::kF32, {4, 4});
  std::vector<std::byte> before(whole.data(), whole.data() + whole.nbytes());
  std::vector<ShardedArray> arguments{given(*executable, 0, whole)};
  const auto first = run_virtual(*executable, arguments);
  EXPECT_EQ(gather(first[1]).data(), whole.data());  // passed through
  arguments[0] = first[0];                           // a result of one run is an argument of the next
  const NdArray copy = NdArray::empty(DType::kF32, {4, 4});
  copy.copy_from(gather(first[0]));
  run_virtual(*executable, arguments);
  EXPECT_TRUE(same_elements(gather(first[0]), copy));
  EXPECT_EQ(std::memcmp(before.data(), whole.data(), before.size()), 0);
}

// dynamic_update_slice and scatter write into an operand that nothing else reads.
TEST(Executor, UpdatesInPlaceWhatNothingElseReads) {
  const auto mesh = mesh_2x4();
  const AxisList x{full_axis(*mesh, 0)};
  for (const bool is_used_later : {false, true}) {
    for (const bool of_argument : {false, true}) {
      LocalProgram program(mesh);
      const ValueId argument = program.argument(DType::kF32, {256, 1024}, {x, {}});
      const ValueId row = program.argument(DType::kF32, {1, 1024}, {{}, {}});
      Builder builder = program.builder();
      const ValueId three = build_scalar(builder, Scalar::of_int(DType::kI32, 3));
      const ValueId zero = build_scalar(builder, Scalar::of_int(DType::kI32, 0));
      const ValueId base = of_argument ? argument : program.op("stablehlo.negate", {argument});
      const ValueId updated = build_dynamic_update_slice(builder, base, row, {three, zero});
      std::vector<LocalProgram::Result> wanted{{updated, {256, 1024}, {x, {}}}};
      if (is_used_later) wanted.push_back({base, {256, 1024}, {x, {}}});
      const auto executable = program.finish(wanted);
      Random random(5);
      const NdArray whole = integers(random, DType::kF32, {256, 1024}), ones = integers(random, DType::kF32, {1, 1024});
      const NdArray copy = NdArray::empty(DType::kF32, whole.shape());
      copy.copy_from(whole);
      const std::vector<ShardedArray> arguments{given(*executable, 0, whole), given(*executable, 1, ones)};
      const int64_t before = live_buffer_bytes();
      const auto results = run_virtual(*executable, arguments);
      const int64_t made = (is_used_later && !of_argument) ? 2 : 1;
      EXPECT_EQ(live_buffer_bytes() - before, made << 20);
      EXPECT_TRUE(results[0].shards().is_stacked());
      const NdArray expected = NdArray::empty(DType::kF32, whole.shape());
      for (int64_t i = 0; i < whole.size(); ++i) {
        const int64_t local_row = i / 1024 % 128;
        const double old = copy.scalar_at(i).real;
        store_at(expected, i,
                 Scalar::of_float(DType::kF32, local_row == 3 ? ones.scalar_at(i % 1024).real
                                               : of_argument  ? old
                                                              : -old));
      }
      EXPECT_TRUE(same_elements(gather(results[0]), expected));
      EXPECT_TRUE(same_elements(whole, copy));
    }
  }
}

// A donated argument is written in place, if nothing else holds it.
TEST(Executor, UpdatesADonatedArgumentInPlace) {
  const auto mesh = mesh_2x4();
  const AxisList x{full_axis(*mesh, 0)};
  LocalProgram program(mesh);
  const ValueId base = program.argument(DType::kF32, {256, 1024}, {x, {}});
  const ValueId row = program.argument(DType::kF32, {1, 1024}, {{}, {}});
  Builder builder = program.builder();
  const ValueId zero = build_scalar(builder, Scalar::of_int(DType::kI32, 0));
  const ValueId updated = build_dynamic_update_slice(builder, base, row, {zero, zero});
  const auto executable = program.finish({{updated, {256, 1024}, {x, {}}}});
  VirtualCommunicator communicator;
  for (const bool is_donated : {false, true}) {
    for (const bool is_held : {false, true}) {
      const NdArray ones = NdArray::full(DType::kF32, {1, 1024}, Scalar::of_float(DType::kF32, 1));
      NdArray whole = pooled_empty(DType::kF32, {256, 1024});
      whole.copy_from(NdArray::full(DType::kF32, {256, 1024}, Scalar::of_float(DType::kF32, 0)));
      const std::byte* where = whole.data();
      std::vector<ShardedArray> arguments{given(*executable, 0, whole), given(*executable, 1, ones)};
      if (!is_held) whole = NdArray();
      RunOptions options;
      if (is_donated) options.donated = {0};
      const auto results = executable->run(communicator, std::move(arguments), options);
      EXPECT_EQ(gather(results[0]).data() == where, is_donated && !is_held);
      EXPECT_EQ(gather(results[0]).scalar_at(0).real, 1);
      if (is_held) {
        EXPECT_EQ(whole.scalar_at(0).real, 0);
      }
    }
  }
}

TEST(Executor, FreesBuffersAtTheirLastUse) {
  const auto mesh = mesh_2x4();
  for (bool fuse : {false, true}) {
    LocalProgram program(mesh);
    ValueId value = program.argument(DType::kF32, {256, 1024}, {{full_axis(*mesh, 0)}, {}});
    for (int i = 0; i < 100; ++i) value = program.op("stablehlo.tanh", {value});
    const auto executable = program.finish({{value, {256, 1024}, {{full_axis(*mesh, 0)}, {}}}}, {.fuse = fuse});
    Random random(3);
    const std::vector<ShardedArray> arguments{given(*executable, 0, random_array(random, DType::kF32, {256, 1024}))};
    const int64_t before = live_buffer_bytes();
    int64_t peak = 0;
    run_virtual(*executable, arguments, {.between_ops = [&] { peak = std::max(peak, live_buffer_bytes() - before); }});
    EXPECT_LE(peak, 2 << 20);  // two of 1 MiB at most
    EXPECT_EQ(live_buffer_bytes(), before);
  }
}

TEST(Executor, FusedChainsGiveTheSameBits) {
  const auto mesh = mesh_2x4();
  const AxisList x{full_axis(*mesh, 0)};
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    std::vector<NdArray> outcomes;
    for (bool fuse : {true, false}) {
      LocalProgram program(mesh);
      const ValueId a = program.argument(dtype, {8, 33}, {x, {}});
      const ValueId b = program.argument(dtype, {33}, {{}});
      Builder builder = program.builder();
      const ValueId row = build_broadcast(builder, b, Dims{4, 33}, Dims{1});
      const ValueId sum = program.op("stablehlo.add", {a, row});
      const ValueId square = program.op("stablehlo.multiply", {sum, sum});
      const ValueId positive = program.op("stablehlo.abs", {square});
      const ValueId root = program.op("stablehlo.sqrt", {positive});
      const ValueId result = program.op("stablehlo.tanh", {root});
      const auto executable = program.finish({{result, {8, 33}, {x, {}}}}, {.fuse = fuse});
      Random random(4);
      const std::vector<ShardedArray> arguments{given(*executable, 0, random_array(random, dtype, {8, 33})),
                                                given(*executable, 1, random_array(random, dtype, {33}))};
      std::vector<StepTiming> trace;
      outcomes.push_back(gather(run_virtual(*executable, arguments, {.trace = &trace})[0]));
      EXPECT_EQ(trace.size(), fuse ? 2U : 6U);
    }
    EXPECT_TRUE(same_elements(outcomes[0], outcomes[1]));
  }
}

// The gradient of a mean divides one by the count, broadcasts and negates it, and multiplies that with an array.
TEST(Executor, ChainsHaveWhatConstantsMakeAsScalars) {
  const auto mesh = mesh_2x4();
  const AxisList x{full_axis(*mesh, 0)};
  for (const double numerator : {1.0, 0.0}) {
    std::vector<NdArray> outcomes;
    for (const bool fuse : {true, false}) {
      LocalProgram program(mesh);
      const ValueId a = program.argument(DType::kF32, {8, 33}, {x, {}});
      Builder builder = program.builder();
      const ValueId one = build_scalar(builder, Scalar::of_float(DType::kF32, numerator));
      const ValueId count = build_scalar(builder, Scalar::of_float(DType::kF32, numerator == 0 ? 0.0 : 7.0));
      const ValueId part = program.op("stablehlo.divide", {one, count});
      const ValueId row = build_broadcast(builder, part, Dims{33}, Dims{});
      const ValueId negative = program.op("stablehlo.negate", {row});
      const ValueId whole = build_broadcast(builder, negative, Dims{4, 33}, Dims{1});
      const ValueId result = program.op("stablehlo.multiply", {whole, a});
      const auto executable = program.finish({{result, {8, 33}, {x, {}}}}, {.fuse = fuse});
      Random random(6);
      NdArray factors = random_array(random, DType::kF32, {8, 33});
      for (int64_t k = 0; k < factors.size(); ++k) {
        // One NaN at most in a product: which of two it keeps, and the sign that 0 / 0 has, depend on the processor.
        if (std::isnan(factors.scalar_at(k).real)) store_at(factors, k, Scalar::of_float(DType::kF32, 1));
      }
      std::vector<StepTiming> trace;
      const std::vector arguments{given(*executable, 0, factors)};
      outcomes.push_back(gather(run_virtual(*executable, arguments, {.trace = &trace})[0]));
      // 0 / 0 stays a value, because a scalar would lose the kind of a NaN.
      EXPECT_EQ(trace.size(), !fuse ? 7U : numerator == 0 ? 5U : 1U);
    }
    EXPECT_TRUE(same_elements(outcomes[0], outcomes[1]));
  }
}

TEST(Executor, AxisIndexPicksTheOwnRows) {
  const auto mesh = mesh_2x4();
  const AxisList both{full_axis(*mesh, 1), full_axis(*mesh, 0)};
  LocalProgram program(mesh);
  const ValueId whole = program.argument(DType::kF32, {16, 3}, {{}, {}});
  Builder builder = program.builder();
  const ValueId index = create_axis_index(builder, *mesh, both);
  const ValueId rows = build_scalar(builder, Scalar::of_int(DType::kI32, 2));
  const ValueId start = builder.create("stablehlo.multiply", {index, rows});
  const ValueId zero = build_scalar(builder, Scalar::of_int(DType::kI32, 0));
  const ValueId own = build_dynamic_slice(builder, whole, {start, zero}, Dims{2, 3});
  const auto executable = program.finish({{own, {16, 3}, {both, {}}}});
  Random random(5);
  const NdArray array = random_array(random, DType::kF32, {16, 3});
  const auto results = run_virtual(*executable, std::vector{given(*executable, 0, array)});
  EXPECT_TRUE(same_elements(gather(results[0]), array));
  EXPECT_EQ(gather(results[0]).data(), array.data());  // slices and their gather are views
}

TEST(Executor, UnevenShardsAndPoison) {
  const auto mesh = mesh_2x4();
  const AxisList y{full_axis(*mesh, 1)};
  LocalProgram program(mesh);
  const ValueId a = program.argument(DType::kF32, {6}, {y});
  const ValueId b = program.op("stablehlo.negate", {a});
  Builder builder = program.builder();
  const ValueId all =
      create_all_gather(builder, *mesh, b, std::vector<AxisList>{y});  // 4 blocks of 2, the last is padding
  const auto executable = program.finish({{b, {6}, {y}}, {all, {8}, {{}}}});
  Random random(6);
  const NdArray whole = integers(random, DType::kF32, {6});
  for (bool faithful : {false, true}) {
    const auto clean = run_virtual(*executable, std::vector{given(*executable, 0, whole)}, {.faithful = faithful});
    const auto poisoned =
        run_virtual(*executable, std::vector{given(*executable, 0, whole)}, {.faithful = faithful, .poison = true});
    EXPECT_TRUE(same_elements(gather(clean[0]), gather(poisoned[0])));
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(gather(clean[0]).scalar_at(i).real, -whole.scalar_at(i).real);
    EXPECT_TRUE(std::isnan(gather(poisoned[1]).scalar_at(6).real));  // reads padding: poison shows it
    EXPECT_FALSE(std::isnan(gather(clean[1]).scalar_at(6).real));
  }
}

TEST(Executor, ResultsThatDoNotVaryAreSharedByAllShards) {
  const auto mesh = mesh_2x4();
  const AxisList x{full_axis(*mesh, 0)};
  LocalProgram program(mesh);
  Builder builder = program.builder();
  const ValueId iota = build_iota(builder, DType::kI32, Dims{3}, 0);
  const auto executable = program.finish({{iota, {6}, {x}}});
  const auto results = run_virtual(*executable, {});
  EXPECT_EQ(results[0].shards().count(), 2);
  EXPECT_EQ(results[0].padded_shard(0).data(), results[0].padded_shard(7).data());
  EXPECT_EQ(gather(results[0]).scalar_at(4).integer, 1);
}

TEST(Executor, UnpartitionedRunsGlobalPrograms) {
  LocalProgram program(mesh_2x4());
  const ValueId a = program.argument(DType::kF32, {5}, {{}});
  const ValueId b = program.op("stablehlo.add", {a, a});
  program.finish({{b, {5}, {{}}}});
  const auto executable = Executable::unpartitioned(std::make_shared<Module>(program.module()));
  const NdArray ones = NdArray::full(DType::kF32, {5}, Scalar::of_float(DType::kF32, 1));
  const auto results = run_virtual(*executable, std::vector{given(*executable, 0, ones)});
  EXPECT_EQ(gather(results[0]).scalar_at(4).real, 2);
}

TEST(Executor, StopsBetweenOps) {
  Mlp mlp;
  int ops = 0;
  const auto stop = [&] {
    if (++ops == 3) throw std::runtime_error("stop");
  };
  EXPECT_THROW(run_virtual(*mlp.executable, mlp.arguments, {.between_ops = stop}), std::runtime_error);
  EXPECT_EQ(ops, 3);
  EXPECT_TRUE(same_elements(gather(run_virtual(*mlp.executable, mlp.arguments)[0]), mlp.expected));
}

TEST(Executor, ChecksArguments) {
  Mlp mlp;
  auto arguments = mlp.arguments;
  arguments.pop_back();
  EXPECT_EQ(message_of<ShapeError>([&] { run_virtual(*mlp.executable, arguments); }),
            "run: the program takes 3 arguments, got 2");
  arguments = mlp.arguments;
  std::swap(arguments[1], arguments[2]);
  EXPECT_EQ(message_of<ShapeError>([&] { run_virtual(*mlp.executable, arguments); }),
            "argument 1: the shape must be [16, 32], got [32, 16]; compile the program for this shape");
  arguments = mlp.arguments;
  arguments[0] = scatter(NdArray::empty(DType::kF64, {8, 16}), arguments[0].sharding());
  EXPECT_EQ(message_of<DTypeError>([&] { run_virtual(*mlp.executable, arguments); }),
            "argument 0: the dtype must be f32, got f64; convert it first");
  arguments[0] = scatter(mlp.whole[0], TensorSharding::fully_replicated(arguments[0].sharding().mesh, 2));
  EXPECT_EQ(
      message_of<ShardingError>([&] { run_virtual(*mlp.executable, arguments); }),
      "argument 0: the sharding must be <@mesh, [{\"x\"}, {}]> in blocks [4, 16], got <@mesh, [{}, {}]> in blocks "
      "[8, 16]; reshard it first");
}

TEST(Executor, ServesSeveralThreads) {
  Mlp mlp;
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto results =
            run_virtual(*mlp.executable, mlp.arguments, {.faithful = (i + static_cast<int>(t)) % 2 == 0});
        right[t] += same_elements(gather(results[0]), mlp.expected) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 20));
}

// One random op on values of one local shape, 24x24.
ValueId random_op(Random& random, LocalProgram& program, const Mesh& mesh, const AxisList& digits,
                  const std::vector<ValueId>& values) {
  const auto any = [&] { return values[static_cast<size_t>(below(random, static_cast<int64_t>(values.size())))]; };
  Builder builder = program.builder();
  const AxisList axes = some_of(random, digits);
  switch (below(random, 11)) {
    case 0: return program.op("stablehlo.add", {any(), any()});
    case 1: return program.op("stablehlo.multiply", {any(), any()});
    case 2: return program.op("stablehlo.tanh", {any()});
    case 3: return build_transpose(builder, any(), Dims{1, 0});
    case 4: return create_all_reduce(builder, mesh, any(), axes, Reducer::kSum);
    case 5: return create_all_reduce(builder, mesh, any(), axes, Reducer::kMax);
    case 6: return create_shift(builder, mesh, any(), axes, below(random, 5) - 2, below(random, 2) == 0);
    case 7: {
      AxisList to = axes;
      std::shuffle(to.begin(), to.end(), random);
      return create_collective_permute(builder, mesh, any(), axes, to);
    }
    case 8: {
      const ValueId index = build_convert(builder, create_axis_index(builder, mesh, axes), DType::kF32);
      return program.op("stablehlo.subtract", {any(), build_broadcast(builder, index, Dims{24, 24}, Dims{})});
    }
    case 9: {
      const ValueId gathered = create_all_gather(builder, mesh, any(), std::vector<AxisList>{axes, {}});
      const ValueId zero = build_scalar(builder, Scalar::of_int(DType::kI32, 0));
      return build_dynamic_slice(builder, gathered, {create_axis_index(builder, mesh, digits), zero}, Dims{24, 24});
    }
    default: {
      AxisList one;
      if (!digits.empty()) one = {digits[static_cast<size_t>(below(random, static_cast<int64_t>(digits.size())))]};
      const ValueId moved = create_all_to_all(builder, mesh, any(), std::vector<AllToAllMove>{{one, 0, 1}});
      return create_all_to_all(builder, mesh, moved, std::vector<AllToAllMove>{{one, 1, 0}});
    }
  }
}

TEST(Executor, FaithfulRunsAgreeBitForBitOnRandomPrograms) {
  Random random(7);
  for (int round = 0; round < 120; ++round) {
    const MeshPtr mesh = random_mesh(random);
    const AxisList digits = random_digits(random, *mesh);
    LocalProgram program(mesh);
    std::vector<ValueId> values;
    const AxisList some = some_of(random, digits);
    AxisList merged;
    append_merged(merged, some);
    values.push_back(program.argument(DType::kF32, {24 * product(merged), 24}, {merged, {}}));
    values.push_back(program.argument(DType::kF32, {24, 24}, {{}, {}}));
    for (int i = 0; i < 12; ++i) values.push_back(random_op(random, program, *mesh, digits, values));
    AxisList all;
    for (int axis = 0; axis < mesh->ndim(); ++axis) all.push_back(full_axis(*mesh, axis));
    const int64_t devices = mesh->device_count();
    const auto executable = program.finish(
        {{values.back(), {24 * devices, 24}, {all, {}}}, {values[values.size() - 2], {24 * devices, 24}, {all, {}}}},
        {.fuse = round % 2 == 0});
    std::vector<ShardedArray> arguments;
    for (size_t i = 0; i < 2; ++i) {
      arguments.push_back(given(*executable, i, integers(random, DType::kF32, executable->argument_type(i).shape)));
    }
    const auto quick = run_virtual(*executable, arguments);
    const auto faithful = run_virtual(*executable, arguments, {.faithful = true, .poison = true});
    for (size_t i = 0; i < 2; ++i)
      ASSERT_TRUE(same_elements(gather(quick[i]), gather(faithful[i]))) << "round " << round;
    const AxisList pinned{full_axis(*mesh, round % mesh->ndim())};
    const auto make = [&](const DeviceSet& owned) { return program.executable({.devices = owned}); };
    expect_same_in_processes(pinned, make, arguments, quick);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
}

}  // namespace
}  // namespace shardwise
