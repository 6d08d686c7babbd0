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

// The value holds the shard of a global array of this shape.
inline void set_part(Module& module, const MeshPtr& mesh, ValueId value, const Dims& shape,
                     const std::vector<AxisList>& axes) {
  Placement placement = replicated_placement(mesh, shape);
  for (size_t d = 0; d < shape.size(); ++d) placement.dims[d] = {axes[d], block_size(shape[d], product(axes[d]))};
  const PlacedType placed{module.context().tensor(module.type(value).dtype, shape), module.context().intern(placement)};
  const bool uneven = LayoutView(module.context(), placed).is_uneven();
  module.set_part(value,
                  {placed.type, placed.placement, {uneven ? Padding::Kind::kGarbage : Padding::Kind::kNone, {}}});
}

// A permute that moves each shard `shift` positions along `axes`; without `wrap`, the first ones receive zeros.
inline ValueId create_shift(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift,
                            bool wrap) {
  return builder.create("shardwise.collective_permute", {operand},
                        {{"axes", AxesAttr{to_raw(mesh, axes)}},
                         {"mesh", Symbol{mesh.name()}},
                         {"shift", IntAttr{shift}},
                         {"wrap", wrap}});
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
    Dims block;
    for (size_t d = 0; d < shape.size(); ++d) block.push_back(block_size(shape[d], product(axes[d])));
    const ValueId value = module_->add_argument(module_->main().body, module_->context().tensor(dtype, block));
    place(value, shape, axes);
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
      place(result.value, result.shape, result.axes);
    }
    return executable(std::move(options));
  }
  std::unique_ptr<Executable> executable(ExecutorOptions options) const {  // of a finished program
    return std::make_unique<Executable>(module_, mesh_, std::move(options));
  }

  void place(ValueId value, const Dims& shape, const std::vector<AxisList>& axes) {
    set_part(*module_, mesh_, value, shape, axes);
  }

 private:
  MeshPtr mesh_;
  std::shared_ptr<Module> module_;
  LocId loc_;
};

inline ShardedArray given(const Executable& program, size_t i, const NdArray& whole) {
  return scatter(whole, program.argument_placement(i));
}

// On all devices of the mesh.
inline std::vector<ShardedArray> run_virtual(const Executable& program, std::span<const ShardedArray> arguments,
                                             const RunOptions& options = {}) {
  VirtualCommunicator communicator;
  return program.run(communicator, {arguments.begin(), arguments.end()}, options);
}

}  // namespace shardwise::testing
