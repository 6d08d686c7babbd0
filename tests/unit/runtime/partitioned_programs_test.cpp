// SPDX-License-Identifier: Apache-2.0
//
// Random programs with random annotations on small meshes: what the devices compute together is what one computes
// alone. All elements are int32, whose sums and products wrap around, so that every order of additions gives the same
// bits.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/processes.h"
#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/registry.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/text/printer.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

MeshPtr mesh_with_ids(std::vector<MeshAxis> axes, Dims ids = {}) {
  return std::make_shared<const Mesh>("mesh", std::move(axes), std::move(ids));
}

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed)
      : random_(seed),
        module_(std::make_shared<Context>()),
        mesh_(pick_mesh()),
        body_(start()),
        builder_(module_, body_) {}

  Module make() {
    for (int64_t i = 0, count = 1 + pick(3); i < count; ++i) {
      Dims shape;
      for (int64_t d = 0, ndim = pick(4); d < ndim; ++d) shape.push_back(size());
      values_.push_back(module_.add_argument(body_, module_.context().tensor(DType::kI32, shape)));
      if (pick(3) > 0) annotate(values_.back());
    }
    for (int64_t i = 0, count = 2 + pick(9); i < count; ++i) add_op();
    Function& main = module_.main();
    for (int64_t i = 0; i < std::min<int64_t>(3, static_cast<int64_t>(values_.size())); ++i) {
      const ValueId result = values_[values_.size() - 1 - static_cast<size_t>(i)];
      module_.region(body_).results.push_back(result);
      const bool given = pick(2) == 0;
      main.result_shardings.push_back(given ? module_.context().intern(sharding(module_.type(result).shape))
                                            : ShardingId{});
    }
    return std::move(module_);
  }
  const MeshPtr& mesh() const { return mesh_; }

 private:
  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random_); }
  int64_t size() {
    static const int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 17, 8, 4, 16, 0};
    return kSizes[pick(pick(6) == 0 ? 13 : 12)];
  }
  MeshPtr pick_mesh() {
    static const MeshPtr kMeshes[] = {mesh_with_ids({{"x", 4}, {"y", 2}}),
                                      mesh_with_ids({{"x", 8}}),
                                      mesh_with_ids({{"x", 2}, {"y", 2}, {"z", 2}}),
                                      mesh_with_ids({{"x", 3}, {"y", 2}}),
                                      mesh_with_ids({{"x", 2}, {"y", 2}}, {3, 1, 0, 2}),
                                      mesh_with_ids({{"x", 2}, {"one", 1}})};
    return kMeshes[pick(6)];
  }
  RegionId start() {
    module_.declare_mesh(mesh_);
    const RegionId body = module_.add_region();
    module_.functions.push_back({.name = "main", .body = body, .result_shardings = {}});
    return body;
  }

  TensorSharding sharding(const Dims& shape) {
    TensorSharding sharding = TensorSharding::fully_replicated(mesh_, static_cast<int64_t>(shape.size()));
    AxisList digits;
    for (int axis = 0; axis < mesh_->ndim(); ++axis) {
      const int64_t length = mesh_->axis_size(axis);
      const int64_t cut = length % 4 == 0 && pick(2) == 0 ? 2 : length;
      digits.push_back({axis, 1, cut});
      if (cut < length) digits.push_back({axis, cut, length / cut});
    }
    std::shuffle(digits.begin(), digits.end(), random_);
    for (const AxisRef& digit : digits) {
      const int64_t place = pick(static_cast<int64_t>(shape.size()) + 1);
      if (place < static_cast<int64_t>(shape.size()))
        append_merged(sharding.dims[static_cast<size_t>(place)].axes, digit);
    }
    for (DimSharding& dim : sharding.dims) dim.open = pick(2) == 0;
    return sharding;
  }
  void annotate(ValueId value) {
    module_.value(value).sharding = module_.context().intern(sharding(module_.type(value).shape));
  }

  ValueId any() { return values_[static_cast<size_t>(pick(static_cast<int64_t>(values_.size())))]; }
  void keep(ValueId value) {
    if (module_.type(value).size() <= 20000) values_.push_back(value);
  }

  void add_op() {
    const ValueId x = any();
    const Dims shape = module_.type(x).shape;
    const auto ndim = static_cast<int64_t>(shape.size());
    switch (pick(14)) {
      case 0: return keep(builder_.create("stablehlo.negate", {x}));
      case 1: return keep(builder_.create(pick(2) == 0 ? "stablehlo.add" : "stablehlo.maximum", {x, same_shape(x)}));
      case 2: return keep(builder_.create("stablehlo.multiply", {x, same_shape(x)}));
      case 3: return keep(build_transpose(builder_, x, permutation(ndim)));
      case 4: return keep(build_reshape(builder_, x, reshaped(shape)));
      case 5:
        return keep(build_reduce(builder_, x,
                                 pick(2) == 0 ? ValueId{} : build_scalar(builder_, Scalar::of_int(DType::kI32, 3)),
                                 reducer(), some_dims(ndim)));
      case 6: return add_dot(x);
      case 7: return add_broadcast(x);
      case 8: return add_slice(x);
      case 9: return add_pad(x);
      case 10: return ndim == 0 ? void() : keep(build_concatenate(builder_, {x, same_shape(x)}, pick(ndim)));
      case 11: return keep(build_reverse(builder_, x, some_dims(ndim)));
      case 12:
        return ndim == 0
                   ? void()
                   : keep(builder_.create("stablehlo.add", {x, build_iota(builder_, DType::kI32, shape, pick(ndim))}));
      default: return keep(create_sharding_constraint(builder_, x, sharding(shape)));
    }
  }

  ValueId same_shape(ValueId x) {
    std::vector<ValueId> fitting;
    for (const ValueId value : values_) {
      if (module_.value(value).type == module_.value(x).type) fitting.push_back(value);
    }
    if (pick(5) == 0) return build_splat(builder_, module_.type(x).shape, Scalar::of_int(DType::kI32, 7));
    return fitting[static_cast<size_t>(pick(static_cast<int64_t>(fitting.size())))];
  }
  Dims permutation(int64_t ndim) {
    Dims dims(static_cast<size_t>(ndim));
    std::iota(dims.begin(), dims.end(), 0);
    std::shuffle(dims.begin(), dims.end(), random_);
    return dims;
  }
  Dims some_dims(int64_t ndim) {
    Dims dims;
    for (int64_t d = 0; d < ndim; ++d) {
      if (pick(2) == 0) dims.push_back(d);
    }
    return dims;
  }
  Reducer reducer() {
    static const Reducer kReducers[] = {Reducer::kSum,  Reducer::kMax, Reducer::kMin,
                                        Reducer::kProd, Reducer::kAnd, Reducer::kOr};
    return kReducers[pick(6)];
  }
  Dims reshaped(const Dims& shape) {
    Dims result = shape;
    if (result.size() >= 2 && pick(2) == 0) {
      const auto d = static_cast<size_t>(pick(static_cast<int64_t>(result.size()) - 1));
      result[d] *= result[d + 1];
      result.erase(result.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else if (!result.empty()) {
      const auto d = static_cast<size_t>(pick(static_cast<int64_t>(result.size())));
      for (const int64_t part : {4, 2, 3, 1}) {
        if (result[d] % part != 0) continue;
        result[d] /= part;
        result.insert(result.begin() + static_cast<std::ptrdiff_t>(d) + pick(2), part);
        break;
      }
    } else {
      result = {1};
    }
    return result;
  }
  void add_dot(ValueId x) {
    const Dims shape = module_.type(x).shape;
    const ValueId y = any();
    const Dims other = module_.type(y).shape;
    DotDims dims;
    for (size_t i = 0; i < shape.size(); ++i) {
      for (size_t j = 0; j < other.size(); ++j) {
        if (shape[i] != other[j] || contains(dims.lhs_contracting, i) || contains(dims.rhs_contracting, j) ||
            contains(dims.lhs_batching, i) || contains(dims.rhs_batching, j))
          continue;
        const bool batch = pick(4) == 0;
        (batch ? dims.lhs_batching : dims.lhs_contracting).push_back(static_cast<int64_t>(i));
        (batch ? dims.rhs_batching : dims.rhs_contracting).push_back(static_cast<int64_t>(j));
      }
    }
    if (module_.type(x).size() * std::max<int64_t>(1, module_.type(y).size()) > 200000) return;
    keep(build_dot(builder_, x, y, dims, DType::kI32));
  }
  static bool contains(const Dims& dims, size_t dim) {
    return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
  }
  void add_broadcast(ValueId x) {
    Dims shape = module_.type(x).shape;
    Dims dims(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    const int64_t at = pick(static_cast<int64_t>(shape.size()) + 1);
    for (int64_t& dim : dims) dim += dim >= at ? 1 : 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && pick(2) == 0) shape[d] = size();
    }
    shape.insert(shape.begin() + at, size());
    if (element_count(shape) <= 20000) keep(build_broadcast(builder_, x, shape, dims));
  }
  void add_slice(ValueId x) {
    const Dims shape = module_.type(x).shape;
    Dims start, limit, strides;
    for (const int64_t length : shape) {
      const bool whole = pick(2) == 0;
      start.push_back(whole ? 0 : pick(length + 1));
      limit.push_back(whole ? length : start.back() + pick(length - start.back() + 1));
      strides.push_back(whole ? 1 : 1 + pick(2));
    }
    keep(build_slice(builder_, x, start, limit, strides));
  }
  void add_pad(ValueId x) {
    const Dims shape = module_.type(x).shape;
    Dims low, high, interior;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool changes = pick(2) == 0;
      low.push_back(changes ? pick(3) : 0);
      high.push_back(changes ? pick(3) : 0);
      interior.push_back(changes ? pick(2) : 0);
    }
    keep(build_pad(builder_, x, build_scalar(builder_, Scalar::of_int(DType::kI32, pick(3))), low, high, interior));
  }

  std::mt19937 random_;
  Module module_;
  MeshPtr mesh_;
  RegionId body_;
  Builder builder_;
  std::vector<ValueId> values_;
};

NdArray mixed_numbers(const TensorType& type, int64_t seed) {
  NdArray array = NdArray::empty(type.dtype, type.shape);
  for (int64_t i = 0; i < array.size(); ++i) {
    const auto value = static_cast<int32_t>((i * 2654435761LL + seed * 40503) % 1009 - 500);
    std::memcpy(array.data() + i * 4, &value, 4);
  }
  return array;
}

bool same_bits(const NdArray& a, const NdArray& b) {
  if (a.shape() != b.shape()) return false;
  const NdArray left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == 0 || std::memcmp(left.data(), right.data(), static_cast<size_t>(left.nbytes())) == 0;
}

void run_and_compare(unsigned seed) {
  RandomProgram random(seed);
  const Module made = random.make();
  const MeshPtr mesh = random.mesh();
  const auto global = std::make_shared<const Module>(made);
  std::vector<NdArray> whole;
  for (const ValueId argument : global->region(global->main().body).arguments) {
    whole.push_back(mixed_numbers(global->type(argument), static_cast<int64_t>(whole.size()) + seed));
  }
  Module module = made;
  PassContext context;
  context.options.strategy = seed % 2 == 0 ? Strategy::kBasic : Strategy::kAggressive;
  std::string stages = print(module);
  try {
    for (const Pass& pass : {kPropagate, kAssign, kPlanReshards, kLocalize, kOptimizeCollectives}) {
      module = pass.run(std::move(module), context);
      stages += std::string(pass.name) + "\n" + print(module);
    }
    const auto alone = Executable::unpartitioned(global);
    std::vector<ShardedArray> arguments;
    for (size_t i = 0; i < whole.size(); ++i) {
      arguments.push_back(scatter(whole[i], alone->argument_placement(i)));
    }
    const std::vector<ShardedArray> right = run_virtual(*alone, arguments);
    const Executable together(std::make_shared<const Module>(module), mesh);
    arguments.clear();
    for (size_t i = 0; i < whole.size(); ++i) {
      arguments.push_back(scatter(whole[i], together.argument_placement(i), PaddingFill::kPoison));
    }
    for (const bool faithful : {false, true}) {
      const std::vector<ShardedArray> results =
          run_virtual(together, arguments, {.faithful = faithful, .poison = true});
      for (size_t i = 0; i < right.size(); ++i) {
        ASSERT_TRUE(same_bits(gather(results[i]), gather(right[i]))) << "seed " << seed << ", result " << i << "\n"
                                                                     << stages;
        ASSERT_TRUE(replicas_agree(results[i])) << "seed " << seed << ", result " << i << "\n" << stages;
      }
    }
    const auto make = [&](const DeviceSet& devices) {
      return std::make_unique<Executable>(std::make_shared<const Module>(module), mesh,
                                          ExecutorOptions{.devices = devices});
    };
    const AxisList pinned{full_axis(*mesh, static_cast<int>(seed) % mesh->ndim())};
    expect_same_in_processes(pinned, make, arguments, run_virtual(together, arguments), {.poison = true});
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << "\n" << stages;
  } catch (const Error& error) {
    FAIL() << "seed " << seed << ": " << error.what() << "\n" << stages;
  }
}

TEST(PartitionedPrograms, ComputeWhatOneDeviceComputes) {
  register_ops();
  for (unsigned seed = 0; seed < 400 && !::testing::Test::HasFatalFailure(); ++seed) run_and_compare(seed);
}

}  // namespace
}  // namespace shardwise
