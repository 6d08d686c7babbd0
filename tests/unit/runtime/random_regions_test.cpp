// SPDX-License-Identifier: Apache-2.0
//
// Random local programs with loops and branches in each other, beside the same programs with every trip written out and
// every branch chosen. All elements are int32, whose sums and products wrap around, so that the bits are equal.
#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/processes.h"
#include "runtime/simulator.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

constexpr int64_t kSize = 24;

class RandomRegions {
 public:
  RandomRegions(uint64_t seed, bool expand)
      : expand_(expand), random_(seed), mesh_(random_mesh(random_)), program_(mesh_) {
    digits_ = random_digits(random_, *mesh_);
    append_merged(placed_, some_of(random_, digits_));
    Values values{program_.argument(DType::kI32, {kSize * product(placed_), kSize}, {placed_, {}}),
                  program_.argument(DType::kI32, {kSize, kSize}, {{}, {}})};
    Builder builder = program_.builder();
    const Counter counter{build_scalar(builder, Scalar::of_int(DType::kI32, 1)), 1};
    emit(program_.module().main().body, random_, values, counter, 0);
    AxisList all;
    for (int axis = 0; axis < mesh_->ndim(); ++axis) all.push_back(full_axis(*mesh_, axis));
    std::vector<LocalProgram::Result> results;
    for (size_t i = 0; i < 3; ++i) {
      const ValueId result = builder.create("stablehlo.negate", {pick(random_, values)});  // no argument
      results.push_back({result, {kSize * mesh_->device_count(), kSize}, {all, {}}});
    }
    executable_ = program_.finish(results, {.fuse = seed % 2 == 0});
    for (size_t i = 0; i < 2; ++i) {
      arguments_.push_back(
          given(*executable_, i, random_array(random_, DType::kI32, executable_->argument_type(i).shape)));
    }
  }

  const Mesh& mesh() const { return *mesh_; }
  const Executable& executable() const { return *executable_; }
  std::unique_ptr<Executable> part(const DeviceSet& devices) const { return program_.executable({.devices = devices}); }
  const std::vector<ShardedArray>& arguments() const { return arguments_; }
  int regions() const { return regions_; }

 private:
  using Values = std::vector<ValueId>;
  struct Counter {  // an i32 whose value is known in the program that is written out
    ValueId value;
    int64_t known;
  };

  Builder builder(RegionId region) { return Builder(program_.module(), region); }
  static ValueId pick(Random& random, const Values& values) {
    return values[static_cast<size_t>(below(random, static_cast<int64_t>(values.size())))];
  }

  void emit(RegionId region, Random& random, Values& values, Counter counter, int depth) {
    for (int64_t i = 0, count = 2 + below(random, 5); i < count; ++i) {
      const int64_t kind = below(random, depth < 3 ? 5 : 3);
      if (kind < 3) {
        values.push_back(emit_op(region, random, values, counter));
      } else {
        ++regions_;
        kind == 3 ? emit_loop(region, random, values, depth) : emit_case(region, random, values, counter, depth);
      }
    }
  }

  ValueId emit_op(RegionId region, Random& random, const Values& values, Counter counter) {
    Builder b = builder(region);
    const ValueId x = pick(random, values), y = pick(random, values);
    const AxisList axes = some_of(random, digits_);
    switch (below(random, 11)) {
      case 0: return b.create("stablehlo.add", {x, y});
      case 1: return b.create("stablehlo.multiply", {x, y});
      case 2: return b.create("stablehlo.maximum", {x, y});
      case 3: return build_transpose(b, x, Dims{1, 0});
      case 4: return create_all_reduce(b, *mesh_, x, axes, Reducer::kSum);
      case 5: return create_shift(b, *mesh_, x, axes, below(random, 5) - 2, below(random, 2) == 0);
      case 6: {
        const ValueId index = create_axis_index(b, *mesh_, axes);
        return b.create("stablehlo.subtract", {x, build_broadcast(b, index, Dims{kSize, kSize}, Dims{})});
      }
      case 7: {
        const ValueId gathered = create_all_gather(b, *mesh_, x, std::vector<AxisList>{axes, {}});
        return build_dynamic_slice(b, gathered, {counter.value, counter.value}, Dims{kSize, kSize});
      }
      case 8: {  // into an operand that may be dead
        const ValueId row = build_dynamic_slice(b, y, {counter.value, zero(b)}, Dims{1, kSize});
        return build_dynamic_update_slice(b, x, row, {counter.value, zero(b)});
      }
      case 9: return b.create("stablehlo.negate", {x});
      default: return build_constant_like(b);
    }
  }

  static ValueId zero(Builder& b) { return build_scalar(b, Scalar::of_int(DType::kI32, 0)); }
  static ValueId build_constant_like(Builder& b) {
    return build_splat(b, Dims{kSize, kSize}, Scalar::of_int(DType::kI32, 3));
  }

  // The body makes new carries of the old ones and of everything around the loop.
  Values emit_body(RegionId region, uint64_t seed, Values values, size_t carries, Counter counter, int depth) {
    Random random(seed);
    emit(region, random, values, counter, depth + 1);
    Values next;
    for (size_t i = 0; i < carries; ++i) next.push_back(pick(random, values));
    return next;
  }

  void emit_loop(RegionId region, Random& random, Values& values, int depth) {
    const int64_t trips = below(random, 4);
    const uint64_t seed = random();
    Values carries;
    for (int64_t i = 0, count = 1 + below(random, 4); i < count; ++i) carries.push_back(pick(random, values));
    const auto with_outer = [&](Values inner) {
      inner.insert(inner.end(), values.begin(), values.end());
      return inner;
    };
    Builder outer = builder(region);
    if (expand_) {
      for (int64_t trip = 0; trip < trips; ++trip) {
        const Counter counter{build_scalar(outer, Scalar::of_int(DType::kI32, trip)), trip};
        carries = emit_body(region, seed, with_outer(carries), carries.size(), counter, depth);
      }
      values.insert(values.end(), carries.begin(), carries.end());
      return;
    }
    Module& module = program_.module();
    Values inits{zero(outer)};
    inits.insert(inits.end(), carries.begin(), carries.end());
    const RegionId condition = module.add_region(), body = module.add_region();
    Values own;
    for (const ValueId init : inits) {
      module.add_argument(condition, module.value(init).type);
      own.push_back(module.add_argument(body, module.value(init).type));
    }
    Builder in_condition = builder(condition), in_body = builder(body);
    const ValueId limit = build_scalar(in_condition, Scalar::of_int(DType::kI32, trips));
    const ValueId goes_on = build_compare(in_condition, "LT", module.region(condition).arguments[0], limit);
    module.region(condition).results = {goes_on};
    const ValueId one = build_scalar(in_body, Scalar::of_int(DType::kI32, 1));
    const ValueId next = in_body.create("stablehlo.add", {own[0], one});
    Values results =
        emit_body(body, seed, with_outer({own.begin() + 1, own.end()}), carries.size(), {own[0], 0}, depth);
    results.insert(results.begin(), next);
    module.region(body).results = results;
    const OpId loop = outer.create_op("stablehlo.while", inits, {}, {}, std::vector{condition, body});
    for (uint32_t i = 1; i < inits.size(); ++i) values.push_back(module.result(loop, i));
  }

  void emit_case(RegionId region, Random& random, Values& values, Counter counter, int depth) {
    const int64_t branches = 1 + below(random, 3);
    const uint64_t seed = random();
    const auto count = static_cast<size_t>(1 + below(random, 2));
    const auto emit_branch = [&](RegionId inner, int64_t branch) {
      return emit_body(inner, seed + static_cast<uint64_t>(branch), values, count, counter, depth);
    };
    if (expand_) {
      const Values results = emit_branch(region, std::min(counter.known, branches - 1));
      values.insert(values.end(), results.begin(), results.end());
      return;
    }
    Module& module = program_.module();
    std::vector<RegionId> regions;
    for (int64_t branch = 0; branch < branches; ++branch) {
      regions.push_back(module.add_region());
      const Values results = emit_branch(regions.back(), branch);
      module.region(regions.back()).results = results;
    }
    const OpId op = builder(region).create_op("stablehlo.case", std::vector{counter.value}, {}, {}, regions);
    for (uint32_t i = 0; i < count; ++i) values.push_back(module.result(op, i));
  }

  bool expand_;
  Random random_;
  MeshPtr mesh_;
  LocalProgram program_;
  AxisList digits_, placed_;
  std::unique_ptr<Executable> executable_;
  std::vector<ShardedArray> arguments_;
  int regions_ = 0;
};

TEST(Regions, RandomProgramsEqualTheirExpansions) {
  int regions = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const RandomRegions program(seed, false), expanded(seed, true);
    regions += program.regions();
    const auto expected = run_virtual(expanded.executable(), program.arguments());
    const auto quick = run_virtual(program.executable(), program.arguments());
    const auto faithful = run_virtual(program.executable(), program.arguments(), {.faithful = true, .poison = true});
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(same_elements(gather(quick[i]), gather(expected[i]))) << "seed " << seed;
      ASSERT_TRUE(same_elements(gather(faithful[i]), gather(expected[i]))) << "seed " << seed;
    }
    const AxisList pinned{full_axis(program.mesh(), static_cast<int32_t>(seed) % program.mesh().ndim())};
    expect_same_in_processes(
        pinned, [&](const DeviceSet& devices) { return program.part(devices); }, program.arguments(), expected);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(regions, 300);
}

}  // namespace
}  // namespace shardwise
