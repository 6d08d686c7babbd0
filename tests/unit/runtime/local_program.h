// SPDX-License-Identifier: Apache-2.0
//
// Local programs by hand:
//
//   LocalProgram p(mesh);
//   ValueId x = p.argument(DType::kF32, {8, 4}, {{x_axis}, {}});      // global shape; local 2x4 on x = 4
//   ValueId y = p.op("stablehlo.tanh", {x});
//   auto executable = p.finish({{y, {8, 4}, {{x_axis}, {}}}});
#pragma once

#include <memory>

#include "shardwise/ir/builder.h"
#include "shardwise/ops/registry.h"
#include "shardwise/runtime/executor.h"
#include "shardwise/runtime/virtual_communicator.h"

namespace shardwise::testing {

inline LocalLayout layout(DimSpan shape, const std::vector<AxisList>& axes) {
  LocalLayout result;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t shards = product(axes[d]);
    result.dims.push_back({.size = shape[d], .axes = axes[d], .shards = shards, .block = block_size(shape[d], shards)});
    if (result.dims.back().uneven()) result.padding.kind = Padding::Kind::kGarbage;
  }
  return result;
}

class LocalProgram {
 public:
  explicit LocalProgram(MeshPtr mesh) : mesh_(std::move(mesh)) {
    register_ops();
    module_ = std::make_shared<Module>(std::make_shared<Context>());
    module_->declare_mesh(mesh_);
    module_->functions.push_back({.name = "main", .body = module_->add_region(), .result_shardings = {}});
  }

  Builder builder() { return Builder(*module_, module_->main().body, loc_); }
  Module& module() { return *module_; }
  void at(std::string file, int32_t line) { loc_ = module_->context().file_location(std::move(file), line, 1); }

  ValueId argument(DType dtype, const Dims& shape, const std::vector<AxisList>& axes) {
    const LocalLayout placed = layout(shape, axes);
    const ValueId value =
        module_->add_argument(module_->main().body, module_->context().tensor(dtype, placed.local_shape()));
    remember(value, placed);
    return value;
  }

  ValueId op(std::string_view name, std::initializer_list<ValueId> operands) {
    return builder().create(name, operands);
  }

  struct Result {
    ValueId value;
    Dims shape;
    std::vector<AxisList> axes;
  };
  std::unique_ptr<Executable> finish(const std::vector<Result>& results, ExecutorOptions options = {}) {
    for (const Result& result : results) {
      module_->region(module_->main().body).results.push_back(result.value);
      remember(result.value, layout(result.shape, result.axes));
    }
    layouts_.resize(module_->value_count());
    return executable(std::move(options));
  }
  std::unique_ptr<Executable> executable(ExecutorOptions options) const {  // of a finished program
    return std::make_unique<Executable>(module_, layouts_, mesh_, std::move(options));
  }
  const std::vector<LocalLayout>& layouts() const { return layouts_; }

  void remember(ValueId value, const LocalLayout& placed) {
    if (layouts_.size() <= value.index) layouts_.resize(value.index + 1);
    layouts_[value.index] = placed;
  }

 private:
  MeshPtr mesh_;
  std::shared_ptr<Module> module_;
  std::vector<LocalLayout> layouts_;
  LocId loc_;
};

inline ShardedArray given(const Executable& program, size_t i, const NdArray& whole) {
  return scatter(whole, program.argument(i).placement);
}

// On all devices of the mesh.
inline std::vector<ShardedArray> run_virtual(const Executable& program, std::span<const ShardedArray> arguments,
                                             const RunOptions& options = {}) {
  VirtualCommunicator communicator;
  return program.run(communicator, {arguments.begin(), arguments.end()}, options);
}

}  // namespace shardwise::testing
