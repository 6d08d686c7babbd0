// SPDX-License-Identifier: Apache-2.0
//
// Local programs as text:
//
//   LocalText p(mesh, "func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> { … }", {{{8, 4}, {x, {}}}}, {{…}});
//   p.run({whole})        // global arrays in and out
//   p.expect({whole}, {expected});      // in all modes, and in several processes
#pragma once

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/processes.h"
#include "runtime/simulator.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/text/parser.h"

namespace shardwise::testing {

struct Placed {
  Dims shape;  // global
  std::vector<AxisList> axes;
};

class LocalText {
 public:
  LocalText(const MeshPtr& mesh, std::string_view functions, const std::vector<Placed>& arguments,
            const std::vector<Placed>& results)
      : mesh_(mesh) {
    register_ops();
    const std::string text =
        str("module attributes {shardwise.stage = \"local\"} { sdy.mesh @mesh = ", mesh->text(), " ", functions, " }");
    module_ = std::make_shared<Module>(parse(text, std::make_shared<Context>()));
    verify(*module_);
    const Region& main = module_->region(module_->main().body);
    for (size_t i = 0; i < arguments.size(); ++i) place(main.arguments[i], arguments[i]);
    for (size_t i = 0; i < results.size(); ++i) place(main.results[i], results[i]);
  }

  const Module& module() const { return *module_; }
  std::unique_ptr<Executable> executable(ExecutorOptions options = {}) const {
    return std::make_unique<Executable>(module_, mesh_, std::move(options));
  }

  std::vector<NdArray> run(const std::vector<NdArray>& whole, const RunOptions& options = {}, bool fuse = true) const {
    const auto program = executable({.fuse = fuse});
    std::vector<NdArray> results;
    for (const ShardedArray& result : run_virtual(*program, given_all(*program, whole), options)) {
      results.push_back(gather(result));
    }
    return results;
  }

  void expect(const std::vector<NdArray>& whole, const std::vector<NdArray>& expected) const {
    std::vector<NdArray> before;
    for (const NdArray& array : whole) {
      before.push_back(NdArray::empty(array.dtype(), array.shape()));
      before.back().copy_from(array);
    }
    for (const bool fuse : {true, false}) {
      for (const bool faithful : {false, true}) {
        for (const bool poison : {false, true}) {
          const auto results = run(whole, {.faithful = faithful, .poison = poison}, fuse);
          ASSERT_EQ(results.size(), expected.size());
          for (size_t i = 0; i < results.size(); ++i) {
            EXPECT_TRUE(same_elements(results[i], expected[i]))
                << "result " << i << ", fuse " << fuse << ", faithful " << faithful << ", poison " << poison;
          }
        }
      }
    }
    const auto program = executable();
    const std::vector<ShardedArray> arguments = given_all(*program, whole);
    const std::vector<ShardedArray> results = run_virtual(*program, arguments);
    for (int axis = 0; axis < mesh_->ndim(); ++axis) {
      const auto make = [&](const DeviceSet& devices) { return executable({.devices = devices}); };
      expect_same_in_processes({full_axis(*mesh_, axis)}, make, arguments, results);
    }
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(same_elements(whole[i], before[i])) << "argument " << i;
  }

 private:
  void place(ValueId value, const Placed& placed) { set_part(*module_, mesh_, value, placed.shape, placed.axes); }

  static std::vector<ShardedArray> given_all(const Executable& program, const std::vector<NdArray>& whole) {
    std::vector<ShardedArray> arguments;
    for (size_t i = 0; i < whole.size(); ++i) arguments.push_back(given(program, i, whole[i]));
    return arguments;
  }

  MeshPtr mesh_;
  std::shared_ptr<Module> module_;
};

// Row-major integers in an array of the dtype.
inline NdArray numbers(DType dtype, Dims shape, const std::vector<int64_t>& values) {
  NdArray array = NdArray::empty(dtype, std::move(shape));
  for (int64_t i = 0; i < array.size(); ++i) store_at(array, i, Scalar::of_int(dtype, values[static_cast<size_t>(i)]));
  return array;
}

}  // namespace shardwise::testing
